"""Programs with switched mutants that checks are played on: Kafka's broker, and its Java client.

Both follow a file that says which point is on (:mod:`fixtures.mutants.agency`), and both are
started again when what a mutant left behind makes the canaries fail.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import ClassVar

from fixtures.adapters.shipped import command_of
from fixtures.clients.adapter import Adapter
from fixtures.interface.names import KafkaName
from fixtures.machine.java import find_java
from fixtures.mutants.agency import POINTS, agent_options, reached
from fixtures.targets import Target, TargetOptions, open_target
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from shareproof.runner.inventory import CLIENT, read_checks
from spec.verdict import EnvironmentFault, Observation, Stalled, Verdict
from suites.broker import hang
from suites.client.harness import hostile_target
from suites.judge import Judge
from tools.campaign.clients import Hunt as Clients
from tools.campaign.player import Case, cases, observed, on_env
from tools.campaign.rejections import cases_of, checks

Seen = tuple[Case, Sequence[Observation]]


def held(seen: Sequence[Observation]) -> bool:
    return all(one.verdict is Verdict.PASS for one in seen)


class Program(ABC):
    """A program that follows a file, and the checks that can be played on it."""

    canaries: ClassVar[str]  # A part of the name of checks that are short and use much of it.
    at_once: ClassVar[int]  # Checks that are played at a time.
    limit: ClassVar[float]  # Seconds that a check may take.

    def __init__(self, folder: Path, release: str, seed: int) -> None:
        self.file, self.release, self.seed = folder / "point", release, seed
        self.orders = self.plays = 0

    @abstractmethod
    async def start(self) -> None:
        """Start the program, anew if it runs, with all points off."""

    @abstractmethod
    async def stop(self) -> None: ...

    @abstractmethod
    def cases(self) -> Iterable[Case]: ...

    @abstractmethod
    async def meet(self, case: Case, judge: Judge, rng: Random) -> None:
        """Play a check; what ends it is raised."""

    async def look(self) -> Stalled | None:
        """Return what to raise if the program hangs, which a check that waits cannot tell."""
        return None

    def turn_on(self, point: str) -> frozenset[str]:
        """Turn on a point, or none; return those that were reached since the last turn."""
        self.orders += 1
        return reached(self.file, f"{self.orders} {point}")

    def forget(self) -> None:
        for kind in ("", ".in-force", ".reached"):
            self.file.with_name(f"{self.file.name}{kind}").unlink(missing_ok=True)

    async def play(self, case: Case) -> Sequence[Observation]:
        self.plays += 1
        # Names are drawn, and no play may meet the topics and groups of another.
        rng = Random(f"{self.seed} {case.name} {self.plays}")
        limit = min(case.limit, self.limit)
        return (await observed(case, lambda judge: self.meet(case, judge, rng), limit)).observations

    async def passes(self, case: Case) -> bool:
        return held(await self.play(case))

    async def in_turns(self, some: Sequence[Case]) -> AsyncIterator[list[Seen]]:
        """Play checks, ``at_once`` at a time, and yield what each of these said."""
        for at in range(0, len(some), self.at_once):
            group = some[at : at + self.at_once]
            yield [*zip(group, await asyncio.gather(*map(self.play, group)), strict=True)]


class Broker(Program):
    canaries, at_once, limit = "suites/broker/test_ack_types.py", 8, 45.0
    order: ClassVar = POINTS  # How the agent is told what the file says.
    _target: Target

    async def start(self) -> None:
        if hasattr(self, "_target"):
            await self.stop()
        self.forget()
        name = str(KafkaName(version=self.release, mutant=f"{self.order}{self.file}"))
        self._target = open_target(name, TargetOptions(brokers=1))
        await asyncio.to_thread(self._target.start)
        self._schemas = Schemas.from_jar(self._target.info.schema_jar)
        self._frames: deque[list[Transcript]] = deque(maxlen=self.at_once)
        hang.refuse_if_silent(self._target.info)  # it notes which process is behind an address

    async def stop(self) -> None:
        await asyncio.to_thread(self._target.stop)

    def cases(self) -> Iterable[Case]:
        shared = [check for check in checks().values() if not (check.solo or check.draft)]
        return [case for check in shared for case in cases_of(check.id)]

    async def meet(self, case: Case, judge: Judge, rng: Random) -> None:
        frames: list[Transcript] = []
        self._frames.append(frames)
        await on_env(case, judge, self._target.info, self._schemas, rng=rng, frames=frames)

    async def look(self) -> Stalled | None:
        # What the broker is without the mutant is the control, on a machine that is as busy.
        return await hang.find_stuck(self._target.info, [*chain.from_iterable(self._frames)])


class Client(Program):
    """The adapter of the Java client, in front of the hostile broker."""

    canaries, at_once, limit = "suites/client/test_cli_calls.py", 8, 60.0
    _adapter: Adapter

    async def start(self) -> None:
        if hasattr(self, "_adapter"):
            await self._adapter.stop()
        else:
            self._hostile = hostile_target()
            await asyncio.to_thread(self._hostile.start)
            self._clients = Clients(self._hostile.info, self.seed)
        self.forget()
        java, *rest = command_of(f"java:{self.release}")
        agent = agent_options(f"{POINTS}{self.file}", find_java())
        self._adapter = Adapter((java, *agent, *rest))
        await self._adapter.start()

    async def stop(self) -> None:
        try:
            await self._adapter.stop()
        finally:
            await asyncio.to_thread(self._hostile.stop)

    def cases(self) -> Iterable[Case]:
        # Who kills the process, or needs a second one, cannot share it.
        shared = {"harness", "hostile", "judge", "rng"}
        every = (case for check in read_checks(CLIENT) for case in cases(check))
        return [case for case in every if case.wanted <= shared]

    async def meet(self, case: Case, judge: Judge, rng: Random) -> None:
        if not self._adapter.running:
            raise EnvironmentFault("the adapter ended")
        await self._clients.play_on(self._adapter, case, judge, rng=rng)
