"""Where a lock-step run is played: on a target, or on a reference broker in our own event loop.

The latter has a clock that is moved on by hand, so that waiting for a lock takes no time and the
same script gives the same frames.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterator
from random import Random

from fixtures.clients.bounds import bounds_of
from fixtures.clients.cluster import Cluster
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import ReferenceName, parse_target
from fixtures.machine.maven import clients_jar, coordinator_jar
from fixtures.reference.clock import VirtualClock
from fixtures.reference.cluster import ReferenceCluster
from fixtures.reference.mutants import parts_of
from fixtures.reference.target import PROFILE
from fixtures.targets import TargetOptions, open_target
from fixtures.wire.schema import Schemas
from spec.model.release import Release, release_of
from spec.profile import load_profile
from spec.verdict import Verdict
from suites.broker.share import Share
from suites.model.actions import Action
from suites.model.drain import drain
from suites.model.player import Player
from suites.model.times import RealTime, Time, VirtualTime

EARLY = 0.25
"""The part of the time's patience that is enough to tell a script worth shrinking from others."""

_SAME = {"OFF-20": "OFF-26", "OFF-21": "OFF-26"}
"""Rules that the model names where the ledger names another for the same deviation."""


class Environment:
    """A cluster to play on, and the event loop to do it in."""

    def __init__(
        self, info: ClusterInfo, runner: asyncio.Runner, time: Time, seed: int, version: str = ""
    ) -> None:
        self.runner = runner
        self.info = info
        self.time = time
        self.version = version or info.version
        self.release: Release = release_of(self.version)
        self.rng = Random(seed)
        self._schemas = Schemas.from_jar(info.schema_jar)
        self._cluster: Cluster | None = None
        self._known = _known_broken(info.profile, self.version)

    def close(self) -> None:
        if self._cluster:
            self.runner.run(self._cluster.close())

    def expected(self, rule: str) -> bool:
        """Tell whether the target's ledger knows a rule to be broken."""
        return rule in self._known or _SAME.get(rule) in self._known

    async def begin(self) -> Player:
        if self._cluster:
            await self._cluster.close()
        self._cluster = Cluster(self.info, schemas=self._schemas, rng=self.rng)
        await self._cluster.connect()
        await self._cluster.any()
        share = Share(self._cluster, self.rng, await bounds_of(self._cluster))
        return await Player.begin(share, self.release, self.time)

    async def finish(self, player: Player, *, early: bool = False) -> None:
        """Drain; with ``early``, with less patience than it takes to accuse anybody."""
        await drain(player, self.time.patience * (EARLY if early else 1))

    def replay(self, script: list[Action], *, early: bool = False) -> Player:
        """Play a script and drain; ``early`` as for :meth:`finish`.

        Raises:
            Violation: the model does not allow what came back.
            Undecided: a step did not come about.
        """
        return self.runner.run(self._replay(script, early))

    async def _replay(self, script: list[Action], early: bool) -> Player:
        player = await self.begin()
        for action in script:
            await player.play(action)
        await self.finish(player, early=early)
        return player


def _known_broken(profile: str, version: str) -> Collection[str]:
    entries = load_profile(profile).expectations(version).values()
    failing = (e for all_of in entries for e in all_of if e.verdict is Verdict.FAIL)
    return frozenset(entry.requirement for entry in failing)


@contextlib.contextmanager
def open_environment(
    name: str, *, brokers: int, seed: int, version: str = ""
) -> Iterator[Environment]:
    """Start a target and open a field on it.

    Raises:
        UsageFault: there is no such target.
        EnvironmentFault: it does not start.
    """
    target = open_target(name, TargetOptions(brokers=brokers))
    parsed = parse_target(name)
    with asyncio.Runner() as runner:
        if isinstance(parsed, ReferenceName):
            with _reference(parsed, brokers, seed, runner) as (info, time):
                yield from _opened(Environment(info, runner, time, seed))
            return
        try:
            target.start()
            yield from _opened(Environment(target.info, runner, RealTime(), seed, version))
        finally:
            target.stop()


def _opened(field: Environment) -> Iterator[Environment]:
    try:
        yield field
    finally:
        field.close()


@contextlib.contextmanager
def _reference(
    name: ReferenceName, brokers: int, seed: int, runner: asyncio.Runner
) -> Iterator[tuple[ClusterInfo, Time]]:
    jar = str(clients_jar(name.version))
    clock = VirtualClock()
    cluster = ReferenceCluster(
        Schemas.from_jar(jar),
        Schemas.from_jar(coordinator_jar(jar)),
        nodes=brokers,
        parts=parts_of(name.mutant),
        clock=clock,
        seed=seed,
    )
    bootstrap = runner.run(cluster.start())
    info = ClusterInfo(
        name="reference",
        version=name.version,
        profile=PROFILE,
        bootstrap=bootstrap,
        schema_jar=jar,
        prefix="sp-",
    )
    try:
        yield info, VirtualTime(clock)
    finally:
        runner.run(cluster.stop())
