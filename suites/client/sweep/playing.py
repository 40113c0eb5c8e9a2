"""Plays one case of the sweep: an application works while the hostile broker has its script."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isinf

from fixtures.clients.adapter import DEADLINE, AdapterHang, Refused
from fixtures.clients.cluster import attempts
from fixtures.clients.handle import Delivery, Handle, Settled
from fixtures.hostile.script import ScriptStep
from fixtures.proxies.exchange import Exchange
from spec.adapter import Capability
from spec.verdict import Undecided
from suites.broker.share import Queue
from suites.client.brokers import MOST_DELIVERIES
from suites.client.harness import Harness
from suites.client.sweep.cases import Case
from suites.client.wire import SHARE

PARTITIONS = 2
LOCK_MS = 5000
"""A short lock: what a failed fetch acquired comes again when it is over."""

SESSION_MS = 8000
"""A short session: a member that ended by an error leaves its partitions to another one then."""

REQUEST_MS = 5000
"""How long a client waits for a response, where that can be set."""

LASTS = 5.0
"""Seconds for which a lasting error lasts; one that is to be told lasts until it is, or TOLD."""

TOLD = 10.0
"""Seconds within which an application has to be told of an error that does not pass by itself."""

RHYTHM = 8.0
"""Seconds after which a script that has not been taken whole is taken away."""

BACK = 40.0
"""Seconds within which all records have to be accepted when the error is over.

