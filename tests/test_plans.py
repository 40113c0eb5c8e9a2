"""Spark's plans of large histories: no record is moved, and what is never null is known to be."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.sql import SparkSession

from fixtures.history.compaction import MANIFEST, checksum, compact, layout
from reports.analysis.files import History, open_history
from reports.analysis.queries import patterns
from reports.analysis.relations import DELIVERY_PAIRS, RECORDS_OF_LOGS, Relation
from reports.analysis.rules import by_relation, load_invariants
from reports.analysis.session import COMPILED, configured
from reports.analysis.tables import register, unregister
from spec.history import BUCKETED, OPTIONAL, TABLES
from tests.small_histories import read_cases, write_history

RULES = by_relation(load_invariants())
NUMBERS = count()
LARGE = {"spark.sql.autoBroadcastJoinThreshold": "100", "spark.sql.shuffle.partitions": "4"}
"""What Spark takes these histories for: larger than what it sends around by itself."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> History:
    """A small history."""
    folder = tmp_path_factory.mktemp("plans") / "told"
    write_history(folder, [case for case in read_cases() if case.version == "4.4.0"])
    compact(folder)
    return open_history(folder)


def _plan(spark: SparkSession, histories: list[History], relation: Relation) -> str:
    database = f"plans_{next(NUMBERS)}"
    with configured(spark, LARGE, when=True):
        register(spark, histories, database).need([relation])
        try:
            query = spark.sql(patterns(RULES[relation]))
            return str(query._jdf.queryExecution().executedPlan())
        finally:
            unregister(spark, database)


def _ways(plan: str) -> Iterator[list[str]]:
    """Yield what each scan of records goes through, from the scan to the result."""
    lines = [re.fullmatch(r"([ :+-]*)(.*)", line) for line in plan.splitlines()]
    told = [(len(line[1]), line[2]) for line in lines if line]
    for place, (depth, text) in enumerate(told):
        if "FileScan" in text and "offset#" in text:
            way, above = [], depth
            for indent, step in reversed(told[:place]):
                if indent < above:
                    way.append(step)
                    above = indent
            if not any(step.startswith("InMemoryRelation") for step in way):
                yield way


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("relation", [DELIVERY_PAIRS, RECORDS_OF_LOGS], ids=lambda one: one.name)
def test_no_record_is_moved(
    spark: SparkSession, told: History, relation: Relation, runs: int
) -> None:
    """What is joined to records is sent to them, however large Spark takes it for.

    Spark moved and sorted all records of 360 million events to join those of which nobody knows
    whether they are stored, and those of every archive to join the logs: half of its time.
    """
    ways = list(_ways(_plan(spark, [told] * runs, relation)))

    assert len(ways) == len(BUCKETED.keys() & (relation.reads | {"deliveries"}))
    for way in ways:
        # One exchange is left, of the counts of each part.
        assert sum("Exchange" in step for step in way) == 1
        assert sum("SortMergeJoin" in step for step in way) == (relation is RECORDS_OF_LOGS)
        if runs == 1:
            assert not [step for step in way if re.match(r"(\*\(\d+\) )?(Sort \[|Window)", step)]
    # The layout of the files spares Spark a hash table of all records, too.
    by_order = any("SortAggregate" in step for way in ways for step in way)
    assert by_order == (runs == 1 and relation is RECORDS_OF_LOGS)


def test_what_is_never_null_is_not_looked_up_among_nulls(
    spark: SparkSession, told: History
) -> None:
    database = f"plans_{next(NUMBERS)}"
    register(spark, [told], database)
    try:
        for name in BUCKETED:
            known = {field.name: field.nullable for field in spark.table(name).schema}
            assert known == {one: one in OPTIONAL for one in [*TABLES[name].names, "run"]}
        asked = spark.sql("SELECT count(*) FROM deliveries WHERE kind = 2 AND count > 1")
        assert "GreaterThan(count,1)" in str(asked._jdf.queryExecution().executedPlan())
    finally:
        unregister(spark, database)


@pytest.mark.parametrize("statistics", [True, False])
def test_nulls_where_none_may_be_are_named(
    told: History, tmp_path: Path, *, statistics: bool
) -> None:
    shutil.copytree(told.folder, tmp_path / "hurt")
    hurt = next(one for one in told.manifest.files if one.table == "deliveries" and one.rows > 1)
    path = tmp_path / "hurt" / hurt.path
    rows = pq.read_table(path)
    last = pa.array([place < rows.num_rows - 1 for place in range(rows.num_rows)])
    holed = pc.if_else(last, rows["acquired"], None)
    place = rows.column_names.index("acquired")
    pq.write_table(
        rows.set_column(place, "acquired", holed), path, write_statistics=statistics, **layout()
    )
    manifest = told.manifest
    changed = replace(hurt, size=path.stat().st_size, crc=checksum(path))
    files = tuple(changed if one == hurt else one for one in manifest.files)
    text = replace(manifest, files=files).to_json()
    (tmp_path / "hurt" / MANIFEST).write_text(text, encoding="utf-8")

    found = open_history(tmp_path / "hurt")

    assert found.lost_buckets == {hurt.bucket}
    assert found.spoiled == (f"{path}: has rows without a value of acquired",)


def test_the_planner_and_tasks_compile_a_query_once(spark: SparkSession) -> None:
    with configured(spark, COMPILED, when=True):
        compiled = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics  # type: ignore[union-attr]
        counts = []
        for number in range(20_261_125, 20_261_127):
            before = compiled.METRIC_COMPILATION_TIME().getCount()
            spark.range(10).selectExpr(f"id + {number}").where(f"id % {number} = 3").collect()
            counts.append(compiled.METRIC_COMPILATION_TIME().getCount() - before)
    assert counts[1] == 1
