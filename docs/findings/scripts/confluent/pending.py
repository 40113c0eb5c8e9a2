"""Closing with acknowledgements that were not sent yet, once no broker is there any more."""

import os
import sys
import time

from confluent_kafka import ShareConsumer

consumer = ShareConsumer(
    {
        "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
        "group.id": os.environ["SHAREPROOF_GROUP"],
        "share.acknowledgement.mode": "explicit",
    }
)
consumer.subscribe([os.environ["SHAREPROOF_TOPIC"]])
records = []
while not records:
    records = consumer.poll(0.5)
for record in records:
    consumer.acknowledge(record)
time.sleep(float(sys.argv[1]))
began = time.monotonic()
try:
    consumer.close()
except Exception as error:
    print(repr(error))
print(f"closed within {time.monotonic() - began:.1f} s")
