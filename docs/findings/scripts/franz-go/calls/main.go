// What franz-go says to calls that cannot mean anything: nothing.
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
	group := os.Getenv("SHAREPROOF_GROUP")

	client, err := kgo.NewClient(brokers, kgo.ShareGroup(group))
	fmt.Println("new client without topics:", err)
	report("poll without topics:", client)
	client.AddConsumeTopics("", "  ") // returns nothing
	report("poll with blank topics:", client)
	client.Close()
	client.AddConsumeTopics("topic") // returns nothing
	fmt.Println("topics after close:", client.GetConsumeTopics())
	report("poll after close:", client)
	client.Close()
	fmt.Println("closed twice")

	client, err = kgo.NewClient(brokers, kgo.ShareGroup("  "), kgo.ConsumeTopics(os.Getenv("SHAREPROOF_TOPIC")))
	fmt.Println("new client of a blank group:", err)
	report("poll of a blank group:", client)
	client.Close()
}

func report(what string, client *kgo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	fetches := client.PollFetches(ctx)
	fmt.Println(what, fetches.NumRecords(), "records, error:", fetches.Err())
}
