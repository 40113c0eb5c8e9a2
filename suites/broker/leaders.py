"""Partitions that change their leader: queues for it, consumers that follow, and what must be true.

Brokers die under the consumers. A response that never came leaves the outcome open: what was
acquired comes back by itself, and what was acknowledged may be settled or not.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

from fixtures.clients.cluster import attempts, eventually
from fixtures.clients.member import Ack, Part, accept, reject, release
from fixtures.wire.codec import Struct
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import error_name
from spec.verdict import OutOfReach, Undecided
from suites.broker.env import Consumer, Env, Queue, demand_bystander
from suites.broker.timing import EARLY, SLACK
from suites.judge import Judge


def two_brokers(env: Env) -> list[int]:
    """Return two brokers in any order, between which a leader can move."""
    nodes = sorted(env.cluster.brokers)
    if len(nodes) < 2:
        raise OutOfReach("a leader can only move where there are two brokers")
    return env.rng.sample(nodes, 2)


async def replicated(env: Env, records: int, **options: Any) -> Queue:
    """Return a queue whose partition has two replicas, with the longest locks."""
    lock = env.bounds.longest_lock
    return await env.queue(records, assignments=[two_brokers(env)], lock_ms=lock, **options)


async def moved(queue: Queue) -> Queue:
    """Move the partition's leadership; return the queue as consumers see it from then on."""
    described = await (await queue.env.cluster.any()).call(
        "Metadata", topics=[{"name": queue.topic.name}]
    )
    nodes = described.topics[0].partitions[0].replica_nodes
    follower = next(node for node in nodes if node != queue.topic.leaders[0])
    return replace(queue, topic=await queue.env.admin.move_leader(queue.topic, follower))


async def known_everywhere(queue: Queue, what: str, good: Callable[[Struct], object]) -> None:
    """Wait until what every broker knows of a queue's topic is good."""

    async def ask() -> bool | None:
        for node in queue.env.cluster.brokers:
            connection = await queue.env.cluster.to(node)
            known = await connection.call("Metadata", topics=[{"name": queue.topic.name}])
            if not good(known.topics[0]):
                return None
        return True

    await eventually(what, ask)


TAKEN_OVER = 30.0
"""Seconds until somebody has taken over from a broker that is gone; a tenth of it is usual.

A broker in good health needs them, too, so they are never cut short.
"""

PATIENCE = 8.0
"""Seconds that one request of a roaming consumer may take; a frozen broker never answers."""


async def located(queue: Queue) -> Queue:
    """Return a queue with its present leaders, once none of them is a broker that is away."""
    cluster = queue.env.cluster

    async def ask() -> Queue | None:
        with contextlib.suppress(CallFailed):
            topic = await cluster.topic(queue.topic.name, len(queue.topic.leaders))
            return None if cluster.away.intersection(topic.leaders) else replace(queue, topic=topic)
        return None

    return await eventually(f"leaders of {queue.topic.name}", ask, TAKEN_OVER)


async def append(queue: Queue, count: int = 1, partition: int = 0) -> int:
    """Append records wherever the partition is led from; return the last batch's first offset.

    A batch whose answer got lost is written again, so that there may be more than asked for.
    """

    async def ask() -> int | None:
        with contextlib.suppress(CallFailed):
            return await (await located(queue)).produce(count, partition)
        return None

    return await eventually(f"producing to {queue.topic.name}-{partition}", ask, TAKEN_OVER)


