"""The records that a program is given, each with a key that is found again in what it writes."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from uuid import UUID

from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Topic
from fixtures.proxies.exchange import Exchange
from fixtures.wire.codec import WireError
from fixtures.wire.records import Record, decode_batches, encode_batch
from suites.app.deliveries import Place

RECORD = '{"id": "{key}", "work_ms": 20}'
POISON = "this is no JSON: {key}"
"""Values of records, unless others are asked for."""

_BATCH = 5
"""Records in one batch: small, so that members of a group share them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """How records look. Of every ``every`` records one is poison; 0 is none."""

    record: str = RECORD
    poison: str = POISON
    every: int = 10

    def is_poison(self, number: int) -> bool:
        """Tell whether a record is poison; it comes to each partition in turn."""
        every = self.every
        return every > 0 and number % every == (2 + _BATCH * (number // every)) % every

    def value(self, key: str, *, poison: bool) -> bytes:
        """Return a record's value."""
        return (self.poison if poison else self.record).replace("{key}", key).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A record that was produced."""

    key: str
    place: Place
    poison: bool

    def __str__(self) -> str:
        kind = "poison" if self.poison else "record"
        return f"{kind} {self.key} at offset {self.place[2]} of partition {self.place[1]}"


class Producer:
    """Appends records to a topic, straight to its brokers and not through the tap."""

    def __init__(self, admin: Admin, topic: Topic, template: Template, rng: Random) -> None:
        self.admin, self.topic, self.template = admin, topic, template
        self.sent: dict[Place, Sent] = {}
        self._mark = f"sp-{rng.getrandbits(24):06x}"
        self._written = re.compile(rf"{self._mark}-\d{{5}}".encode())

    @property
    def topic_id(self) -> UUID:
        """The topic's id."""
        return self.topic.id

    async def produce(self, count: int) -> None:
        """Append records in small batches, to one partition after the other."""
        for number, start in enumerate(range(0, count, _BATCH), len(self.sent) // _BATCH):
            keys = range(len(self.sent), len(self.sent) + min(_BATCH, count - start))
            await self._append([*keys], number % len(self.topic.leaders))

    async def _append(self, numbers: Sequence[int], partition: int) -> None:
        records, made = [], []
        for number in numbers:
            key, poison = f"{self._mark}-{number:05}", self.template.is_poison(number)
            value = self.template.value(key, poison=poison)
            now = int(time.time() * 1000)
            records.append(Record(timestamp=now, key=key.encode(), value=value))
            made.append((key, poison))
        base = await self.admin.append(self.topic, encode_batch(records), partition)
        for offset, (key, poison) in enumerate(made, base):
            place = self.topic.id, partition, offset
            self.sent[place] = Sent(key=key, place=place, poison=poison)

    def keys_in(self, record: Record) -> Iterator[str]:
        """Yield the keys of our records that a written record is about."""
        texts = (record.key, record.value, *(value for _, value in record.headers))
        found = (key for text in texts if text for key in self._written.findall(text))
        yield from {key.decode() for key in found}


def confirmed(exchanges: Sequence[Exchange], topic: Topic, producer: Producer) -> dict[str, float]:
    """Return when the first write about each key to a topic was confirmed to the program."""
    found: dict[str, float] = {}
    for one in exchanges:
        for partition, batches in _written(one, topic):
            if _error(one, topic, partition) != 0:
                continue
            for record in _records(batches):
                for key in producer.keys_in(record):
                    found[key] = min(one.responded, found.get(key, one.responded))
    return found


def copies(exchanges: Sequence[Exchange], topic: Topic) -> int:
    """Return how many records the program wrote to a topic."""
    found = 0
    for one in exchanges:
        for partition, batches in _written(one, topic):
            found += sum(1 for _ in _records(batches)) if not _error(one, topic, partition) else 0
    return found


def writes(one: Exchange, topic: Topic) -> bool:
    """Tell whether a Produce request writes to a topic."""
    return any(True for _ in _written(one, topic))


def _is(entry: dict[str, object], topic: Topic) -> bool:
    return entry.get("name") == topic.name or entry.get("topic_id") == topic.id


def _written(one: Exchange, topic: Topic) -> Iterator[tuple[int, bytes]]:
    for entry in one.request["topic_data"]:
        if _is(entry, topic):
            for part in entry["partition_data"]:
                yield part["index"], part["records"]


def _records(batches: bytes) -> Iterator[Record]:
    try:
        for batch in decode_batches(batches):
            yield from batch.records
    except WireError:
        return  # what cannot be read says nothing about any of our records


def _error(one: Exchange, topic: Topic, partition: int) -> int | None:
    for entry in (one.response or {}).get("responses") or []:
        if _is(entry, topic):
            for part in entry["partition_responses"]:
                if part["index"] == partition:
                    return int(part["error_code"])
    return None
