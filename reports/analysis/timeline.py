"""How a run went, interval by interval: what a page draws, and no more of it than a page can draw.

Spark does all counting; back come a few hundred intervals, however long the run was. Times are
seconds since the run began, counts are per second, and None stands where nothing was seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from pyspark.sql import SparkSession

from reports.analysis.distributions import MOST_ROWS
from reports.analysis.witnesses import Hit

INTERVALS = 600
INTERVALS_OF_ALL = 6000
"""How many intervals all runs of a page have together."""
FEWEST_INTERVALS = 120
SHORTEST = 200_000_000
_SECOND = 1e9
MOST_FAULTS = 500

Timeline = dict[str, Any]


def intervals_for(runs: int) -> int:
    """Return how many intervals each of several runs is drawn with."""
    return max(FEWEST_INTERVALS, min(INTERVALS, INTERVALS_OF_ALL // max(1, runs)))


def timeline(
    spark: SparkSession,
    hits: Sequence[Hit],
    *,
    since: int,
    until: int,
    intervals: int = INTERVALS,
    rows: int = 0,
) -> Timeline:
    """Return the timeline of the registered history; an empty one if it has no length.

    Args:
        spark: the session in which the history is registered.
        hits: cases that break a rule, to be marked.
        since: when the run began, in nanoseconds of its clock.
        until: when it ended.
        intervals: how many intervals there are to be at most.
        rows: how many deliveries there are. Of very many only some are looked at.
    """
    if until <= since:
        return {}
    step = max(SHORTEST, -(-(until - since) // intervals))
    count = (until - since) // step + 1
    asked = {"since": since, "step": step}
    seconds = step / _SECOND
    some = asked | {"one_in": max(1, rows // MOST_ROWS)}
    responses = _rows(spark, "responses", some)
    return {
        "began": since,
        "step": seconds,
        "bins": count,
        "produced": _rates(_rows(spark, "produced", asked), "records", count, seconds),
        "groups": _groups(_rows(spark, "flows", some), count, seconds),
        "response_ms": {
            name: _column(
                ((row["bin"], round(row["quantiles"][at], 2)) for row in responses), count
            )
            for at, name in enumerate(("median", "p99"))
        },
        "partitions": _partitions(spark, _rows(spark, "samples", asked), seconds),
        "faults": _windows(spark, "faults", "kind, subject", since),
        "phases": _windows(spark, "phases", "phase", since),
        "marks": [_mark(hit, since) for hit in hits],
    }


def _rows(spark: SparkSession, name: str, asked: Mapping[str, int]) -> list[Any]:
    file = resources.files("reports") / "analysis" / "timeline_queries" / f"{name}.sql"
    return spark.sql(file.read_text(encoding="utf-8"), args=dict(asked)).collect()


def _column(pairs: Any, count: int) -> list[Any]:
    column: list[Any] = [None] * count
    for interval, value in pairs:
        if 0 <= interval < count:
            column[interval] = value
    return column


def _rates(rows: Sequence[Any], name: str, count: int, seconds: float) -> list[float]:
    found = _column(((row["bin"], row[name]) for row in rows), count)
    return [round((value or 0) / seconds, 1) for value in found]


def _groups(rows: Sequence[Any], count: int, seconds: float) -> list[dict[str, Any]]:
    found = []
    for group in sorted({row["group"] for row in rows}):
        own = [row for row in rows if row["group"] == group]
        held, in_flight = 0, []
        for more in _column(((row["bin"], row["more"]) for row in own), count):
            held += more or 0
            in_flight.append(held)
        rates = {
            name: _rates(own, name, count, seconds) for name in ("acquired", "again", "finished")
        }
        found.append({"group": group, **rates, "in_flight": in_flight})
    return found


def _partitions(spark: SparkSession, rows: Sequence[Any], seconds: float) -> list[dict[str, Any]]:
    names = spark.sql(
        "SELECT share_partition, `group`, topic, partition FROM share_partitions ORDER BY 1"
    ).collect()
    return [
        {
            "group": name["group"],
            "partition": f"{name['topic']}-{name['partition']}",
            # Seldom seen compared with what is counted: intervals only where something was.
            "seen": sorted(
                (round(row["bin"] * seconds, 2), row["spso"], row["lag"])
                for row in rows
                if row["share_partition"] == name["share_partition"]
            ),
        }
        for name in names
        if any(row["share_partition"] == name["share_partition"] for row in rows)
    ]


def _windows(spark: SparkSession, table: str, names: str, began: int) -> list[dict[str, Any]]:
    query = f"SELECT {names}, since, until FROM {table} ORDER BY since LIMIT {MOST_FAULTS}"  # noqa: S608
    return [
        row.asDict() | {end: round((row[end] - began) / _SECOND, 3) for end in ("since", "until")}
        for row in spark.sql(query).collect()
    ]


def _mark(hit: Hit, began: int) -> dict[str, Any]:
    at = round((hit.since - began) / _SECOND, 3) if hit.since else None
    return {"rule": hit.rule, "at": at, "text": hit.sentence}
