"""How a run went, interval by interval: what a page draws, and no more of it than a page can draw.

Spark does all counting; back come a few hundred intervals, however long the run was. Times are
seconds since the run began, counts are per second, and None stands where nothing was seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pyspark.sql import SparkSession

from reports.analysis.distributions import one_in
from reports.analysis.queries import by_run
from reports.analysis.session import by_runs, fetched
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
    return max(FEWEST_INTERVALS, min(INTERVALS, INTERVALS_OF_ALL // max(1, runs)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What is to be drawn of a run."""

    since: int  # From when to when, in nanoseconds of its clock.
    until: int
    intervals: int = INTERVALS  # How many there are to be at most.
    rows: int = 0  # How many deliveries there are. Of very many only some are looked at.

    @property
    def step(self) -> int:
        """How long each interval is, in nanoseconds."""
        return max(SHORTEST, -(-(self.until - self.since) // max(1, self.intervals)))


def timelines(spark: SparkSession, runs: Sequence[Course]) -> list[Timeline]:
    """Return the timelines of the registered histories; an empty one for a run without length.

    What breaks a rule is known later, and is marked in them then (:func:`marks`).

    ``runs`` says for each history, in their order, what to draw.
    """
    asked = {
        "since": by_run([f"{run.since}L" for run in runs]),
        "step": by_run([f"{run.step}L" for run in runs]),
        "one_in": by_run([str(one_in(run.rows)) for run in runs]),
    }
    names = ("produced", "flows", "responses", "samples", "partitions", "faults", "phases")
    said = fetched(spark, [_query(name, asked) for name in names])
    of_runs = [by_runs(rows, len(runs)) for rows in said]
    return [
        _drawn(run, dict(zip(names, mine, strict=True))) if run.until > run.since else {}
        for run, *mine in zip(runs, *of_runs, strict=True)
    ]


def _drawn(run: Course, found: Mapping[str, Sequence[Any]]) -> Timeline:
    count, seconds = (run.until - run.since) // run.step + 1, run.step / _SECOND
    responses = found["responses"]
    return {
        "began": run.since,
        "step": seconds,
        "bins": count,
        "produced": _rates(found["produced"], "records", count, seconds),
        "groups": _groups(found["flows"], count, seconds),
        "response_ms": {
            name: _column(
                ((row["bin"], round(row["quantiles"][at], 2)) for row in responses), count
            )
            for at, name in enumerate(("median", "p99"))
        },
        "partitions": [
            {
                "group": name["group"],
                "partition": f"{name['topic']}-{name['partition']}",
                # Seldom seen compared with what is counted: intervals only where something was.
                "seen": sorted(
                    (round(row["bin"] * seconds, 2), row["spso"], row["lag"])
                    for row in found["samples"]
                    if row["share_partition"] == name["share_partition"]
                ),
            }
            for name in found["partitions"]
            if any(row["share_partition"] == name["share_partition"] for row in found["samples"])
        ],
        "faults": _windows(found["faults"], "kind subject", run.since),
        "phases": _windows(found["phases"], "phase", run.since),
    }


def marks(hits: Sequence[Hit], began: int) -> list[dict[str, Any]]:
    """Return what marks cases that break a rule in the timeline of a run that began then."""
    return [
        {
            "rule": hit.rule,
            "at": round((hit.since - began) / _SECOND, 3) if hit.since else None,
            "text": hit.sentence,
        }
        for hit in hits
    ]


def _query(name: str, asked: Mapping[str, str]) -> str:
    file = resources.files("reports") / "analysis" / "timeline_queries" / f"{name}.sql"
    return file.read_text(encoding="utf-8").format(**asked)


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


def _windows(rows: Sequence[Any], names: str, began: int) -> list[dict[str, Any]]:
    return [
        {name: row[name] for name in names.split()}
        | {end: round((row[end] - began) / _SECOND, 3) for end in ("since", "until")}
        for row in sorted(rows, key=lambda row: int(row["since"]))[:MOST_FAULTS]
    ]
