"""Histories that the model makes, valid ones and such with one lie."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from heapq import heappop, heappush
from random import Random
from typing import Any

from spec.model.durable import Coordinator
from spec.model.leader import Leader
from spec.model.log import Log
from spec.model.operations import (
    FINE,
    Acknowledge,
    Batch,
    Error,
    Fetch,
    Judgement,
    Mode,
    Range,
)
from spec.model.partition import SharePartition
from spec.model.release import NEWEST, Release
from spec.model.settings import Settings
from spec.model.table import State

MEMBERS = ("ann", "bob", "cid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happened between ``sent`` and ``received``, in milliseconds."""

    sent: float
    received: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced(Step):
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched(Step):
    fetch: Fetch
    ranges: tuple[Range, ...] | None  # None: no response came.


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged(Step):
    ack: Acknowledge
    error: int | None  # None: no response came.


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Step):
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded(Step):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStarted(Step):
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSeen(Step):
    offset: int


Ending = Callable[[float], Judgement]


def _begin(judge: SharePartition, step: Step) -> Ending:
    """Tell the judge of what was sent; return what tells it of the response."""
    ending: Callable[..., Judgement]
    response: tuple[Any, ...] = ()
    match step:
        case Fetched():
            begun = judge.begin_fetch(step.sent, step.fetch)
            ending, response = (judge.fetched, (step.ranges,))
        case Acknowledged():
            begun = judge.begin_acknowledge(step.sent, step.ack)
            ending, response = (judge.answered, (step.error,))
        case Closed():
            begun, ending = judge.begin_close(step.sent, step.member), judge.closed
        case Reloaded():
            begun, ending = judge.begin_reload(step.sent), judge.reload_done
        case LogStarted():
            begun, ending = judge.begin_log_start(step.sent, step.offset), judge.log_started
        case StartSeen():
            begun = judge.begin_look(step.sent)
            ending, response = judge.start_shown, (step.offset,)
        case Produced():
            judge.produced(step.first, step.last)
            return lambda _: FINE
    if response == (None,):
        ending, response = judge.lost, ()
    return lambda received: ending(begun, received, *response)


def refusals(judge: SharePartition, steps: Iterable[Step]) -> list[str]:
    """Judge steps in the order in which they ended; one without a response is never refused."""
    found: list[str] = []
    pending: list[tuple[float, int, Ending]] = []

    def end() -> None:
        received, _, ending = heappop(pending)
        found.extend(map(str, ending(received).refusals))

    for number, one in enumerate(sorted(steps, key=lambda one: (one.sent, one.received))):
        while pending and pending[0][0] < one.sent:
            end()
        heappush(pending, (one.received, number, _begin(judge, one)))
    while pending:
        end()
    return found


@dataclass(slots=True)
class Story:
    """Grows one history by random steps. ``lossy``: the share of answers that get lost."""

    random: Random
    settings: Settings
    release: Release = NEWEST
    lossy: float = 0.0
    overlap: float = 0.0
    now: float = 0.0
    steps: list[Step] = field(default_factory=list)
    busy: dict[str, float] = field(default_factory=dict)
    log: Log = field(init=False)
    leader: Leader = field(init=False)

    def __post_init__(self) -> None:
        coordinator = Coordinator(self.release, updates_per_snapshot=3)
        coordinator.initialize(0, 0)
        self.log = Log()
        self.leader = Leader(
            settings=self.settings, release=self.release, coordinator=coordinator, log=self.log
        )

    def run(self, length: int) -> list[Step]:
        actions = (
            [self.produce] * 2
            + [self.fetch] * 6
            + [self.acknowledge] * 8
            + [self.wait, self.close, self.reload, self.delete, self.look]
        )
        for _ in range(length):
            self.now += self.random.randint(1, 40)
            self.random.choice(actions)()
        return self.steps

    def around(self, member: str = "") -> tuple[float, float]:
        reach = 60 * self.overlap
        sent = max(self.now - self.random.uniform(0, reach), self.busy.get(member, 0.0))
        received = self.now + self.random.uniform(0, reach)
        if member:
            self.busy[member] = received
        return sent, received

    def add(self, step: Callable[..., Step], who: str = "", **facts: Any) -> None:
        sent, received = self.around(who)
        self.steps.append(step(sent=sent, received=received, **facts))

    def free(self) -> str | None:
        idle = [one for one in MEMBERS if self.busy.get(one, 0.0) < self.now]
        return self.random.choice(idle) if idle else None

    def lost(self) -> bool:
        return self.random.random() < self.lossy

    def produce(self) -> None:
        first, last = self.leader.produce(self.random.choice((1, 2, 5, 10)))
        self.steps.append(Produced(sent=self.now, received=self.now, first=first, last=last))

    def fetch(self) -> None:
        member = self.free()
        if member is None:
            return
        strict = self.release.record_limit and self.random.random() < 0.3
        mode = Mode.RECORD_LIMIT if strict else Mode.BATCH_OPTIMIZED
        most = self.random.choice((1, 3, 10, 500))
        taken = self.leader.acquire(self.now, member, max_records=most, mode=mode)
        fetch = Fetch(member=member, mode=mode, max_records=most)
        self.add(Fetched, member, fetch=fetch, ranges=None if self.lost() else tuple(taken))

    def acknowledge(self) -> None:
        member = self.free()
        batch = self.target(member) if member else None
        if member is None or batch is None:
            return
        renew = 4 in batch.types
        error = self.leader.acknowledge(self.now, member, [batch], renew=renew)
        ack = Acknowledge(member=member, batches=(batch,), renew=renew)
        self.add(Acknowledged, member, ack=ack, error=None if self.lost() else error)

    def target(self, member: str) -> Batch | None:
        runs = [
            (first, last)
            for first, last, record in self.leader.records.over(0, self.leader.end - 1)
            if record.state is State.ACQUIRED
            and (record.member == member or self.random.random() < 0.1)
        ]
        if not runs or self.random.random() < 0.05:
            first = self.random.randint(0, self.leader.end + 2)
            return Batch(first, first + self.random.randint(0, 3), (1,))
        first, last = self.random.choice(runs)
        first = self.random.randint(first, last)
        last = self.random.randint(first, last)
        kinds = (0, 1, 1, 1, 2, 2, 3, 4) if self.release.renewal else (0, 1, 1, 2, 3)
        size = last - first + 1
        if self.random.random() < 0.5:
            return Batch(first, last, (self.random.choice(kinds),))
        return Batch(first, last, tuple(self.random.choice(kinds) for _ in range(size)))

    def wait(self) -> None:
        self.now += self.random.choice((0.3, 0.9, 1.1)) * self.settings.lock_ms

    def close(self) -> None:
        member = self.free()
        if member is None:
            return
        self.leader.close(self.now, member)
        self.add(Closed, member, member=member)

    def reload(self) -> None:
        self.leader.tick(self.now)
        self.leader.reload()
        self.add(Reloaded)

    def delete(self) -> None:
        if self.random.random() < 0.7 or self.log.last < 0:
            return
        low, high = self.leader.start, min(self.log.last, self.leader.start + 4)
        if low > high:
            return
        offset = self.random.randint(low, high)
        self.leader.move_log_start(self.now, offset)
        self.add(LogStarted, offset=offset)

    def look(self) -> None:
        state = self.leader.coordinator.state
        if state is not None:
            self.add(StartSeen, offset=state.start)


