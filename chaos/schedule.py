"""Schedules: which faults, when, for how long and on which target, as pure data from one seed.

A schedule names things only by number: which partition, group or broker an injection targets is its
``subject`` modulo how many there are, and who leads it at that moment is found out at that moment.
So the same schedule can be played on any cluster, again and again.

A schedule that makes a run fail is shrunk: to fewer injections, then shorter ones, then less load.
The caller plays it, and says whether it fails. A run under faults is no function of its schedule,
so a schedule that once did not fail may fail the next time: each candidate is played several times,
and counts as failing when one of them fails. What is left is played again, to say how reliably it
fails.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Protocol, Self

SCHEMA = 1
_FIRST = 3.0  # Seconds without faults at the beginning, in which the load gets going.
_LAST = 4.0  # Seconds before the end in which nothing is broken.
_LONG, _CALM = 300.0, 45.0
"""Of a long run so many seconds at the end are without faults and what they leave behind: there
those rules are judged, too, that say nothing beside a fault (INV-23, INV-26)."""
_REST = 8.0  # Seconds that what was broken has to recover, before it is broken or relied on again
_BETWEEN = (2.0, 8.0)


class Resource(StrEnum):
    """Something that faults break, or that they rely on to be injected, to be seen, and to heal."""

    BROKER = "broker"
    BROKER_LINK = "broker link"
    CLIENT_LINK = "client link"
    STATE_WRITES = "state writes"
    CLOCK = "broker clock"
    PROCESS = "load process"
    REPLICAS = "replicas"
    TOPIC = "topic"
    LOG = "log"
    GROUP_CONFIG = "group config"


class Schedulable(Protocol):
    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def lasts(self) -> tuple[float, float]:
        """Seconds from which to which it may last."""

    @property
    def takes(self) -> frozenset[Resource]:
        """What it breaks or changes."""

    @property
    def relies_on(self) -> frozenset[Resource]:
        """What must be whole for it to be injected, to be seen, and to be healed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledFault:
    fault: str  # The name of its fault.
    at: float  # Seconds after the load began.
    lasts: float  # Seconds until it is healed.
    subject: int = 0  # Its target's number, modulo how many there are.

    @property
    def ends(self) -> float:
        return self.at + self.lasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Injections over the seconds of a load, in the order of their beginning."""

    seed: int
    seconds: float
    injections: tuple[ScheduledFault, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        return tuple(one.fault for one in self.injections)

    def to_json(self) -> str:
        head = {"schema": SCHEMA, "seed": self.seed, "seconds": self.seconds}
        injections = [asdict(one) for one in self.injections]
        return json.dumps({**head, "strikes": injections}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        try:
            raw = json.loads(text)
            if raw.pop("schema") != SCHEMA:
                raise ValueError(f"not a schedule of schema {SCHEMA}")
            injections = tuple(ScheduledFault(**one) for one in raw.pop("strikes"))
            schedule = cls(injections=tuple(sorted(injections, key=lambda one: one.at)), **raw)
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not a schedule as runs write them: {error}") from None
        if any(one.at < 0 or one.lasts < 0 or one.subject < 0 for one in schedule.injections):
            raise ValueError("an injection has a negative time or subject")
        return schedule


def in_conflict(one: Schedulable, other: Schedulable) -> bool:
    """Tell whether two faults may not overlap.

    One takes what the other one takes or relies on. Two brokers away at a time would be more than a
    quorum bears.
    """
    return bool(one.takes & (other.takes | other.relies_on) or other.takes & one.relies_on)


def draw(
    seed: int, seconds: float, faults: Sequence[Schedulable], *, free: bool = False
) -> Schedule:
    """Return a schedule for a load of so many seconds.

    Every fault gets its turn before one comes again. Injections overlap as it happens, but for
    those in conflict; ``free``: those too, but for two that take a broker away.
    """
    rng = random.Random(seed)
    known = {fault.name: fault for fault in faults}
    injections: list[ScheduledFault] = []
    bag = _bag(rng, faults)
    moment, end = _FIRST, seconds - (_LAST if seconds < _LONG else _CALM)
    while faults:
        fault, subject = next(bag), rng.randrange(1 << 16)
        lasts = round(rng.uniform(*fault.lasts), 1)
        others = [one for one in injections if _apart(fault, known[one.fault], free=free)]
        # The first moment at which it overlaps no other, nor the rest after it.
        at = round(moment, 1)
        for other in sorted(others, key=lambda one: one.at):
            if at < other.ends + _REST and other.at < at + lasts + _REST:
                at = round(other.ends + _REST, 1)
        if at + lasts <= end:
            injections.append(ScheduledFault(fault=fault.name, at=at, lasts=lasts, subject=subject))
        elif moment + min(fault.lasts[0] for fault in faults) > end:
            break
        moment += rng.uniform(*_BETWEEN)
    injections.sort(key=lambda one: one.at)
    return Schedule(seed=seed, seconds=seconds, injections=tuple(injections))


def _apart(one: Schedulable, other: Schedulable, *, free: bool) -> bool:
    both = one.takes & other.takes
    return Resource.BROKER in both if free else in_conflict(one, other)


def _bag(rng: random.Random, faults: Sequence[Schedulable]) -> Iterator[Schedulable]:
    while True:
        yield from rng.sample(list(faults), len(faults))


Fails = Callable[[Schedule], bool]
Log = Callable[[str], None]

_AFTER = 4.0  # Seconds of load that are left after the last injection.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    schedule: Schedule
    failed: int
    played: int
    tried: int

    @property
    def reliability(self) -> str:
        return f"fails {self.failed} of {self.played}"


def shrink(
    schedule: Schedule, fails: Fails, *, tries: int, replays: int, log: Log, most: int = 60
) -> Shrunk:
    """Return a smaller schedule that still fails, and how reliably.

    A candidate passes when ``tries`` plays do not fail. The result is played ``replays`` times
    again. At most ``most`` plays are spent on candidates.
    """
    spent = 0

    def still_fails(candidate: Schedule) -> bool:
        nonlocal spent
        for _ in range(tries):
            if spent >= most:
                return False
            spent += 1
            if fails(candidate):
                log(f"still fails: {described(candidate)}")
                return True
        log(f"passes: {described(candidate)}")
        return False

    best = _fewer(schedule, still_fails)
    best = _shorter(best, still_fails)
    failed = sum(fails(best) for _ in range(replays))
    return Shrunk(schedule=best, failed=failed, played=replays, tried=spent)


def described(schedule: Schedule) -> str:
    what = ", ".join(f"{s.fault} at {s.at:g} s for {s.lasts:g} s" for s in schedule.injections)
    return f"{what or 'nothing'}, in {schedule.seconds:g} s"


def _fewer(schedule: Schedule, fails: Fails) -> Schedule:
    pieces = 2
    while len(schedule.injections) > 0:
        smaller = next((one for one in _without(schedule, pieces) if fails(one)), None)
        if smaller is not None:
            schedule, pieces = smaller, max(2, pieces - 1)
        elif pieces >= len(schedule.injections):
            break
        else:
            pieces = min(len(schedule.injections), pieces * 2)
    return schedule


def _without(schedule: Schedule, pieces: int) -> Iterator[Schedule]:
    injections = schedule.injections
    size = -(-len(injections) // pieces)
    for start in range(0, len(injections), size):
        yield replace(schedule, injections=injections[:start] + injections[start + size :])


def _shorter(schedule: Schedule, fails: Fails) -> Schedule:
    end = max((one.ends for one in schedule.injections), default=0.0) + _AFTER
    if end < schedule.seconds:
        sooner = replace(schedule, seconds=end)
        schedule = sooner if fails(sooner) else schedule
    for index, planned in enumerate(schedule.injections):
        if planned.lasts / 2 >= 0.5:
            injections = list(schedule.injections)
            injections[index] = replace(planned, lasts=round(planned.lasts / 2, 1))
            halved = replace(schedule, injections=tuple(injections))
            schedule = halved if fails(halved) else schedule
    return schedule