@dataclass(slots=True)
class ReconnectingConsumer:
    """A consumer of one partition that begins anew, at its present leader, after every error."""

    queue: Queue
    partition: int = 0
    told: list[str] = field(default_factory=list)
    held: set[int] = field(default_factory=set)
    at: Consumer | None = None
    until: float = math.inf  # When the first lock of what is held runs out (monotonic).

    async def fetch(self, max_wait_ms: int = 200, max_records: int = 500) -> Part | None:
        """Fetch once; ``None`` when there was no good response."""
        with contextlib.suppress(CallFailed):
            if self.at is None:
                self.queue = await located(self.queue)
                self.at = await self.queue.consumer(self.partition, join=False)
            consumer = self.at
            asked_at = time.monotonic()
            response = await consumer.fetch(
                max_wait_ms=max_wait_ms, max_records=max_records, timeout=PATIENCE
            )
            if not response.errors:
                self.held |= set(response.offsets)
                if response.offsets and response.lock_ms > 0:
                    self.until = min(self.until, asked_at + response.lock_ms / 1000 * EARLY)
                return response.only
            self.told += [error_name(code) for code in response.errors]
        await self.leave()
        return None

    async def ack(self, *acks: Ack) -> str:
        """Acknowledge what was fetched last; return the result's name, empty if none came."""
        if self.at is None:
            raise Undecided("nothing is held that could be acknowledged")
        with contextlib.suppress(CallFailed):
            part = await self.at.ack(*acks, timeout=4 * PATIENCE)
            if part.ack_error:
                self.told.append(error_name(part.ack_error))
                await self.leave()
            for ack in acks:
                self.held -= set(range(ack.first, ack.last + 1))
            return error_name(part.ack_error)
        await self.leave()
        return ""

    async def finish(self) -> str:
        """Accept everything that is held; return the result's name, empty if none came."""
        until = self.until
        result = await self.ack(*(accept(offset) for offset in sorted(self.held)))
        if result != "NONE" and time.monotonic() > until:
            raise Undecided(f"the locks ran out before the ACCEPT, which got {result or 'nothing'}")
        self.until = math.inf
        return result

    async def take(self, wanted: Collection[int], within: float = TAKEN_OVER) -> dict[int, int]:
        """Fetch until every wanted offset came or time is up; return the first count of each."""
        seen: dict[int, int] = {}
        async for _ in attempts(within):
            if part := await self.fetch():
                seen = part.counts | seen
            if seen.keys() >= set(wanted):
                return seen
        missing, now = sorted(set(wanted) - seen.keys()), await located(self.queue)
        node = now.topic.leaders[self.partition]
        await demand_bystander(now.env.cluster, node, f"{missing} did not come")
        return seen

    async def leave(self) -> None:
        """Drop the connection; the next request goes to whoever leads the partition then."""
        if self.at is not None:
            await self.at.session.connection.close()
            self.at = None
            self.held.clear()
            self.until = math.inf


LONG_LOCK_MS = 60_000  # A lock that outlives a check.

# 0         held; the pin, which keeps the start offset where every other offset is judged
# 1, 2      held on their first delivery
# 3 to 5    accepted
# 6, 7      rejected
# 8, 9      held on their second delivery: the count 1 is stored
# 10, 11    available after two deliveries: the count 2 is stored
# 12 to 15  held on their first delivery
# 16 to 19  never delivered
FRESH = (16, 17, 18, 19)
HELD = (0, 1, 2, 8, 9, 12, 13, 14, 15)
SETTLED = (3, 4, 5, 6, 7)
STORED = {8: 1, 9: 1, 10: 2, 11: 2}  # The stored delivery counts of offsets that are not settled.


@dataclass(slots=True)
class MixedStates:
    """A queue with records in every state at once: who holds what, what is settled or may be.

    What was acknowledged with a response of NONE is stored; what is held is nowhere stored but its
    count (KIP-932 §Managing durable share-partition state).
    """

    queue: Queue
    holder: Consumer
    lock_ms: int
    since: float
    held: set[int] = field(default_factory=lambda: set(HELD))
    settled: set[int] = field(default_factory=lambda: set(SETTLED))
    doubtful: set[int] = field(default_factory=set)

    @property
    def open(self) -> set[int]:
        """The offsets that have to be delivered once nobody holds them any more."""
        return {*HELD, *STORED, *FRESH} - self.settled - self.doubtful

    def send(self, *acks: Ack) -> asyncio.Task[Part | None]:
        """Acknowledge without waiting for the response; until it is there, the outcome is open."""
        offsets = {offset for ack in acks for offset in range(ack.first, ack.last + 1)}
        self.doubtful |= offsets
        self.held -= offsets
        return asyncio.create_task(self._sent(*acks))

    async def _sent(self, *acks: Ack) -> Part | None:
        try:
            return await self.holder.ack(*acks, timeout=45.0)
        except CallFailed:
            return None

    def answered(self, offsets: Collection[int], part: Part | None) -> str:
        """Take over what an ACCEPT was answered; return its name, empty when nothing came."""
        if part is None:
            return ""
        if not part.ack_error:
            self.doubtful -= set(offsets)
            self.settled |= set(offsets)
        return error_name(part.ack_error)


