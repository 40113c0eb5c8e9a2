"""Playing a schedule: every strike in its time, seen to hit, healed, seen healed, and recorded."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from chaos.faults import FAULTS, Fault, Injection
from chaos.schedule import Schedule, Strike
from chaos.world import World
from fixtures.clients.cluster import eventually
from fixtures.wire.connection import CallFailed
from spec.verdict import EnvironmentFault, Undecided

Tell = Callable[[str], None]
HITS_WITHIN = 20.0
HEALED_WITHIN = 90.0
_BEFORE, _AFTER = 1_000_000_000, 5_000_000_000
"""Nanoseconds before a fault in which a response may have been on its way, and after it in which
requests that lay around may still be carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """What became of a strike.

    Attributes:
        strike: What was planned.
        subject: What was broken; empty if it came to nothing.
        since, until: From when to when, in nanoseconds on the run's clock.
        hit: The proof that it hit; empty if it never did.
        healed: The proof that it was healed; empty if that was never seen.
        trouble: Why a proof is missing.
    """

    strike: Strike
    subject: str = ""
    since: int
    until: int
    hit: str = ""
    healed: str = ""
    trouble: str = ""


class Player:
    """Plays one schedule on a world; ``struck`` grows as strikes end."""

    def __init__(self, world: World, tell: Tell, faults: Mapping[str, Fault] = FAULTS) -> None:
        self.world, self.tell, self.faults = world, tell, faults
        self.struck: list[Struck] = []
        self.trouble: list[str] = []

    async def play(self, schedule: Schedule) -> None:
        """Play it to its end, then heal the cluster; ``trouble`` says what goes wrong."""
        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number, strike in enumerate(schedule.strikes):
                tasks.create_task(self._strike(number, strike, began))
        if schedule.strikes:
            await self._mend()

    async def _mend(self) -> None:
        try:
            await self.world.mend(HEALED_WITHIN)
        except EnvironmentFault as fault:
            self.trouble.append(str(fault))

    async def _strike(self, number: int, strike: Strike, began: float) -> None:
        fault = self.faults[strike.fault]
        await asyncio.sleep(max(0.0, began + strike.at - time.monotonic()))
        async with self.world.broker_to_spare if fault.exclusive else contextlib.nullcontext():
            struck = await self._carry_out(fault, strike)
        self.struck.append(struck)
        self._record(number, fault, struck)

    async def _carry_out(self, fault: Fault, strike: Strike) -> Struck:
        injection = fault.make(self.world, strike.subject)
        since, said = time.monotonic_ns(), ""
        subject, hit = "", ""
        try:
            subject = await injection.inject()
            self.tell(f"{strike.at:5.1f} s  {fault.name}: {subject}")
            hit = await self._proof(f"seeing {fault.name} hit", injection.hit, HITS_WITHIN)
            left = strike.lasts - (time.monotonic_ns() - since) / 1e9
            await asyncio.sleep(max(0.0, left))
        except (CallFailed, Undecided, EnvironmentFault, OSError) as reason:
            said = str(reason)
        healed = await self._heal(injection, fault)
        until = time.monotonic_ns()
        self.tell(f"       {fault.name}: {hit or 'DID NOT HIT: ' + said}; {healed or 'NOT HEALED'}")
        if injection.blinds:
            self._blind(since, until)
        return Struck(
            strike=strike,
            subject=subject,
            since=since,
            until=until,
            hit=hit,
            healed=healed,
            trouble=said,
        )

    async def _heal(self, injection: Injection, fault: Fault) -> str:
        """Heal a fault, whatever became of it, and return the proof."""
        try:
            await injection.heal()
            return await self._proof(f"seeing {fault.name} healed", injection.healed, HEALED_WITHIN)
        except (CallFailed, Undecided, EnvironmentFault, OSError) as reason:
            self.trouble.append(f"{fault.name} was not healed: {reason}")
            return ""

    async def _proof(self, what: str, probe: Callable[[], Awaitable[str]], within: float) -> str:
        async def ask() -> str | None:
            with contextlib.suppress(CallFailed):
                return await probe() or None
            return None

        return await eventually(what, ask, within)

    def _record(self, number: int, fault: Fault, struck: Struck) -> None:
        row = (number, fault.name, struck.subject, struck.since, struck.until, struck.hit)
        self.world.course.journal.add("faults", *row)

    def _blind(self, since: int, until: int) -> None:
        """Say that fetches may have acquired something meanwhile that was seen late or never."""
        for watched in self.world.course.share_partitions:
            window = (since - _BEFORE, until + _AFTER)
            self.world.course.journal.add("unseen_responses", watched.share_partition, *window)
