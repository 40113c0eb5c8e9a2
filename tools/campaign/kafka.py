"""Mutants of real Kafka: what kills them, and why nothing kills the others.

Each mutant of :mod:`fixtures.mutants` is dead when a check of one of its rules reports that rule
broken which passes on the release itself. One broker is switched from each mutant to the next; what
survives there is a broker of its own, too, for checks that share theirs with nobody.

The one that is switched has a process of its own, as deadlines are shorter where a broken broker
keeps checks waiting: ``python -m tools.campaign.kafka TARGET FILE SEED MUTANT...`` prints, as lines
of JSON, what was seen of the rules that a mutant breaks, until one is reported broken. The check
that killed a mutant is played again at once on the sound broker; ``sound`` says whether it passes.
"""

import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from fixtures.interface.info import ClusterInfo
from fixtures.mutants import MUTANTS
from fixtures.mutants.agency import SWITCHED, switch
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from fixtures.wire.schema import Schemas
from reports import evidence
from reports.evidence import Entry
from shareproof.runner.inventory import by_rule, read_checks
from spec.plain import from_plain, to_plain
from spec.verdict import EnvironmentFault, Observation, Verdict
from tools.campaign import runs
from tools.campaign.hunting import cases_of, checks
from tools.campaign.options import Options, Outcome, chosen_mutants
from tools.campaign.player import Case, observed, on_share
from tools.campaign.record import entry_of

PATIENCE = 0.5
"""A broken broker keeps many checks waiting to the deadline; here that is the expected outcome."""

RELEASE = DEFAULT_TARGET.partition(":")[2]

AT_ONCE = 5
"""Checks that are played at a time on the broker that is switched."""

LIMIT = 45.0
"""Seconds that a check may take there at most."""


def play(options: Options) -> Outcome:
    """Hunt mutants; what killed them has to pass on the release itself."""
    names = chosen_mutants(options.only, MUTANTS, read_checks())
    _hunt_all(names, options)
    dead = {one.name for one in _mine(options) if one.verdict == "fail"}
    explained = {one.name for one in _mine(options) if one.verdict == "survived" and one.reason}
    return Outcome(
        said=[f"{len(dead & set(names))} of {len(names)} mutants of {DEFAULT_TARGET} killed"],
        broken=[f"alive: {name}" for name in names if name not in dead | explained],
    )


def replay(entries: Sequence[Entry], options: Options) -> list[Entry]:
    """Hunt the mutants of some entries again; return the entries of those not killed again."""
    names = [name for name in dict.fromkeys(one.name for one in entries) if name in MUTANTS]
    _hunt_all(names, options)
    seen = {one.name for one in options.keeper.new}
    return [one for one in entries if one.name not in seen and one.verdict == "fail"]


def _hunt_all(names: Sequence[str], options: Options) -> None:
    """Hunt mutants on one broker, and what survives there each on one of its own."""
    with tempfile.TemporaryDirectory(prefix="shareproof-mutant-") as folder:
        file = Path(folder) / "mutant"
        file.touch()
        cluster = open_target(f"{DEFAULT_TARGET}:{SWITCHED}{file}", TargetOptions(brokers=1))
        cluster.start()
        try:
            where = f"external:{','.join(cluster.info.bootstrap)}"
            left = _switched(names, where, file, options)
        finally:
            cluster.stop()
    for name in left:
        _keep(name, hunt(name, options), options)


def _switched(names: Sequence[str], where: str, file: Path, options: Options) -> list[str]:
    """Hunt mutants in one process on one broker; keep each that is seen there, return the rest."""
    words = [sys.executable, "-m", "tools.campaign.kafka", where, str(file), str(options.seed)]
    left = dict.fromkeys(names)
    with subprocess.Popen(
        [*words, *names],
        stdout=subprocess.PIPE,
        text=True,
        cwd=runs.ROOT,
        env=runs.with_patience(PATIENCE),
    ) as hunting:
        for line in hunting.stdout or ():
            told = json.loads(line)
            name, seen = told["mutant"], from_plain(Observation, told["seen"])
            if told["sound"]:
                _keep(name, seen, options)
                left.pop(name, None)
            else:
                broke = seen.verdict is Verdict.FAIL
                _say(name, seen, options, " on the release itself, too" if broke else "")
    if hunting.returncode:
        raise EnvironmentFault(f"the hunt ended with exit code {hunting.returncode}")
    return list(left)


