"""Spark's queries: histories judged together, plans, timelines and stories, and an early start."""

import json
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

import jsonschema
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fixtures.history.compaction import MANIFEST, checksum, compact, layout
from fixtures.history.journal import Journal
from fixtures.workload.load import DRAINING
from fixtures.workload.plan import Load
from reports.analysis import warm_up as spark_warming
from reports.analysis.files import History, open_history, span, together
from reports.analysis.judge import Found, Request, judge
from reports.analysis.relations import DELIVERY_PAIRS, PARTITIONS
from reports.analysis.rules import load_invariants
from reports.analysis.session import IN_ONE_PART, MEDIUM_ROWS, SMALL_ROWS, configured
from reports.analysis.stories import Hit, stories
from reports.analysis.tables import register, unregister
from reports.analysis.timeline import Course, distributions, marks, reached, timelines
from reports.analysis.warm_up import Enough, try_on_one_row, try_on_run, warm
from reports.html import TIMELINES, TIMELINES_SCHEMA, write_timelines
from shareproof.chaos import run
from shareproof.chaos.run import recorded
from spec.history import BUCKETED, ROWS, TABLES, FaultSpan, Outcome, Phase, Produced
from tests.small_histories import Case, read_cases, write_history
from tools.histories.small import Deletion, Fetch, rows_of
from tools.histories.small import History as Small

pytestmark = pytest.mark.timeout(900)

RULES = load_invariants()
NUMBERS = count()
ALL = tuple(TABLES)
SMALL = tuple(name for name in TABLES if name not in BUCKETED)
"""The tables that are held in memory where there are more rows than these have."""


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[History]:
    folder = tmp_path_factory.mktemp("archive")
    cases = read_cases()
    other = min({case.version for case in cases} - {"4.4.0"})
    for version in ("4.4.0", other):
        write_history(folder / version, [case for case in cases if case.version == version])
        compact(folder / version)
    shutil.copytree(folder / "4.4.0", folder / "hurt")
    for file in _two_files(open_history(folder / "4.4.0")):
        (folder / "hurt" / file).write_bytes(b"gone")
    return [open_history(folder / name) for name in ("4.4.0", other, "hurt")]


def _two_files(history: History) -> list[str]:
    (made, *_), (*_, given) = (
        [file for file in history.manifest.files if file.table == name and file.rows]
        for name in ("produced", "deliveries")
    )
    return [made.path, given.path]


Judged = tuple[dict[str, Found], object, object, object]


def _judged(
    spark: SparkSession, histories: list[History], *, held: Collection[str]
) -> list[Judged]:
    database = f"together_{next(NUMBERS)}"
    with TemporaryDirectory() as room, configured(spark, IN_ONE_PART, when=held is ALL):
        relations = register(spark, histories, database, held=held, room=Path(room))
        try:
            found = judge(spark, histories, relations, RULES, lambda _: None)
            relations.need([PARTITIONS, DELIVERY_PAIRS])
            measured = distributions(spark, [0 for _ in histories])
            states = reached(spark, len(histories))
            courses = [Course(since=0, until=10**10, intervals=10) for _ in histories]
            drawn = timelines(spark, courses)
        finally:
            unregister(spark, database)
    return list(zip(found, measured, states, drawn, strict=True))


def _facts(found: dict[str, Found]) -> dict[str, tuple[object, ...]]:
    return {
        rule: (one.exercised, one.broken, one.fault, one.witness) for rule, one in found.items()
    }


@pytest.fixture(scope="module")
def alone(spark: SparkSession, histories: list[History]) -> list[Judged]:
    first, other, hurt = histories
    (one,), (second,), (lost,) = (_judged(spark, [it], held=ALL) for it in (first, other, hurt))
    assert sum(found.broken > 0 for found in [*one[0].values(), *second[0].values()]) > len(RULES)
    assert len(hurt.lost_buckets) == 2
    assert _facts(lost[0]) != _facts(one[0])
    return [one, second, lost]


@pytest.mark.parametrize("held", [(), SMALL, ALL], ids=["none", "small", "all"])
def test_each_is_told_what_it_is_told_alone(
    spark: SparkSession, histories: list[History], alone: list[Judged], held: Collection[str]
) -> None:
    for one, (found, *more) in zip(alone, _judged(spark, histories, held=held), strict=True):
        assert not any(each.fault for each in found.values())
        assert _facts(found) == _facts(one[0])
        assert more == list(one[1:])


def test_histories_with_lost_buckets_that_lie_elsewhere_are_judged_alone(
    histories: list[History],
) -> None:
    first, other, hurt = histories
    assert together([first, hurt, other], here=False) == [[0, 2], [1]]
    assert together([first, hurt, other], here=True) == [[0, 1, 2]]


# --- Nulls ------------------------------------------------------------------------------------


