"""A real history, altered by hand in a hundred ways: each is told by its rule alone, or by none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.sql import SparkSession

import tests.altered
from reports.analysis.rules import load_invariants
from reports.analysis.session import COMPILED, configured
from reports.oracle.judging import Verdicts
from tests.altered.alteration import ALTERATIONS
from tests.altered.copies import read_source
from tests.altered.judged import Altered, alter, mistakes, verdicts

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.timeout(600),
]

RECORDED = Path(tests.altered.__file__).parent / "recorded" / "history"
VERSION = "4.4.0"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the recorded history."""
    folder = tmp_path_factory.mktemp("recorded") / "history"
    shutil.copytree(RECORDED, folder)
    return folder


@pytest.fixture(scope="module")
def altered(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Altered:
    """Copies of the recorded history, each with one thing altered."""
    return alter(recorded, tmp_path_factory.mktemp("altered") / "history", VERSION)


@pytest.fixture(scope="module")
def judged(spark: SparkSession, altered: Altered) -> tuple[Verdicts, list[str]]:
    """What Spark says of them by compiled queries, and where the oracle says something else."""
    with configured(spark, {**COMPILED, "spark.sql.shuffle.partitions": "4"}, when=True):
        return verdicts(spark, altered)


def test_what_is_altered_is_told_by_its_rule_alone(
    altered: Altered, judged: tuple[Verdicts, list[str]]
) -> None:
    assert altered.impossible == ()
    assert "\n".join(mistakes(judged[0], altered)) == ""


def test_what_really_happened_breaks_nothing(
    altered: Altered, judged: tuple[Verdicts, list[str]]
) -> None:
    broken = {
        rule
        for rule, places in judged[0].items()
        for place, (_, wrong) in places.items()
        if wrong and any(place in copy for copy in altered.plain)
    }

    assert broken == set()


def test_the_oracle_agrees(judged: tuple[Verdicts, list[str]]) -> None:
    assert judged[1] == []


def test_copies_are_what_the_recorder_wrote(recorded: Path, altered: Altered) -> None:
    original, copied = (
        [
            {name: value for name, value in row.items() if name not in {"log", "share_partition"}}
            for row in sorted(
                read_source(folder, 0).tables["deliveries"],
                key=lambda row: (row["offset"], row["share_partition"], row["acquired"]),
            )
            if row["log"] == log
        ]
        for folder, log in ((recorded, 0), (altered.folder, 0))
    )

    assert original == copied


def test_every_rule_is_altered_in_both_ways() -> None:
    rules = {rule.id for rule in load_invariants()}
    broken = {one.rule for one in ALTERATIONS if one.breaks}
    kept = {one.rule for one in ALTERATIONS if not one.breaks}

    assert rules - broken == set()
    assert rules - kept == set()
