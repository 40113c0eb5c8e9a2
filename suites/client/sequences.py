"""Random sequences of calls: how they are drawn, played against a client, and judged.

A step is a dict that JSON can hold, so that a sequence is a script that can be played again:
``{"call": "poll", "by": 0, "ms": 300}``. ``by`` is the consumer, ``beside`` a second call of the
same consumer that another thread makes meanwhile. ``begin`` opens a consumer, subscribes it, and
polls until records come.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from fixtures.clients.adapter import AdapterDied, AdapterHang, Refused, Unsupported
from fixtures.clients.cluster import attempts
from fixtures.clients.handle import Delivery, Handle
from fixtures.clients.member import AckType
from fixtures.proxies.exchange import Exchange
from spec.adapter import Capability
from spec.verdict import Violation
from suites.broker.env import Queue
from suites.client.harness import FLOOD, Harness, refusal
from suites.client.wire import SHARE, acked, busiest

# --- Steps ----------------------------------------------------------------------------------------

Step = dict[str, Any]
CONSUMERS = 2
LONGEST = 14  # Steps of a sequence at most.

# What a call needs of a client.
_NEEDS = {
    "unsubscribe": Capability.UNSUBSCRIBE,
    "commit_sync": Capability.COMMIT_SYNC,
    "commit_async": Capability.COMMIT_ASYNC,
    "wakeup": Capability.WAKEUP,
    "subscription": Capability.SUBSCRIPTION,
    "lock_duration": Capability.LOCK_DURATION,
}

_KINDS = ("accept", "release", "reject")
# Of the latest poll's records all, one, or those of an earlier poll.
_WHICH = ("all", "first", "last", "former")


def sequences(capabilities: frozenset[str]) -> st.SearchStrategy[list[Step]]:
    modes = st.sampled_from([mode for mode in ("explicit", "implicit") if mode in capabilities])
    by = st.integers(0, CONSUMERS - 1)
    kinds = _KINDS + (("renew",) if Capability.RENEW in capabilities else ())
    poll = _step("poll", by=by, ms=st.sampled_from([300, 0, 1000]))
    acknowledge = _step(
        "acknowledge", by=by, kind=st.sampled_from(kinds), which=st.sampled_from(_WHICH)
    )
    steps = [
        poll,
        poll,
        _step("begin", by=by, mode=modes),
        _step("open", by=by, mode=modes),
        _step("subscribe", by=by, topics=st.sampled_from([[0], [1], [0, 1]])),
        _step("close", by=by),
        _step("produce", count=st.integers(1, 3)),
        _step("pause"),
    ]
    if Capability.ACK_RECORD in capabilities or Capability.ACK_OFFSET in capabilities:
        steps += [acknowledge, acknowledge]
    steps += [_step(call, by=by) for call, need in _NEEDS.items() if need in capabilities]
    if Capability.CONCURRENT in capabilities:
        beside = [st.just({"call": "poll", "ms": 0})]
        if Capability.COMMIT_SYNC in capabilities:
            beside.append(st.just({"call": "commit_sync"}))
        steps.append(st.builds(lambda one, two: one | {"beside": two}, poll, st.one_of(*beside)))
    begin = _step("begin", by=st.just(0), mode=modes)
    rest = st.lists(st.one_of(*steps), min_size=1, max_size=LONGEST - 1)
    return st.builds(lambda first, others: [first, *others], begin, rest)


def _step(call: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.fixed_dictionaries({"call": st.just(call), **fields})


# --- Play -----------------------------------------------------------------------------------------

LOCK_MS = 1500
SESSION_MS = 6000
PAUSE = LOCK_MS * 1.2 / 1000  # Seconds for which an application does nothing: its locks run out.
LIMIT = 10  # Deliveries of a record: the most that a group may be configured to.
COMMITS = 2.0  # Seconds that a synchronous commit is given, and a close where it takes a limit.
ANSWERS = 25.0  # Seconds beyond its own limit within which every call has to return.

# Seconds for which a consumer that begins polls for its first records; others may hold them.
BEGINS = 8.0

# Seconds within which an application that comes afterwards has to get everything that is left.
BACK = 40.0
Place = tuple[str, int]  # Topic and offset: the topics have one partition.


@dataclass(frozen=True, slots=True)
class Given:
    # When the call returned; where another call ran beside it, which may accept the record before
    # we read the reply, when it began.
    at: float
    by: str
    place: Place
    count: int | None


@dataclass(slots=True)
class SequenceRun:
    given: list[Given] = field(default_factory=list)  # The records that polls gave, in order.
    # When the application first asked for an acknowledgement of a kind for a record.
    asked: dict[tuple[Place, str], float] = field(default_factory=dict)
    implicit: set[str] = field(default_factory=set)  # Who accepts with the next poll or commit.
    renewed: set[Place] = field(default_factory=set)  # To be renewed: they come again as they were.
    produced: set[Place] = field(default_factory=set)  # The records that there are.
    stuck: str = ""  # The call that did not return, or the process that ended; or nothing.
    left: str = ""  # What the last application could not get, or nothing.
    exchanges: list[Exchange] = field(default_factory=list)  # What went over the wire.
    topics: dict[UUID, str] = field(default_factory=dict)  # The names of the topics by their ids.
    said: list[str] = field(default_factory=list)  # What each step came to, for people.
    account: list[Violation] = field(default_factory=list)  # What its account has to say.


async def play(harness: Harness, script: Sequence[Step]) -> SequenceRun:
    config = {"share.delivery.count.limit": str(LIMIT), "share.session.timeout.ms": str(SESSION_MS)}
    queue = await harness.queue(lock_ms=LOCK_MS, group_config=config)
    topic = await harness.admin.create_topic(1)
    player = _Player(harness, queue, Queue(env=harness.env, topic=topic, group=queue.group))
    await player.produce(3)
    run = player.run
    try:
        for step in script:
            run.said.append(f"{step} -> {await player.step(step)}")
        await player.work_on()
    except (AdapterHang, AdapterDied) as fault:
        run.stuck = str(fault)
    run.exchanges = list(harness.tap.exchanges)
    return run


class _Player:
    def __init__(self, harness: Harness, queue: Queue, other: Queue) -> None:
        self.harness = harness
        self.queues = (queue, other)
        self.run = SequenceRun(topics={q.topic.id: q.topic.name for q in self.queues})
        self.handles = [_named(harness, f"s-{number}") for number in range(CONSUMERS)]
        self.open: set[str] = set()
        self.polls: dict[str, list[list[Delivery]]] = defaultdict(list)

    async def step(self, step: Step) -> str:
        call = step["call"]
        if call == "produce":
            await self.produce(step["count"])
            return "done"
        if call == "pause":
            async for _ in attempts(PAUSE):
                pass  # what the client does by itself meanwhile is seen on the wire
            return "done"
        handle = self.handles[step["by"]]
        if call not in {"open", "begin"} and handle.name not in self.open:
            return "skipped: never opened"
        work = [self._call(handle, step)]
        if other := step.get("beside"):
            work.append(self._call(handle, other | {"concurrent": True}))
        return "; ".join(await asyncio.gather(*map(_described, work)))

    async def _call(self, handle: Handle, step: Step) -> str:
        match step["call"]:
            case "open":
                await self._make(handle, step["mode"])
            case "begin":
                await self._make(handle, step["mode"])
                await handle.subscribe(*(queue.topic.name for queue in self.queues))
                async for _ in attempts(BEGINS):
                    if found := await self._poll(handle, {"ms": 500}):
                        return f"begun with {_short(found)}"
                return "nothing came"
            case "subscribe":
                names = [self.queues[number].topic.name for number in step["topics"]]
                await handle.subscribe(*names)
            case "poll":
                return f"{_short(await self._poll(handle, step))}"
            case "acknowledge":
                return await self._acknowledge_some(handle, step)
            case "commit_sync":
                await handle.commit_sync(COMMITS, **_threads(step))
            case "close":
                await self.harness.end(handle, ANSWERS)
            case call:
                await handle.call(call, within=ANSWERS)
        return "done"

    async def _make(self, handle: Handle, mode: str) -> None:
        if handle.name in self.open:
            await refusal(self.harness.end(handle, ANSWERS))
        config = {"mode": mode, "callback": None, "request_timeout_ms": 3000}
        await handle.open(self.harness.config(handle, self.queues[0].group, **config))
        self.open.add(handle.name)
        self.polls[handle.name].clear()
        if mode == "implicit":
            self.run.implicit.add(handle.name)

    async def _poll(self, handle: Handle, step: Step) -> list[Delivery]:
        seconds, began = step["ms"] / 1000, time.monotonic()
        found = await handle.poll(seconds, within=seconds + ANSWERS, **_threads(step))
        at = began if step.keys() & {"concurrent", "beside"} else time.monotonic()
        self.run.given += [Given(at, handle.name, _place(one), one.count) for one in found]
        if found:
            self.polls[handle.name].append(found)
        return found

    async def _acknowledge_some(self, handle: Handle, step: Step) -> str:
        nothing: list[Delivery] = []
        *_, former, latest = nothing, nothing, *self.polls[handle.name]
        which = {"all": latest, "first": latest[:1], "last": latest[-1:], "former": former}
        if not (records := which[step["which"]]):
            return "skipped: no such record"
        await self._acknowledge(handle, records, step["kind"])
        return f"done for {[one.offset for one in records]}"

    async def _acknowledge(
        self, handle: Handle, records: Sequence[Delivery], kind: str = "accept"
    ) -> None:
        for place in map(_place, records):
            self.run.asked.setdefault((place, kind), time.monotonic())
            if kind == "renew":
                self.run.renewed.add(place)
        await handle.acknowledge(records, kind)

    async def produce(self, number: int) -> None:
        for queue in self.queues:
            first = await queue.produce(number)
            self.run.produced |= {(queue.topic.name, first + n) for n in range(number)}

    async def work_on(self) -> None:
        for handle in self.handles:
            if handle.name in self.open:
                await refusal(self.harness.end(handle, ANSWERS))
        last = _named(self.harness, "s-last")
        try:
            await self._make(last, self.harness.acking)
            await last.subscribe(*(queue.topic.name for queue in self.queues))
        except Refused as error:
            self.run.left = f"a new consumer was refused: {error}"
            return
        refusals: list[str] = []
        async for _ in self.harness.attempts(BACK):
            try:
                if found := await self._poll(last, {"ms": 300}):
                    await self._acknowledge(last, found)
                    await self.harness.settle(last, COMMITS)
            except Refused as error:
                refusals.append(str(error))
            if await self._all_done():
                break
        else:
            self.run.left = f"a new consumer did not get the rest within {BACK:g} s"
            self.run.said.append(f"the last consumer was told {refusals[-3:]}")
        await refusal(self.harness.end(last, ANSWERS))

    async def _all_done(self) -> bool:
        for queue in self.queues:
            end = max(o for name, o in self.run.produced if name == queue.topic.name) + 1
            if await self.harness.starts(queue) != {0: end}:
                return False
        return True


def _named(harness: Harness, name: str) -> Handle:
    """Return a consumer by the last sequence's name: an adapter keeps closed ones by theirs."""
    made = harness.handle()
    made.name = name
    return made


