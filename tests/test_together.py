"""Histories judged by one set of queries: each is told what it is told alone."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.sql import SparkSession

from fixtures.history.compaction import compact
from reports.analysis import witnesses
from reports.analysis.distributions import distributions
from reports.analysis.files import History, open_history, together
from reports.analysis.judging import Found, judge
from reports.analysis.queries import breaches, by_run
from reports.analysis.reached import reached
from reports.analysis.relations import DELIVERY_PAIRS, PARTITIONS, Relation
from reports.analysis.rules import Invariant, load_invariants
from reports.analysis.session import IN_ONE_PART, configured
from reports.analysis.tables import register, unregister
from reports.analysis.timeline import Course, timelines
from spec.history import BUCKETED, TABLES
from tests.small_histories import read_cases, write_history

pytestmark = pytest.mark.timeout(900)

RULES = load_invariants()
NUMBERS = count()
ALL = tuple(TABLES)
SMALL = tuple(name for name in TABLES if name not in BUCKETED)
"""The tables that are held in memory where there are more rows than these have."""


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> list[History]:
    """The cases of two releases in a history each, and one of these twice."""
    folder = tmp_path_factory.mktemp("archive")
    cases = read_cases()
    other = min({case.version for case in cases} - {"4.4.0"})
    for version in ("4.4.0", other):
        write_history(folder / version, [case for case in cases if case.version == version])
        compact(folder / version)
    shutil.copytree(folder / "4.4.0", folder / "again")
    return [open_history(folder / name) for name in ("4.4.0", other, "again")]


def _judged(
    spark: SparkSession, histories: list[History], *, held: Collection[str]
) -> list[tuple[dict[str, Found], object, object, object]]:
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


def _told(found: dict[str, Found]) -> dict[str, tuple[object, ...]]:
    return {
        rule: (one.exercised, one.broken, one.fault, one.witness) for rule, one in found.items()
    }


def test_each_is_told_what_it_is_told_alone(spark: SparkSession, histories: list[History]) -> None:
    alone = [_judged(spark, [one], held=ALL)[0] for one in histories[:-1]]
    alone.append(alone[0])
    assert sum(one.broken > 0 for found, *_ in alone for one in found.values()) > len(RULES)

    for held in ((), SMALL, ALL):
        for one, (found, *more) in zip(alone, _judged(spark, histories, held=held), strict=True):
            assert _told(found) == _told(one[0])
            assert more == list(one[1:])


def test_witnesses_cost_no_second_pass(
    spark: SparkSession, histories: list[History], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Relation | str] = []

    def told(source: Relation | str, rules: Sequence[Invariant], *more: str) -> str:
        asked.append(source)
        return breaches(source, rules, *more)

    monkeypatch.setattr(witnesses, "breaches", told)
    _judged(spark, histories, held=ALL)

    assert "few_delivery_pairs" in asked
    assert [one.name for one in asked if isinstance(one, Relation) and one.by_record] == []


def test_histories_with_lost_buckets_that_lie_elsewhere_are_judged_alone(
    histories: list[History],
) -> None:
    first, other, again = histories
    hurt = replace(again, lost_buckets=frozenset({3}))

    assert together([first, hurt, other], here=False) == [[0, 2], [1]]
    assert together([first, hurt, other], here=True) == [[0, 1, 2]]


def test_a_history_with_lost_buckets_is_told_what_it_is_told_alone(
    spark: SparkSession, histories: list[History], tmp_path: Path
) -> None:
    first, other, _ = histories
    shutil.copytree(first.folder, tmp_path / "hurt")
    for file in _two_files(first):
        (tmp_path / "hurt" / file).write_bytes(b"gone")
    hurt = open_history(tmp_path / "hurt")
    assert len(hurt.lost_buckets) == 2

    alone = [_judged(spark, [one], held=())[0] for one in (first, hurt, other)]
    assert _told(alone[1][0]) != _told(alone[0][0])
    for held in (ALL, SMALL, ()):
        beside = _judged(spark, [first, hurt, other], held=held)
        for one, (found, *more) in zip(alone, beside, strict=True):
            assert not any(each.fault for each in found.values())
            assert _told(found) == _told(one[0])
            assert more == list(one[1:])


def _two_files(history: History) -> list[str]:
    """Return a file of each large table, of different buckets."""
    (made, *_), (*_, given) = (
        [file for file in history.manifest.files if file.table == name and file.rows]
        for name in ("produced", "deliveries")
    )
    return [made.path, given.path]


def test_a_value_of_each_run_is_found_by_halving() -> None:
    assert by_run(["7", "7", "7"]) == "7"
    assert by_run(["a", "b", "b"]) == "CASE WHEN run < 1 THEN a ELSE b END"
