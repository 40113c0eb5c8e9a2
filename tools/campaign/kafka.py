"""Kill the mutants of real Kafka: ``python -m tools.real_mutants``.

Each mutant of :mod:`fixtures.mutants` is certified like any other broker, by the checks of the
rules that it breaks. It is dead when a check of one of its rules reports that rule broken which
passes on the release itself. What killed whom is recorded in ``evidence/killed_real.json``,
beside why nothing kills the others. Every mutant is a JVM that starts, so this takes minutes.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixtures.mutants import MUTANTS
from fixtures.targets import DEFAULT_TARGET
from reports.reading import read
from reports.results import Results

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "evidence" / "killed_real.json"
NOT_HUNTED = "not hunted yet"
"""What the record says of a mutant that nobody has played."""

PATIENCE = "0.5"
"""A broken broker keeps many checks waiting to the deadline; here that is the expected outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """What killed a mutant."""

    rule: str
    check: str


def certify(target: str, rules: Iterable[str], brokers: int, seed: int) -> Results:
    """Run the checks of some rules against a target and return the run's results."""
    with tempfile.TemporaryDirectory(prefix="shareproof-mutant-") as out:
        command = [sys.executable, "-m", "shareproof", "broker", "--target", target]
        command += ["--brokers", str(brokers), "--seed", str(seed), "--out", out]
        command += ["--only", ",".join(rules)]
        environment = os.environ | {"SHAREPROOF_PATIENCE": PATIENCE}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        results = Path(out) / "results.json"
        if not results.exists():
            raise SystemExit(f"{target}: the run left no results: {done.stderr.strip()}")
        return read(results)


def verdicts(results: Results) -> Iterator[tuple[Kill, str, str]]:
    """Yield rule and check, the verdict, and its reason, for each check of a run."""
    for rule in results.requirements:
        for check in rule.checks:
            kill = Kill(rule=rule.id, check=check.check.partition("[")[0])
            yield kill, check.verdict, check.reason


def hunt(name: str, seed: int) -> Kill | None:
    """Certify a mutant by the checks of one of its rules after the other; return what killed it."""
    mutant = MUTANTS[name]
    for rule in mutant.rules:
        results = certify(f"{DEFAULT_TARGET}:{name}", [rule], mutant.brokers, seed)
        for kill, verdict, reason in verdicts(results):
            if verdict == "fail" and kill.rule in mutant.rules:
                return kill
            print(f"  {name}: {kill.rule} {verdict} {kill.check} {reason[:200]}", flush=True)
    return None


def control(seed: int) -> list[str]:
    """Certify the release itself by what killed mutants; bring back to life whom it kills, too."""
    dead = _known()["mutants"]
    kills = {name: Kill(rule=kill["rule"], check=kill["check"]) for name, kill in dead.items()}
    rules = sorted({kill.rule for kill in kills.values()})
    brokers = max((MUTANTS[name].brokers for name in kills), default=1)
    honest = certify(DEFAULT_TARGET, rules, brokers, seed)
    bad = {kill for kill, verdict, _ in verdicts(honest) if verdict != "pass"}
    revived = [name for name, kill in kills.items() if kill in bad]
    for name in revived:
        record(name, None)
    return revived


def _known() -> dict[str, Any]:
    if not RECORD.exists():
        return {"mutants": {}, "survivors": {}}
    known: dict[str, Any] = json.loads(RECORD.read_text(encoding="utf-8"))
    return known


def record(name: str, kill: Kill | None) -> None:
    """Write what killed a mutant, keeping what is known of the others."""
    with RECORD.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = _known()
        if kill is not None:
            known["mutants"][name] = {"rule": kill.rule, "check": kill.check}
            known["survivors"].pop(name, None)
        else:
            known["mutants"].pop(name, None)
            why = known["survivors"].get(name, NOT_HUNTED)
            known["survivors"][name] = "" if why == NOT_HUNTED else why
        text = json.dumps(known, indent=1, sort_keys=True)
        RECORD.write_text(f"{text}\n", encoding="utf-8")


def main() -> int:
    """Hunt; exit code 1 if a mutant lives of whom the record does not say why."""
    parser = argparse.ArgumentParser(description="Kill the mutants of real Kafka.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--uncontrolled", action="store_true", help="leave out the release itself")
    options = parser.parse_args()
    names = options.names or list(MUTANTS)
    if strange := sorted(set(names) - set(MUTANTS)):
        parser.error(f"no mutant is called {', '.join(strange)}; there are {', '.join(MUTANTS)}")
    for name in names:
        kill = hunt(name, options.seed)
        record(name, kill)
        told = f"{kill.rule} by {kill.check.split('/')[-1]}" if kill else "ALIVE"
        print(f"{name}: {told}", flush=True)
    if not options.uncontrolled:
        print(f"the release itself is killed like {control(options.seed) or 'none'}", flush=True)
    survivors = _known()["survivors"]
    return int(any(not why for name, why in survivors.items() if name in names))


if __name__ == "__main__":
    raise SystemExit(main())
