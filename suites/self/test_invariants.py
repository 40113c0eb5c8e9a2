"""Both sides of every invariant: it accepts the small history that is right, rejects the wrong one.

All cases are judged as one history, so that a planted violation must be found in its own partition,
by its own rule, and by no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.sql import SparkSession

from fixtures.history.compaction import compact
from reports.analysis.files import open_history
from reports.analysis.rules import Invariant, load_invariants, parse
from reports.analysis.session import SMALL, open_session, register, unregister
from spec.history import bucket_of
from spec.requirement import Honesty, SpecError, load_requirements
from suites.self.small_histories import Case, read_cases, write_history

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.xdist_group("spark"),
]

CASES = read_cases()
RULES = {rule.id: rule for rule in load_invariants()}
Verdicts = dict[str, tuple[set[int], set[int]]]
"""For each rule the share-partitions or requests that exercised it and those that broke it."""


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A small Spark in this process."""
    session = open_session("local[2]", "1g", SMALL)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def verdicts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Verdicts]]:
    """What was found in the cases of each release; those of 4.4.0 stay registered."""
    found: dict[str, Verdicts] = {}
    for version in sorted({case.version for case in CASES}):
        folder = tmp_path_factory.mktemp("cases") / "history"
        write_history(folder, [case for case in CASES if case.version == version])
        compact(folder)
        if found:
            unregister(spark, f"cases_{len(found)}")
        register(spark, open_history(folder), f"cases_{len(found) + 1}")
        found[version] = {rule.id: _places(spark, rule) for rule in RULES.values()}
    yield found
    unregister(spark, f"cases_{len(found)}")


def _places(spark: SparkSession, rule: Invariant) -> tuple[set[int], set[int]]:
    query = f"""
        SELECT coalesce(queue, offset) AS place, max(broken) AS broken
        FROM ({rule.sql}) GROUP BY 1
    """  # noqa: S608
    rows = spark.sql(query).collect()
    return {row.place for row in rows}, {row.place for row in rows if row.broken}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_sides(case: Case, verdicts: dict[str, Verdicts]) -> None:
    """A right history breaks no rule and exercises its own; a wrong one breaks just its own."""
    found = verdicts[case.version]
    exercised = {rule for rule, (places, _) in found.items() if case.queues & places}
    broken = {rule for rule, (_, places) in found.items() if case.queues & places}

    assert case.rule in exercised
    assert broken == ({case.rule} if case.breaks else set())


def test_every_invariant_has_both_sides() -> None:
    """No rule is judged that was never seen to accept and to reject."""
    accepted = {case.rule for case in CASES if not case.breaks}
    rejected = {case.rule for case in CASES if case.breaks}

    assert RULES.keys() - accepted == set()
    assert RULES.keys() - rejected == set()


def test_invariants_are_rules_of_the_specification() -> None:
    """Each file's id and level are those of a rule that is not declared untested."""
    rules = load_requirements()

    assert [r.id for r in RULES.values() if r.level is not rules[r.id].level] == []
    assert [r for r in RULES if rules[r].honesty is Honesty.UNTESTED] == []


def test_a_file_must_say_what_it_is() -> None:
    """A file without its id or its sentence is refused."""
    with pytest.raises(SpecError, match="level, source"):
        parse("-- id: INV-01\nSELECT 1", "x.sql")
    with pytest.raises(SpecError, match="sentence"):
        parse("-- id: INV-01\n-- level: MUST\n-- source: KIP\nSELECT 1", "x.sql")


def test_the_buckets_are_those_of_spark(spark: SparkSession) -> None:
    """Our hash of a log is Spark's own, for small and large and negative numbers."""
    logs = [0, 1, 2, 7, 1000, 2**31 - 1, -1, -(2**31)]
    values = ", ".join(f"({log})" for log in logs)
    query = f"SELECT pmod(hash(CAST(n AS INT)), 8) AS bucket FROM VALUES {values} AS t(n)"  # noqa: S608
    theirs = [row.bucket for row in spark.sql(query).collect()]

    assert theirs == [bucket_of(log, 8) for log in logs]


@pytest.mark.parametrize("view", ["handovers", "ledger"])
def test_records_come_together_without_a_shuffle(
    view: str,
    spark: SparkSession,
    verdicts: dict[str, Verdicts],
) -> None:
    """The layout of the files spares Spark every shuffle and every sort by record."""
    plan = spark.table(view)._jdf.queryExecution().executedPlan().toString()

    assert verdicts
    above = [step for scan in _scans_of_records(plan) for step in scan]
    assert "SortAggregate" in above or "Window" in above
    assert {"Exchange", "Sort"} & set(above) == set()


def _scans_of_records(plan: str) -> Iterator[list[str]]:
    """Yield for each scan of a table laid out by record what is done to its rows.

    A plan is a tree with the root on top, drawn by indentation. What is broadcast is small.
    """
    steps: list[tuple[int, str]] = []
    for line in plan.splitlines():
        if not (found := re.search(r"[A-Za-z]\w*", line)):
            continue
        steps = [step for step in steps if step[0] < found.start()]
        if "FileScan parquet" in line and re.search(r"\.all_(produced|deliveries)\[", line):
            names = [name for _, name in steps]
            broadcast = [at for at, name in enumerate(names) if name == "BroadcastExchange"]
            yield names[broadcast[-1] :] if broadcast else names
        steps.append((found.start(), found[0]))


def test_nothing_leaves_spark_through_python() -> None:
    """No Python function works on the data, and what is collected is limited or aggregated."""
    folder = Path(__file__).parents[2] / "reports" / "analysis"
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.py")))

    assert [word for word in ("udf", "toPandas", ".rdd", "mapInPandas") if word in text] == []
