"""A share consumer that goes on polling after an error, as many seconds as its argument says."""

import os
import sys
import time

import confluent_kafka as kafka

consumer = kafka.ShareConsumer(
    {
        "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
        "group.id": os.environ["SHAREPROOF_GROUP"],
    }
)
consumer.subscribe([os.environ["SHAREPROOF_TOPIC"]])
empty, end = 0, time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    try:
        records = consumer.poll(0.5)
    except kafka.KafkaException as thrown:
        print("poll:", thrown.args[0].str())
        empty = 0
        continue
    for one in records:
        print(f"offset {one.offset()}" if one.error() is None else f"error: {one.error()}")
    empty = 0 if records else empty + 1
print(f"the last {empty} polls returned nothing")
consumer.close()