def _place(one: Delivery) -> Place:
    return one.topic, one.offset


def _threads(step: Step) -> dict[str, Any]:
    return {"concurrent": True} if step.get("concurrent") else {}


def _short(found: Sequence[Delivery]) -> list[tuple[str, int, int | None]]:
    return [(one.topic[-1], one.offset, one.count) for one in found]


async def _described(work: Awaitable[str]) -> str:
    try:
        return await work
    except Refused as error:
        return f"refused: {error.name}"
    except Unsupported as lacking:
        return str(lacking)


# --- Invariants -----------------------------------------------------------------------------------

_ASKED = {AckType.ACCEPT: "accept", AckType.REJECT: "reject"}


def judge(run: SequenceRun) -> dict[str, str]:
    found = {name: look(run) for name, look in INVARIANTS.items()}
    return {name: sentence for name, sentence in found.items() if sentence}


def _nothing_lost(run: SequenceRun) -> str:
    """What no application accepted or rejected is not finished on the wire."""
    for one in acked([one for one in run.exchanges if one.api in SHARE]):
        if one.error not in {0, None}:
            continue
        place = run.topics.get(one.topic_id, str(one.topic_id)), one.offset
        if one.kind == AckType.GAP and place in run.produced:
            return f"{place} is a record and was acknowledged as a gap"
        if one.kind not in _ASKED:
            continue
        asked = [run.asked.get((place, _ASKED[AckType(one.kind)]), inf)]
        if one.kind == AckType.ACCEPT:
            mine = (given for given in run.given if given.place == place)
            asked += [given.at for given in mine if given.by in run.implicit]
        if min(asked) > one.by.sent:
            kind = AckType(one.kind).name
            return f"{place} got {kind} at {one.by.sent:.3f}, and nobody had asked for it"
    return ""


