"""A share consumer in implicit mode whose topic is deleted after two of five seconds."""

import os
import time

from confluent_kafka import KafkaException, ShareConsumer
from confluent_kafka.admin import AdminClient

bootstrap = {"bootstrap.servers": os.environ["SHAREPROOF_BOOTSTRAP"]}
topic = os.environ["SHAREPROOF_TOPIC"]
settings = {"group.id": os.environ["SHAREPROOF_GROUP"], "topic.metadata.refresh.interval.ms": 500}
admin = AdminClient(bootstrap)
consumer = ShareConsumer(bootstrap | settings)
consumer.subscribe([topic])
deleted, end = False, time.monotonic() + 5
while (now := time.monotonic()) < end:
    if not deleted and now > end - 3:
        admin.delete_topics([topic])[topic].result()
        deleted = True
    try:
        for message in consumer.poll(0.5):
            print(message.error() or (message.offset(), message.value()))
    except KafkaException as error:
        print(error)
consumer.close()
