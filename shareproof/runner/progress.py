"""Shows a run's progress on standard error, one line that moves; silent when nobody watches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from reports.console import COLOURS
from shareproof.runner.outcome import PROPERTY, unpack
from spec.verdict import SEVERITY
from suites.canary import CANARY


def moving_line(console: Console, last: str) -> Progress:
    """Return a line that moves, silent when nobody watches; ``last`` names its last field."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn(f"{{task.fields[{last}]}}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class ProgressLine:
    """A pytest plugin that watches the controller's reports go by."""

    def __init__(self, console: Console) -> None:
        self._progress = moving_line(console, "counts")
        self._task = self._progress.add_task("starting the target", total=None, counts="")
        self._verdicts: dict[str, str] = {}
        self._done: set[str] = set()
        self._total = 0

    def __enter__(self) -> ProgressLine:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._expect(len(ids))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self._expect(len(session.items))

    def _expect(self, number: int) -> None:
        """Expect some checks; second tries are a few of them."""
        self._total = max(self._total, number)
        self._progress.update(self._task, description="checks", total=self._total)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == PROPERTY:
                for seen in unpack(str(value)):
                    if seen.requirement != CANARY:
                        self._worse(seen.requirement, seen.verdict.value)
        if report.when == "teardown":
            self._progress.update(
                self._task, advance=report.nodeid not in self._done, counts=self._counts()
            )
            self._done.add(report.nodeid)

    def _worse(self, rule: str, verdict: str) -> None:
        order: list[Any] = [word.value for word in SEVERITY]
        before = self._verdicts.get(rule, order[0])
        self._verdicts[rule] = max(before, verdict, key=order.index)

    def _counts(self) -> str:
        counted = Counter(self._verdicts.values())
        return " ".join(f"[{COLOURS[w]}]{counted[w]} {w}[/]" for w in COLOURS if counted[w])