def _once(run: SequenceRun) -> str:
    seen = Counter(
        (given.by, given.place, given.count)
        for given in run.given
        if given.count is not None and given.place not in run.renewed
    )
    twice = [key for key, times in seen.items() if times > 1]
    return f"given twice with the same delivery count: {twice[0][1:]}" if twice else ""


def _goes_on(run: SequenceRun) -> str:
    """An application that comes afterwards gets everything that is left."""
    times = Counter(given.place for given in run.given).values()
    return "" if max(times, default=0) >= LIMIT else run.left


def _bounded(run: SequenceRun) -> str:
    """Requests come at a bounded rate."""
    apis = {(one.api, one.node) for one in run.exchanges}
    for api, node in sorted(apis):
        mine = [one for one in run.exchanges if (one.api, one.node) == (api, node)]
        if (most := busiest(mine)) > FLOOD:
            return f"{most} {api} requests within a second to broker {node}, {FLOOD} at most"
    return ""


def _accounted(run: SequenceRun) -> str:
    """What was acquired is given or let go; what was acknowledged is sent once and told once."""
    return "; ".join(f"{one.rule}: {one.sentence}" for one in run.account)


# The invariants of one sequence. Memory is looked at over many.
INVARIANTS: Mapping[str, Callable[[SequenceRun], str]] = {
    "liveness of calls": lambda run: run.stuck,  # Every call returns, and the process lives.
    "loss": _nothing_lost,
    "duplicates": _once,
    "liveness of the group": _goes_on,
    "rate": _bounded,
    "account": _accounted,
}

# Invariants that a slow machine can break: they count only if a replay breaks them again.
TIMED = frozenset({"liveness of calls", "liveness of the group"})
