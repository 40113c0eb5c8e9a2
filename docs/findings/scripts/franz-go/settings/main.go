// Makes a client of a share group with options that mean nothing for one, or that are out of range, and
// prints whether it was refused. No broker is needed.
package main

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	for _, each := range []struct {
		name   string
		option kgo.Opt
	}{
		{"GreedyAutoCommit()", kgo.GreedyAutoCommit()},
		{"Balancers(RangeBalancer())", kgo.Balancers(kgo.RangeBalancer())},
		{"ConsumeResetOffset(NewOffset().AtEnd())", kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd())},
		{"FetchIsolationLevel(ReadCommitted())", kgo.FetchIsolationLevel(kgo.ReadCommitted())},
		{"HeartbeatInterval(1s)", kgo.HeartbeatInterval(time.Second)},
		{"InstanceID(\"one\")", kgo.InstanceID("one")},
		{"SessionTimeout(10s)", kgo.SessionTimeout(10 * time.Second)},
		{"ShareMaxRecords(0)", kgo.ShareMaxRecords(0)},
		{"ShareMaxRecords(-1)", kgo.ShareMaxRecords(-1)},
		{"FetchMaxBytes(-1)", kgo.FetchMaxBytes(-1)},
		{"FetchMinBytes(-1)", kgo.FetchMinBytes(-1)},
		{"FetchMaxWait(-1ms)", kgo.FetchMaxWait(-time.Millisecond)},
		{"MetadataMaxAge(2h)", kgo.MetadataMaxAge(2 * time.Hour)},
	} {
		client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), kgo.ShareGroup("g"), each.option)
		if err != nil {
			fmt.Printf("%s: refused, %v\n", each.name, err)
			continue
		}
		client.Close()
		fmt.Println(each.name + ": taken")
	}
}
