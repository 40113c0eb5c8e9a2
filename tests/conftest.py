"""What all tests share: the order in which workers take modules, a Spark, and what was not run."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.targets.doctor import RECORD_VARIABLE, not_run
from tests.shell import Shell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests call what records for tox, too; only the run itself may.
_RECORD = os.environ.pop(RECORD_VARIABLE, "")

# What a shell starts in the background ignores SIGINT, and so would all that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

LONGEST = (
    *("spark", "storage", "authorizer", "app", "histories", "kafka", "reach", "credentials"),
    *("runner", "findings", "analysis", "campaign", "started_targets", "nights"),
)
"""The modules that take longest; whoever is handed one of them last keeps the others waiting."""
SPARK = ("judges", "queries")
"""The modules that ask the Spark of their process: one worker has them all."""


def _scope(nodeid: str) -> str:
    module = nodeid.partition("::")[0].rpartition("/test_")[2].removesuffix(".py")
    return "spark" if module in SPARK else module


def _rank(item: pytest.Item) -> int:
    scope = _scope(item.nodeid)
    return LONGEST.index(scope) if scope in LONGEST else len(LONGEST)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_rank)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Hand out whole modules, as what they set up is dear, in the order above."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415  # pytest rewrites it first

    class ByModule(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    config.option.loadscopereorder = False
    return ByModule(config, log)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from reports.analysis.session import SMALL, open_session  # noqa: PLC0415  # it may be missing

    session = open_session("local[2]", "1g", SMALL)
    yield session
    session.stop()


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    counted = Counter(_reason(report) for report in skipped)
    for reason, count in sorted(counted.items()):
        whole = not terminalreporter.stats.keys() & {"passed", "failed", "error"}
        tests = f"{count} test{'s' if count > 1 else ''}"
        not_run(tests, reason, whole=whole, record=_RECORD)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    failure = report.longrepr
    reason = failure[2] if isinstance(failure, tuple) else str(failure)
    return reason.removeprefix("Skipped: ")
