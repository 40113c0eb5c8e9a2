"""A queue with records in every state at once, and what has to be true of it afterwards.

    0         held; the pin, which keeps the start offset where every other offset is judged
    1, 2      held on their first delivery
    3 to 5    accepted
    6, 7      rejected
    8, 9      held on their second delivery: the count 1 is stored
    10, 11    available after two deliveries: the count 2 is stored
    12 to 15  held on their first delivery
    16 to 19  never delivered

What was acknowledged with a response of NONE is stored; what is held is nowhere stored but its
count (KIP-932 §Managing durable share-partition state).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from fixtures.clients.member import Ack, Part, accept, reject, release
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import error_name
from spec.verdict import Undecided
from suites.broker.locks import SLACK
from suites.broker.reconnecting import TAKEN_OVER, ReconnectingConsumer, append
from suites.broker.share import Consumer, Queue
from suites.judge import Judge

LONG_LOCK_MS = 60_000
"""A lock that outlives a check."""

FRESH = (16, 17, 18, 19)
HELD = (0, 1, 2, 8, 9, 12, 13, 14, 15)
SETTLED = (3, 4, 5, 6, 7)
STORED = {8: 1, 9: 1, 10: 2, 11: 2}
"""The stored delivery counts of offsets that are not settled."""


@dataclass(slots=True)
class MixedStates:
    """A prepared queue: who holds what, what is settled, and what may be either."""

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

    @property
    def lock_left(self) -> float:
        """Seconds until a lock of the holder has to be over, with slack."""
        return self.since + self.lock_ms / 1000 + SLACK - time.monotonic()

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
    """Bring the records of an empty queue into all the states that the module's text names."""
    await queue.produce(16, batches=queue.share.rng.choice([1, 4, 16]))
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
    missing = sorted(set(wanted) - counts.keys())
    judge.equal([], missing, f"open records that never came{seen.told}")
    behind = f"offset {seen.sentinel}, produced afterwards, never came{seen.told}"
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
    seen = await taken(scene, scene.open, max(scene.lock_left, 1.0))
    locked = sorted(scene.held - seen.counts.keys())
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
    result = scene.answered(offsets, await task)
    judge.equal("NONE", result, f"accepting what is held {after}")
