"""Runs of checks under pytest, in a process of their own, and what their results say."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports.reading import read
from reports.results import Results
from spec.verdict import EnvironmentFault

ROOT = Path(__file__).parents[2]
MOST_WORKERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a run said of one rule by one check."""

    check: str
    rule: str
    verdict: str
    reason: str


def command(target: str, more: Iterable[str], brokers: int = 1) -> list[str]:
    """Return the command that runs checks; drafts run, too."""
    pytest = [sys.executable, "-m", "pytest", "-q", "--target", target, "--brokers", str(brokers)]
    return [*pytest, "--drafts", "--once", *more]


def call(words: Sequence[str], patience: float = 1) -> None:
    """Run a command; ``patience`` below 1 shortens the deadlines that a broken broker runs into."""
    environment = os.environ | {"SHAREPROOF_PATIENCE": f"{patience:g}"}
    subprocess.run(words, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=False)


def results(
    target: str, checks: Sequence[str], *, patience: float = 1, brokers: int = 1, seed: int = 0
) -> Results:
    """Run checks, several at a time, and return the run's results.

    Raises:
        EnvironmentFault: the run left none.
    """
    hands = min(MOST_WORKERS, len(checks))
    with tempfile.TemporaryDirectory(prefix="shareproof-campaign-") as out:
        more = ["-n", str(hands if hands > 1 else 0), "--dist", "loadscope", "--out", out]
        more += ["--seed", str(seed)] if seed else []
        words = command(target, [*more, *checks], brokers)
        call(words, patience)
        if not (Path(out) / "results.json").exists():
            raise EnvironmentFault(f"the run left no results: {' '.join(words)}")
        return read(Path(out))


def seen(found: Results) -> Iterator[Seen]:
    """Yield what each check said of each rule."""
    for rule in found.requirements:
        for one in rule.checks:
            yield Seen(
                check=one.check.partition("[")[0],
                rule=rule.id,
                verdict=one.verdict,
                reason=one.reason,
            )
