"""How it was, not only whether it was right: times and counts by phase and fault, in one query."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

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
    "redelivery after a session's end, ms": (
        f"CASE WHEN kind = 5 THEN (next_acquired - ack_sent) DIV {_MS} END"
    ),
    "redelivery after a lock's end, ms": (
        f"CASE WHEN kind = 0 THEN (next_acquired - ends_by) DIV {_MS} END"
    ),
    "response to an acknowledgement, ms": (
        f"CASE WHEN kind IN (1, 2, 3) AND outcome = 1 THEN (ack_received - ack_sent) DIV {_MS} END"
    ),
}
"""What is measured, as expressions over the view ``delivery_pairs``."""


def distributions(spark: SparkSession, rows: int = 0) -> list[Measure]:
    """Return count, median, high percentiles and maximum of each measure in each window.

    Args:
        spark: the session in which the history is registered.
        rows: how many deliveries there are, if known. Of very many every nth record is
            measured, and the results say ``one_in`` how many that was.
    """
    one_in = max(1, rows // MOST_ROWS)
    columns = [
        f"percentile_approx({measure}, {_QUANTILES}, 1000) AS q{number}, "
        f"count({measure}) AS n{number}"
        for number, measure in enumerate(MEASURES.values())
    ]
    query = f"""
        SELECT {_window(spark)} AS at, {", ".join(columns)}
        FROM delivery_pairs WHERE {_sample(one_in)} GROUP BY 1 ORDER BY 1
    """  # noqa: S608 - our own expressions
    found: list[Measure] = []
    for row in spark.sql(query).collect():
        for number, name in enumerate(MEASURES):
            quantiles: Sequence[int] | None = row[f"q{number}"]
            if quantiles:
                median, p90, p99, most = quantiles
                found.append(
                    Measure(
                        during=row["at"],
                        measure=name,
                        count=row[f"n{number}"],
                        median=median,
                        p90=p90,
                        p99=p99,
                        max=most,
                        one_in=one_in,
                    )
                )
    return found


def _sample(one_in: int) -> str:
    """Return the expression that chooses records, with all of their deliveries.

    It is about the record only, so Spark drops the others before it pairs deliveries.
    """
    return f"pmod(hash(offset), {one_in}) = 0" if one_in > 1 else "true"


def _window(spark: SparkSession) -> str:
    """Return the expression that names the fault or else the phase in which a delivery happened."""
    faults = spark.table("faults").selectExpr("concat(kind, ' of ', subject)", "since", "until")
    phases = spark.table("phases").select("phase", "since", "until")
    windows = [
        row
        for table in (faults, phases)
        for row in table.orderBy("since").limit(MOST_WINDOWS).collect()
    ]
    cases = [
        f"WHEN acquired BETWEEN {since} AND {until} THEN {_quoted(name)}"
        for name, since, until in windows
    ]
    return f"CASE {' '.join(cases)} ELSE 'outside' END" if cases else "'run'"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
