"""A member: gets records, works on one after the other, settles them, and tells all of it.

``python -m benchmarks.patterns.member WORKING``; runs until SIGTERM. Times are nanoseconds of the
machine's monotonic clock, so those of all processes compare.
"""

import itertools
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import confluent_kafka as kafka

from benchmarks.kmq.client import Client
from benchmarks.kmq.ledger import Place, life_of
from benchmarks.patterns.workload import GROUP, KMQ, SHARE, Event, Notes, Working

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
    """A way to get records and to settle them, used as its users do.

    Share and consumer groups settle a batch when it is done, in one call, and KMQ writes an end
    marker after each record.
    """

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


_TRAPPED_FOR = 30.0
now = time.monotonic_ns


class Member:
    def __init__(self, work: Working) -> None:
        self.work, self.notes = work, Notes(work.events)
        self.system: System = OPENED[work.system](work)
        self.ending = False
        self.ops = itertools.count(1)
        self.asked = now()

    def run(self) -> None:
        """Work until told to end."""
        self.notes.write([("joining", os.getpid(), now())])
        while not self.ending:
            messages = self.system.take()
            batch, done = self._received(messages), list[Event]()
            for got in batch:
                self._handle(got.number)
                self.system.done(got)
                done.append(("done", got.op, got.partition, got.offset, got.number, now()))
                if self.work.handler_ms:  # Else writing line by line would be all that is measured.
                    self.notes.write(done)
                    done.clear()
            if batch:
                self.notes.write([*done, *self.system.settle()])
            self.asked = now()
        self.system.close()
        self.notes.write([("left", os.getpid(), now())])

    def _received(self, messages: Sequence[Any]) -> list[Got]:
        at, op = now(), next(self.ops)
        batch = [
            Got(op, *self.system.life(message), int(message.value().split()[0]), message)
            for message in messages
        ]
        self.notes.write(
            ("got", op, got.partition, got.offset, got.count, got.number, self.asked, at)
            for got in batch
        )
        return batch

    def _handle(self, number: int) -> None:
        work = self.work
        if number == work.trap and not Path(work.fired).exists():
            self.notes.write([("trapped", number, now())])
            limit = time.monotonic() + _TRAPPED_FOR
            while not Path(work.fired).exists() and time.monotonic() < limit:
                time.sleep(0.01)
        if ms := work.slow_ms if number == work.slow else work.handler_ms:
            time.sleep(ms / 1000)


def main() -> None:
    member = Member(Working(**json.loads(sys.argv[1])))

    def end(*_: object) -> None:
        member.ending = True

    signal.signal(signal.SIGTERM, end)
    member.run()


if __name__ == "__main__":
    main()