def hunt(name: str, options: Options) -> Observation | None:
    """Play the checks that need a cluster of their own; return what killed a mutant."""

    def played(target: str, checks: Sequence[str]) -> list[Observation]:
        if not checks:
            return []
        return [*runs.seen(runs.results(target, checks, patience=PATIENCE, seed=options.seed))]

    found = by_rule(read_checks())
    for rule in MUTANTS[name].rules:
        ids = [check.id for check in found.get(rule, ()) if check.solo]
        for one in played(f"{DEFAULT_TARGET}:{name}", ids):
            if one.verdict is Verdict.FAIL and one.requirement in MUTANTS[name].rules:
                sound = played(DEFAULT_TARGET, [one.check.partition("[")[0]])
                same = (each for each in sound if each.requirement == one.requirement)
                if all(each.verdict is Verdict.PASS for each in same):
                    return one
            _say(name, one, options)
    return None


def _say(name: str, seen: Observation, options: Options, where: str = "") -> None:
    told = f"{seen.verdict}{where} {seen.check} {seen.reason[:200]}"
    options.say(f"  {name}: {seen.requirement} {told}")


def _keep(name: str, killer: Observation | None, options: Options) -> None:
    """Keep what killed a mutant; of a survivor, why it survives if that is known."""
    kill = killer and entry_of(evidence.KAFKA_MUTANT, name, killer, RELEASE, options.seed)
    survived = Entry(
        kind=evidence.KAFKA_MUTANT,
        name=name,
        rule=MUTANTS[name].rules[0],
        verdict="survived",
        release=RELEASE,
        reason=MUTANTS[name].equivalent,
    )
    options.keeper.drop([one for one in _mine(options) if one.name == name])
    options.keeper.add([kill or survived])
    by = f"{kill.rule} by {kill.check.rpartition('/')[2]}" if kill else "alive"
    options.say(f"{name}: {by}")


def _mine(options: Options) -> list[Entry]:
    return [one for one in options.keeper.known if one.kind == evidence.KAFKA_MUTANT]


class SwitchedBroker:
    def __init__(self, info: ClusterInfo, file: Path, seed: int) -> None:
        self.info, self.file, self.seed = info, file, seed
        self.schemas = Schemas.from_jar(info.schema_jar)
        self.plays = itertools.count()

    async def play(self, case: Case) -> Sequence[Observation]:
        # Names are drawn, and no play may meet the topics and groups of another.
        rng = Random(f"{self.seed} {case.name} {next(self.plays)}")
        played = await observed(
            case,
            lambda judge: on_share(case, judge, self.info, self.schemas, rng),
            min(case.limit, LIMIT),
        )
        return played.observations

    async def hunt(self, name: str) -> None:
        """Print what the checks of a mutant's rules say of it, until one kills it."""
        switch(self.file, name)
        found = by_rule(checks().values())
        for rule in MUTANTS[name].rules:
            named = [check.id for check in found.get(rule, ()) if not check.solo]
            cases = [case for check in named for case in cases_of(check)]
            for at in range(0, len(cases), AT_ONCE):
                some = cases[at : at + AT_ONCE]
                seen = await asyncio.gather(*map(self.play, some))
                pairs = [(c, one) for c, told in zip(some, seen, strict=True) for one in told]
                for case, one in pairs:
                    mine = one.requirement in MUTANTS[name].rules
                    if mine and await self._kills(name, case, one):
                        return

    async def _kills(self, name: str, case: Case, seen: Observation) -> bool:
        """Print what a check said of a mutant; tell whether it says so of the mutant alone."""
        sound = False
        if seen.verdict is Verdict.FAIL:
            switch(self.file, "")
            sound = all(o.verdict is Verdict.PASS for o in await self.play(case))
            if not sound:
                switch(self.file, name)
        if seen.verdict is not Verdict.PASS:
            told = {"mutant": name, "sound": sound, "seen": to_plain(seen)}
            print(json.dumps(told), flush=True)
        return sound


async def hunt_switched(target: str, file: Path, seed: int, names: Sequence[str]) -> None:
    opened = open_target(target)
    opened.start()
    broker = SwitchedBroker(opened.info, file, seed)
    for name in names:
        await broker.hunt(name)


if __name__ == "__main__":
    where, path, number, *mutants = sys.argv[1:]
    asyncio.run(hunt_switched(where, Path(path), int(number), mutants))
