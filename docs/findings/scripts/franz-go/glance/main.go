// What polls that do not wait bring, with a fetch under way only while a poll runs.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("SHAREPROOF_BOOTSTRAP"), ",")...),
		kgo.ShareGroup(os.Getenv("SHAREPROOF_GROUP")),
		kgo.ConsumeTopics(os.Getenv("SHAREPROOF_TOPIC")),
		kgo.MaxConcurrentFetches(0),
	)
	if err != nil {
		panic(err)
	}
	defer client.Close()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	records := 0
	for range 40 {
		records += client.PollFetches(over).NumRecords()
		time.Sleep(250 * time.Millisecond)
	}
	fmt.Println("40 polls within 10 s that did not wait:", records, "records")
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	fmt.Println("one that waits:", client.PollFetches(ctx).NumRecords(), "records")
}
