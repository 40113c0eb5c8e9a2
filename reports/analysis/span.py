"""When a run was, on its own clock."""

from __future__ import annotations

from pyspark.sql import SparkSession


def span(spark: SparkSession) -> tuple[int, int]:
    """Return when the registered run began, and when the last that was done in it was over.

    Both are nanoseconds of the run's clock, and 0 where nothing happened at all.
    """
    row = spark.sql("""
        SELECT min(since) AS since, max(until) AS until
        FROM (
          SELECT min(since) AS since, max(until) AS until FROM phases
          UNION ALL
          SELECT min(acquired), max(acquired) FROM deliveries
        )
    """).collect()[0]
    return row["since"] or 0, row["until"] or 0
