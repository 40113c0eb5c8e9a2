// A share consumer whose group id a consumer group has: polls for some seconds and closes.
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
	brokers := kgo.SeedBrokers(strings.Split(os.Getenv("SHAREPROOF_BOOTSTRAP"), ",")...)
	topics := kgo.ConsumeTopics(os.Getenv("SHAREPROOF_TOPIC"))
	group := os.Getenv("SHAREPROOF_GROUP")

	reset := kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())
	other := open(brokers, topics, reset, kgo.ConsumerGroup(group))
	defer other.Close()
	poll(other, "consumer group:", 30*time.Second, true)

	client := open(brokers, topics, kgo.ShareGroup(group))
	poll(client, "share group:", 6*time.Second, false)
	client.Close()
}

func open(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(options...)
	if err != nil {
		panic(err)
	}
	return client
}

func poll(client *kgo.Client, who string, most time.Duration, untilRecords bool) {
	records := 0
	for end := time.Now().Add(most); time.Now().Before(end) && (records == 0 || !untilRecords); {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		records += fetches.NumRecords()
		fetches.EachError(func(_ string, _ int32, err error) {
			if err != context.DeadlineExceeded {
				fmt.Println(who, "error", err)
			}
		})
	}
	fmt.Println(who, records, "records")
}