async def prepared(queue: Queue, lock_ms: int = LONG_LOCK_MS) -> MixedStates:
    """Bring the records of an empty queue into all the states named above."""
    await queue.produce(16, batches=queue.env.rng.choice([1, 4, 16]))
    holder = await queue.consumer()
    since = time.monotonic()
    await holder.acquire(16)
    await holder.acked(accept(3, 5), reject(6, 7), release(8, 11))
    await holder.acquire(4)
    await holder.acked(release(10, 11))
    await queue.produce(4)
    return MixedStates(queue, holder, lock_ms, since)


@dataclass(frozen=True, slots=True)
class Taken:
    """What the partition's leader gave to a consumer, and the record produced last before it."""

    roamer: ReconnectingConsumer
    counts: dict[int, int]
    sentinel: int

    @property
    def told(self) -> str:
        """The last errors on the way, to be put behind a sentence."""
        return f"; errors on the way: {self.roamer.told[-3:]}" if self.roamer.told else ""


async def taken(scene: MixedStates, wanted: Collection[int], within: float) -> Taken:
    """Let a new consumer fetch, wherever the partition is led from, until all wanted came."""
    sentinel = await append(scene.queue)
    roamer = ReconnectingConsumer(scene.queue)
    return Taken(roamer, await roamer.take({*wanted, sentinel}, within), sentinel)


def judge_taken(judge: Judge, scene: MixedStates, wanted: Collection[int], seen: Taken) -> None:
    """Demand that what is open was delivered and what is settled was not."""
    counts = seen.counts
    judge.equal([], sorted(scene.settled & counts.keys()), "settled records that came again")
    judge.equal([], sorted(set(wanted) - counts.keys()), f"open records that never came{seen.told}")
    behind = f"offset {seen.sentinel}, produced afterwards, never came{seen.told}"
    if not wanted and seen.sentinel not in counts:  # that the leader goes on is another rule's
        raise Undecided(behind)
    judge.holds(seen.sentinel in counts, behind)
    judge.saw(deliveries=len(counts), settled=len(scene.settled))


async def judge_open(judge: Judge, scene: MixedStates, wanted: Collection[int]) -> Taken:
    """Judge by one rule what the leader gives of a scene; return it and who has it now."""
    seen = await taken(scene, wanted, TAKEN_OVER)
    judge_taken(judge, scene, wanted, seen)
    return seen


def judge_counts(judge: Judge, seen: dict[int, int]) -> None:
    """Demand that no count is below the stored one plus one."""
    low = {o: seen[o] for o, stored in STORED.items() if o in seen and seen[o] <= stored}
    judge.equal({}, low, f"counts that fell, with {STORED} stored")


async def judge_new_leader(judge: Judge, scene: MixedStates) -> ReconnectingConsumer:
    """Judge what a leader that took over makes of a scene; return who has the records now."""
    # Until a lock of the holder has to be over, with slack.
    lock_left = scene.since + scene.lock_ms / 1000 + SLACK - time.monotonic()
    seen = await taken(scene, scene.open, max(lock_left, 1.0))
    # Where not even the record behind them came, it is not the locks.
    locked = sorted(scene.held - seen.counts.keys()) if seen.sentinel in seen.counts else []
    judge["COO-22"].equal([], locked, f"records still locked for the former holder{seen.told}")
    judge_counts(judge["COO-23"], seen.counts)
    judge_taken(judge["COO-21"], scene, scene.open, seen)
    return seen.roamer


async def judge_holder(judge: Judge, scene: MixedStates, after: str) -> None:
    """Demand that the holder can still settle what it holds, at the leader that gave it."""
    if time.monotonic() - scene.since > scene.lock_ms / 1000:
        raise Undecided(f"the harness needed longer than the lock's {scene.lock_ms} ms")
    offsets = sorted(scene.held - {0})
    task = scene.send(*(accept(offset) for offset in offsets))
    judge.equal("NONE", scene.answered(offsets, await task), f"accepting what is held {after}")