A back-off of retry.backoff.max.ms (1 s), a lock, and a session fit in several times.
"""

PATIENCE = 4.0
"""Seconds after which an application makes another consumer, if a call had told it of an error."""

CLOSES = 15.0
"""Seconds within which a consumer has to close that was given two."""

_LATE = "INVALID_RECORD_STATE"
"""What an acknowledgement meets when its lock has run out."""

At = tuple[int, int]
"""Partition and offset."""


@dataclass(slots=True)
class Story:
    """What became of a case: what the application did and saw, and what went over the wire.

    Attributes:
        accepted: When the application first accepted each record, seconds on the monotonic clock.
        delivered: The records that it was given.
        produced: The records that there are.
        told: The errors that calls and callbacks told it while the script ran, with their time.
        settled: What it was told became of acknowledgements.
        began: When the script began.
        ended: When the script was taken away.
        recovered: Seconds from then until every record was accepted; None if that did not happen.
        left: What was missing then, in words.
        stuck: The call that did not return, or nothing.
        exchanges: What went over the wire, all of it.
    """

    accepted: dict[At, float] = field(default_factory=dict)
    delivered: set[At] = field(default_factory=set)
    produced: set[At] = field(default_factory=set)
    told: list[tuple[float, str]] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    began: float = 0.0
    ended: float = 0.0
    recovered: float | None = None
    left: str = ""
    stuck: str = ""
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def met(self) -> list[Exchange]:
        return [one for one in self.exchanges if one.scripted and one.scripted != "pass"]

    @property
    def shared(self) -> list[Exchange]:
        return [one for one in self.exchanges if one.api in SHARE]


async def play(harness: Harness, case: Case) -> Story:
    """Play a case and return what became of it.

    Raises:
        Undecided: the consumer did not get going before there was any script, or the machine was
            too slow for locks.
    """
    group_config = {
        "share.delivery.count.limit": str(MOST_DELIVERIES),
        "share.session.timeout.ms": str(SESSION_MS),
    }
    queue = await harness.queue(partitions=PARTITIONS, lock_ms=LOCK_MS, group_config=group_config)
    player = _Player(harness, case, queue)
    try:
        await player.play()
    except AdapterHang as hang:
        player.story.stuck = str(hang)
    player.story.exchanges = list(harness.tap.exchanges)
    player.story.settled = [one for handle in player.handles for one in handle.settled]
    return player.story


class _Player:
    """One application, with the consumers that it makes one after the other."""

    def __init__(self, harness: Harness, case: Case, queue: Queue) -> None:
        self.harness, self.case, self.queue = harness, case, queue
        self.story = Story()
        self.handles: list[Handle] = []
        self.commits = case.commits and self._can_commit
        self._thrown = False

    @property
    def _can_commit(self) -> bool:
        has = self.harness.adapter.has
        return has(Capability.COMMIT_SYNC) or has(Capability.COMMIT_ASYNC)

    async def play(self) -> None:
        await self._produce(2)
        if not self.case.joining:
            await self._open()
            await self._begin()
        await self._meet()
        await self._produce(1)
        await self._recover()
        await self._close(self.handles[-1])

    async def _meet(self) -> None:
        """Let the client meet the script until it is over.

        A call may wait for that end, such as one that makes a consumer and looks for the
        coordinator first. So the script ends in the middle of a call, too, if that is long.
        """
        case = self.case
        limit = (TOLD if case.owed else LASTS) if case.lasting else RHYTHM
        self.story.began = time.monotonic()
        steps = self.harness.play(*case.steps)
        end = asyncio.get_running_loop().call_later(2 * limit, self._end, steps)
        try:
            if case.joining:
                await self._try_to_open(2 * limit + BACK)
            else:
                await self._produce(2)
            async for left in attempts(limit):
                if self.story.ended:
                    return
                await self._work()
                if self._met(steps, limit - left):
                    break
        finally:
            end.cancel()
            self._end(steps)

    def _met(self, steps: Sequence[ScriptStep], seconds: float) -> bool:
        if self.case.lasting:
            return self.case.owed and self._told and seconds > LASTS
        wanted = sum(step.times for step in steps)
        return sum(step.taken for step in steps) >= wanted and not self._under_way

    def _end(self, steps: Sequence[ScriptStep]) -> None:
        if not self.story.ended:
            self.harness.tap.script.drop(steps)
            self.story.ended = time.monotonic()

    @property
    def _told(self) -> bool:
        story = self.story
        return bool(story.told) or any(s.error for handle in self.handles for s in handle.settled)

    @property
    def _under_way(self) -> bool:
        """Whether a response that the script changes has not come yet."""
        return any(one.scripted and isinf(one.responded) for one in self.harness.tap.exchanges)

    async def _open(self, within: float = DEADLINE) -> None:
        handle = self.harness.handle()
        self.handles.append(handle)
        config = {"request_timeout_ms": REQUEST_MS}
        often = {"metadata_max_age_ms": 1000} if self.case.api == "Metadata" else {}
        try:
            asked = self.harness.config(handle, self.queue.group, **config, **often)
            await handle.open(asked, within=within)
        except Refused:  # some ask for metadata more seldom
            asked = self.harness.config(handle, self.queue.group, **config)
            await handle.open(asked, within=within)
        await handle.subscribe(self.queue.topic.name)

    async def _try_to_open(self, within: float) -> None:
        """Open a consumer whose library may join, and fail, before there is a poll."""
        try:
            await self._open(within)
        except Refused as error:
            self._thrown = True
            self._tell(error.name)

    async def _produce(self, number: int) -> None:
        for partition in range(PARTITIONS):
            first = await self.queue.produce(number, partition)
            self.story.produced |= {(partition, first + n) for n in range(number)}

    async def _begin(self) -> None:
        """Take what is there, so that the client is well before anything happens to it."""
        async for _ in attempts(40.0):
            await self._work()
            if await self._all_accepted():
                return
        raise Undecided("the consumer did not get going within 40 s, and no script had begun")

    async def _work(self) -> None:
        """Poll once, and acknowledge what came: the odd ones are released once."""
        handle = self.handles[-1]
        try:
            found = await handle.poll(0.3)
        except Refused as error:
            self._thrown = True
            self._tell(error.name)
            return
        twice = [one for one in found if self._is_new(one) and one.offset % 2]
        once = [one for one in found if one not in twice]
        now = time.monotonic()
        self.story.delivered |= {(one.partition, one.offset) for one in found}
        for one in once:
            self.story.accepted.setdefault((one.partition, one.offset), now)
        for kind, records in (("accept", once), ("release", twice)):
            for record in records:
                with contextlib.suppress(Refused):
                    await handle.acknowledge([record], kind)
        if found and self.commits:
            await self._commit(handle)

    def _is_new(self, one: Delivery) -> bool:
        return (one.partition, one.offset) not in self.story.delivered and self._chooses

    @property
    def _chooses(self) -> bool:
        """Whether the client takes anything but accept for single records."""
        return self.harness.acking == "explicit" or self.harness.adapter.has(Capability.MIXED)

    async def _commit(self, handle: Handle) -> None:
        try:
            if self.harness.adapter.has(Capability.COMMIT_SYNC):
                for one in await handle.commit_sync(2.0):
                    if one.error:
                        self._tell(one.error)
            else:
                await handle.commit_async()
        except Refused as error:
            self._tell(error.name)

    def _tell(self, name: str) -> None:
        if self.story.began:
            self.story.told.append((time.monotonic(), name))

    async def _all_accepted(self) -> bool:
        produced = self.story.produced
        ends = {p: max(offset for q, offset in produced if q == p) + 1 for p in range(PARTITIONS)}
        if not (self.case.unreadable or produced <= self.story.accepted.keys()):
            return False
        return await self._starts() == ends

    async def _starts(self) -> dict[int, int]:
        """Return the start offsets of the share-partitions; nothing if the group is not there."""
        try:
            found = await self.queue.share.admin.share_offsets(self.queue.group, self.queue.topic)
        except Undecided:
            return {}
        return {partition: one.start for partition, one in sorted(found.items())}

    async def _recover(self) -> None:
        """Work on until everything is accepted; who was told of an error may begin again."""
        story, began, again = self.story, time.monotonic(), False
        async for left in attempts(BACK):
            await self._work()
            if await self._all_accepted():
                story.recovered = time.monotonic() - began
                return
            if not again and self._thrown and BACK - left > PATIENCE:
                again = True
                await self._close(self.handles[-1])
                await self._open()
        if any(name == _LATE for at, name in story.told if at > story.ended):
            raise Undecided("locks ran out before records were acknowledged: the machine is slow")
        missing = sorted(story.produced - story.accepted.keys())
        story.left = f"never delivered or accepted: {missing}; start offsets {await self._starts()}"

    async def _close(self, handle: Handle) -> None:
        limit = 2.0 if self.harness.adapter.has(Capability.CLOSE_TIMEOUT) else None
        with contextlib.suppress(Refused):
            await handle.close(limit, within=CLOSES if limit else 60.0)
