"""What is drawn of a history, and the stories of its records, against one that is told by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.sql import SparkSession

from fixtures.history.compaction import compact
from fixtures.history.journal import Journal
from reports.analysis.files import History, open_history
from reports.analysis.relations import DELIVERY_PAIRS
from reports.analysis.span import span
from reports.analysis.stories import stories
from reports.analysis.tables import register, unregister
from reports.analysis.timeline import Course, intervals_for, marks, timelines
from reports.analysis.witnesses import Hit
from reports.drawing import FILE, SCHEMA_FILE, write_timelines
from spec.history import FaultSpan, Phase
from tests.small_histories import Case, write_history

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

MS = 1_000_000
TOLD: dict[str, Any] = {
    "lock_ms": 1000,
    "deliveries": [
        {"offset": 0, "last": 9, "at": 1000, "count": 1, "kind": "accept", "acknowledged": 1400},
        {"offset": 10, "at": 1000, "count": 1},
        {"offset": 10, "at": 3000, "count": 2, "kind": "accept", "acknowledged": 3100},
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
def told(tmp_path_factory: pytest.TempPathFactory) -> History:
    """The history that is told."""
    folder = tmp_path_factory.mktemp("run") / "history"
    write_history(
        folder, [Case(share_partition=0, log=0, rule="", says="", breaks=False, plain=TOLD)]
    )
    with Journal(folder, 1) as journal:
        journal.add(Phase("load", 0, 5000 * MS))
        journal.add(FaultSpan(0, "kill-leader", "broker 2", 1800 * MS, 2500 * MS, "it was dead"))
    compact(folder)
    return open_history(folder)


@pytest.fixture(autouse=True, scope="module")
def registered(spark: SparkSession, told: History) -> Iterator[None]:
    """Have the history's tables in Spark."""
    register(spark, [told], "told").need([DELIVERY_PAIRS])
    yield
    unregister(spark, "told")


def test_each_moment_has_what_happened_in_it(spark: SparkSession, told: History) -> None:
    since, until = span(told)
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


def test_a_record_has_its_story(spark: SparkSession) -> None:
    ((told,),) = stories(spark, [[HIT]], [0])

    assert (told["record"], told["rules"]) == ("topic-0-0 offset 10", ["INV-02"])
    assert told["steps"] == [
        [0.0, "produced by producer 1, response OK after 1 ms"],
        [1.0, "acquired by m1, delivery 1, locked for 1000 ms"],
        [1.8, "fault: kill-leader of broker 2 begins"],
        [2.0, "the lock of m1 has run out by now, unacknowledged"],
        [2.2, "the share-partition is reloaded within 0.4 s from here (planted)"],
        [2.5, "fault: kill-leader is healed"],
        [3.0, "acquired by m2, delivery 2, locked for 1000 ms"],
        [3.1, "accepted by m2, response OK after 1 ms"],
    ]


def test_the_most_delivered_record_has_a_story_without_a_rule(spark: SparkSession) -> None:
    assert [(one["record"], one["rules"]) for one in stories(spark, [[]], [0])[0]] == [
        ("topic-0-0 offset 10", [])
    ]


def test_what_is_written_is_as_its_schema_says(
    spark: SparkSession, told: History, tmp_path: Path
) -> None:
    since, until = span(told)
    course = Course(since=since, until=until, intervals=5)
    drawn = {
        "timeline": timelines(spark, [course])[0] | {"marks": marks([HIT], since)},
        "stories": stories(spark, [[HIT]], [since])[0],
    }
    empty: dict[str, Any] = {"timeline": {}, "stories": []}
    write_timelines(tmp_path, {"told/history": drawn, "without/length": empty})
    written = json.loads((tmp_path / FILE).read_text(encoding="utf-8"))
    schema = jsonschema.Draft202012Validator(json.loads(SCHEMA_FILE.read_text(encoding="utf-8")))

    schema.validate(written)
    written["runs"]["told/history"]["timeline"]["marks"][0]["rule"] = 2
    with pytest.raises(jsonschema.ValidationError, match="2 is not of type 'string'"):
        schema.validate(written)


def test_a_page_of_many_runs_has_fewer_bins_of_each() -> None:
    assert [intervals_for(runs) for runs in (1, 10, 33, 1000)] == [600, 600, 181, 120]