def ranges_of(step: Step) -> tuple[Range, ...]:
    return (step.ranges or ()) if isinstance(step, Fetched) else ()


Edit = Callable[[list[Step], Random], list[Step] | None]
Change = Callable[[Any, Random], tuple[Step, ...]]
"""Takes one step, and returns the step to put in its place."""

EDITS: list[Edit] = []
"""Every corruption there is. What one edit makes may be legal by chance: rates, not certainties."""


def edit(wanted: Callable[[Step], object]) -> Callable[[Change], Edit]:

    def made(change: Change) -> Edit:
        @wraps(change)
        def edited(steps: list[Step], random: Random) -> list[Step] | None:
            found = [index for index, step in enumerate(steps) if wanted(step)]
            if not found:
                return None
            at = random.choice(found)
            return [*steps[:at], *change(steps[at], random), *steps[at + 1 :]]

        EDITS.append(edited)
        return edited

    return made


def _another(member: str, random: Random) -> str:
    return random.choice([name for name in MEMBERS if name != member])


def _counted(step: Fetched, random: Random, by: int) -> tuple[Step, ...]:
    ranges = list(ranges_of(step))
    which = random.randrange(len(ranges))
    ranges[which] = ranges[which]._replace(deliveries=ranges[which].deliveries + by)
    return (replace(step, ranges=tuple(ranges)),)


@edit(ranges_of)
def count_raised(step: Fetched, random: Random) -> tuple[Step, ...]:
    return _counted(step, random, 1)


@edit(ranges_of)
def count_lowered(step: Fetched, random: Random) -> tuple[Step, ...]:
    return _counted(step, random, -1)


@edit(ranges_of)
def given_twice(step: Fetched, random: Random) -> tuple[Step, ...]:
    other, moment = _another(step.fetch.member, random), step.received + 0.01
    again = tuple(one._replace(deliveries=one.deliveries + 1) for one in ranges_of(step))
    fetch = replace(step.fetch, member=other, max_records=None)
    return step, Fetched(sent=moment, received=moment, fetch=fetch, ranges=again)


def _accepted(step: Step) -> bool:
    return isinstance(step, Acknowledged) and step.error == Error.NONE


def _refused(step: Step) -> bool:
    return isinstance(step, Acknowledged) and step.error == Error.INVALID_RECORD_STATE


@edit(_accepted)
def wrong_holder(step: Acknowledged, random: Random) -> tuple[Step, ...]:
    return (replace(step, ack=replace(step.ack, member=_another(step.ack.member, random))),)


@edit(_accepted)
def refused_wrongly(step: Acknowledged, _: Random) -> tuple[Step, ...]:
    return (replace(step, error=Error.INVALID_RECORD_STATE),)


@edit(_refused)
def accepted_wrongly(step: Acknowledged, _: Random) -> tuple[Step, ...]:
    return (replace(step, error=Error.NONE),)


def _final(step: Step) -> list[int]:
    if not isinstance(step, Acknowledged) or not _accepted(step):
        return []
    (batch,) = step.ack.batches
    kinds = batch.types * (batch.last - batch.first + 1) if len(batch.types) == 1 else batch.types
    return [batch.first + place for place, kind in enumerate(kinds) if kind in {0, 1, 3}]


@edit(_final)
def redelivered(step: Acknowledged, random: Random) -> tuple[Step, ...]:
    offset, moment = random.choice(_final(step)), step.received + 0.01
    ranges = (Range(offset, offset, 2),)
    fetch = Fetch(member=random.choice(MEMBERS))
    return step, Fetched(sent=moment, received=moment, fetch=fetch, ranges=ranges)


@edit(lambda step: isinstance(step, StartSeen))
def start_ahead(step: StartSeen, _: Random) -> tuple[Step, ...]:
    return (replace(step, offset=step.offset + 5),)


def corruptions(steps: list[Step], random: Random) -> Iterator[tuple[str, list[Step]]]:
    for edit in EDITS:
        bad = edit(steps, random)
        if bad is not None:
            yield edit.__name__, bad
