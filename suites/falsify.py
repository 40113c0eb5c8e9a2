"""See every check fail: run the broker checks behind one lie after the other.

``python -m suites.falsify`` starts a real cluster, puts each alteration of
:mod:`fixtures.proxies.alterations` in front of it in turn, and runs the checks that have not yet
been seen failing. What made which check report a broken rule is recorded in
``suites/self/falsified.json``; ``suites/self/test_falsified.py`` refuses a check without an entry.

Only ``fail`` counts. A check that a lie leaves undecided has not rejected anything.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fixtures.proxies.alterations import ALTERATIONS
from fixtures.targets import DEFAULT_TARGET, open_target
from suites.inventory import Check, read_checks
from suites.scheduling import scope

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "suites" / "self" / "falsified.json"
PATIENCE = "0.25"
"""A broken broker keeps many checks waiting to the deadline; here that is the expected outcome."""

MOST_WORKERS = 12

Pair = tuple[str, str]
"""A check and one of its rules."""


@dataclass(slots=True)
class Matrix:
    """Which alterations made which check report which rule broken."""

    kills: dict[Pair, set[str]] = field(default_factory=dict)

    @classmethod
    def load(cls) -> Matrix:
        """Read the record, empty when there is none."""
        if not RECORD.exists():
            return cls()
        raw = json.loads(RECORD.read_text(encoding="utf-8"))["checks"]
        return cls(
            {
                (check, rule): set(names)
                for check, rules in raw.items()
                for rule, names in rules.items()
            }
        )

    def add(self, name: str, results: dict[str, object]) -> int:
        """Take over one run's failures; return how many pairs were not yet known to fail."""
        new = 0
        for requirement in _list(results["requirements"]):
            for check in _list(requirement["checks"]):
                if check["verdict"] == "fail":
                    function = str(check["check"]).partition("[")[0]
                    killers = self.kills.setdefault((function, str(requirement["id"])), set())
                    new += not killers
                    killers.add(name)
        return new

    def save(self, live: set[Pair]) -> None:
        """Write the record, without checks and rules that no longer exist.

        What another sweep has written meanwhile is kept.
        """
        with RECORD.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for pair, names in Matrix.load().kills.items():
                self.kills.setdefault(pair, names)
            self._write(live)

    def _write(self, live: set[Pair]) -> None:
        checks: dict[str, dict[str, list[str]]] = {}
        for (check, rule), names in sorted(self.kills.items()):
            if (check, rule) in live:
                checks.setdefault(check, {})[rule] = sorted(names)
        text = json.dumps({"checks": checks}, indent=1)
        RECORD.write_text(f"{text}\n", encoding="utf-8")


def _list(value: object) -> list[dict[str, object]]:
    return value if isinstance(value, list) else []


def run_behind(name: str, target: str, checks: Sequence[str]) -> dict[str, object]:
    """Run checks behind one alteration and return the run's results."""
    # The checks of a stage stay in one pair of hands; more workers would only be started.
    hands = min(MOST_WORKERS, len({scope(check) for check in checks}))
    with tempfile.TemporaryDirectory(prefix="shareproof-falsify-") as out:
        command = [sys.executable, "-m", "pytest", "-q", "-n", str(hands if hands > 1 else 0)]
        command += ["--dist", "loadscope", "--out", out, "--target", f"altered:{name}@{target}"]
        command += ["--brokers", "1", "--drafts", "--profile", "apache-kafka", *checks]
        environment = os.environ | {"SHAREPROOF_PATIENCE": PATIENCE}
        subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)
        results = Path(out) / "results.json"
        if not results.exists():
            raise SystemExit(f"{name}: the run left no results; see: {' '.join(command)}")
        document: dict[str, object] = json.loads(results.read_text(encoding="utf-8"))
        return document


def pending(checks: Iterable[Check], matrix: Matrix) -> list[Check]:
    """Return the checks that have a rule they were not yet seen rejecting."""
    return [
        check
        for check in checks
        if any((check.id, rule) not in matrix.kills for rule in check.rules)
    ]


def sweep(
    matrix: Matrix, checks: Sequence[Check], target: str, names: Sequence[str], *, full: bool
) -> None:
    """Put one lie after the other in front of a target."""
    live = {(check.id, rule) for check in read_checks(drafts=True) for rule in check.rules}
    for name in names:
        wanted = list(checks) if full else pending(checks, matrix)
        if not wanted:
            return
        results = run_behind(name, target, [check.id for check in wanted])
        new = matrix.add(name, results)
        matrix.save(live)
        left = len(pending(checks, matrix))
        print(f"{name}: {len(wanted)} checks, {new} first failures, {left} left", flush=True)


def main() -> int:
    """Sweep; exit code 1 while a check was never seen failing."""
    parser = argparse.ArgumentParser(description="See every check fail.")
    parser.add_argument("--target", help="use this running cluster: external:HOST:PORT,...")
    parser.add_argument("--only", nargs="*", default=[], help="parts of check names")
    parser.add_argument("--alterations", nargs="*", default=[], help="alterations to try")
    parser.add_argument("--full", action="store_true", help="the whole matrix, not the first kill")
    options = parser.parse_args()
    return _falsify(options, options.alterations or list(ALTERATIONS))


def _falsify(options: argparse.Namespace, names: list[str]) -> int:
    everything = read_checks(drafts=True)
    chosen = [c for c in everything if not options.only or any(o in c.id for o in options.only)]
    if options.full and not options.only:
        RECORD.unlink(missing_ok=True)
    matrix = Matrix.load()
    shared = [check for check in chosen if not check.solo]
    alone = [check for check in chosen if check.solo]
    # A cluster that runs already cannot be made to lie by its own configuration.
    told = [name for name in names if not ALTERATIONS[name].properties]
    if options.target:
        sweep(matrix, shared, options.target, told, full=options.full)
    elif shared:
        cluster = open_target(DEFAULT_TARGET, brokers=3)
        cluster.start()
        try:
            address = ",".join(cluster.info.bootstrap)
            sweep(matrix, shared, f"external:{address}", told, full=options.full)
        finally:
            cluster.stop()
    sweep(matrix, alone, DEFAULT_TARGET, names, full=options.full)
    matrix.save({(check.id, rule) for check in everything for rule in check.rules})
    unseen = pending(chosen, matrix)
    for check in unseen:
        print(f"never seen failing: {check.id} ({', '.join(check.rules)})")
    return int(bool(unseen))


if __name__ == "__main__":
    raise SystemExit(main())
