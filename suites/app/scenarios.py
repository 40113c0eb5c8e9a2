"""What is done to a program, one scenario after the other, and the rules that each is there for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from signal import Signals
from types import MappingProxyType

from suites.app.stage import Stage

FROZEN = 3.0
"""Seconds that a broker is frozen."""

REFUSED = 3
"""Writes to the output topic that are refused."""

LOST = 2
"""Responses to acknowledgements that are lost."""

DENIED = 3.0
"""Seconds without permission."""

GROUP_READS = ["ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"]
"""What READ on the group is for."""

Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario.

    Attributes:
        sentence: What happens in it.
        play: Does it.
        rules: Those that it is there to put to the test.
        undisturbed: Whether nothing is done to the program, its brokers or its links.
        small: Whether locks are as short as the target allows from 3 s on.
    """

    name: str
    sentence: str
    play: Play
    rules: tuple[str, ...]
    undisturbed: bool = False
    small: bool = False


SCENARIOS: dict[str, Scenario] = {}
ALWAYS = ("FRM-01", "FRM-04", "FRM-05", "FRM-09", "FRM-10")
"""Rules that each scenario puts to the test, whatever else it is there for."""


def _scenario(
    name: str, *rules: str, undisturbed: bool = False, small: bool = False
) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        SCENARIOS[name] = Scenario(
            name=name,
            sentence=" ".join((play.__doc__ or "").split()),
            play=play,
            rules=tuple(sorted({*rules, *ALWAYS})),
            undisturbed=undisturbed,
            small=small,
        )
        return play

    return register


@_scenario("calm", "FRM-02", "FRM-03", "FRM-07", "FRM-11", undisturbed=True)
async def calm(stage: Stage) -> None:
    """Nothing is done; some of the records are poison."""
    await stage.source.produce(stage.trial.records)
    await stage.start()
    await stage.drained()


@_scenario("small-lock", "FRM-02", "FRM-03", "FRM-07", undisturbed=True, small=True)
async def small_lock(stage: Stage) -> None:
    """Nothing is done, and locks last three seconds, or as short as the target allows."""
    await calm(stage)


@_scenario("two-instances", "FRM-03", "FRM-07", "FRM-13", undisturbed=True)
async def two_instances(stage: Stage) -> None:
    """Two instances of the program run at once."""
    await stage.start()
    await stage.start()
    await stage.source.produce(stage.trial.records)
    await stage.drained()


@_scenario("leader-moves", "FRM-11")
async def leader_moves(stage: Stage) -> None:
    """The leader of a partition moves while the program holds records."""
    if await _begun(stage):
        await stage.move_leader()
    await _rest(stage)


@_scenario("broker-frozen", "FRM-11")
async def broker_frozen(stage: Stage) -> None:
    """A broker that leads a partition is frozen for three seconds."""
    if await _begun(stage):
        stage.note("broker frozen")
        stage.freezer.freeze(stage.topic.leaders[0])
        await asyncio.sleep(FROZEN)
        stage.freezer.thaw()
    await _rest(stage)


@_scenario("responses-lost", "FRM-11")
async def responses_lost(stage: Stage) -> None:
    """Two connections end before the responses to acknowledgements arrive."""
    step = {"on": ["ShareAcknowledge", "ShareFetch"], "when": {"has": "acks"}}
    stage.note("responses lost")
    (lost,) = stage.tap.script.add({**step, "do": "close", "times": LOST})
    await _begun(stage)
    await stage.until(lambda: lost.taken, stage.trial.patience)
    await _rest(stage)


@_scenario("partition-added", "FRM-11")
async def partition_added(stage: Stage) -> None:
    """A partition is added to the topic while the program holds records."""
    if await _begun(stage):
        await stage.add_partition()
    await _rest(stage)


@_scenario("permission-lost", "FRM-11")
async def permission_lost(stage: Stage) -> None:
    """READ on the group is taken away, and given back after three seconds."""
    if await _begun(stage):
        stage.note("permission taken away")
        deny = {"do": "error", "code": "GROUP_AUTHORIZATION_FAILED", "times": 0, "applied": False}
        denied = stage.tap.script.add({"on": GROUP_READS, **deny})
        await asyncio.sleep(DENIED)
        stage.tap.script.drop(denied)
    await _rest(stage)


@_scenario("output-refused")
async def output_refused(stage: Stage) -> None:
    """Three writes to the output topic fail."""
    stage.note("writes refused")
    stage.refuser.left = REFUSED
    await calm(stage)


@_scenario("terminated", "FRM-06", "FRM-08", "FRM-12")
async def terminated(stage: Stage) -> None:
    """The program gets SIGTERM while it holds records, and is started again when it has ended."""
    if await _begun(stage):
        stage.stopping = time.monotonic()
        stage.signal(Signals.SIGTERM)
        program = stage.programs[-1]
        if not await program.ends(stage.trial.grace):
            program.signal(Signals.SIGKILL)
            await program.ends(stage.trial.grace)
        await stage.start()
    await _rest(stage)


@_scenario("killed", "FRM-08")
async def killed(stage: Stage) -> None:
    """The program gets SIGKILL in the middle of its records, and is started again."""
    if await _begun(stage) and await stage.acting():
        stage.signal(Signals.SIGKILL)
        await stage.programs[-1].ends(stage.trial.grace)
        await stage.start()
    await _rest(stage)


@_scenario("paused", "FRM-11", small=True)
async def paused(stage: Stage) -> None:
    """The program gets SIGSTOP while it holds records, and goes on when their locks have ended."""
    if await _begun(stage):
        stage.signal(Signals.SIGSTOP)
        await asyncio.sleep(stage.lock + 0.5)
        stage.signal(Signals.SIGCONT)
    await _rest(stage)


async def _begun(stage: Stage) -> bool:
    """Give the program half of the records; return whether it came to hold some of them."""
    await stage.source.produce(stage.trial.records // 2)
    await stage.start()
    return await stage.caught()


async def _rest(stage: Stage) -> None:
    """Give it the other half, and wait until all of it is finished."""
    await stage.source.produce(stage.trial.records - len(stage.source.sent))
    await stage.drained()


def all_scenarios() -> Mapping[str, Scenario]:
    """Return the scenarios by name, in their order."""
    return MappingProxyType(SCENARIOS)
