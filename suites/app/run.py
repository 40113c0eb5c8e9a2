"""A run of scenarios on one cluster, each judged by the rules that it is there for."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from fixtures.interface.info import ClusterInfo
from fixtures.wire.schema import Schemas
from spec.verdict import Observation, OutOfReach, Undecided, Verdict
from suites.app.environment import open_environment
from suites.app.rules import check_of, observe
from suites.app.scenarios import ALWAYS, Scenario, result_of
from suites.broker.env import goes_on, open_env
from suites.client.wire import HEARTBEAT, SHARE, lines
from suites.options import AppOptions

USUAL_LOCK = 10_000
SMALL_LOCK = 3_000  # Milliseconds that locks last at least; a target may want more.


@dataclass(slots=True, kw_only=True)
class AppRun:
    info: ClusterInfo
    spec: AppOptions
    seed: int
    out: Path
    log: Callable[[str], None]
    interrupted: bool = False

    async def play(self, scenarios: Sequence[Scenario], rules: Sequence[str]) -> list[Observation]:
        found: list[Observation] = []
        schemas = Schemas.from_jar(self.info.schema_jar)
        for scenario in scenarios:
            began = time.monotonic()
            wanted = [rule for rule in scenario.rules if rule in rules]
            try:
                seen = await self._play(scenario, wanted, schemas)
            except asyncio.CancelledError:  # by Ctrl-C; what was seen before is kept
                self.interrupted = True
                break
            took = round(time.monotonic() - began, 3)
            self.log(f"{scenario.name}: {took:.1f} s, {_described(seen)}")
            found += [replace(one, seconds=took) for one in seen]
        # What one scenario put to the test, another need not.
        exercised = [one for one in found if one.verdict is not Verdict.VACUOUS]
        known = {one.rule for one in exercised}
        last = {one.rule: one for one in found if one.rule not in known}
        return [*exercised, *last.values()]

    async def _play(
        self, scenario: Scenario, rules: Sequence[str], schemas: Schemas
    ) -> list[Observation]:
        rng = Random(f"{self.seed} {scenario.name}")
        try:
            async with open_env(self.info, rng, [], schemas) as kafka:
                lock = kafka.bounds.lock(SMALL_LOCK if scenario.small else USUAL_LOCK) / 1000
                folder = self.out / "programs" / scenario.name
                async with open_environment(self.spec, kafka, lock=lock, folder=folder) as env:
                    await scenario.play(env)
                    env.over, known = time.monotonic(), env.deliveries()
                    # Where the program did not finish its records: do the brokers still deliver?
                    done = not env.moving and all(
                        known.finished(place, env.limit, env.over) for place in env.source.sent
                    )
                    nodes = () if done else {*env.topic.leaders}
                    healthy = all([await goes_on(kafka.cluster, node) for node in nodes])
                    seen = result_of(env, scenario, healthy=healthy)
                file = self.out / transcript_of(scenario.name)
                file.parent.mkdir(parents=True, exist_ok=True)
                frames = lines(env.tap.of(*SHARE, HEARTBEAT, "Produce"))
                file.write_text("\n".join(frames) + "\n", encoding="utf-8")
        except Undecided as why:
            verdict, open_ones = Verdict.UNKNOWN, rules
            if isinstance(why, OutOfReach):
                verdict, open_ones = Verdict.OUT_OF_REACH, [r for r in rules if r not in ALWAYS]
            check, said = check_of(scenario), str(why)
            return [
                Observation(rule=rule, check=check, verdict=verdict, reason=said)
                for rule in open_ones
            ]
        owed = {"FRM-04": self.spec.uses("dead_letters"), "FRM-09": self.spec.uses("output")}
        owed["FRM-14"] = False
        return [observe(rule, seen, owed=owed.get(rule, True)) for rule in rules]


def transcript_of(check: str) -> str:
    return f"transcripts/{check.rpartition('::')[2]}.txt"


def _described(seen: Sequence[Observation]) -> str:
    if seen and all(one.verdict is Verdict.OUT_OF_REACH for one in seen):
        return f"out of reach: {seen[0].reason}"
    broken = [one.rule for one in seen if one.verdict in {Verdict.FAIL, Verdict.UNKNOWN}]
    return f"broken: {', '.join(broken)}" if broken else f"{len(seen)} rules judged"