@pytest.mark.parametrize("statistics", [True, False])
def test_nulls_where_none_may_be_are_named(
    histories: list[History], tmp_path: Path, *, statistics: bool
) -> None:
    small = histories[0]
    shutil.copytree(small.folder, tmp_path / "hurt")
    hurt = next(one for one in small.manifest.files if one.table == "deliveries" and one.rows > 1)
    path = tmp_path / "hurt" / hurt.path
    rows = pq.read_table(path)
    last = pa.array([place < rows.num_rows - 1 for place in range(rows.num_rows)])
    holed = pc.if_else(last, rows["acquired"], None)
    place = rows.column_names.index("acquired")
    pq.write_table(
        rows.set_column(place, "acquired", holed), path, write_statistics=statistics, **layout()
    )
    manifest = small.manifest
    changed = replace(hurt, size=path.stat().st_size, crc=checksum(path))
    files = tuple(changed if one == hurt else one for one in manifest.files)
    text = replace(manifest, files=files).to_json()
    (tmp_path / "hurt" / MANIFEST).write_text(text, encoding="utf-8")

    found = open_history(tmp_path / "hurt")

    assert found.lost_buckets == {hurt.bucket}
    assert found.spoiled == (f"{path}: has rows without a value of acquired",)


# --- Timelines and stories --------------------------------------------------------------------

MS = 1_000_000
PLAIN: dict[str, Any] = {
    "lock_ms": 1000,
    "deliveries": [
        {"offset": 0, "last": 9, "at": 1000, "count": 1, "accept": 1400},
        {"offset": 10, "at": 1000, "count": 1},
        {"offset": 10, "at": 3000, "count": 2, "accept": 3100},
    ],
    "shown": [
        {"at": 1500, "spso": 10, "end": 11, "lag": 1},
        {"at": 4000, "spso": 11, "end": 11, "lag": 0, "phase": "quiet"},
    ],
    "reloads": [{"since": 2200, "until": 2600}],
}
"""Ten records that are accepted at once, and one whose lock runs out and that comes again."""

HIT = Hit(rule="INV-02", log=0, offset=10, share_partition=0, since=3000 * MS, sentence="said so")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("run") / "history"
    write_history(
        folder, [Case(share_partition=0, log=0, rule="", says="", breaks=False, plain=PLAIN)]
    )
    with Journal(folder, 1) as journal:
        journal.add(Phase("load", 0, 5000 * MS))
        journal.add(FaultSpan(0, "kill-leader", "broker 2", 1800 * MS, 2500 * MS, "it was dead"))
    compact(folder)
    return open_history(folder)


@pytest.fixture(scope="module")
def registered(spark: SparkSession, history: History) -> Iterator[None]:
    register(spark, [history], "told").need([DELIVERY_PAIRS])
    yield
    unregister(spark, "told")


@pytest.mark.usefixtures("registered")
def test_each_moment_has_what_happened_in_it(spark: SparkSession, history: History) -> None:
    since, until = span(history)
    course = Course(since=since, until=until, intervals=5)
    (drawn,) = timelines(spark, [course])

    assert (since, until, drawn["step"], drawn["bins"]) == (0, 5000 * MS, 1.0, 6)
    (group,) = drawn["groups"]
    assert group["acquired"] == [0, 11, 0, 1, 0, 0]
    assert group["again"] == [0, 0, 0, 1, 0, 0]
    assert group["finished"] == [0, 10, 0, 1, 0, 0]
    assert group["in_flight"] == [0, 1, 0, 0, 0, 0]
    assert drawn["produced"] == [11, 0, 0, 0, 0, 0]
    assert drawn["response_ms"]["median"] == [None, 1.0, None, 1.0, None, None]
    assert [place["seen"] for place in drawn["partitions"]] == [[(1.0, 10, 1), (4.0, 11, 0)]]
    assert drawn["faults"] == [
        {"kind": "kill-leader", "subject": "broker 2", "since": 1.8, "until": 2.5}
    ]
    assert marks([HIT], since) == [{"rule": "INV-02", "at": 3.0, "text": "said so"}]
    json.dumps(drawn)


@pytest.mark.usefixtures("registered")
def test_a_record_has_its_story(spark: SparkSession) -> None:
    ((story,),) = stories(spark, [[HIT]], [0])
    assert (story["record"], story["rules"]) == ("topic-0-0 offset 10", ["INV-02"])
    assert story["steps"] == [
        [0.0, "produced by producer 1, response OK after 1 ms"],
        [1.0, "acquired by m1, delivery 1, locked for 1000 ms"],
        [1.8, "fault: kill-leader of broker 2 begins"],
        [2.0, "the lock of m1 has run out by now, unacknowledged"],
        [2.2, "the share-partition is reloaded within 0.4 s from here (planted)"],
        [2.5, "fault: kill-leader is healed"],
        [3.0, "acquired by m2, delivery 2, locked for 1000 ms"],
        [3.1, "accepted by m2, response OK after 1 ms"],
    ]
    ((most,),) = stories(spark, [[]], [0])  # the most delivered record has one without a rule
    assert (most["record"], most["rules"]) == ("topic-0-0 offset 10", [])


