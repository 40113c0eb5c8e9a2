"""How it was, not only whether it was right: times and counts by phase and fault, in one query."""

from collections.abc import Sequence

from pyspark.sql import Row, SparkSession

from reports.analysis.queries import by_run
from reports.analysis.session import by_runs
from reports.results import Measure

MOST_WINDOWS = 40
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
        SELECT run, {by_run(_windows(spark, len(rows)))} AS at, {", ".join(columns)}
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


def _windows(spark: SparkSession, runs: int) -> list[str]:
    """Return the expressions that name the fault or else the phase in which a delivery happened."""
    faults = spark.table("faults").selectExpr(
        "run", "concat(kind, ' of ', subject) AS name", "since", "until"
    )
    phases = spark.table("phases").selectExpr("run", "phase AS name", "since", "until")
    windows = [
        row
        for table in (faults, phases)
        for row in table.orderBy("run", "since").limit(MOST_WINDOWS * runs).collect()
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
