"""Playing scenarios one after the other on one cluster, or on a new one where the last broke."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from chaos.fitting import usual_proxies
from chaos.outcome import Broke
from chaos.run import (
    COMPACTED,
    DELIVERY_LIMIT,
    Chaos,
    RunningTarget,
    growth,
    is_keyed,
    needs_clocks,
    running,
)
from chaos.schedule import Schedule
from fixtures.interface.capability import Capability
from fixtures.interface.names import innermost
from fixtures.workload.hosts import Hosts
from fixtures.workload.plan import KINDS, PLAIN
from fixtures.workload.terms import Group, Load
from suites.chaos.scenario import CALM, DYING, MIXED, TARDY, Scenario

Tell = Callable[[str], None]
_PARTITIONS = 4

_CALM = Group(name="calm", members=(PLAIN, PLAIN))
_ODD = Group(name="odd", members=tuple(KINDS[name] for name in ("picky", "renewing", "explicit")))
_TARDY = Group(name="tardy", members=(KINDS["tardy"], KINDS["tardy"], KINDS["wordless"]))
_DYING = Group(name="dying", members=(*[KINDS["dying"]] * 3, PLAIN))
_GROUPS = {CALM: (_CALM,), MIXED: (_CALM, _ODD), TARDY: (_TARDY,), DYING: (_DYING,)}


def play_all(
    scenarios: Sequence[Scenario],
    *,
    target: str,
    seed: int,
    out: Path,
    tell: Tell,
    proxies: str = "",
    hosts: Hosts | None = None,
    processes: int = 2,
) -> tuple[Path, ...]:
    """Play scenarios, and return the directory of each inside ``out``.

    The processes of their loads run on ``hosts``, if there are any.

    Raises:
        UsageFault: the target is not ours to break.
        EnvironmentFault: it did not start, or a load could not be carried out.
    """
    runs: list[Path] = []
    left = [as_chaos(scenario, target, seed, proxies) for scenario in scenarios]
    clocks = any(needs_clocks(chaos) for chaos in left)
    left = [
        replace(
            chaos,
            clocks=clocks,
            load=replace(chaos.load, processes=processes),
            hosts=hosts and replace(hosts, out=hosts.out / chaos.scenario),
        )
        for chaos in left
    ]
    while left:
        with ExitStack() as stack:
            ready = stack.enter_context(running(left[0], tell))
            stands = (left[0].target, left[0].proxies)
            while left and (left[0].target, left[0].proxies) == stands:
                chaos = left.pop(0)
                runs.append(out / chaos.scenario)
                if _play(ready, chaos, runs[-1], tell).trouble:
                    break  # whatever was not healed is no place for the next one
    return tuple(runs)


def _play(ready: RunningTarget, chaos: Chaos, out: Path, tell: Tell) -> Broke:
    tell(f"== {chaos.scenario}")
    return ready.play(chaos, out)


def as_chaos(scenario: Scenario, target: str, seed: int, proxies: str = "") -> Chaos:
    """Return a scenario as a run of a target, behind the usual proxies if none are named."""
    faults = [strike.fault for strike in scenario.strikes]
    schedule = Schedule(seed=seed, seconds=scenario.seconds, strikes=scenario.strikes)
    ours = Capability.LOCAL_PROCESS in innermost(target).offers
    load = Load(
        seconds=scenario.seconds,
        partitions=_PARTITIONS,
        rate=scenario.rate,
        batch=20,
        lock_ms=scenario.lock_ms,
        drain=60.0,
        seed=seed,
        groups=_GROUPS[scenario.members],
        patience=10.0,
        delivery_limit=DELIVERY_LIMIT,
        background=False,
        keyed=is_keyed(schedule),
        spare=growth(schedule),
        topic_configs=COMPACTED if is_keyed(schedule) else {},
    )
    return Chaos(
        target=f"kafka:{scenario.release}" if scenario.release and ours else target,
        schedule=schedule,
        load=load,
        scenario=scenario.name,
        owed=scenario.rules,
        judged=scenario.judged,
        proxies=proxies or usual_proxies(target, faults),
    )
