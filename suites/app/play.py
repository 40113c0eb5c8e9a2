"""Plays scenarios on one cluster, and judges each by the rules that it is there for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from fixtures.clients.cluster import Cluster
from fixtures.interface.info import ClusterInfo
from fixtures.wire.schema import Schemas
from spec.verdict import Observation, OutOfReach, Undecided, Verdict
from suites.app.played import played
from suites.app.program import Trial, uses
from suites.app.rules import JUDGES, observe
from suites.app.scenarios import ALWAYS, Scenario
from suites.app.stage import Stage, staged
from suites.broker.share import goes_on, world
from suites.client.describing import lines
from suites.client.wire import HEARTBEAT, SHARE

USUAL_LOCK = 10_000
SMALL_LOCK = 3_000
"""Milliseconds that locks last at least; a target may want more."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """What a run of scenarios needs beside them."""

    info: ClusterInfo
    trial: Trial
    seed: int
    out: Path
    tell: Tell


def transcript_of(check: str) -> str:
    """Return the path of a scenario's transcript inside the run's directory."""
    return f"transcripts/{check.rpartition('::')[2]}.txt"


async def play(
    playing: Playing, scenarios: Sequence[Scenario], rules: Sequence[str]
) -> list[Observation]:
    """Play scenarios one after the other, and return what each says about its rules.

    Raises:
        EnvironmentFault: the program does not start or join a group.
    """
    found: list[Observation] = []
    schemas = Schemas.from_jar(playing.info.schema_jar)
    for scenario in scenarios:
        began = time.monotonic()
        wanted = [rule for rule in scenario.rules if rule in rules]
        seen = await _played(playing, scenario, wanted, schemas)
        took = round(time.monotonic() - began, 3)
        playing.tell(f"{scenario.name}: {took:.1f} s, {_told(seen)}")
        found += [replace(one, seconds=took) for one in seen]
    return list(_counted(found))


async def _played(
    playing: Playing, scenario: Scenario, rules: Sequence[str], schemas: Schemas
) -> list[Observation]:
    rng = Random(f"{playing.seed} {scenario.name}")
    try:
        async with world(playing.info, rng, [], schemas) as share:
            lock = share.bounds.lock(SMALL_LOCK if scenario.small else USUAL_LOCK) / 1000
            folder = playing.out / "programs" / scenario.name
            async with staged(playing.trial, share, lock=lock, folder=folder) as stage:
                await scenario.play(stage)
                stage.over = time.monotonic()
                seen = played(stage, scenario, healthy=await _healthy(stage))
            _keep(playing.out / transcript_of(scenario.name), stage)
    except OutOfReach as why:
        own = [rule for rule in rules if rule not in ALWAYS]
        return [_not_played(rule, scenario, Verdict.OUT_OF_REACH, why) for rule in own]
    except Undecided as why:
        return [_not_played(rule, scenario, Verdict.UNKNOWN, why) for rule in rules]
    command = playing.trial.command
    owed = {"FRM-04": uses(command, "dead_letters"), "FRM-09": uses(command, "output")}
    return [observe(rule, seen, owed=owed.get(rule, True)) for rule in rules]


async def _healthy(stage: Stage) -> bool:
    """Tell whether the brokers still deliver, where the program did not finish its records."""
    cluster: Cluster = stage.share.cluster
    now, seen = stage.over, stage.deliveries()
    if all(seen.finished(place, stage.limit, now) for place in stage.source.sent):
        return True
    return all([await goes_on(cluster, node) for node in set(stage.topic.leaders)])


def _keep(file: Path, stage: Stage) -> None:
    """Write what was said, one line for each exchange."""
    file.parent.mkdir(parents=True, exist_ok=True)
    said = lines(stage.tap.of(*SHARE, HEARTBEAT, "Produce"))
    file.write_text("\n".join(said) + "\n", encoding="utf-8")


def _not_played(rule: str, scenario: Scenario, verdict: Verdict, why: Exception) -> Observation:
    return Observation(
        requirement=rule,
        check=f"suites/app/scenarios::{scenario.name}",
        verdict=verdict,
        reason=str(why),
    )


def _counted(found: Sequence[Observation]) -> Iterator[Observation]:
    """Yield what counts: what one scenario put to the test, another need not."""
    exercised = {one.requirement for one in found if one.verdict is not Verdict.VACUOUS}
    last: dict[str, Observation] = {}
    for one in found:
        if one.verdict is not Verdict.VACUOUS:
            yield one
        elif one.requirement not in exercised:
            last[one.requirement] = one
    yield from last.values()


def _told(seen: Sequence[Observation]) -> str:
    if seen and all(one.verdict is Verdict.OUT_OF_REACH for one in seen):
        return f"out of reach: {seen[0].reason}"
    broken = [one.requirement for one in seen if one.verdict in {Verdict.FAIL, Verdict.UNKNOWN}]
    return f"broken: {', '.join(broken)}" if broken else f"{len(seen)} rules judged"


def scenarios_for(
    rules: Sequence[str], scenarios: Sequence[Scenario], *, all_rules: bool
) -> list[Scenario]:
    """Return the scenarios that are there for some of the rules."""
    if all_rules:
        return list(scenarios)
    return [one for one in scenarios if set(rules) & set(one.rules)]


def judged_rules() -> tuple[str, ...]:
    """Return the rules that have a judge."""
    return tuple(sorted(JUDGES))
