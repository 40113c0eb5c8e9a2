// A share consumer that works 5 s for the first records it gets, and then goes on for as many seconds as its argument says.
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
		kgo.MaxConcurrentFetches(0),
	)
	if err != nil {
		panic(err)
	}
	seconds, _ := strconv.Atoi(os.Args[1])
	worked := false
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		records := client.PollFetches(ctx).Records()
		cancel()
		if len(records) == 0 {
			continue
		}
		if !worked {
			worked = true
			time.Sleep(5 * time.Second)
		}
		for _, record := range records {
			fmt.Println("offset", record.Offset, "delivery", record.DeliveryCount())
			record.Ack(kgo.AckAccept)
		}
		ctx, cancel = context.WithTimeout(context.Background(), 5*time.Second)
		_ = client.FlushAcks(ctx)
		cancel()
	}
	client.Close()
}
