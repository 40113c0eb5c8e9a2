// A share consumer as franz-go's documentation has it: polls for some seconds and closes.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("SHAREPROOF_BOOTSTRAP"), ",")...),
		kgo.ShareGroup(os.Getenv("SHAREPROOF_GROUP")),
		kgo.ConsumeTopics(os.Getenv("SHAREPROOF_TOPIC")),
	)
	if err != nil {
		panic(err)
	}
	seconds := 6
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		fetches.EachRecord(func(r *kgo.Record) { fmt.Println("record", r.Offset, string(r.Value)) })
		fetches.EachError(func(_ string, _ int32, err error) {
			if err != context.DeadlineExceeded {
				fmt.Println("error", err)
			}
		})
	}
	client.Close()
	fmt.Println("closed")
}
