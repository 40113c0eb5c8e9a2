"""Makes a share consumer with each NAME=VALUE of its arguments, and prints who is refused."""

import sys

import confluent_kafka as kafka

for argument in sys.argv[1:]:
    name, _, value = argument.partition("=")
    try:
        kafka.ShareConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", name: value})
        print(f"{argument}: taken")
    except kafka.KafkaException as thrown:
        print(f"{argument}: refused, {thrown.args[0].str()}")
    except (ValueError, TypeError) as thrown:
        print(f"{argument}: refused, {thrown}")
