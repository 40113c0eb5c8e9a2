"""Running the state machine: against which target, for how long, and what is said at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from random import Random

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import run_state_machine_as_test

from fixtures.clients.cluster import Cluster
from fixtures.targets.info import ClusterInfo
from spec.model.release import Release, release_of
from spec.profile import load_profile
from spec.verdict import Verdict, Violation
from suites.broker.share import Share
from suites.model.actions import Action
from suites.model.machine import Lockstep, Tally
from suites.model.player import Player

ROUND = 10
"""Examples between two looks at the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to do: rounds of examples of ``actions`` each, for ``minutes`` or ``steps``."""

    seed: int
    minutes: float
    steps: int
    actions: int = 40


class Field:
    """A cluster to play on, and the event loop to do it in."""

    def __init__(self, info: ClusterInfo, seed: int, version: str = "") -> None:
        self.runner = asyncio.Runner()
        self.info = info
        self.version = version or info.version
        self.release: Release = release_of(self.version)
        self.rng = Random(seed)
        self._cluster: Cluster | None = None

    def close(self) -> None:
        """Close connections and the loop."""
        if self._cluster:
            self.runner.run(self._cluster.close())
        self.runner.close()

    @property
    def known(self) -> Collection[str]:
        """The rules that the target's ledger knows to be broken."""
        ledger = load_profile(self.info.profile)
        entries = ledger.expectations(self.version)
        failing = (e for all_of in entries.values() for e in all_of if e.verdict is Verdict.FAIL)
        return {entry.requirement for entry in failing}

    async def begin(self) -> Player:
        """Return a player on a new topic and group."""
        if self._cluster:
            await self._cluster.close()
        self._cluster = Cluster(self.info, rng=self.rng)
        await self._cluster.connect()
        await self._cluster.any()
        return await Player.begin(Share(self._cluster, self.rng), self.release)

    def replay(self, script: list[Action]) -> Player:
        """Play a script and drain.

        Raises:
            Violation: the model does not allow what came back.
        """
        return self.runner.run(self._replay(script))

    async def _replay(self, script: list[Action]) -> Player:
        player = await self.begin()
        for action in script:
            await player.play(action)
        await player.finish()
        return player


def run(field: Field, plan: Plan, progress: Callable[[Tally], None]) -> Tally:
    """Play examples until the plan is fulfilled or a violation is found and shrunk."""
    tally = Tally()
    deadline = time.monotonic() + plan.minutes * 60
    number = 0
    while time.monotonic() < deadline and tally.actions < plan.steps and not tally.violation:
        _round(field, tally, plan.seed + number, plan.actions)
        number += 1
        progress(tally)
    return tally


def _round(field: Field, tally: Tally, seed: int, actions: int) -> None:
    machine = type(
        "LockstepHere",
        (Lockstep,),
        {
            "runner": field.runner,
            "begin": staticmethod(field.begin),
            "known": field.known,
            "tally": tally,
        },
    )
    settings = hypothesis.settings(
        max_examples=ROUND,
        stateful_step_count=actions,
        deadline=None,
        database=None,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings)
    except (Violation, hypothesis.errors.Flaky, BaseExceptionGroup):
        # One that came once and not again is one all the same; anything else is our own fault.
        if not tally.violation:
            raise
