"""A Spark session that suits the judge, and the tables of a history in it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import PosixPath

import pyarrow as pa
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import DataFrame, SparkSession

from reports.analysis.files import History
from reports.analysis.quiet import without_chatter
from reports.analysis.relations import Relation, in_order
from spec.history import BUCKETED, OPTIONAL, TABLES, bucket_of
from spec.model.release import release_of
from spec.verdict import EnvironmentFault

_TYPES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
}
MOST_LOGS = 100_000
_LOOPBACK = "127.0.0.1"

_HUGE = "-XX:-DontCompileHugeMethods"
"""All rules over a view become one method, and the JVM only interprets those over 8000 bytes."""
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
SMALL = {
    **_INTERPRETED,
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Settings for histories that are read faster than a compiler can be started."""
SMALL_ROWS = 300_000
MEDIUM = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseParallelGC"}
"""Settings for histories over which the optimising compiler would spend more than it gains."""
MEDIUM_ROWS = 6_000_000
_FOR_ROWS_ALONE = (
    "-XX:Tier4InvocationThreshold=100000 -XX:Tier4CompileThreshold=300000 "
    "-XX:Tier4BackEdgeThreshold=300000"
)
LARGE = {"spark.driver.extraJavaOptions": f"-XX:+UseParallelGC {_FOR_ROWS_ALONE}"}
"""Settings that keep the optimising compiler to what runs for every row.

By its usual thresholds it spent three quarters of its time on the parser, the planner and class
loaders, which run for some seconds in all, while the rules waited for their turn.
"""
_GLOBS = "__globPaths__"
"""Spark's option to take a path for a pattern, which brackets and braces make of it."""


def settings_for(rows: int) -> dict[str, str]:
    """Return the settings that suit histories of that many rows altogether."""
    return SMALL if rows < SMALL_ROWS else MEDIUM if rows < MEDIUM_ROWS else LARGE


