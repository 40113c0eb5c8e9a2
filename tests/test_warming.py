"""Spark's start: all that is tried works, and it begins near the end of the last load."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.sql import SparkSession

from fixtures.history.compaction import is_compacted
from fixtures.workload.load import DRAINING
from fixtures.workload.terms import Load
from reports.analysis import warming as spark_warming
from reports.analysis.request import Request
from reports.analysis.session import MEDIUM_ROWS, SMALL_ROWS
from reports.analysis.warming import Enough, try_on_one_row, try_on_run, warm
from shareproof.chaos import warming
from shareproof.chaos.warming import recorded
from tests.small_histories import read_cases, write_history

REQUEST = Request(runs=(Path("run"),), master="local[2]")


def test_all_queries_run_on_one_row(spark: SparkSession, tmp_path: Path) -> None:
    for rows in (1, SMALL_ROWS):
        (tmp_path / str(rows)).mkdir()
        (judged,) = try_on_one_row(spark, tmp_path / str(rows), rows, lambda _: None)
        assert {one.fault for one in judged.found.values()} == {""}
        assert {"timeline", "stories"} == set(judged.drawn)


def _under_way(run: Path) -> Path:
    """Return the history of a run under way: its journals have no end yet, one is half written."""
    history = run / "history"
    history.mkdir(parents=True)
    write_history(history, [case for case in read_cases() if case.rule == "INV-08"])
    (journal,) = (history / "journal").iterdir()
    for file in journal.glob("*.arrows"):
        file.write_bytes(file.read_bytes()[: -20 if file.stem == "clocks" else -8])
    return history


def test_what_a_run_recorded_so_far_is_tried(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "out" / "earlier" / "history" / "journal").mkdir(parents=True)
    history = _under_way(tmp_path / "out" / "now")

    for rows in (1, SMALL_ROWS):
        made = tmp_path / str(rows)
        assert recorded(tmp_path / "out", made, Event())
        (judged,) = try_on_run(spark, made, rows, lambda _: None)
        assert sum(file.rows for file in judged.history.manifest.files) >= rows
        assert judged.found["INV-08"].exercised
        assert {one.fault for one in judged.found.values()} == {""}
    assert not is_compacted(history)


def test_without_anything_recorded_there_is_nothing_to_try(tmp_path: Path) -> None:
    assert not recorded(tmp_path / "missing", tmp_path / "made", Event())
    shutil.rmtree(_under_way(tmp_path / "now") / "journal" / "0000")
    (tmp_path / "now" / "history" / "run.json").unlink()
    assert not recorded(tmp_path, tmp_path / "made", Event())


def test_nobody_waits_for_what_was_recorded_so_far(tmp_path: Path) -> None:
    _under_way(tmp_path / "now")
    hurried = Event()
    hurried.set()
    with pytest.raises(Enough):
        recorded(tmp_path, tmp_path / "made", hurried)


@pytest.mark.parametrize("early", [False, True])
def test_spark_starts_near_the_end_of_the_last_load(
    monkeypatch: pytest.MonkeyPatch, *, early: bool
) -> None:
    done: list[object] = []

    def started(_: Request, rows: int, __: object) -> Callable[[], None]:
        done.append(rows)
        return lambda: done.append("waited")

    monkeypatch.setattr(warming, "warm", started)
    loads = [Load(seconds=10, rate=100), Load(seconds=10 if early else 60, rate=100)]
    rows = sum(int(load.seconds * load.rate) * (1 + len(load.groups)) for load in loads)
    told: list[str] = []
    tell, wait = warming.telling(loads, REQUEST, told.append)

    lines = ["producing for 10 s", DRAINING, "reading the stored state", "producing for 60 s"]
    for line in lines:
        assert done == []
        tell(line)
    deadline = time.monotonic() + 10
    while early and not done and time.monotonic() < deadline:
        time.sleep(0.01)
    assert done == ([rows] if early else [])
    tell(DRAINING)
    wait()

    assert done == [rows, "waited"]
    assert told == [*lines, DRAINING]


@pytest.mark.parametrize(
    ("request_", "rows"),
    [(REQUEST, MEDIUM_ROWS), (Request(runs=(), master="spark://127.0.0.1:1"), 1)],
)
def test_other_jvms_are_not_started_early(
    request_: Request, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_warming, "open_session", lambda *_: pytest.fail("it was opened"))

    warm(request_, rows, lambda *_: False)()
