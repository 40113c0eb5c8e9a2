"""Plays a schedule: each injection at its time, probed, healed, and recorded with its result."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import psutil

from chaos.faults import FAULTS, Fault, Injection
from chaos.schedule import Schedule, ScheduledFault
from chaos.world import World
from fixtures.clients.cluster import eventually
from fixtures.machine.loops import happens
from fixtures.wire.connection import CallFailed
from fixtures.workload.plan import Loaded
from spec.history import MOST_DELIVERIES, FaultSpan, LockDuration, UnseenResponse
from spec.verdict import EnvironmentFault, Undecided

Log = Callable[[str], None]
T = TypeVar("T")
HITS_WITHIN = 20.0
HEALED_WITHIN = 90.0
_AGAIN_WITHIN = 30.0
_CALL_ENDS_WITHIN = 30.0
"""Seconds that a probe may hang beyond its deadline, the timeout of a request among them."""
_INJECT_ENDS_WITHIN = 300.0
"""Seconds after which a fault hangs; a rolling restart takes most of them on a slow machine."""
_HEAL_ENDS_WITHIN = 120.0
_BEFORE, _AFTER = 1_000_000_000, 5_000_000_000
"""Nanoseconds before a fault in which a response may have been on its way, and after it in which
requests that lay around may still be carried out."""
_HASTY = 3  # Members of a group that may have closed connections to one broker during one fault
_REFUSED = (CallFailed, Undecided, EnvironmentFault, OSError, psutil.Error)
"""What a fault raises that cannot be injected, seen or healed now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionResult:
    planned: ScheduledFault  # The injection as scheduled.
    subject: str = ""  # What was broken; empty if it came to nothing.
    # since, until: From when to when, in nanoseconds on the run's clock.
    since: int
    until: int
    hit: str = ""  # The proof that it hit; empty if it never did.
    healed: str = ""  # The proof that it was healed; empty if that was never seen.
    trouble: str = ""  # Why a proof is missing.


@dataclass(frozen=True, slots=True)
class _Played:
    number: int
    fault: Fault
    injection: Injection
    result: InjectionResult
    led: frozenset[int] = frozenset()  # The share-partitions whose requests it may have made late.


class Player:
    """Plays one schedule on a world; ``injections`` grows as injections end.

    What other faults break may be what a proof needs. So an injection that was not seen to hit or
    to be healed is no trouble of the run: it is healed again when all others are over. ``notes``
    says what it took beyond that to get the cluster whole, and ``trouble`` what is wrong with one
    that does not come back.
    """

    def __init__(self, world: World, log: Log, faults: Mapping[str, Fault] = FAULTS) -> None:
        self.world, self.log, self.faults = world, log, faults
        self.injections: list[InjectionResult] = []
        self.trouble: list[str] = []
        self.notes: list[str] = []
        self._unhealed: list[_Played] = []

    async def play(self, schedule: Schedule) -> None:
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number, planned in enumerate(schedule.injections):
                tasks.create_task(self._inject(number, planned, began))
        if schedule.injections:
            for played in self._unhealed:
                await _outcome(played.injection.heal(), _HEAL_ENDS_WITHIN)
            try:
                if missing := await self.world.mend(HEALED_WITHIN):
                    self.notes.append(f"{missing} until all brokers were restarted")
            except EnvironmentFault as fault:
                self.trouble.append(str(fault))
            for played in self._unhealed:
                healed, reason = await self._healed(played.fault, played.injection, _AGAIN_WITHIN)
                self.log(f"       {played.fault.name}, healed again: {healed or reason}")
                until = time.monotonic_ns()
                result = replace(played.result, until=until, healed=healed, trouble=reason)
                self._end(replace(played, result=result))

    async def _inject(self, number: int, planned: ScheduledFault, began: float) -> None:
        fault = self.faults[planned.fault]
        if await self._load_ended(began + planned.at):
            return
        async with self._broker_to_spare(fault):
            if not self.world.course.ended.is_set():
                played = await self._carry_out(number, fault, planned)
                if played.result.healed:
                    self._end(played)
                else:
                    self._unhealed.append(played)

    @contextlib.asynccontextmanager
    async def _broker_to_spare(self, fault: Fault) -> AsyncIterator[None]:
        if not fault.exclusive:
            yield
            return
        async with self.world.broker_to_spare:
            await self._proof("a whole cluster", self._whole, HEALED_WITHIN)
            yield

    async def _whole(self) -> str:
        return "" if await self.world.cluster.missing() else "whole"

    async def _load_ended(self, at: float) -> bool:
        return await happens(self.world.course.ended, at - time.monotonic())

    async def _carry_out(self, number: int, fault: Fault, planned: ScheduledFault) -> _Played:
        injection = fault.make(self.world, planned.subject)
        since, began = time.monotonic_ns(), time.monotonic()
        hit = healed = ""
        subject, missed = await _outcome(injection.inject(), _INJECT_ENDS_WITHIN)
        led = await self._led(injection)
        if not missed:
            self.log(f"{planned.at:5.1f} s  {fault.name}: {subject}")
            hit, missed = await self._proof(f"seeing {fault.name} hit", injection.hit, HITS_WITHIN)
        if not missed:
            await self._load_ended(began + planned.lasts)
        _, reason = await _outcome(injection.heal(), _HEAL_ENDS_WITHIN)
        if not reason:
            healed, reason = await self._healed(fault, injection, HEALED_WITHIN)
        shown = healed or f"not seen healed yet: {reason}"
        self.log(f"       {fault.name}: {hit or f'not seen to hit: {missed}'}; {shown}")
        result = InjectionResult(
            planned=planned,
            subject=subject or "",
            since=since,
            until=time.monotonic_ns(),
            hit=hit,
            healed=healed,
            trouble=missed,
        )
        return _Played(number, fault, injection, result, led | await self._led(injection))

    async def _healed(self, fault: Fault, injection: Injection, within: float) -> tuple[str, str]:
        return await self._proof(f"seeing {fault.name} healed", injection.healed, within)

    async def _proof(
        self, what: str, probe: Callable[[], Awaitable[str]], within: float
    ) -> tuple[str, str]:
        last = ""

        async def look() -> str | None:
            nonlocal last
            try:
                return await probe() or None
            except _REFUSED as reason:
                last = f": {reason}"
                return None

        found, reason = await _outcome(eventually(what, look, within), within + _CALL_ENDS_WITHIN)
        return found or "", reason + last if reason else ""

    def _end(self, played: _Played) -> None:
        result = played.result
        self.injections.append(result)
        row = (played.fault.name, result.subject, result.since, result.until, result.hit)
        self.world.course.journal.add(FaultSpan(played.number, *row))
        group, lock_ms = played.injection.locks
        for watched in self.world.course.share_partitions if group else ():
            if watched.group == group:
                change = (watched.share_partition, lock_ms, result.since, result.until)
                self.world.course.journal.add(LockDuration(*change))
        # Who gets a response, however late, sees what it acquired. Clients wait for so long, but
        # for those that close their connection earlier.
        beyond = result.until - result.since > (self.world.course.load.patience - 1) * 1e9
        window = (result.since - _BEFORE, result.until + _AFTER)
        for share_partition in sorted(played.led) * (MOST_DELIVERIES if beyond else _HASTY):
            self.world.course.journal.add(UnseenResponse(share_partition, *window))

    async def _led(self, injection: Injection) -> frozenset[int]:
        """Return the share-partitions that a broker leads which carries out requests late."""
        course = self.world.course
        if injection.late_broker < 0:
            return frozenset()
        leaders, _ = await _outcome(self._leaders(), HITS_WITHIN)
        return frozenset(
            watched.share_partition
            for watched in course.share_partitions
            if leaders is None
            or leaders.get(watched.partition, injection.late_broker) == injection.late_broker
        )

    async def _leaders(self) -> dict[int, int]:
        topic = await self.world.topic(self.world.course.topic.name)
        return {part.partition_index: part.leader_id for part in topic.partitions}


