"""Where a lock-step run is played: on a target, or on a reference broker in virtual time."""

import asyncio
import contextlib
from collections.abc import Iterator
from random import Random

from fixtures.clients.bounds import bounds_of
from fixtures.clients.cluster import Cluster
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import ReferenceName, parse_target
from fixtures.targets import TargetOptions, open_target, started
from fixtures.virtual import VirtualRunner, virtual_cluster
from fixtures.wire.schema import Schemas
from spec.ledger import load_ledger
from spec.model.release import Release, release_of
from spec.model.table import State
from spec.verdict import Verdict, Violation
from suites.broker.env import Env
from suites.model.actions import Action, Do
from suites.model.player import LOCK_MS, REAL, VIRTUAL, Pace, Player, now_ms, pass_by

_PAUSES = (20.0, 250.0)  # The shortest and the longest pause between two looks, in milliseconds.


async def drain(player: Player, patience: float) -> None:
    """Fetch and accept until the start offset has passed what there is now: the end of an example.

    What the judge cannot say from any one response is said here: that records do come again, and
    that the start offset does move. The others leave as they are, so that what they hold comes when
    its locks end. ``patience``: milliseconds for which nothing may happen, beyond a lock's length.
    """
    wanted = player.end
    since, before, pause = now_ms(), -1, _PAUSES[0]
    while True:
        # The view is that of the last state write, so each look is preceded by one more.
        await player.act(Action(do=Do.PRODUCE, n=1))
        await player.act(Action(do=Do.FETCH, n=500))
        held = player.seats[0].held
        came = any(offset < wanted for offset in held)
        await player.act(Action(do=Do.ACK, types=(1,) * len(held)))
        seen = await player.start()
        if seen >= wanted:
            return
        now = now_ms()
        if came or seen > before:
            since, before, pause = now, seen, _PAUSES[0]
        elif now - since > patience + LOCK_MS:
            raise _stuck(player, seen, f"in {(now - since) / 1000:.1f} s of fetching")
        await pass_by(pause)
        pause = min(pause * 1.5, _PAUSES[1])


def _stuck(player: Player, seen: int, for_: str) -> Violation:
    now = now_ms()
    late = player.judge.overdue(now)
    if not late:
        sentence = f"the start offset stays at {seen}, all before {player.end} being accepted"
        return Violation("INV-24", sentence)
    first, last = late[0]
    if any(cell.state is State.ACQUIRED for cell in player.judge.cells(now, first)):
        return Violation("LCK-01", f"{first}-{last} did not come {for_}, their locks having ended")
    return Violation("ACQ-25", f"{first}-{last} did not come {for_}, being available")


EARLY = 0.25
"""The part of the time's patience that is enough to tell a script worth shrinking from others."""

_SAME = {"OFF-20": "OFF-26", "OFF-21": "OFF-26"}
"""Rules that the model names where the ledger names another for the same deviation."""


Runner = asyncio.Runner | VirtualRunner


class Environment:
    def __init__(
        self, info: ClusterInfo, runner: Runner, pace: Pace, seed: int, version: str = ""
    ) -> None:
        self.runner, self.info, self.pace = runner, info, pace
        self.version = version or info.version
        self.release: Release = release_of(self.version)
        self.rng = Random(seed)
        self._schemas = Schemas.from_jar(info.schema_jar)
        self._cluster: Cluster | None = None
        expected = load_ledger(info.ledger).expectations(self.version)
        self._known = {
            rule
            for rule, entries in expected.items()
            if any(entry.verdict is Verdict.FAIL for entry in entries)
        }

    def close(self) -> None:
        if self._cluster:
            self.runner.run(self._cluster.close())

    def expected(self, rule: str) -> bool:
        return rule in self._known or _SAME.get(rule) in self._known

    async def begin(self) -> Player:
        if self._cluster:
            await self._cluster.close()
        self._cluster = Cluster(self.info, schemas=self._schemas, rng=self.rng)
        await self._cluster.connect()
        await self._cluster.any()
        env = Env(self._cluster, self.rng, await bounds_of(self._cluster))
        return await Player.begin(env, self.release, self.pace)

    async def finish(self, player: Player, *, early: bool = False) -> None:
        await drain(player, self.pace.patience * (EARLY if early else 1))

    def replay(self, script: list[Action], *, early: bool = False) -> Player:
        async def played() -> Player:
            player = await self.begin()
            for action in script:
                await player.play(action)
            await self.finish(player, early=early)
            return player

        return self.runner.run(played())


@contextlib.contextmanager
def open_environment(
    name: str, *, brokers: int, seed: int, version: str = ""
) -> Iterator[Environment]:
    parsed = parse_target(name)
    with contextlib.ExitStack() as stack:
        if isinstance(parsed, ReferenceName):
            virtual, at_end = stack.enter_context(VirtualRunner()), contextlib.AsyncExitStack()
            stack.callback(lambda: virtual.run(at_end.aclose()))
            cluster = virtual_cluster(name, brokers=brokers, seed=seed)
            info = virtual.run(at_end.enter_async_context(cluster)).info
            field = Environment(info, virtual, VIRTUAL, seed)
        else:
            target = open_target(name, TargetOptions(brokers=brokers))
            info = stack.enter_context(started(target)).info
            field = Environment(info, stack.enter_context(asyncio.Runner()), REAL, seed, version)
        stack.callback(field.close)
        yield field
