"""A small consumer of a share group: it takes orders in JSON, and rejects what is none."""

import json
import os
import signal
import threading

from confluent_kafka import AcknowledgeType, ShareConsumer

stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())
consumer = ShareConsumer(
    {
        "bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"],
        "group.id": os.environ["SHAREPROOF_GROUP"],
        "share.acknowledgement.mode": "explicit",
    }
)
consumer.subscribe([os.environ["SHAREPROOF_TOPIC"]])
while not stopping.is_set():
    for record in consumer.poll(0.5):
        if record.error() is not None:
            continue
        try:
            json.loads(record.value())["id"]
            consumer.acknowledge(record, AcknowledgeType.ACCEPT)
        except ValueError:
            consumer.acknowledge(record, AcknowledgeType.REJECT)
    consumer.commit_sync(10)
consumer.close()