def open_session(
    master: str = "local[*]", memory: str = "1g", settings: dict[str, str] | None = None
) -> SparkSession:
    """Return a session.

    Args:
        master: where Spark runs: ``local[*]``, or whatever cluster Spark knows.
        memory: of the driver, and of each executor.
        settings: Spark settings that win over ours.

    Raises:
        EnvironmentFault: its JVM does not start.
    """
    here = master.startswith("local") or "//127.0.0.1" in master or "//localhost" in master
    if here:
        # Spark looks up the machine's own name, which need not have an address, as in a container.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.sql.shuffle.partitions": "4",
        # What is shuffled is small, so planning it again while it runs costs more than it gains.
        "spark.sql.adaptive.enabled": "false",
        # Where rows come by record, records need no hash table and no memory.
        "spark.sql.execution.replaceHashWithSortAgg": "true",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.sql.session.timeZone": "UTC",
        # The files of a bucket are sorted, and each bucket has one: that is what the recorder's
        # layout is for, and only these two settings let Spark believe it.
        "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
        "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
        # Witnesses are looked for at some offsets, and the files have an index of these.
        "spark.sql.parquet.pushdown.inFilterThreshold": "1000",
        # A join by log and offset is at home in buckets by log alone.
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.log.level": "ERROR",
        **({"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK} if here else {}),
        **(settings or {}),
    }
    for name in ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"):
        chosen[name] = f"{chosen.get(name, '')} {_HUGE}".strip()
    builder = SparkSession.builder.master(master).appName("shareproof")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        with without_chatter():
            return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise EnvironmentFault(
            f"Spark does not start; what Java said stands above: {error}"
        ) from None


@contextlib.contextmanager
def interpreted(spark: SparkSession, *, when: bool) -> Iterator[None]:
    """Generate no code, for queries that read less than there would be to compile."""
    usual = {name: spark.conf.get(name) or value for name, value in _INTERPRETED.items()}
    for name, value in _INTERPRETED.items() if when else ():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in usual.items():
            spark.conf.set(name, value)


def register(
    spark: SparkSession, history: History, database: str, relations: Iterable[Relation]
) -> None:
    """Make a history's tables, and relations over them, the current database.

    Buckets that cannot be read are left out of all large tables alike, so that what is left can be
    judged; small tables that cannot be read are empty.
    """
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    for name in TABLES:
        _table(spark, history, name).createOrReplaceTempView(name)
    spark.sql(release_text(history.version)).createOrReplaceTempView("release")
    for relation in in_order(relations):
        # Views are kept as plans: those made by CREATE VIEW are read again whenever they are used.
        spark.sql(relation.query()).createOrReplaceTempView(relation.name)
        if relation.cached:
            spark.sql(f"CACHE LAZY TABLE {relation.name}")


def narrowed(
    spark: SparkSession, relation: Relation, places: Collection[tuple[int, int]]
) -> DataFrame:
    """Return what a relation that is ``by_record`` says of records at some logs and offsets.

    The files say where these are, so that few others are read.
    """
    by_log: dict[int, set[int]] = {}
    for log, offset in places:
        by_log.setdefault(log, set()).add(offset)
    here = " OR ".join(
        f"(log = {log} AND offset IN ({', '.join(map(str, sorted(offsets)))}))"
        for log, offsets in sorted(by_log.items())
    )
    for name in BUCKETED:
        spark.table(name).where(here or "false").createOrReplaceTempView(f"few_{name}")
    return spark.sql(relation.query(**{name: f"few_{name}" for name in BUCKETED}))


def unregister(spark: SparkSession, database: str) -> None:
    """Forget a history's tables and relations; its files stay."""
    spark.catalog.clearCache()
    for view in spark.sql("SHOW VIEWS").collect():
        spark.catalog.dropTempView(view.viewName)
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {database} CASCADE")


def _table(spark: SparkSession, history: History, name: str) -> DataFrame:
    """Return a table; one without rows as a constant, so that Spark drops what asks for them."""
    if name in history.lost_tables or not history.rows(name):
        columns = ", ".join(f"CAST(NULL AS {kind}) AS {col}" for col, kind in _columns(name))
        return spark.sql(f"SELECT {columns} LIMIT 0")
    if name not in BUCKETED:
        schema = ", ".join(f"`{column}` {kind}" for column, kind in _columns(name))
        reader = spark.read.schema(schema).option(_GLOBS, "false")
        return reader.parquet(_location(history, name))
    columns = ", ".join(f"`{column}` {kind}" for column, kind in _columns(name))
    order = ", ".join(BUCKETED[name])
    spark.sql(
        f"CREATE TABLE all_{name} ({columns}) USING parquet OPTIONS ({_GLOBS} 'false') "
        f"CLUSTERED BY (log) SORTED BY ({order}) "
        f"INTO {history.manifest.buckets} BUCKETS LOCATION {_quoted(_location(history, name))}"
    )
    known = ", ".join(_known(name, column, kind) for column, kind in _columns(name))
    table = spark.sql(f"SELECT {known} FROM all_{name}")  # noqa: S608 - our own names
    return table.where(_good_logs(spark, history)) if history.lost_buckets else table


def _location(history: History, name: str) -> str:
    """Return where a table is, as Hadoop reads it: nothing is escaped, unlike in a URI."""
    if isinstance(history.folder, PosixPath):
        return f"file://{(history.folder / name).absolute()}"
    return re.sub("^s3:", "s3a:", str(history.folder / name))


def _quoted(text: str) -> str:
    """Return a string as Spark's SQL has it."""
    return "'" + re.sub(r"[\\']", r"\\\g<0>", text) + "'"


def _columns(name: str) -> Iterable[tuple[str, str]]:
    return [(field.name, _TYPES[field.type]) for field in TABLES[name]]


def _known(table: str, column: str, kind: str) -> str:
    """Return a column as what it is: never null, unless it is one of ``OPTIONAL``.

    Spark takes all columns of files for optional, and a condition on those for one with three
    outcomes, which is more code for its compiler and for the processor.
    """
    if column in OPTIONAL or column in BUCKETED[table]:
        return f"`{column}`"
    nothing = "false" if kind == "BOOLEAN" else f"CAST(0 AS {kind})"
    return f"coalesce(`{column}`, {nothing}) AS `{column}`"


def _good_logs(spark: SparkSession, history: History) -> str:
    """Return the condition that leaves out the logs of buckets that cannot be read."""
    rows = (
        _table(spark, history, "share_partitions")
        .select("log")
        .distinct()
        .limit(MOST_LOGS)
        .collect()
    )
    logs = [
        str(row.log)
        for row in rows
        if bucket_of(row.log, history.manifest.buckets) not in history.lost_buckets
    ]
    # A list of logs, because that is what Spark can tell buckets, and so files, by.
    return f"log IN ({', '.join(logs) or 'NULL'})"


def release_text(version: str = "") -> str:
    """Return the query of the view ``release``: in what the release of a run is unlike others."""
    release = release_of(version)
    return (
        f"SELECT {release.close_uncounted} AS close_uncounted, {release.throttling} AS throttling"
    )
