"""A share consumer in implicit mode: polls for some seconds and closes."""

import os
import sys
import time

from confluent_kafka import KafkaException, ShareConsumer

settings = {
    "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
    "group.id": os.environ["SHAREPROOF_GROUP"],
}
settings |= dict(word.split("=") for word in sys.argv[1:])
consumer = ShareConsumer(settings)
consumer.subscribe([os.environ["SHAREPROOF_TOPIC"]])
end = time.monotonic() + 5
while time.monotonic() < end:
    try:
        messages = consumer.poll(0.5)
    except KafkaException as error:
        print(error)
        continue
    for message in messages:
        print(message.error() or (message.offset(), message.value()))
consumer.close()
