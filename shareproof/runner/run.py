"""Runs the checks with pytest, in this process, and shows how far it is and how it ended."""

import contextlib
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fixtures.interface.capability import Capability
from fixtures.targets import UsageFault
from reports.console import COLOURS, line
from reports.results import Results
from reports.verdicts import FAULT, INTERRUPTED, USAGE
from shareproof import ROOT
from shareproof.runner.inventory import in_tier, read_checks
from shareproof.runner.options import Invocation, introduced
from shareproof.runner.outcome import PROPERTY, unpack
from spec.rule import load_rules
from spec.tiers import ALL
from spec.verdict import SEVERITY, Verdict
from suites.canary import CANARY
from suites.options import RunOptions, checked

FEW = 3  # up to this many checks are not worth the start of a worker
WORKERS = 8  # checks mostly wait for locks to expire, so there are more workers than processors
WORKERS_ELSEWHERE = 12
"""The same on somebody's cluster, where a lock may last 15 s at least and a session 45 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    code: int
    results: Results | None
    log: Path


def run_checks(options: RunOptions, workers: int | None, console: Console) -> Ended:
    """Run the checks that ``options`` select, which have an ``out``; return how it ended.

    ``workers`` are those of pytest-xdist, or None to let the number of checks decide.
    """
    checked(options)
    folder, known = ROOT / "suites" / options.suite, in_tier(load_rules(), options.tier)
    selected = [
        check
        for check in read_checks(folder, drafts=options.drafts)
        if (check.fast or not options.fast)
        and any(options.wants(rule) for rule in check.rules if rule in known)
    ]
    if not selected:
        chosen = [f"--only {','.join(options.only)}"] if options.only else []
        chosen += ["--fast"] if options.fast else []
        chosen += [f"--tier {options.tier}"] if options.tier < ALL else []
        raise UsageFault(f"No check matches {' '.join(chosen) or 'the run'}.")
    line(console, f"seed {options.seed}, {options.subject}")
    options = introduced(options)
    if workers is None:
        ours = Capability.OWN_CLUSTER in options.offers
        workers = min(WORKERS if ours else WORKERS_ELSEWHERE, len(selected))
        workers = 0 if len(selected) <= FEW else workers
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    log = out / "pytest.log"
    invocation = Invocation(options)
    with (
        log.open("w", encoding="utf-8") as sink,
        ProgressLine(console) as progress,
        contextlib.redirect_stdout(sink),
    ):
        words = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "--tb=short"]
        # Hypothesis has no part in these checks, and would double the time a worker needs to start.
        words += ["-p", "no:hypothesispytest", "-n", str(workers)]
        words += [*(["--dist", "loadscope"] if workers else []), str(folder)]
        code = int(pytest.main(words, plugins=[invocation, progress]))
    if invocation.results:
        found = invocation.results
        return Ended(code=found.run.exit_code, results=found, log=log)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    # Pytest's own exit codes are 0 to 5; without results all of them are faults but one.
    if code in {USAGE, int(pytest.ExitCode.USAGE_ERROR)}:
        raise UsageFault(f"Nothing was played: no chosen check is for {options.target}; see {log}.")
    return Ended(code=FAULT, results=None, log=log)


def moving_line(console: Console, last: str = "") -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *([TextColumn(f"{{task.fields[{last}]}}")] if last else []),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class ProgressLine:
    def __init__(self, console: Console) -> None:
        # Where checks run in this process pytest captures file descriptor 2, so progress needs a
        # descriptor of its own.
        self._screen = os.fdopen(os.dup(2), "w", encoding="utf-8", buffering=1)
        own = Console(file=self._screen, width=console.width) if console.is_terminal else console
        self._progress = moving_line(own, "counts")
        self._task = self._progress.add_task("starting the target", total=None, counts="")
        self._verdicts: dict[str, Verdict] = {}
        self._done: set[str] = set()
        self._total = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
        self._screen.close()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._expect(len(ids))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._expect(len(session.items))

    def _expect(self, number: int) -> None:
        self._total = max(self._total, number)
        self._progress.update(self._task, description="checks", total=self._total)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == PROPERTY:
                for seen in (one for one in unpack(str(value)) if one.rule != CANARY):
                    before = self._verdicts.get(seen.rule, SEVERITY[0])
                    worse = max(before, seen.verdict, key=SEVERITY.index)
                    self._verdicts[seen.rule] = worse
        if report.when == "teardown":
            counted = Counter(one.value for one in self._verdicts.values())
            counts = " ".join(f"[{COLOURS[w]}]{counted[w]} {w}[/]" for w in COLOURS if counted[w])
            new = report.nodeid not in self._done
            self._progress.update(self._task, advance=new, counts=counts)
            self._done.add(report.nodeid)
