"""What confluent-kafka says to topics that cannot be."""

import os

from confluent_kafka import ShareConsumer

consumer = ShareConsumer(
    {
        "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
        "group.id": os.environ["SHAREPROOF_GROUP"],
    }
)
for topics in ([None], [""], ["  "]):
    try:
        print(f"subscribe({topics}): {consumer.subscribe(topics)}")
    except Exception as error:
        print(f"subscribe({topics}): {error!r}")
for _ in range(3):
    try:
        print("poll:", [message.error() or message.offset() for message in consumer.poll(1.0)])
    except Exception as error:
        print(f"poll: {error!r}")
consumer.close()
