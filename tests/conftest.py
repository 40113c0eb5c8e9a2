"""What tests were not run, and why: counted at the end, for people and for tox's table."""

from __future__ import annotations

import os
from collections import Counter

import pytest

from fixtures.targets.optional import RECORD_VARIABLE, not_run

# Tests call what records for tox, too; only the run itself may.
_RECORD = os.environ.pop(RECORD_VARIABLE, "")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what was skipped, by reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    counted = Counter(_reason(report) for report in skipped)
    for reason, count in sorted(counted.items()):
        whole = not terminalreporter.stats.keys() & {"passed", "failed", "error"}
        tests = f"{count} test{'s' if count > 1 else ''}"
        not_run(tests, reason, whole=whole, record=_RECORD)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    told = report.longrepr
    reason = told[2] if isinstance(told, tuple) else str(told)
    return reason.removeprefix("Skipped: ")
