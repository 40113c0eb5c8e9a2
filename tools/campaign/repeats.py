"""Trust by repetition: the same certification again and again, each time with another seed.

``python -m tools.repeat --runs 20`` certifies the target with seeds 1 to 20 and names every rule
whose verdict was not the same in all of them. A referee that changes its mind is worse than none:
a new check is only trusted after it came through this.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from fixtures.targets import DEFAULT_TARGET
from reports.reading import read
from reports.results import Results


def certify(target: str, seed: int, out: Path, rest: list[str]) -> Results:
    """Run one certification and return its results."""
    command = [sys.executable, "-m", "shareproof", "broker", "--target", target]
    command += ["--seed", str(seed), "--out", str(out), *rest]
    with (out.parent / f"{out.name}.log").open("wb") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
    if not (out / "results.json").exists():
        raise SystemExit(f"seed {seed} left no results; see {out}.log")
    return read(out)


def verdicts(results: Results) -> dict[str, str]:
    """Return the verdict of each rule."""
    return {rule.id: rule.verdict for rule in results.requirements}


def executions(results: Results) -> int:
    """Return how many checks ran."""
    return len({check.check for rule in results.requirements for check in rule.checks})


def differing(runs: list[Results]) -> dict[str, Counter[str]]:
    """Return the rules whose verdict is not the same in all runs, with how often each was seen."""
    seen = [verdicts(results) for results in runs]
    rules = sorted({rule for run in seen for rule in run})
    counted = {rule: Counter(run.get(rule, "missing") for run in seen) for rule in rules}
    return {rule: counter for rule, counter in counted.items() if len(counter) > 1}


def main() -> int:
    """Repeat and compare; exit code 1 when a verdict differs."""
    parser = argparse.ArgumentParser(description="Repeat a certification and compare verdicts.")
    parser.add_argument("--target", default=DEFAULT_TARGET)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep every run's directory below this one")
    options, rest = parser.parse_known_args()
    folder = options.out or Path(tempfile.mkdtemp(prefix="shareproof-repeat-"))
    folder.mkdir(parents=True, exist_ok=True)
    runs: list[Results] = []
    for seed in range(options.first_seed, options.first_seed + options.runs):
        runs.append(certify(options.target, seed, (folder / f"seed-{seed}").resolve(), rest))
        last = runs[-1]
        print(
            f"seed {seed}: exit {last.run.exit_code}, {last.run.seconds:.0f} s, "
            f"{executions(last)} checks, {dict(last.summary)}",
            flush=True,
        )
    print(f"{sum(map(executions, runs))} check executions in {len(runs)} runs; see {folder}")
    changed = differing(runs)
    for rule, counter in changed.items():
        print(f"{rule}: {dict(counter)}")
    return int(bool(changed))


if __name__ == "__main__":
    raise SystemExit(main())
