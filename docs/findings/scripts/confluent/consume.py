"""A share consumer in implicit mode: polls for some seconds and closes."""

import os
import sys
import time

from confluent_kafka import ShareConsumer

settings = {
    "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
    "group.id": os.environ["SHAREPROOF_GROUP"],
}
settings |= dict(word.split("=") for word in sys.argv[1:])
consumer = ShareConsumer(settings)
consumer.subscribe([os.environ["SHAREPROOF_TOPIC"]])
end = time.monotonic() + 5
while time.monotonic() < end:
    for message in consumer.poll(0.5):
        print(message.error() or (message.offset(), message.value()))
consumer.close()
