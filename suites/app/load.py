"""The records that a program is given, each with a key that is found again in what it writes."""

import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Topic
from fixtures.proxies.exchange import Exchange
from fixtures.wire.codec import WireError
from fixtures.wire.records import Headers, Record, decode_batches, encode_batch
from suites.app.deliveries import Place
from suites.options import AppOptions

_BATCH = 5  # Records in one batch: small, so that members of a group share them.


def is_poison(number: int, every: int) -> bool:
    return every > 0 and number % every == (2 + _BATCH * (number // every)) % every


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    key: str
    place: Place
    poison: bool

    def __str__(self) -> str:
        kind = "poison" if self.poison else "record"
        return f"{kind} {self.key} at offset {self.place[2]} of partition {self.place[1]}"


def _retried() -> Headers:
    """Return what Spring writes on a record that it tries again in a year: here it is nobody's."""
    due = int(time.time() + 365 * 86400) * 1000
    attempts = ("retry_topic-attempts", (99).to_bytes(4, "big"))
    return attempts, ("retry_topic-backoff-timestamp", due.to_bytes(8, "big"))


class Producer:
    def __init__(self, admin: Admin, topic: Topic, spec: AppOptions, rng: Random) -> None:
        self.admin, self.topic, self.spec = admin, topic, spec
        self.sent: dict[Place, Sent] = {}
        self._mark = f"sp-{rng.getrandbits(24):06x}"
        self._written = re.compile(rf"{self._mark}-\d{{5}}".encode())

    async def produce(self, count: int) -> None:
        text = {False: self.spec.record, True: self.spec.poison}
        for number, start in enumerate(range(0, count, _BATCH), len(self.sent) // _BATCH):
            first, partition = len(self.sent), number % len(self.topic.leaders)
            poison = {
                f"{self._mark}-{each:05}": is_poison(each, self.spec.poison_every)
                for each in range(first, first + min(_BATCH, count - start))
            }
            records = [
                Record(
                    timestamp=int(time.time() * 1000),
                    key=key.encode(),
                    value=text[poison[key]].replace("{key}", key).encode(),
                    headers=() if row else _retried(),
                )
                for row, key in enumerate(poison)
            ]
            base = await self.admin.append(self.topic, encode_batch(records), partition)
            for offset, key in enumerate(poison, base):
                place = self.topic.id, partition, offset
                self.sent[place] = Sent(key=key, place=place, poison=poison[key])

    def keys_in(self, record: Record) -> set[str]:
        texts = (record.key, record.value, *(value for _, value in record.headers))
        return {key.decode() for text in texts if text for key in self._written.findall(text)}


def confirmed(exchanges: Sequence[Exchange], topic: Topic, producer: Producer) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in exchanges:
        for error, records in _writes(one, topic):
            for key in {key for record in records for key in producer.keys_in(record)}:
                if error == 0:
                    found[key] = min(one.responded, found.get(key, one.responded))
    return found


def copies(exchanges: Sequence[Exchange], topic: Topic) -> int:
    writes = (write for one in exchanges for write in _writes(one, topic))
    return sum(len(records) for error, records in writes if not error)


def writes_to(topic: Topic, one: Exchange) -> bool:
    return any(_is(entry, topic) and entry["partition_data"] for entry in one.request["topic_data"])


def _writes(one: Exchange, topic: Topic) -> Iterator[tuple[int | None, list[Record]]]:
    errors = {
        part["index"]: int(part["error_code"])
        for entry in (one.response or {}).get("responses") or []
        if _is(entry, topic)
        for part in entry["partition_responses"]
    }
    for entry in one.request["topic_data"]:
        if _is(entry, topic):
            for part in entry["partition_data"]:
                records: list[Record] = []
                with contextlib.suppress(WireError):  # it says nothing about any of our records
                    for batch in decode_batches(part["records"]):
                        records += batch.records
                yield errors.get(part["index"]), records


def _is(entry: dict[str, object], topic: Topic) -> bool:
    return entry.get("name") == topic.name or entry.get("topic_id") == topic.id