async def _outcome(doing: Awaitable[T], within: float) -> tuple[T | None, str]:
    try:
        async with asyncio.timeout(within):
            return await doing, ""
    except TimeoutError as reason:
        return None, str(reason) or f"no end of it after {within:g} s"
    except _REFUSED as reason:
        return None, str(reason) or type(reason).__name__
    except Exception as reason:  # whatever a fault stumbles over, the run goes on
        return None, f"{type(reason).__name__}: {reason}"


_AFTERMATH = 5_000_000_000
"""Nanoseconds for which a fault that was healed may still be in the way of the next one."""


def in_the_way(missed: InjectionResult, injections: Sequence[InjectionResult]) -> str:
    """Return the names of the faults that kept an injection from hitting, or nothing.

    Injections overlap on purpose, and now and then one takes away what another one wanted to break:
    no topic can be recreated while the disk of its leader is full. Only a fault that did hit,
    and that was under way or just healed, is in the way of another one.
    """
    others = (
        one
        for one in injections
        if one is not missed
        and one.hit
        and one.since < missed.until
        and missed.since < one.until + _AFTERMATH
    )
    return ", ".join(dict.fromkeys(one.planned.fault for one in others))


def verdict(injections: Sequence[InjectionResult], *, scenario: bool) -> str:
    """Return ``vacuous`` if no injection hit, or in a scenario one of its kinds never did."""
    hit = {one.planned.fault for one in injections if one.hit}
    wanted = {one.planned.fault for one in injections}
    missed = not hit >= wanted if scenario else bool(wanted and not hit)
    return "vacuous" if missed else "pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosResult:
    """The result of a run.

    ``trouble`` says what went wrong that no fault explains, ``notes`` what else is worth knowing.
    """

    loaded: Loaded
    injections: tuple[InjectionResult, ...]
    trouble: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def to_document(
        self, schedule: Schedule, *, scenario: str, owed: Sequence[str], judged: float
    ) -> dict[str, Any]:
        """Return it as ``chaos.json`` keeps it, and as an entry of ``chaos`` in results.json."""
        return {
            "scenario": scenario,
            "seed": schedule.seed,
            "seconds": schedule.seconds,
            "verdict": verdict(self.injections, scenario=bool(scenario)),
            "owed": list(owed),
            "judged": judged,
            "produced": self.loaded.produced,
            "delivered": self.loaded.delivered,
            "drained": self.loaded.drained,
            "trouble": list(self.trouble),
            "notes": list(self.notes),
            "faults": [self._entry(one) for one in self.injections],
        }

    def _entry(self, one: InjectionResult) -> dict[str, Any]:
        return {
            "fault": one.planned.fault,
            "subject": one.subject,
            "at": one.planned.at,
            "lasts": one.planned.lasts,
            "since": one.since,
            "until": one.until,
            "hit": one.hit,
            "healed": one.healed,
            "trouble": one.trouble,
            "blocked_by": "" if one.hit else in_the_way(one, self.injections),
        }
