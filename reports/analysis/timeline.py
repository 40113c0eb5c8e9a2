"""How a run went, not only whether it was right: interval by interval, and by phase and fault.

A page draws the intervals, and no more than a page can draw. Spark does all counting; back come a
few hundred intervals, however long the run was. Times are seconds since the run began, counts are
per second, and None stands where nothing was seen.

Distributions of times and counts, by phase and fault, come of one query.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pyspark.sql import Row, SparkSession

from reports.analysis.queries import by_run
from reports.analysis.session import by_runs, fetched
from reports.analysis.stories import Hit
from reports.results import Measure

MOST_MEASURED = 40
MOST_ROWS = 2_000_000
"""Deliveries that are measured in full; percentiles of more would tell no more."""
_MS = 1_000_000
_QUANTILES = "array(0.5, 0.9, 0.99, 1.0)"

MEASURES = {
    "deliveries of a record": "CASE WHEN next_op IS NULL THEN count END",
    "lock age at its end, ms": (
        f"CASE WHEN kind IN (1, 2, 3) AND outcome = 1 THEN (ack_received - acquired) DIV {_MS} END"
    ),
    "redelivery after a release, ms": (
        f"CASE WHEN kind = 2 AND outcome = 1 THEN (next_acquired - ack_sent) DIV {_MS} END"
    ),
    # Of those whose lock did not end before.
    "redelivery after a session's end, ms": (
        "CASE WHEN kind = 5 AND next_acquired >= ack_sent "
        f"THEN (next_acquired - ack_sent) DIV {_MS} END"
    ),
    "redelivery after a lock's end, ms": (
        f"CASE WHEN kind = 0 THEN (next_acquired - ends_by) DIV {_MS} END"
    ),
    "response to an acknowledgement, ms": (
        f"CASE WHEN kind IN (1, 2, 3) AND outcome = 1 THEN (ack_received - ack_sent) DIV {_MS} END"
    ),
}
"""What is measured, as expressions over the view ``delivery_pairs``."""


def distributions(spark: SparkSession, rows: Sequence[int] = (0,)) -> list[list[Measure]]:
    """Return for each run count, median, high percentiles and maximum of measures by window.

    ``rows`` is how many deliveries each has, if known. Of very many every nth record is measured,
    and the results say ``one_in`` how many that was.
    """
    sampled = [one_in(some) for some in rows]
    columns = [
        f"percentile_approx({measure}, {_QUANTILES}, 10000) AS q{number}, "
        f"count({measure}) AS n{number}"
        for number, measure in enumerate(MEASURES.values())
    ]
    query = f"""
        SELECT run, {by_run(_fault_windows(spark, len(rows)))} AS at, {", ".join(columns)}
        FROM delivery_pairs WHERE {_sample(sampled)} GROUP BY 1, 2 ORDER BY 1, 2
    """  # noqa: S608 - our own expressions
    found: list[list[Measure]] = [[] for _ in rows]
    for row in spark.sql(query).collect():
        for number, name in enumerate(MEASURES):
            quantiles: Sequence[int] | None = row[f"q{number}"]
            if quantiles:
                median, p90, p99, most = quantiles
                found[row["run"]].append(
                    Measure(
                        during=row["at"],
                        measure=name,
                        count=row[f"n{number}"],
                        median=median,
                        p90=p90,
                        p99=p99,
                        max=most,
                        one_in=sampled[row["run"]],
                    )
                )
    return found


def one_in(rows: int) -> int:
    """Return of how many records one is measured, where there are so many deliveries."""
    return max(1, rows // MOST_ROWS)


def _sample(sampled: Sequence[int]) -> str:
    """Return the expression that chooses records, with all of their deliveries.

    It is about the record only, so Spark drops the others before it pairs deliveries.
    """
    if max(sampled) == 1:
        return "true"
    return f"pmod(hash(offset), {by_run([str(one) for one in sampled])}) = 0"


def _fault_windows(spark: SparkSession, runs: int) -> list[str]:
    """Return the expressions that name the fault or else the phase in which a delivery happened."""
    faults = spark.table("faults").selectExpr(
        "run", "concat(kind, ' of ', subject) AS name", "since", "until"
    )
    phases = spark.table("phases").selectExpr("run", "phase AS name", "since", "until")
    windows = [
        row
        for table in (faults, phases)
        for row in table.orderBy("run", "since").limit(MOST_MEASURED * runs).collect()
    ]
    return [_window(mine) for mine in by_runs(windows, runs)]


def _window(windows: Sequence[Row]) -> str:
    cases = [
        f"WHEN acquired BETWEEN {row.since} AND {row.until} THEN {_quoted(row.name)}"
        for row in windows
    ]
    return f"CASE {' '.join(cases)} ELSE 'outside' END" if cases else "'run'"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


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
