"""A share consumer in the mode that its argument names; it polls for ten seconds."""

import os
import sys
import time

import confluent_kafka as kafka

consumer = kafka.ShareConsumer(
    {
        "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
        "group.id": os.environ["SHAREPROOF_GROUP"],
        "share.acknowledgement.mode": sys.argv[1],
    }
)
consumer.subscribe([os.environ["SHAREPROOF_TOPIC"]])
end = time.monotonic() + 10
while time.monotonic() < end:
    for one in consumer.poll(0.5):
        print(f"offset {one.offset()}, delivery {one.delivery_count()}")
consumer.close()
