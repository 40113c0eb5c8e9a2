"""Both sides of every invariant: it accepts the small history that is right, rejects the wrong one.

All cases are judged as one history, so that a planted violation must be found in its own partition,
by its own rule, and by no other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.sql import SparkSession

from fixtures.history.compaction import compact
from reports.analysis.files import open_history
from reports.analysis.invariants import counts, locks
from reports.analysis.queries import breaches
from reports.analysis.relations import in_order
from reports.analysis.rules import Invariant, load_invariants
from reports.analysis.tables import register, unregister
from reports.oracle.judging import Verdicts, judge
from spec.history import TABLES, bucket_of
from spec.model.release import release_of
from spec.requirement import Honesty, SpecError, load_requirements
from tests.agreement import broken_at, known, runs
from tests.model_runs import ModelRun
from tests.small_histories import Case, read_cases, write_history
from tools.histories.judges import by_spark, differences

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

CASES = read_cases()
RULES = {rule.id: rule for rule in load_invariants()}
RELATIONS = [rule.over for rule in RULES.values()]
TOLD_FROM = 1000
"""The first number of a share-partition that a run of the model is about."""
SEEDS = range(1, 6)
GROSS = {"given_twice", "redelivered", "never_came"}
"""Faults that no freedom of the broker explains, if they are about something that was seen."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What Spark and the oracle found in the cases and the runs of the model of one release."""

    spark: Verdicts
    oracle: Verdicts
    runs: tuple[ModelRun, ...]


@pytest.fixture(scope="module")
def verdicts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Judged]]:
    """What was found in the histories of each release; those of 4.4.0 stay registered."""
    found: dict[str, Judged] = {}
    for version in sorted({case.version for case in CASES}):
        folder = tmp_path_factory.mktemp("cases") / "history"
        told = runs(release_of(version), SEEDS, TOLD_FROM)
        write_history(folder, [case for case in CASES if case.version == version], told)
        compact(folder)
        if found:
            unregister(spark, f"cases_{len(found)}")
        history = open_history(folder)
        register(spark, [history], f"cases_{len(found) + 1}").need(RELATIONS)
        by_both = (by_spark(spark, list(RULES.values())), judge(folder))
        found[version] = Judged(*by_both, tuple(told))
    yield found
    unregister(spark, f"cases_{len(found)}")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_sides(case: Case, verdicts: dict[str, Judged]) -> None:
    found = verdicts[case.version].spark
    exercised = {rule for rule, places in found.items() if case.share_partitions & places.keys()}
    broken = {rule for place in case.share_partitions for rule in broken_at(found, place)}
    others = broken - known(release_of(case.version)) - {case.rule}

    assert case.rule in exercised
    assert others == set()
    assert (case.rule in broken) == case.breaks


@pytest.mark.parametrize("version", sorted({case.version for case in CASES}))
def test_spark_and_the_oracle_agree(version: str, verdicts: dict[str, Judged]) -> None:
    judged = verdicts[version]

    assert list(differences(judged.spark, judged.oracle)) == []


@pytest.mark.parametrize("version", sorted({case.version for case in CASES}))
def test_valid_runs_of_the_model_break_nothing(version: str, verdicts: dict[str, Judged]) -> None:
    judged = verdicts[version]
    beside = known(release_of(version))
    broken = {told: broken_at(judged.spark, told.share_partition) - beside for told in judged.runs}

    assert [rules for told, rules in broken.items() if rules and not told.fault] == []
    gross = [rules for told, rules in broken.items() if told.fault in GROSS]
    assert gross
    assert sum(map(bool, gross)) >= 0.6 * len(gross)


def test_every_invariant_has_both_sides() -> None:
    accepted = {case.rule for case in CASES if not case.breaks}
    rejected = {case.rule for case in CASES if case.breaks}

    assert RULES.keys() - accepted == set()
    assert RULES.keys() - rejected == set()


def test_invariants_are_rules_of_the_specification() -> None:
    rules = load_requirements()

    assert [r for r in RULES if rules[r].honesty is Honesty.UNTESTED] == []


def test_no_invariant_is_declared_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "INVARIANTS", (*locks.INVARIANTS, counts.INV_12))

    with pytest.raises(SpecError, match="INV-12 is declared twice"):
        load_invariants()


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_invariant_names_the_columns_that_it_needs(
    rule: Invariant, spark: SparkSession, verdicts: dict[str, Judged]
) -> None:
    assert verdicts
    spark.table(rule.over.name).select(*rule.columns).createOrReplaceTempView("narrow")
    query = breaches("narrow", [rule])
    excused = " ".join(condition for _, condition in rule.excuses)
    used = re.sub(r"'[^']*'| AS \w+", "", query) + excused  # neither words in texts nor new names

    spark.sql(query)
    assert [one for one in rule.columns if not re.search(rf"\b{one}\b", used)] == []


def test_relations_say_what_they_read() -> None:
    tables = {*TABLES, "release"}

    for relation in in_order(RELATIONS):
        assert relation.reads - tables <= {used.name for used in relation.uses}


def test_the_buckets_are_those_of_spark(spark: SparkSession) -> None:
    logs = [0, 1, 2, 7, 1000, 2**31 - 1, -1, -(2**31)]
    values = ", ".join(f"({log})" for log in logs)
    query = f"SELECT pmod(hash(CAST(n AS INT)), 8) AS bucket FROM VALUES {values} AS t(n)"  # noqa: S608
    theirs = [row.bucket for row in spark.sql(query).collect()]

    assert theirs == [bucket_of(log, 8) for log in logs]


BOUNDED = {
    "_by_rule": "one row of counts for each run",
    "_by_pattern": "patterns(rules)",
    "_sentences": "LIMIT {_MOST_HITS * len(contexts)}",
    "reached": ".limit(",
    "_fault_windows": "LIMIT",
    "_good_logs": ".limit(",
    "_windows": ".limit(",
    "distributions": "GROUP BY 1",
    "_fetch": "LIMIT",
    "_often": "LIMIT",
    "unregister": "SHOW VIEWS",
}
"""The functions that fetch rows from Spark, and what keeps these few."""
FETCHING = {"collect", "toLocalIterator", "take", "head", "first", "tail", "show"}
PYTHON = {"udf", "pandas_udf", "toPandas", "toArrow", "rdd", "foreach", "mapInPandas", "mapInArrow"}


def test_nothing_leaves_spark_through_python() -> None:
    fetching: dict[str, str] = {}
    forbidden: list[str] = []
    for file in (Path(__file__).parents[1] / "reports" / "analysis").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, ast.FunctionDef):
                continue
            names = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
            forbidden += sorted(names & PYTHON)
            if names & FETCHING:
                fetching[function.name] = ast.get_source_segment(text, function) or ""

    assert forbidden == []
    assert fetching.keys() == BOUNDED.keys()
    limits = {name: limit for name, limit in BOUNDED.items() if not limit.startswith("one row")}
    assert [name for name, limit in limits.items() if limit not in fetching[name]] == []
