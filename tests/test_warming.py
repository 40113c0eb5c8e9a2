"""Spark's start while a load drains: all that is tried works, and it begins with the last drain."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.sql import SparkSession

from fixtures.workload.load import DRAINING
from fixtures.workload.terms import Load
from reports.analysis import warming as spark_warming
from reports.analysis.request import Request
from reports.analysis.session import MEDIUM_ROWS, SMALL_ROWS
from reports.analysis.warming import try_on_one_row, warm
from shareproof.chaos import warming

REQUEST = Request(runs=(Path("run"),), master="local[2]")


def test_all_queries_run_on_one_row(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing that is tried fails, neither for few rows nor for many."""
    for rows in (1, SMALL_ROWS):
        (tmp_path / str(rows)).mkdir()
        (judged,) = try_on_one_row(spark, tmp_path / str(rows), rows, lambda _: None)
        assert {one.fault for one in judged.found.values()} == {""}
        assert {"timeline", "stories"} == set(judged.drawn)


def test_spark_starts_with_the_last_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """While there are loads to come, nothing is started; what is waited for is started once."""
    done: list[object] = []

    def started(_: Request, rows: int) -> Callable[[], None]:
        done.append(rows)
        return lambda: done.append("waited")

    monkeypatch.setattr(warming, "warm", started)
    loads = [Load(seconds=10, rate=100), Load(seconds=20, rate=100)]
    told: list[str] = []
    tell, wait = warming.telling(loads, REQUEST, told.append)

    tell(DRAINING)
    tell("reading the stored state")
    assert done == []
    tell(DRAINING)
    wait()

    rows = sum(int(load.seconds * load.rate) * (1 + len(load.groups)) for load in loads)
    assert done == [rows, "waited"]
    assert told == [DRAINING, "reading the stored state", DRAINING]


@pytest.mark.parametrize(
    ("request_", "rows"),
    [(REQUEST, MEDIUM_ROWS), (Request(runs=(), master="spark://127.0.0.1:1"), 1)],
)
def test_other_jvms_are_not_started_early(
    request_: Request, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Very many rows take a JVM of another kind, and a cluster is not warmed by one row."""
    monkeypatch.setattr(spark_warming, "open_session", lambda *_: pytest.fail("it was opened"))

    warm(request_, rows)()
