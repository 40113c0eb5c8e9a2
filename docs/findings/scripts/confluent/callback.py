"""What becomes of an exception in the acknowledgement callback, and of a call to the consumer."""

import os
import sys
import time

from confluent_kafka import ShareConsumer

kind = sys.argv[1]
told = []


def settled(*arguments):
    """Be told of an acknowledgement, and misbehave."""
    told.append(arguments)
    if kind == "raise":
        raise ValueError("the callback raised this")
    print("poll inside the callback:", consumer.poll(0))


def attempt(name, call, *arguments):
    """Print what comes of a call, and return it."""
    try:
        found = call(*arguments)
    except Exception as error:
        print(f"{name}: {error!r}", flush=True)
        return []
    print(f"{name}: {len(found or ())}", flush=True)
    return found


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
    records = attempt("poll", consumer.poll, 0.5)
consumer.acknowledge(records[0])
attempt("commit_sync", consumer.commit_sync, 5)
for record in records[1:]:
    consumer.acknowledge(record)
    attempt("commit_async", consumer.commit_async)
time.sleep(0.5)
attempt("poll, which has two to tell", consumer.poll, 1)
print(f"the callback ran {len(told)} times")
consumer.close()
