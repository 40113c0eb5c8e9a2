"""Plays a sequence: calls in the order of the script, and then an application that works on."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from fixtures.clients.adapter import AdapterDied, AdapterHang, Refused, Unsupported
from fixtures.clients.cluster import attempts
from fixtures.clients.handle import Delivery, Handle
from fixtures.proxies.exchange import Exchange
from spec.adapter import Capability
from spec.verdict import Undecided
from suites.broker.share import Queue
from suites.client.harness import Harness
from suites.client.sequences.steps import CONSUMERS, Step

LOCK_MS = 1500
SESSION_MS = 6000
LIMIT = 10
"""Deliveries of a record: the most that a group may be configured to."""

COMMITS = 2.0
"""Seconds that a synchronous commit is given, and a close where it takes a limit."""

ANSWERS = 25.0
"""Seconds beyond its own limit within which every call has to return."""

BEGINS = 8.0
"""Seconds for which a consumer that begins polls for its first records; others may hold them."""

BACK = 40.0
"""Seconds within which an application that comes afterwards has to get everything that is left."""

Place = tuple[str, int]
"""Topic and offset: the topics have one partition."""


@dataclass(frozen=True, slots=True)
class Given:
    """A record as a call gave it to the application.

    ``at`` is when the call returned; where another call ran beside it, which may accept the record
    before we read the reply, it is when the call began.
    """

    at: float
    poll: int
    by: str
    place: Place
    count: int | None


@dataclass(slots=True)
class Story:
    """What became of a sequence.

    Attributes:
        given: The records that polls gave, in order.
        asked: When the application first asked for an acknowledgement of a kind for a record.
        implicit: The consumers that accept with the next poll or commit.
        renewed: The records whose renewal was asked for: they come again as they were.
        produced: The records that there are.
        stuck: The call that did not return, or the process that ended; or nothing.
        left: What the last application could not get, or nothing.
        exchanges: What went over the wire.
        topics: The names of the topics by their ids.
        said: What each step came to, for people.
    """

    given: list[Given] = field(default_factory=list)
    asked: dict[tuple[Place, str], float] = field(default_factory=dict)
    implicit: set[str] = field(default_factory=set)
    renewed: set[Place] = field(default_factory=set)
    produced: set[Place] = field(default_factory=set)
    stuck: str = ""
    left: str = ""
    exchanges: list[Exchange] = field(default_factory=list)
    topics: dict[UUID, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


async def play(harness: Harness, script: Sequence[Step]) -> Story:
    """Play a script and return what became of it.

    Raises:
        Undecided: the cluster behind the tap was too slow.
    """
    player = await _Player.ready(harness)
    story = player.story
    try:
        for step in script:
            story.said.append(f"{step} -> {await player.step(step)}")
        await player.work_on()
    except (AdapterHang, AdapterDied) as fault:
        story.stuck = str(fault)
    story.exchanges = list(harness.tap.exchanges)
    return story


class _Player:
    def __init__(self, harness: Harness, queue: Queue, other: Queue) -> None:
        self.harness = harness
        self.queues = (queue, other)
        self.story = Story(topics={q.topic.id: q.topic.name for q in self.queues})
        self.handles = [_named(harness, f"s-{number}") for number in range(CONSUMERS)]
        self.open: set[str] = set()
        self.polls: dict[str, list[list[Delivery]]] = defaultdict(list)

    @classmethod
    async def ready(cls, harness: Harness) -> _Player:
        """Return a player with two topics that one group reads, a few records in each."""
        config = {
            "share.delivery.count.limit": str(LIMIT),
            "share.session.timeout.ms": str(SESSION_MS),
        }
        queue = await harness.queue(lock_ms=LOCK_MS, group_config=config)
        other = Queue(
            share=harness.share, topic=await harness.admin.create_topic(1), group=queue.group
        )
        player = cls(harness, queue, other)
        await player._produce(3)
        return player

    async def step(self, step: Step) -> str:
        """Take a step, and return what came of it, in words."""
        call = step["call"]
        if call == "produce":
            await self._produce(step["count"])
            return "done"
        if call == "pause":
            # The length of an application's pause in which its locks run out.
            await asyncio.sleep(LOCK_MS * 1.2 / 1000)
            return "done"
        handle = self.handles[step["by"]]
        if call not in {"open", "begin"} and handle.name not in self.open:
            return "skipped: never opened"
        work = [self._call(handle, step)]
        if other := step.get("beside"):
            work.append(self._call(handle, other | {"concurrent": True}))
        return "; ".join(await asyncio.gather(*map(_told, work)))

    async def _call(self, handle: Handle, step: Step) -> str:
        match step["call"]:
            case "open":
                await self._make(handle, step["mode"])
            case "begin":
                return await self._begin(handle, step["mode"])
            case "subscribe":
                names = [self.queues[number].topic.name for number in step["topics"]]
                await handle.subscribe(*names)
            case "poll":
                found = await self._poll(handle, step)
                return f"{[(one.topic[-1], one.offset, one.count) for one in found]}"
            case "acknowledge":
                return await self._acknowledge(handle, step)
            case "commit_sync":
                await self._commit(handle, step)
            case "close":
                await self._close(handle)
            case call:
                await handle.call(call, within=ANSWERS)
        return "done"

    async def _make(self, handle: Handle, mode: str) -> None:
        if handle.name in self.open:
            with contextlib.suppress(Refused):
                await self._close(handle)
        config = {"request_timeout_ms": 3000, "max_wait_ms": 300}
        await handle.open(
            self.harness.config(handle, self.queues[0].group, mode=mode, callback=None, **config)
        )
        self.open.add(handle.name)
        self.polls[handle.name].clear()
        if mode == "implicit":
            self.story.implicit.add(handle.name)

    async def _begin(self, handle: Handle, mode: str) -> str:
        await self._make(handle, mode)
        await handle.subscribe(*(queue.topic.name for queue in self.queues))
        async for _ in attempts(BEGINS):
            if found := await self._poll(handle, {"ms": 500}):
                return f"begun with {[(one.topic[-1], one.offset, one.count) for one in found]}"
        return "nothing came"

    async def _poll(self, handle: Handle, step: Step) -> list[Delivery]:
        seconds, began = step["ms"] / 1000, time.monotonic()
        threads: dict[str, Any] = {"concurrent": True} if step.get("concurrent") else {}
        found = await handle.poll(seconds, within=seconds + ANSWERS, **threads)
        is_beside = "concurrent" in step or "beside" in step
        at, number = began if is_beside else time.monotonic(), len(self.story.said)
        for one in found:
            place = (one.topic, one.offset)
            self.story.given.append(Given(at, number, handle.name, place, one.count))
        if found:
            self.polls[handle.name].append(found)
        return found

    async def _acknowledge(self, handle: Handle, step: Step) -> str:
        polls = self.polls[handle.name]
        former = step["which"] == "former"
        records = (polls[-2] if len(polls) > 1 else []) if former else (polls[-1] if polls else [])
        if step["which"] in {"first", "last"}:
            records = records[:1] if step["which"] == "first" else records[-1:]
        for one in records:
            place = (one.topic, one.offset)
            self.story.asked.setdefault((place, step["kind"]), time.monotonic())
            if step["kind"] == "renew":
                self.story.renewed.add(place)
        if not records:
            return "skipped: no such record"
        await handle.acknowledge(records, step["kind"])
        return f"done for {[one.offset for one in records]}"

    async def _commit(self, handle: Handle, step: Step) -> None:
        threads = {"concurrent": True} if step.get("concurrent") else {}
        await handle.commit_sync(COMMITS, **threads)

    async def _close(self, handle: Handle) -> None:
        limit = COMMITS if self.harness.adapter.has(Capability.CLOSE_TIMEOUT) else None
        await handle.close(limit, within=ANSWERS if limit else 60.0)

    async def _produce(self, number: int) -> None:
        for queue in self.queues:
            first = await queue.produce(number)
            self.story.produced |= {(queue.topic.name, first + n) for n in range(number)}

    async def work_on(self) -> None:
        """Close what is open, and let another application of the group take all that is left."""
        for handle in self.handles:
            if handle.name in self.open:
                with contextlib.suppress(Refused):
                    await self._close(handle)
        last = _named(self.harness, "s-last")
        try:
            await self._make(last, self.harness.acking)
            await last.subscribe(*(queue.topic.name for queue in self.queues))
        except Refused as error:
            self.story.left = f"a new consumer was refused: {error}"
            return
        refusals: list[str] = []
        async for _ in attempts(BACK):
            try:
                found = await self._poll(last, {"ms": 300})
                if found:
                    for one in found:
                        place = (one.topic, one.offset)
                        self.story.asked.setdefault((place, "accept"), time.monotonic())
                    await last.acknowledge(found)
                    await self.harness.settle(last, COMMITS)
            except Refused as error:
                refusals.append(str(error))
            if await self._all_done():
                break
        else:
            self.story.left = f"a new consumer did not get the rest within {BACK:g} s"
            self.story.said.append(f"the last consumer was told {refusals[-3:]}")
        with contextlib.suppress(Refused):
            await self._close(last)

    async def _all_done(self) -> bool:
        admin = self.queues[0].share.admin
        for queue in self.queues:
            end = max(o for name, o in self.story.produced if name == queue.topic.name) + 1
            try:
                found = await admin.share_offsets(queue.group, queue.topic)
            except Undecided:
                return False
            if 0 not in found or found[0].start != end:
                return False
        return True


def _named(harness: Harness, name: str) -> Handle:
    """Return a consumer whose name is that of one in the last sequence.

    An adapter keeps closed consumers by their names; thousands would use up its process.
    """
    made = harness.handle()
    made.name = name
    return made


async def _told(work: Awaitable[str]) -> str:
    try:
        return await work
    except Refused as error:
        return f"refused: {error.name}"
    except Unsupported as lacking:
        return str(lacking)
