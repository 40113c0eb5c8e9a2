"""A Spark session that suits the judge, and the tables of a history in it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources

import pyarrow as pa
from pyspark.sql import SparkSession

from reports.analysis.files import History
from spec.history import BUCKETED, TABLES, bucket_of
from spec.model.release import release_of

_TYPES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
}
VIEWS = (
    "shares",
    "unanswered",
    "handovers",
    "ledger",
    "tides",
    "settlements",
    "finishes",
    "views_of_offsets",
    "endings",
    "epochs",
)
"""Views in the order in which they build on each other."""
KEPT = frozenset({"shares"})
"""Small views that the others join to every row: worked out once."""
MOST_LOGS = 100_000

SMALL = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings for histories that are read faster than a compiler can be started."""
SMALL_ROWS = 300_000


def open_session(
    master: str = "local[*]", memory: str = "1g", settings: dict[str, str] | None = None
) -> SparkSession:
    """Return a session.

    Args:
        master: where Spark runs: ``local[*]``, or ``spark://HOST:PORT`` for a cluster.
        memory: of the driver, and of each executor.
        settings: Spark settings that win over ours.
    """
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.session.timeZone": "UTC",
        # The files of a bucket are sorted, and each bucket has one: that is what the recorder's
        # layout is for, and only these two settings let Spark believe it.
        "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
        "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
        # A join by log and offset is at home in buckets by log alone.
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        **(settings or {}),
    }
    builder = SparkSession.builder.master(master).appName("shareproof")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def register(spark: SparkSession, history: History, database: str) -> None:
    """Make a history's tables, and the views over them, the current database.

    Buckets that cannot be read are left out of all large tables alike, so that what is left can be
    judged; small tables that cannot be read are empty.
    """
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    for name in TABLES:
        if name in history.lost_tables:
            columns = ", ".join(f"CAST(NULL AS {kind}) AS {col}" for col, kind in _columns(name))
            spark.sql(f"CREATE TEMPORARY VIEW {name} AS SELECT {columns} LIMIT 0")
        elif name in BUCKETED:
            _create(spark, history, name, f"all_{name}")
        else:
            _create(spark, history, name, name)
    _leave_out_lost_buckets(spark, history)
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW release AS {release_text(history.version)}")
    for view in VIEWS:
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {view} AS {view_text(view)}")
        if view in KEPT:
            spark.sql(f"CACHE LAZY TABLE {view}")


def unregister(spark: SparkSession, database: str) -> None:
    """Forget a history's tables and views; its files stay."""
    for view in (*VIEWS, "release", *BUCKETED):
        spark.catalog.dropTempView(view)
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {database} CASCADE")


def _create(spark: SparkSession, history: History, name: str, called: str) -> None:
    columns = ", ".join(f"`{column}` {kind}" for column, kind in _columns(name))
    layout = ""
    if name in BUCKETED:
        order = ", ".join(BUCKETED[name])
        buckets = history.manifest.buckets
        layout = f"CLUSTERED BY (log) SORTED BY ({order}) INTO {buckets} BUCKETS"
    location = (history.folder / name).absolute().as_uri()
    spark.sql(f"CREATE TABLE {called} ({columns}) USING parquet {layout} LOCATION '{location}'")


def _columns(name: str) -> Iterable[tuple[str, str]]:
    return [(field.name, _TYPES[field.type]) for field in TABLES[name]]


def _leave_out_lost_buckets(spark: SparkSession, history: History) -> None:
    good = ""
    if history.lost_buckets:
        rows = spark.table("queues").select("log").distinct().limit(MOST_LOGS).collect()
        logs = [
            str(row.log)
            for row in rows
            if bucket_of(row.log, history.manifest.buckets) not in history.lost_buckets
        ]
        # A list of logs, because that is what Spark can tell buckets, and so files, by.
        good = f"log IN ({', '.join(logs) or 'NULL'})"
    for name in BUCKETED:
        table = spark.table(f"all_{name}")
        (table.where(good) if good else table).createOrReplaceTempView(name)


def release_text(version: str = "") -> str:
    """Return the query of the view ``release``: in what the release of a run is unlike others."""
    release = release_of(version)
    return (
        f"SELECT {release.close_uncounted} AS close_uncounted, {release.throttling} AS throttling"
    )


def view_text(view: str) -> str:
    """Return the query of one of ``VIEWS``."""
    file = resources.files("reports") / "analysis" / "views" / f"{view}.sql"
    return file.read_text(encoding="utf-8")
