"""A producer: ``python -m benchmarks.patterns.producer PRODUCING``; tells where records went."""

import json
import sys
import time
from typing import Any

import confluent_kafka as kafka

from benchmarks.patterns.workload import Event, Notes, Producing

PADDING = b" " + b"x" * 92
now = time.monotonic_ns


def main() -> None:
    asked = Producing(**json.loads(sys.argv[1]))
    notes, events = Notes(asked.events), list[Event]()
    producer = kafka.Producer(
        {
            "bootstrap.servers": asked.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            "batch.num.messages": max(1, asked.burst // asked.partitions),
            "queue.buffering.max.messages": 10_000_000,
        }
    )

    def told(number: int, sent: int) -> Any:
        def deliver(error: Any, message: Any) -> None:
            offset = -1 if error else message.offset()
            events.append(("sent", message.partition(), offset, number, sent, now()))

        return deliver

    producer.list_topics(asked.topic, timeout=30)  # Who begins has met the brokers.
    time.sleep(max(0, asked.begin - now()) / 1e9)
    began = time.monotonic()
    for index in range(asked.records):
        if asked.rate and index % asked.burst == 0:
            while (left := began + index / asked.rate - time.monotonic()) > 0:
                producer.poll(min(left, 0.05))
                _write(notes, events)
        number = asked.first + index
        producer.produce(
            asked.topic,
            value=b"%d" % number + PADDING,
            partition=number % asked.partitions,
            on_delivery=told(number, now()),
        )
        producer.poll(0)
    unsent = producer.flush(120)
    _write(notes, events)
    notes.write([("produced", asked.records - unsent, now())])


def _write(notes: Notes, events: list[Event]) -> None:
    notes.write(events)
    events.clear()


if __name__ == "__main__":
    main()