@pytest.mark.usefixtures("registered")
def test_what_is_written_is_as_its_schema_says(
    spark: SparkSession, history: History, tmp_path: Path
) -> None:
    since, until = span(history)
    course = Course(since=since, until=until, intervals=5)
    drawn = {
        "timeline": timelines(spark, [course])[0] | {"marks": marks([HIT], since)},
        "stories": stories(spark, [[HIT]], [since])[0],
    }
    empty: dict[str, Any] = {"timeline": {}, "stories": []}
    write_timelines(tmp_path, {"told/history": drawn, "without/length": empty})
    written = json.loads((tmp_path / TIMELINES).read_text(encoding="utf-8"))
    schema = jsonschema.Draft202012Validator(
        json.loads(TIMELINES_SCHEMA.read_text(encoding="utf-8"))
    )

    schema.validate(written)
    written["runs"]["told/history"]["timeline"]["marks"][0]["rule"] = 2
    with pytest.raises(jsonschema.ValidationError, match="2 is not of type 'string'"):
        schema.validate(written)


# --- Spark's start ----------------------------------------------------------------------------

REQUEST = Request(runs=(Path("run"),), master="local[2]")


def test_all_queries_run_on_one_row(spark: SparkSession, tmp_path: Path) -> None:
    for rows in (1, SMALL_ROWS):
        (tmp_path / str(rows)).mkdir()
        (judged,) = try_on_one_row(spark, tmp_path / str(rows), rows, lambda _: None)
        assert {one.fault for one in judged.found.values()} == {""}
        assert {"timeline", "stories"} == set(judged.drawn)


def _under_way(run: Path) -> Path:
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
    assert not (history / MANIFEST).exists()


def test_without_anything_recorded_there_is_nothing_to_try(tmp_path: Path) -> None:
    assert not recorded(tmp_path / "missing", tmp_path / "made", Event())
    history = _under_way(tmp_path / "now")
    hurried = Event()
    hurried.set()
    with pytest.raises(Enough):  # nobody waits for it
        recorded(tmp_path, tmp_path / "made", hurried)
    shutil.rmtree(history / "journal" / "0000")
    (history / "run.json").unlink()
    assert not recorded(tmp_path, tmp_path / "made", Event())


@pytest.mark.parametrize("early", [False, True])
def test_spark_starts_near_the_end_of_the_last_load(
    monkeypatch: pytest.MonkeyPatch, *, early: bool
) -> None:
    done: list[object] = []

    def started(_: Request, rows: int, __: object) -> Callable[[], None]:
        done.append(rows)
        return lambda: done.append("waited")

    monkeypatch.setattr(run, "warm", started)
    loads = [Load(seconds=10, rate=100), Load(seconds=10 if early else 60, rate=100)]
    rows = sum(int(load.seconds * load.rate) * (1 + len(load.groups)) for load in loads)
    logged: list[str] = []
    log, wait = run.starting(loads, REQUEST, logged.append)

    lines = ["producing for 10 s", DRAINING, "reading the stored state", "producing for 60 s"]
    for line in lines:
        assert done == []
        log(line)
    deadline = time.monotonic() + 10
    while early and not done and time.monotonic() < deadline:
        time.sleep(0.01)
    assert done == ([rows] if early else [])
    log(DRAINING)
    wait()

    assert done == [rows, "waited"]
    assert logged == [*lines, DRAINING]


@pytest.mark.parametrize(
    ("request_", "rows"),
    [(REQUEST, MEDIUM_ROWS), (Request(runs=(), master="spark://127.0.0.1:1"), 1)],
)
def test_other_jvms_are_not_started_early(
    request_: Request, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_warming, "open_session", lambda *_: pytest.fail("it was opened"))
    warm(request_, rows, lambda *_: False)()


def test_a_cut_batch_is_known_though_its_response_got_lost(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Seed 20261220 of a night: such records were said to lie below the batch, and the run was red.
    times = {"sent": 30, "received": 40}
    fetch = Fetch(op=1, member=1, node=1, counts=((1, 1), (2, 1)), **times)
    events = (Deletion(sent=10, received=20, before=2), fetch)
    with Journal(tmp_path, 0) as journal:
        history = Small(records=4, limit=5, lock_ms=1000, drained=False, events=events)
        for table, row in rows_of(0, 0, history):
            made = ROWS[table]._make(row)
            if isinstance(made, Produced):
                made = made._replace(first=-1, received=-1, outcome=int(Outcome.UNKNOWN))
            journal.add(made)
    (tmp_path / "run.json").write_text(json.dumps({"target": {"version": "4.4.0"}}))
    compact(tmp_path)
    rule = next(rule for rule in RULES if rule.id == "INV-36")
    register(spark, [open_history(tmp_path)], "cut").need([rule.over])
    query = f"SELECT offset, cut FROM {rule.over.name} WHERE {rule.breach}"  # noqa: S608
    assert [tuple(row) for row in spark.sql(query).collect()] == [(1, True)]
    unregister(spark, "cut")
