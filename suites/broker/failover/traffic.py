"""Live traffic while brokers come and go, with books of what was produced, delivered, finished."""

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Self

from fixtures.clients.cluster import attempts, paced
from fixtures.clients.member import Ack, accept, release
from fixtures.wire.connection import CallFailed
from spec.verdict import Undecided
from suites.broker.env import Queue, demand_bystander
from suites.broker.leaders import ReconnectingConsumer, located
from suites.broker.logs import data_offsets, read_log
from suites.broker.state import AVAILABLE, StateKey, Trail
from suites.judge import Judge

Place = tuple[int, int]  # A partition and an offset.

BATCH = 5
LOCK_MS = 4000  # What a response that got lost leaves locked comes back soon.
_PAUSE = 0.1
_DRAINED_WITHIN = 30.0
_APPENDED_WITHIN = 8.0


@dataclass(slots=True)
class Books:
    """What is known of every record; what nobody knows for certain is kept apart."""

    delivered: set[Place] = field(default_factory=set)
    finished: dict[Place, float] = field(default_factory=dict)
    doubtful: set[Place] = field(default_factory=set)
    again: set[Place] = field(default_factory=set)
    refused: int = 0

    def deliver(self, places: set[Place], asked_at: float) -> None:
        """Note a delivery; finished records that came to a later request came again."""
        self.delivered |= places
        self.again |= {p for p in places if self.finished.get(p, asked_at) < asked_at}

    def acknowledge(self, places: set[Place], result: str) -> None:
        """Note what an ACCEPT was answered; with anything but NONE it may have been carried out."""
        if result == "NONE":
            now = time.monotonic()
            for place in places:
                self.finished.setdefault(place, now)
        else:
            self.refused += 1
            self.doubtful |= places


class Traffic:
    """A producer and consumers of all partitions of a queue, from entering to :meth:`drained`."""

    def __init__(self, queue: Queue, rng: Random, *, releases: float = 0.0) -> None:
        """Every partition gets a consumer, and one two, who release a share of the records."""
        self.queue = queue
        self.books = Books()
        self._rng, self._releases = rng, releases
        self._producing = True
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        work = [self._consume(index) for index in self.queue.topic.partitions]
        work.append(self._consume(self._rng.choice(self.queue.topic.partitions)))
        self._tasks = [asyncio.create_task(each) for each in (self._produce(), *work)]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def flowing(self, count: int = 30) -> None:
        """Wait until some more records were finished, by which time everything is at work."""
        goal = len(self.books.finished) + count
        async for _ in attempts(_DRAINED_WITHIN):
            if len(self.books.finished) >= goal:
                return
        raise Undecided(f"the traffic does not flow: {len(self.books.finished)} of {goal} finished")

    async def drained(self, lock: float = LOCK_MS / 1000) -> set[Place]:
        """Stop producing, let the consumers work on, and return every record that is in the log.

        A response that got lost leaves records locked for ``lock`` seconds.
        """
        self._producing = False
        await self._tasks[0]
        queue = await located(self.queue)
        produced: set[Place] = set()
        for index in queue.topic.partitions:
            batches = await read_log(queue.env, queue.topic, index)
            produced |= {(index, offset) for offset in data_offsets(batches)}
        async for _ in attempts(_DRAINED_WITHIN + 2 * lock):
            left = produced - self.books.finished.keys() - self.books.doubtful
            if not left and produced <= self.books.delivered:
                return produced
        for node in set(queue.topic.leaders):
            await demand_bystander(queue.env.cluster, node, "the traffic did not end")
        return produced

    async def _produce(self) -> None:
        async for _ in paced(_PAUSE):
            if not self._producing:
                return
            index = self._rng.choice(self.queue.topic.partitions)
            # Whether a record whose answer got lost was written, the log will tell.
            with contextlib.suppress(CallFailed, Undecided, TimeoutError):
                async with asyncio.timeout(_APPENDED_WITHIN):
                    await (await located(self.queue)).produce(BATCH, index)

    async def _consume(self, partition: int) -> None:
        roamer = ReconnectingConsumer(self.queue, partition)
        async for _ in paced():
            with contextlib.suppress(Undecided):
                asked_at = time.monotonic()
                part = await roamer.fetch(max_records=20)
                if not part or not part.ranges:
                    continue
                took = part.offsets
                self.books.deliver({(part.partition, offset) for offset in took}, asked_at)
                kept = [
                    o for o in took if part.counts[o] > 2 or self._rng.random() >= self._releases
                ]
                acks: list[Ack] = [accept(o) if o in kept else release(o) for o in took]
                result = await roamer.ack(*acks)
                self.books.acknowledge({(part.partition, offset) for offset in kept}, result)


async def _taken_back(queue: Queue, place: Place) -> str:
    """Return how the state topic takes back that a record is finished, or that it does not.

    An acceptance goes where the stored start goes back, and where a write of another delivery with
    a higher count comes late (KIP-932 §Managing durable share-partition state).
    """
    partition, offset = place
    key = StateKey(queue.env, queue.group, queue.topic.id, partition)
    start, finished = -1, 0
    for record in await Trail(key, *await key.home(), 0).records():
        if (value := record.value) is None:
            continue
        if 0 <= value.start_offset <= offset < start:
            return f"{place} below the start {start}, then at or above {value.start_offset}"
        start = value.start_offset if value.start_offset >= 0 else start
        for batch in value.state_batches:
            if not batch.first_offset <= offset <= batch.last_offset:
                continue
            if batch.delivery_state != AVAILABLE:
                finished = batch.delivery_count
            elif 0 < finished < batch.delivery_count:
                return f"{place} finished, then available with a higher count"
    return f"{place} not available again"


async def judge_books(judge: Judge, traffic: Traffic, produced: set[Place]) -> None:
    """Demand that every record was delivered and none again after its ACCEPT was answered NONE."""
    books = traffic.books
    missing = sorted(produced - books.delivered)
    judge.equal([], missing, f"records of {len(produced)} that were never delivered")
    again = sorted(books.again)
    stored = "; ".join([await _taken_back(traffic.queue, place) for place in again[:20]])
    judge.equal([], again, f"accepted records that came again{stored and ', stored as '}{stored}")
    left = sorted(produced - books.finished.keys() - books.doubtful)
    judge.equal([], left, "records that never got finished")
    judge.saw(produced=len(produced), finished=len(books.finished), refused=books.refused)
