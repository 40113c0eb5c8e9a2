"""Mutants of real Kafka: what kills them, and why nothing kills the others.

Each mutant of :mod:`fixtures.mutants` is dead when a check of one of its rules reports that rule
broken which passes on the release itself. One broker is switched from each mutant to the next; what
survives there is a broker of its own, too, for checks that share theirs with nobody.

The one that is switched has a process of its own, as deadlines are shorter where a broken broker
keeps checks waiting: ``python -m tools.campaign.kafka SEED MUTANT...`` prints, as lines of JSON,
what was seen of the rules that a mutant breaks, until one is reported broken. The check that killed
a mutant is played again at once on the sound broker; ``sound`` says whether it passes.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fixtures.mutants import MUTANTS
from fixtures.mutants.agency import SWITCHED, switch
from fixtures.targets import DEFAULT_TARGET
from reports import evidence
from reports.evidence import Entry
from shareproof.runner.inventory import by_rule, read_checks
from spec.plain import from_plain, to_plain
from spec.verdict import Observation, Verdict
from tools.campaign import runs
from tools.campaign.options import Options, Outcome, chosen_mutants, entry_of
from tools.campaign.player import Case
from tools.campaign.programs import Broker
from tools.campaign.rejections import cases_of, checks

PATIENCE = 0.5
"""A broken broker keeps many checks waiting to the deadline; here that is the expected outcome."""

RELEASE = DEFAULT_TARGET.partition(":")[2]


def play(options: Options) -> Outcome:
    names = chosen_mutants(options.only, MUTANTS, read_checks())
    _hunt_all(names, options)
    dead = {one.name for one in _mine(options) if one.verdict == "fail"}
    explained = {one.name for one in _mine(options) if one.verdict == "survived" and one.reason}
    return Outcome(
        said=[f"{len(dead & set(names))} of {len(names)} mutants of {DEFAULT_TARGET} killed"],
        broken=[f"alive: {name}" for name in names if name not in dead | explained],
    )


def replay(entries: Sequence[Entry], options: Options) -> list[Entry]:
    names = [name for name in dict.fromkeys(one.name for one in entries) if name in MUTANTS]
    _hunt_all(names, options)
    seen = {one.name for one in options.store.new}
    return [one for one in entries if one.name not in seen and one.verdict == "fail"]


def _hunt_all(names: Sequence[str], options: Options) -> None:
    left = dict.fromkeys(names)
    for line in runs.lines_of("tools.campaign.kafka", str(options.seed), *names, patience=PATIENCE):
        report = json.loads(line)
        name, seen = report["mutant"], from_plain(Observation, report["seen"])
        if report["sound"]:
            _keep(name, seen, options)
            left.pop(name, None)
        else:
            broke = seen.verdict is Verdict.FAIL
            _report(name, seen, options, " on the release itself, too" if broke else "")
    for name in left:
        _keep(name, hunt(name, options), options)


def hunt(name: str, options: Options) -> Observation | None:
    def played(target: str, checks: Sequence[str]) -> list[Observation]:
        if not checks:
            return []
        return [*runs.seen(runs.results(target, checks, patience=PATIENCE, seed=options.seed))]

    found = by_rule(read_checks())
    for rule in MUTANTS[name].rules:
        ids = [check.id for check in found.get(rule, ()) if check.solo]
        for one in played(f"{DEFAULT_TARGET}:{name}", ids):
            if one.verdict is Verdict.FAIL and one.rule in MUTANTS[name].rules:
                sound = played(DEFAULT_TARGET, [one.check.partition("[")[0]])
                same = (each for each in sound if each.rule == one.rule)
                if all(each.verdict is Verdict.PASS for each in same):
                    return one
            _report(name, one, options)
    return None


def _report(name: str, seen: Observation, options: Options, where: str = "") -> None:
    text = f"{seen.verdict}{where} {seen.check} {seen.reason[:200]}"
    options.say(f"  {name}: {seen.rule} {text}")


def _keep(name: str, killer: Observation | None, options: Options) -> None:
    kill = killer and entry_of(evidence.KAFKA_MUTANT, name, killer, RELEASE, options.seed)
    survived = Entry(
        kind=evidence.KAFKA_MUTANT,
        name=name,
        rule=MUTANTS[name].rules[0],
        verdict="survived",
        release=RELEASE,
        reason=MUTANTS[name].equivalent,
    )
    options.store.drop([one for one in _mine(options) if one.name == name])
    options.store.add([kill or survived])
    by = f"{kill.rule} by {kill.check.rpartition('/')[2]}" if kill else "alive"
    options.say(f"{name}: {by}")


def _mine(options: Options) -> list[Entry]:
    return [one for one in options.store.known if one.kind == evidence.KAFKA_MUTANT]


class Switched(Broker):
    at_once, order = 5, SWITCHED

    def forget(self) -> None:
        super().forget()
        self.file.touch()

    def turn_on(self, point: str) -> frozenset[str]:
        switch(self.file, point)
        return frozenset()

    async def hunt(self, name: str) -> None:
        self.turn_on(name)
        found = by_rule(checks().values())
        for rule in MUTANTS[name].rules:
            named = [check.id for check in found.get(rule, ()) if not check.solo]
            cases = [case for check in named for case in cases_of(check)]
            async for seen in self.in_turns(cases):
                for case, one in ((case, one) for case, observed in seen for one in observed):
                    mine = one.rule in MUTANTS[name].rules
                    if mine and await self._kills(name, case, one):
                        return

    async def _kills(self, name: str, case: Case, seen: Observation) -> bool:
        sound = False
        if seen.verdict is Verdict.FAIL:
            self.turn_on("")
            sound = await self.passes(case)
            if not sound:
                self.turn_on(name)
        if seen.verdict is not Verdict.PASS:
            report = {"mutant": name, "sound": sound, "seen": to_plain(seen)}
            print(json.dumps(report), flush=True)
        return sound


async def hunt_switched(seed: int, names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="shareproof-mutant-") as folder:
        broker = Switched(Path(folder), RELEASE, seed)
        try:
            await broker.start()
            for name in names:
                await broker.hunt(name)
        finally:
            await broker.stop()


if __name__ == "__main__":
    number, *mutants = sys.argv[1:]
    asyncio.run(hunt_switched(int(number), mutants))
