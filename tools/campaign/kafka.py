"""Mutants of real Kafka: what kills them, and why nothing kills the others.

Each mutant of :mod:`fixtures.mutants` is dead when a check of one of its rules reports that rule
broken which passes on the release itself. One broker is switched from each mutant to the next; what
survives there is a broker of its own, too, for checks that share theirs with nobody.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fixtures.mutants import MUTANTS
from fixtures.mutants.agency import SWITCHED
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from reports import evidence
from reports.evidence import Entry
from shareproof.runner.inventory import by_rule, read_checks
from spec.verdict import EnvironmentFault
from tools.campaign import runs
from tools.campaign.asked import Asked, Outcome, means_check, means_rule, nothing

PATIENCE = 0.5
"""A broken broker keeps many checks waiting to the deadline; here that is the expected outcome."""

RELEASE = DEFAULT_TARGET.partition(":")[2]


def play(asked: Asked) -> Outcome:
    """Hunt mutants; what killed them has to pass on the release itself."""
    names = _chosen(asked.only)
    _hunt_all(names, asked)
    dead = {one.name for one in _mine(asked) if one.verdict == "fail"}
    explained = {one.name for one in _mine(asked) if one.verdict == "survived" and one.reason}
    return Outcome(
        said=[f"{len(dead & set(names))} of {len(names)} mutants of {DEFAULT_TARGET} killed"],
        broken=[f"alive: {name}" for name in names if name not in dead | explained],
    )


def replay(entries: Sequence[Entry], asked: Asked) -> list[Entry]:
    """Hunt the mutants of some entries again; return the entries of those not killed again."""
    names = [name for name in dict.fromkeys(one.name for one in entries) if name in MUTANTS]
    _hunt_all(names, asked)
    seen = {one.name for one in asked.keeper.new}
    return [one for one in entries if one.name not in seen and one.verdict == "fail"]


def _hunt_all(names: Sequence[str], asked: Asked) -> None:
    """Hunt mutants on one broker, and what survives there each on one of its own."""
    with tempfile.TemporaryDirectory(prefix="shareproof-mutant-") as folder:
        file = Path(folder) / "mutant"
        file.touch()
        cluster = open_target(f"{DEFAULT_TARGET}:{SWITCHED}{file}", TargetOptions(brokers=1))
        cluster.start()
        try:
            where = f"external:{','.join(cluster.info.bootstrap)}"
            left = _switched(names, where, file, asked)
        finally:
            cluster.stop()
    for name in left:
        _told(name, hunt(name, asked), asked)


def _switched(names: Sequence[str], where: str, file: Path, asked: Asked) -> list[str]:
    """Hunt mutants in one process on one broker; keep each that is seen there, return the rest.

    Raises:
        EnvironmentFault: the process did not come to its end.
    """
    words = [sys.executable, "-m", "tools.campaign.switched", where, str(file), str(asked.seed)]
    environment = os.environ | {"SHAREPROOF_PATIENCE": f"{PATIENCE:g}"}
    left = dict.fromkeys(names)
    with subprocess.Popen(
        [*words, *names], stdout=subprocess.PIPE, text=True, cwd=runs.ROOT, env=environment
    ) as hunting:
        for line in hunting.stdout or ():
            raw = json.loads(line)
            name, rule, check = raw["mutant"], raw["requirement"], raw["check"].partition("[")[0]
            if raw["verdict"] == "fail" and raw["sound"]:
                seen = runs.Seen(check=check, rule=rule, verdict="fail", reason=raw["reason"])
                _told(name, _entry(name, seen, asked.seed), asked)
                left.pop(name, None)
            else:
                sound = "" if raw.get("sound", True) else " on the release itself, too"
                told = f"{raw['verdict']}{sound} {raw['check']} {raw['reason'][:200]}"
                asked.say(f"  {name}: {rule} {told}")
    if hunting.returncode:
        raise EnvironmentFault(f"the hunt ended with exit code {hunting.returncode}")
    return list(left)


def _told(name: str, kill: Entry | None, asked: Asked) -> None:
    _note(name, kill, asked)
    told = f"{kill.rule} by {kill.check.rpartition('/')[2]}" if kill else "alive"
    asked.say(f"{name}: {told}")


def hunt(name: str, asked: Asked) -> Entry | None:
    """Play the checks that need a cluster of their own; return what killed a mutant."""
    found = by_rule(read_checks())
    for rule in MUTANTS[name].rules:
        ids = [check.id for check in found.get(rule, ()) if check.solo]
        for one in _played(f"{DEFAULT_TARGET}:{name}", ids, asked):
            killed = one.verdict == "fail" and one.rule in MUTANTS[name].rules
            if killed and _sound(one, asked):
                return _entry(name, one, asked.seed)
            asked.say(f"  {name}: {one.rule} {one.verdict} {one.check} {one.reason[:200]}")
    return None


def _sound(kill: runs.Seen, asked: Asked) -> bool:
    """Tell whether what killed a mutant passes on the release itself."""
    seen = _played(DEFAULT_TARGET, [kill.check], asked)
    return all(one.verdict == "pass" for one in seen if one.rule == kill.rule)


def _played(target: str, checks: Sequence[str], asked: Asked) -> list[runs.Seen]:
    """Play checks under pytest, if there are any; return what they say."""
    if not checks:
        return []
    return list(runs.seen(runs.results(target, checks, patience=PATIENCE, seed=asked.seed)))


def _note(name: str, kill: Entry | None, asked: Asked) -> None:
    """Keep what killed a mutant; of a survivor, why it survives if that is known."""
    asked.keeper.drop([one for one in _mine(asked) if one.name == name])
    asked.keeper.add([kill or _survived(name)])


def _mine(asked: Asked) -> list[Entry]:
    return [one for one in asked.keeper.known if one.kind == evidence.KAFKA_MUTANT]


def _entry(name: str, seen: runs.Seen, seed: int) -> Entry:
    return Entry(
        kind=evidence.KAFKA_MUTANT,
        name=name,
        rule=seen.rule,
        check=seen.check,
        release=RELEASE,
        seed=seed,
        reason=seen.reason,
    )


def _survived(name: str) -> Entry:
    return Entry(
        kind=evidence.KAFKA_MUTANT,
        name=name,
        rule=MUTANTS[name].rules[0],
        verdict="survived",
        release=RELEASE,
        reason=MUTANTS[name].equivalent,
    )


def _chosen(only: Sequence[str]) -> list[str]:
    """Return the mutants that words mean by name, rule, area or a check of their rules."""
    checks, found = read_checks(), dict[str, None]()
    for word in only:
        rules = [rule for check in checks if means_check(word, check) for rule in check.rules]
        mine = [
            name
            for name, one in MUTANTS.items()
            if word == name or means_rule(word, one.rules) or set(rules) & set(one.rules)
        ]
        if not mine:
            raise nothing(word)
        found |= dict.fromkeys(mine)
    return list(found) if only else list(MUTANTS)
