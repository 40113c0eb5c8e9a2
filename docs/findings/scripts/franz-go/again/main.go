// A share consumer that releases what it gets first, and works two seconds before it accepts what comes again.
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
	began := time.Now()
	say := func(words ...any) {
		fmt.Println(append([]any{fmt.Sprintf("%6.3f", time.Since(began).Seconds())}, words...)...)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(os.Getenv("SHAREPROOF_BOOTSTRAP"), ",")...),
		kgo.ShareGroup(os.Getenv("SHAREPROOF_GROUP")),
		kgo.ConsumeTopics(os.Getenv("SHAREPROOF_TOPIC")),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			for _, one := range results {
				say("acknowledgements of partition", one.Partition, "are done, error:", one.Err)
			}
		}),
	)
	if err != nil {
		panic(err)
	}
	seconds, _ := strconv.Atoi(os.Args[1])
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		records := client.PollFetches(ctx).Records()
		cancel()
		for _, record := range records {
			say("offset", record.Offset, "delivery", record.DeliveryCount())
			if record.DeliveryCount() == 1 {
				record.Ack(kgo.AckRelease)
				continue
			}
			time.Sleep(2 * time.Second)
			record.Ack(kgo.AckAccept)
			say("accepted offset", record.Offset)
		}
	}
	client.Close()
}
