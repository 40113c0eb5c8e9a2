"""A share consumer that closes after a second, and says how long that took."""

import os
import time

import confluent_kafka as kafka

consumer = kafka.ShareConsumer(
    {
        "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
        "group.id": os.environ["SHAREPROOF_GROUP"],
    }
)
consumer.subscribe([os.environ["SHAREPROOF_TOPIC"]])
end = time.monotonic() + 1.0
while time.monotonic() < end:
    consumer.poll(0.1)
end = time.monotonic()
consumer.close()
print(f"closed in {time.monotonic() - end:.3f} s")
