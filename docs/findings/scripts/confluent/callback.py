"""What becomes of an exception in the acknowledgement callback, and of a call to the consumer."""

import os
import sys

from confluent_kafka import ShareConsumer

kind = sys.argv[1]
told = []


def settled(*arguments):
    """Be told of an acknowledgement, and misbehave."""
    told.append(arguments)
    if kind == "raise":
        raise ValueError("the callback raised this")
    print("poll inside the callback:", consumer.poll(0))


consumer = ShareConsumer(
    {
        "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
        "group.id": os.environ["SHAREPROOF_GROUP"],
        "share.acknowledgement.mode": "explicit",
    }
)
consumer.set_acknowledgement_commit_callback(settled)
consumer.subscribe([os.environ["SHAREPROOF_TOPIC"]])
records = []
while not records:
    records = consumer.poll(0.5)
for record in records:
    consumer.acknowledge(record)
for name, call in (
    ("commit_sync", lambda: consumer.commit_sync(5)),
    ("poll", lambda: consumer.poll(1)),
):
    try:
        print(f"{name}: {call()}")
    except Exception as error:
        print(f"{name}: {error!r}")
print(f"the callback ran {len(told)} times")
consumer.close()
