"""Runs the checks with pytest, in this process, and shows how the run ended."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from fixtures.interface.capability import Capability
from fixtures.targets import UsageFault
from reports.console import line, show
from reports.results import Results
from reports.verdicts import FAULT, USAGE
from shareproof import ROOT
from shareproof.runner.adapters import introduced
from shareproof.runner.inventory import Check, read_checks
from shareproof.runner.options import Commission
from shareproof.runner.progress import ProgressLine
from spec.requirement import load_requirements
from suites.options import RunOptions, checked

FEW = 3
"""Up to this many checks are not worth the start of a worker."""

WORKERS = 8
"""Checks mostly wait for locks to expire, so there are more workers than processors."""

WORKERS_ELSEWHERE = 12
"""The same on somebody's cluster, where a lock may last 15 s at least and a session 45 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended; ``results`` is None if there are none."""

    code: int
    results: Results | None
    log: Path


def run_checks(options: RunOptions, workers: int | None, console: Console) -> Ended:
    """Run the checks that ``options`` select and return how it ended.

    Args:
        options: the run's choices; ``out`` must be given.
        workers: number of pytest-xdist workers, or None to let the number of checks decide.
        console: where progress goes.

    Raises:
        UsageFault: the options make no sense, or select nothing.
        EnvironmentFault: there is no client to test.
    """
    checked(options)
    selected = _selected(options)
    if not selected:
        raise UsageFault(f"No check matches {_selection(options)}.")
    line(console, f"seed {options.seed}, {options.subject}")
    options = introduced(options)
    if workers is None:
        ours = Capability.OWN_CLUSTER in options.offers
        workers = min(WORKERS if ours else WORKERS_ELSEWHERE, len(selected))
        workers = 0 if len(selected) <= FEW else workers
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    log = out / "pytest.log"
    commission = Commission(options)
    with (
        log.open("w", encoding="utf-8") as sink,
        _watching(console) as progress,
        contextlib.redirect_stdout(sink),
    ):
        code = int(pytest.main(_arguments(options, workers), plugins=[commission, progress]))
    return _ended(code, commission.results, log)


def show_end(ended: Ended, console: Console) -> None:
    if ended.results:
        show(ended.results, console)
    else:
        line(console, f"The run produced no results; see {ended.log}.")


def _ended(code: int, results: Results | None, log: Path) -> Ended:
    if results:
        return Ended(code=results.run.exit_code, results=results, log=log)
    # Pytest's own exit codes are 0 to 5; without results all of them are faults but one.
    usage = code in {USAGE, int(pytest.ExitCode.USAGE_ERROR)}
    return Ended(code=USAGE if usage else FAULT, results=None, log=log)


@contextlib.contextmanager
def _watching(console: Console) -> Iterator[ProgressLine]:
    # Where checks run in this process pytest captures file descriptor 2, so progress needs a
    # descriptor of its own.
    with os.fdopen(os.dup(2), "w", encoding="utf-8", buffering=1) as screen:
        own = Console(file=screen, width=console.width) if console.is_terminal else console
        with ProgressLine(own) as line:
            yield line


def _arguments(options: RunOptions, workers: int) -> list[str]:
    """Return what pytest is told; the run's own options travel in the commission."""
    arguments = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
    # Hypothesis has no part in these checks, and would double the time a worker needs to start.
    arguments += ["-p", "no:hypothesispytest", "--tb=short", "-n", str(workers)]
    if workers:
        arguments += ["--dist", "loadscope"]
    return [*arguments, str(ROOT / "suites" / options.suite)]


def _selected(options: RunOptions) -> list[Check]:
    known = load_requirements()
    return [
        check
        for check in read_checks(ROOT / "suites" / options.suite, drafts=options.drafts)
        if (check.fast or not options.fast)
        and any(options.wants(rule) for rule in check.rules if rule in known)
    ]


def _selection(options: RunOptions) -> str:
    chosen = [f"--only {','.join(options.only)}"] if options.only else []
    return " ".join([*chosen, *(["--fast"] if options.fast else [])]) or "the run"
