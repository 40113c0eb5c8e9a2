"""Transactions on one partition, and the producers' own account of how they ended."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fixtures.clients.transactions import TransactionalProducer
from suites.broker.gaps import marker_offsets, read_log
from suites.broker.share import Queue


@dataclass(slots=True)
class Outcomes:
    """Which offsets of a log were written how; markers as a plain Fetch found them."""

    plain: set[int] = field(default_factory=set)
    committed: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    markers: set[int] = field(default_factory=set)

    @property
    def visible(self) -> set[int]:
        """What a reader of committed records may see."""
        return self.plain | self.committed

    @property
    def data(self) -> set[int]:
        """Everything but markers."""
        return self.plain | self.committed | self.aborted

    @property
    def end(self) -> int:
        """The offset behind the last one."""
        return max(self.data | self.markers) + 1


@dataclass(slots=True)
class Ledger:
    """Writes to partition 0 of a queue and keeps the books."""

    queue: Queue
    outcomes: Outcomes = field(default_factory=Outcomes)
    _open: dict[str, set[int]] = field(default_factory=dict)

    def _count(self) -> int:
        return self.queue.share.rng.randint(1, 4)

    async def plain(self) -> None:
        """Append a batch outside any transaction."""
        count = self._count()
        first = await self.queue.produce(count)
        self.outcomes.plain |= set(range(first, first + count))

    async def part(self, producer: TransactionalProducer) -> set[int]:
        """Append a batch to a producer's transaction; return its offsets."""
        count = self._count()
        first = await producer.append(self.queue.topic, count)
        offsets = set(range(first, first + count))
        self._open.setdefault(producer.id, set()).update(offsets)
        return offsets

    async def commit(self, producer: TransactionalProducer) -> None:
        """Commit a producer's transaction."""
        await producer.commit()
        self.outcomes.committed |= self._open.pop(producer.id, set())

    async def abort(self, producer: TransactionalProducer) -> None:
        """Abort a producer's transaction."""
        await producer.abort()
        self.outcomes.aborted |= self._open.pop(producer.id, set())

    async def close(self) -> Outcomes:
        """Read the markers from the log and return the account."""
        batches = await read_log(self.queue.share, self.queue.topic)
        self.outcomes.markers = marker_offsets(batches)
        return self.outcomes


@contextlib.asynccontextmanager
async def producers(queue: Queue) -> AsyncIterator[tuple[TransactionalProducer, ...]]:
    """Return two transactional producers, which abort what they leave open."""
    cluster = queue.share.cluster
    opened = TransactionalProducer.open
    async with opened(cluster) as one, opened(cluster) as two:
        yield one, two


async def aborted(queue: Queue, count: int = 1) -> range:
    """Write and abort a transaction of ``count`` records; return their offsets."""
    async with TransactionalProducer.open(queue.share.cluster) as producer:
        first = await producer.append(queue.topic, count)
        await producer.abort()
    return range(first, first + count)


async def committed(queue: Queue, count: int = 1) -> range:
    """Write and commit a transaction of ``count`` records; return their offsets."""
    async with TransactionalProducer.open(queue.share.cluster) as producer:
        first = await producer.append(queue.topic, count)
        await producer.commit()
    return range(first, first + count)


async def jumble(queue: Queue) -> Outcomes:
    """Write plain, committed and aborted records in alternation, transactions interleaved.

    Each of two producers commits once and aborts once; sizes and order of the ends are random.
    """
    ledger = Ledger(queue)
    swap = queue.share.rng.random() < 0.5
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
