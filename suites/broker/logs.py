"""Logs with holes: what is really in a log, compaction when a check wants it, and transactions.

The truth about a log is read with a plain Fetch, so that no share group is asked about itself.
"""

import contextlib
import time
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from fixtures.clients import admin
from fixtures.clients.cluster import Topic, attempts
from fixtures.clients.member import Ack, Response, accept, gap, release
from fixtures.clients.transactions import TransactionalProducer
from fixtures.wire.records import Record, RecordBatch, decode_batches, encode_batch
from spec.verdict import Undecided
from suites.broker.env import Catch, Consumer, Env, Queue

COMMITTED = {"share.isolation.level": "read_committed"}
UNCOMMITTED = {"share.isolation.level": "read_uncommitted"}
CLEANED_WITHIN = 45.0  # Seconds: a cleaner with default settings looks for work every 15 s.

COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "segment.ms": "100",
    "delete.retention.ms": "0",
}


async def read_log(
    env: Env, topic: Topic, partition: int = 0, *, since: int = 0
) -> list[RecordBatch]:
    """Return every batch of a log, markers too; segment by segment, as a Fetch gives them.

    Batches that end before the offset ``since`` are left out.
    """
    return [batch async for batch in admin.read_log(env.cluster, topic, partition, since=since)]


def data_offsets(batches: Iterable[RecordBatch]) -> set[int]:
    return {r.offset for batch in batches if not batch.control for r in batch.records}


@dataclass(slots=True)
class Compacted:
    """A queue on a compacted topic, written as if a second passed from batch to batch.

    Segments roll by the timestamps of records, and those are in the past: every batch begins a
    segment of its own without anybody waiting. The active segment is never cleaned, so that what
    has to vanish needs a batch behind the one that supersedes it.
    """

    queue: Queue
    clock: int = field(default_factory=lambda: int(time.time() * 1000) - 86_400_000)

    async def write(self, *batches: Sequence[bytes]) -> int:
        offsets = []
        for keys in batches:
            self.clock += 1000
            records = [Record(timestamp=self.clock, key=key, value=key) for key in keys]
            topic = self.queue.topic
            offsets.append(await self.queue.env.admin.append(topic, encode_batch(records)))
        return offsets[0]

    async def fresh(self) -> int:
        return await self.write(keys(f"at {self.clock}"))

    async def next_catch(self, consumer: Consumer) -> Catch:
        """Return all that the consumer acquires up to a fresh record, without that."""
        sentinel = await self.fresh()
        catch = await consumer.drain(until=sentinel)
        del catch.counts[sentinel]
        return catch

    async def until_gone(self, offsets: Collection[int], within: float = CLEANED_WITHIN) -> None:
        """Wait until the log has no record at any of the offsets."""
        left: set[int] = set()
        async for _ in attempts(within):
            left = data_offsets(await read_log(self.queue.env, self.queue.topic)) & set(offsets)
            if not left:
                return
        raise Undecided(f"the cleaner left offsets {sorted(left)} for {within:g} s")


async def compacted(env: Env, **options: object) -> Compacted:
    return Compacted(await env.queue(topic_config=COMPACTED, **options))  # type: ignore[arg-type]


def keys(*names: object) -> list[bytes]:
    return [str(name).encode() for name in names]


def offered(responses: Iterable[Response]) -> set[int]:
    return {
        record.offset
        for response in responses
        for part in response.parts
        for batch in decode_batches(part.records)
        if not batch.control
        for record in batch.records
        if record.offset in part.counts
    }


def acknowledge(catch: Catch, records: Collection[int]) -> list[Ack]:
    """Return what a client acknowledges: records as accepted, acquired holes as gaps."""
    return [accept(offset) if offset in records else gap(offset) for offset in catch.offsets]


async def rewritten(consumer: Consumer, extra: int) -> None:
    """Cause one more state write, so that the admin's view is that of now.

    The record at ``extra``, the last one produced, is acquired and released.
    """
    await consumer.drain(until=extra)
    await consumer.acked(release(extra))


@dataclass(slots=True)
class Outcomes:
    """Which offsets of a log were written how; markers as a plain Fetch found them."""

    plain: set[int] = field(default_factory=set)
    committed: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    markers: set[int] = field(default_factory=set)

    @property
    def visible(self) -> set[int]:
        return self.plain | self.committed

    @property
    def data(self) -> set[int]:
        return self.plain | self.committed | self.aborted

    @property
    def end(self) -> int:
        return max(self.data | self.markers) + 1


@dataclass(slots=True)
class TransactionLedger:
    """Writes to partition 0 of a queue and keeps the books."""

    queue: Queue
    outcomes: Outcomes = field(default_factory=Outcomes)
    _open: dict[str, set[int]] = field(default_factory=dict)

    async def plain(self) -> None:
        count = self.queue.env.rng.randint(1, 4)
        first = await self.queue.produce(count)
        self.outcomes.plain |= set(range(first, first + count))

    async def part(self, producer: TransactionalProducer) -> set[int]:
        count = self.queue.env.rng.randint(1, 4)
        first = await producer.append(self.queue.topic, count)
        offsets = set(range(first, first + count))
        self._open.setdefault(producer.id, set()).update(offsets)
        return offsets

    async def commit(self, producer: TransactionalProducer) -> None:
        await producer.commit()
        self.outcomes.committed |= self._open.pop(producer.id, set())

    async def abort(self, producer: TransactionalProducer) -> None:
        await producer.abort()
        self.outcomes.aborted |= self._open.pop(producer.id, set())

    async def close(self) -> Outcomes:
        """Read the markers from the log and return the account."""
        batches = await read_log(self.queue.env, self.queue.topic)
        self.outcomes.markers = {r.offset for b in batches if b.control for r in b.records}
        return self.outcomes


@contextlib.asynccontextmanager
async def producers(queue: Queue) -> AsyncIterator[tuple[TransactionalProducer, ...]]:
    cluster = queue.env.cluster
    opened = TransactionalProducer.open
    async with opened(cluster) as one, opened(cluster) as two:
        yield one, two


async def aborted(queue: Queue, count: int = 1) -> range:
    async with TransactionalProducer.open(queue.env.cluster) as producer:
        first = await producer.append(queue.topic, count)
        await producer.abort()
    return range(first, first + count)


async def committed(queue: Queue, count: int = 1) -> range:
    async with TransactionalProducer.open(queue.env.cluster) as producer:
        first = await producer.append(queue.topic, count)
        await producer.commit()
    return range(first, first + count)


async def jumble(queue: Queue) -> Outcomes:
    """Write plain, committed and aborted records in alternation, transactions interleaved.

    Each of two producers commits once and aborts once; sizes and order of the ends are random.
    """
    ledger = TransactionLedger(queue)
    swap = queue.env.rng.random() < 0.5
    async with producers(queue) as pair:
        for first_round in (True, False):
            one, two = pair if swap == first_round else pair[::-1]
            await ledger.plain()
            await ledger.part(one)
            await ledger.part(two)
            await ledger.plain()
            await ledger.part(one)
            await ledger.commit(one)
            await ledger.part(two)
            await ledger.plain()
            await ledger.abort(two)
        await ledger.plain()
    return await ledger.close()
