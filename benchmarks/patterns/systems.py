"""Three ways to get records and to settle them, over one client library.

All are used the way their users use them: share and consumer groups settle a batch when it is done,
in one call, and KMQ writes an end marker after each record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import confluent_kafka as kafka

from benchmarks.kmq.client import Client
from benchmarks.kmq.markers import Place, life_of
from benchmarks.patterns.notes import Event
from benchmarks.patterns.workload import GROUP, KMQ, SHARE, Working

OK, FAILED, UNKNOWN = 1, 2, 3
_WAIT, _PATIENCE = 0.2, 10.0
_NEVER_ANSWERED = {"_TIMED_OUT", "_TRANSPORT", "_MSG_TIMED_OUT", "REQUEST_TIMED_OUT", "_WAIT_COORD"}


@dataclass(frozen=True, slots=True)
class Got:
    """A record that was handed out: the poll, where it was first, its count, its number."""

    op: int
    partition: int
    offset: int
    count: int
    number: int
    message: Any

    def settled(self, sent: int, outcome: int) -> Event:
        answered = -1 if outcome == UNKNOWN else time.monotonic_ns()
        return ("settled", self.op, self.partition, self.offset, sent, answered, outcome)


class System(Protocol):
    """A way to get records and to settle them."""

    def take(self) -> list[Any]:
        """Return the next messages."""

    def life(self, message: Any) -> tuple[int, int, int]:
        """Return where a message's record was first, partition and offset, and its count."""

    def done(self, got: Got) -> None:
        """Take notice that the work on a record is done."""

    def settle(self) -> list[Event]:
        """Settle what was done, and return what became of it."""

    def close(self) -> None:
        """Leave."""


class ShareSystem:
    """A member of a share group that acknowledges explicitly."""

    def __init__(self, work: Working) -> None:
        self.consumer = kafka.ShareConsumer(
            {
                "bootstrap.servers": work.bootstrap,
                "group.id": work.group,
                "share.acknowledgement.mode": "explicit",
                "max.poll.records": work.batch,
            }
        )
        self.consumer.subscribe([work.topic])
        self.finished: list[Got] = []

    def take(self) -> list[Any]:
        return [one for one in self.consumer.poll(_WAIT) if one.error() is None]

    def life(self, message: Any) -> tuple[int, int, int]:
        """A record stays where it is, and the broker counts."""
        return message.partition(), message.offset(), message.delivery_count()

    def done(self, got: Got) -> None:
        self.consumer.acknowledge(got.message, kafka.AcknowledgeType.ACCEPT)
        self.finished.append(got)

    def settle(self) -> list[Event]:
        sent, finished, self.finished = time.monotonic_ns(), self.finished, []
        try:
            told = self.consumer.commit_sync(_PATIENCE)
        except kafka.KafkaException as error:
            return _settled(finished, sent, {got.partition: error for got in finished})
        return _settled(finished, sent, {where.partition: error for where, error in told.items()})

    def close(self) -> None:
        self.consumer.close()


class GroupSystem:
    """A member of a consumer group that commits after processing."""

    def __init__(self, work: Working) -> None:
        self.consumer = kafka.Consumer(_consumer(work) | {"enable.auto.commit": False})
        self.consumer.subscribe([work.topic])
        self.batch, self.finished = work.batch, list[Got]()

    def take(self) -> list[Any]:
        return [one for one in self.consumer.consume(self.batch, _WAIT) if one.error() is None]

    def life(self, message: Any) -> tuple[int, int, int]:
        """A record stays where it is; nobody counts."""
        return message.partition(), message.offset(), 1

    def done(self, got: Got) -> None:
        self.finished.append(got)

    def settle(self) -> list[Event]:
        """Commit behind the last record of each partition."""
        sent, finished, self.finished = time.monotonic_ns(), self.finished, []
        ends: dict[tuple[str, int], int] = {}
        for got in finished:
            ends[got.message.topic(), got.partition] = got.offset + 1
        offsets = [kafka.TopicPartition(*where, end) for where, end in ends.items()]
        try:
            told = self.consumer.commit(offsets=offsets, asynchronous=False)
        except kafka.KafkaException as error:
            return _settled(finished, sent, {got.partition: error for got in finished})
        return _settled(finished, sent, {one.partition: one.error for one in told})

    def close(self) -> None:
        self.consumer.close()


class KmqSystem:
    def __init__(self, work: Working) -> None:
        self.client = Client(_consumer(work), work.topic, work.markers)
        self.batch = work.batch
        self.events: list[Event] = []

    def take(self) -> list[Any]:
        return self.client.poll(self.batch, _WAIT)

    def life(self, message: Any) -> tuple[int, int, int]:
        """A copy says where its record was first."""
        here = Place(message.topic(), message.partition(), message.offset())
        origin, count = life_of(here, message.headers())
        return origin.partition, origin.offset, count

    def done(self, got: Got) -> None:
        sent = time.monotonic_ns()

        def written(ok: bool) -> None:
            self.events.append(got.settled(sent, OK if ok else UNKNOWN))

        self.client.end(got.message, written)

    def settle(self) -> list[Event]:
        """Wait until the end markers are written."""
        self.client.flush()
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        self.client.close()


def _consumer(work: Working) -> dict[str, Any]:
    return {
        "bootstrap.servers": work.bootstrap,
        "group.id": work.group,
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
    }


def _settled(finished: Sequence[Got], sent: int, told: Mapping[int, Any]) -> list[Event]:
    """Return what became of a batch; the library tells errors bare, or as exceptions."""
    errors = {
        partition: error.args[0] if isinstance(error, kafka.KafkaException) else error
        for partition, error in told.items()
        if error is not None
    }
    refused: list[Event] = [
        ("refused", error.name(), time.monotonic_ns()) for error in errors.values()
    ]
    return refused + [got.settled(sent, _outcome(errors.get(got.partition))) for got in finished]


def _outcome(error: Any) -> int:
    if error is None:
        return OK
    return UNKNOWN if error.name() in _NEVER_ANSWERED else FAILED


OPENED: dict[str, Callable[[Working], System]] = {
    SHARE: ShareSystem,
    GROUP: GroupSystem,
    KMQ: KmqSystem,
}
