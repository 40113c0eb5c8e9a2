"""See every check fail: run the broker checks behind one lie after the other.

``python -m tools.falsify`` starts a real cluster, puts each alteration of
:mod:`fixtures.proxies.alterations` in front of it in turn, and runs the checks that have not yet
been seen failing. What made which check report a broken rule is recorded in
``evidence/falsified.json``; ``tests/test_falsified.py`` refuses a check without an entry.

The checks of a stage, which share a cluster that is dear to start, are played behind all lies on
one such cluster; see :mod:`tools.lies`.

Only ``fail`` counts. A check that a lie leaves undecided has not rejected anything.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fixtures.proxies.alterations import ALTERATIONS
from fixtures.proxies.altering import HONEST
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from reports.reading import read
from reports.results import Results
from shareproof.runner.inventory import Check, read_checks
from shareproof.runner.scheduling import scope
from tools.falsified import RECORD, Matrix, Pair

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = "0.25"
"""A broken broker keeps many checks waiting to the deadline; here that is the expected outcome."""

MOST_WORKERS = 12


def run_behind(name: str, target: str, checks: Sequence[str]) -> Results:
    """Run checks behind one alteration and return the run's results."""
    hands = min(MOST_WORKERS, len(checks))
    with tempfile.TemporaryDirectory(prefix="shareproof-falsify-") as out:
        more = ["-n", str(hands if hands > 1 else 0), "--dist", "loadscope", "--out", out]
        command = _pytest(f"altered:{name}@{target}", [*more, *checks])
        subprocess.run(command, **_surroundings(), check=False)
        results = Path(out) / "results.json"
        if not results.exists():
            raise SystemExit(f"{name}: the run left no results; see: {' '.join(command)}")
        return read(results)


def play(checks: Sequence[Check], target: str, names: Sequence[str], *, full: bool) -> None:
    """Play the checks of one stage behind one lie after the other, on one cluster."""
    more = ["-n", "0", "-p", "tools.lies", "--lies", ",".join(names)]
    more += ["--full"] if full else []
    command = _pytest(f"altered:{HONEST.name}@{target}", [*more, *(c.id for c in checks)])
    subprocess.run(command, **_surroundings(), check=False)


def _pytest(target: str, more: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "--target", target, "--brokers", "1"]
    return [*command, "--drafts", "--profile", "apache-kafka", *more]


def _surroundings() -> dict[str, Any]:
    environment = os.environ | {"SHAREPROOF_PATIENCE": PATIENCE}
    return {"cwd": ROOT, "env": environment, "stdout": subprocess.DEVNULL}


def _failures(results: Results) -> Iterator[Pair]:
    """Yield the node id and the rule of each check that reported its rule broken."""
    for rule in results.requirements:
        for check in rule.checks:
            if check.verdict == "fail":
                yield check.check, rule.id


def sweep(
    matrix: Matrix, checks: Sequence[Check], target: str, names: Sequence[str], *, full: bool
) -> None:
    """Put one lie after the other in front of a target."""
    for name in names:
        wanted = list(checks) if full else matrix.pending(checks)
        if not wanted:
            return
        results = run_behind(name, target, [check.id for check in wanted])
        new = sum([matrix.add(check, rule, name) for check, rule in _failures(results)])
        matrix.save()
        left = len(matrix.pending(checks))
        print(f"{name}: {len(wanted)} checks, {new} first failures, {left} left", flush=True)


def sweep_stages(
    matrix: Matrix, checks: Sequence[Check], names: Sequence[str], *, full: bool
) -> None:
    """Put one lie after the other in front of the cluster of each stage."""
    told = [name for name in names if not ALTERATIONS[name].properties]
    for stage in dict.fromkeys(scope(check.id) for check in checks):
        here = [check for check in checks if scope(check.id) == stage]
        wanted = here if full else matrix.pending(here)
        if wanted and told:
            play(wanted, DEFAULT_TARGET, told, full=full)
            matrix.kills = Matrix.load().kills
        sweep(matrix, here, DEFAULT_TARGET, [n for n in names if n not in told], full=full)


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
    staged = [check for check in chosen if scope(check.id) != check.id]
    solo = [check for check in chosen if check.solo and scope(check.id) == check.id]
    # A cluster that runs already cannot be made to lie by its own configuration.
    told = [name for name in names if not ALTERATIONS[name].properties]
    if options.target:
        sweep(matrix, shared, options.target, told, full=options.full)
    elif shared:
        cluster = open_target(DEFAULT_TARGET, TargetOptions(brokers=3))
        cluster.start()
        try:
            address = ",".join(cluster.info.bootstrap)
            sweep(matrix, shared, f"external:{address}", told, full=options.full)
        finally:
            cluster.stop()
    sweep(matrix, solo, DEFAULT_TARGET, names, full=options.full)
    sweep_stages(matrix, staged, names, full=options.full)
    matrix.save()
    unseen = matrix.pending(chosen)
    for check in unseen:
        print(f"never seen failing: {check.id} ({', '.join(check.rules)})")
    return int(bool(unseen))


if __name__ == "__main__":
    raise SystemExit(main())
