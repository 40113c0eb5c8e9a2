"""How a schedule is played: what is not seen healed, what hangs, and what is ended early."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="the extra 'judge' is not installed")

from chaos import play
from chaos.faults import Fault
from chaos.play import Player
from chaos.schedule import Schedule, ScheduledFault
from spec.history import FaultSpan
from spec.verdict import EnvironmentFault, Undecided

ONCE = Schedule(seed=1, seconds=1, injections=(ScheduledFault(fault="it", at=0.0, lasts=0.0),))


@dataclass
class Cluster:
    comes_back: bool = True
    restarted_for: str = ""
    mended: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    broker_to_spare: asyncio.Lock = field(default_factory=asyncio.Lock)
    course: Any = None

    def __post_init__(self) -> None:
        journal = SimpleNamespace(add=self.rows.append)
        self.course = SimpleNamespace(
            ended=asyncio.Event(), journal=journal, load=SimpleNamespace(patience=10.0)
        )

    async def missing(self) -> str:
        return ""

    async def mend(self, _: float) -> str:
        self.mended += 1
        if not self.comes_back:
            raise EnvironmentFault("broker 2 did not come back")
        return self.restarted_for


@dataclass
class Injection:
    world: Cluster
    healed_at_once: bool = True
    hits: bool = True
    hangs: str = ""
    heals: int = 0
    late_broker: int = -1
    locks: tuple[str, int] = ("", 0)

    async def _do(self, what: str) -> None:
        if self.hangs == what:
            await asyncio.Event().wait()

    async def inject(self) -> str:
        await self._do("inject")
        return "broker 1"

    async def hit(self) -> str:
        await self._do("hit")
        return "it hit" if self.hits else ""

    async def heal(self) -> None:
        self.heals += 1
        await self._do("heal")

    async def healed(self) -> str:
        if not (self.healed_at_once or self.world.mended):
            raise Undecided("the disk of its broker is full")
        return "healed"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HITS_WITHIN", "HEALED_WITHIN", "_AGAIN_WITHIN", "_CALL_ENDS_WITHIN"):
        monkeypatch.setattr(play, name, 0.2)
    for name in ("_INJECT_ENDS_WITHIN", "_HEAL_ENDS_WITHIN"):
        monkeypatch.setattr(play, name, 0.4)


def _played(
    make: Callable[[Cluster], Injection], world: Cluster | None = None, *, ended: bool = False
) -> tuple[Player, Injection]:
    async def go() -> tuple[Player, Injection]:
        cluster = world or Cluster()
        injection = make(cluster)

        def made(*_: object) -> Any:
            return injection

        fault = Fault(name="it", sentence="", make=made, lasts=(0.0, 0.1), needs=frozenset())
        player = Player(cluster, lambda _: None, {"it": fault})  # type: ignore[arg-type]
        if ended:
            cluster.course.ended.set()
        async with asyncio.timeout(10):
            await player.play(ONCE)
        return player, injection

    return asyncio.run(go())


def test_what_is_not_seen_healed_is_healed_again() -> None:
    player, injection = _played(lambda world: Injection(world, healed_at_once=False))
    (result,) = player.injections
    assert (result.hit, result.healed, injection.heals) == ("it hit", "healed", 2)
    assert player.trouble == []


def test_a_cluster_that_does_not_come_back_is_trouble() -> None:
    world = Cluster(comes_back=False)
    player, _ = _played(Injection, world)
    assert player.trouble == ["broker 2 did not come back"]
    assert [type(row) for row in world.rows] == [FaultSpan]


def test_a_restart_that_was_needed_is_told() -> None:
    player, _ = _played(Injection, Cluster(restarted_for="broker 2 is fenced"))
    assert player.notes == ["broker 2 is fenced until all brokers were restarted"]
    assert player.trouble == []


@pytest.mark.parametrize("what", ["inject", "hit", "heal"])
def test_a_fault_that_hangs_ends(what: str) -> None:
    player, _ = _played(lambda world: Injection(world, hangs=what))
    (result,) = player.injections
    assert bool(result.hit) == (what == "heal")
    assert player.trouble == []


def test_what_missed_excuses_nothing() -> None:
    world = Cluster()
    player, _ = _played(lambda world: Injection(world, hits=False), world)
    assert not player.injections[0].hit
    assert world.rows[0][-1] == ""


def test_nothing_is_broken_after_the_load() -> None:
    player, injection = _played(Injection, ended=True)
    assert (player.injections, injection.heals) == ([], 0)
