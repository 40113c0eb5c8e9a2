"""The tables of histories in a session, and relations over them: all runs in one, told by ``run``.

``run`` is the place of a history among those that are registered together. Numbers of
share-partitions are moved apart, so that no two runs have one in common; those of logs are not,
because the layout of the files depends on them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PosixPath
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from reports.analysis.files import History
from reports.analysis.queries import at_places
from reports.analysis.relations import Relation, in_order
from spec.history import BUCKETED, OPTIONAL, TABLES, bucket_of
from spec.model.release import release_of


def stride(histories: Sequence[History]) -> int:
    """Return how far the numbers of share-partitions of one run are moved from those of the next.

    It is 0 if there is one run only, which keeps its own.
    """
    if len(histories) < 2:
        return 0
    highest = 0
    for history in histories:
        for rows in _parts(history, "share_partitions", ["share_partition"]):
            highest = max(highest, pc.max(rows["share_partition"]).as_py() or 0)
    return highest + 1


def tables_of(histories: Sequence[History], names: Collection[str]) -> dict[str, pa.Table]:
    """Return those tables that have rows, of all runs together, with the columns of Spark's."""
    apart = stride(histories)
    found: dict[str, pa.Table] = {}
    for name in names:
        parts = [
            _numbered(rows, run, apart)
            for run, history in enumerate(histories)
            for rows in _parts(history, name, TABLES[name].names)
        ]
        if rows := sum(part.num_rows for part in parts):
            whole = pa.concat_tables([part for part in parts if part.num_rows])
            found[name] = _known(name, whole) if rows else whole
    return found


def _parts(history: History, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    for file in history.readable(name):
        if file.rows:
            with (history.folder / file.path).open("rb") as source:
                yield pq.read_table(source, columns=list(columns), schema=TABLES[name])


def _numbered(rows: pa.Table, run: int, apart: int) -> pa.Table:
    if apart and "share_partition" in rows.column_names:
        place = rows.column_names.index("share_partition")
        moved = pc.add(rows["share_partition"], pa.scalar(run * apart, pa.int32()))
        rows = rows.set_column(place, "share_partition", moved)
    return rows.append_column("run", pa.repeat(pa.scalar(run, pa.int32()), rows.num_rows))


def _known(name: str, rows: pa.Table) -> pa.Table:
    if name not in BUCKETED:
        return rows
    fields, columns = [], []
    for field in rows.schema:
        column = rows[field.name]
        known = field.name not in OPTIONAL
        if known and column.null_count:
            column = pc.fill_null(column, pa.scalar(0, pa.int64()).cast(field.type))
        columns.append(column)
        fields.append(field.with_nullable(not known))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def with_required(spark: SparkSession, table: str, optional: Collection[str]) -> DataFrame:
    """Return a table over files of which all columns are never null, but for the optional ones.

    Spark takes all columns of files for nullable, whatever the table says: each value that a rule
    asks for is first looked up among the nulls, no condition on it reaches the index of the files,
    and it has three outcomes. That was a fifth of the time of the rules over deliveries. What is
    said here was looked at when the history was opened (:mod:`reports.analysis.files`). There is no
    way to say so in SQL or Python: the relation of files is copied with another schema, through
    Spark's own Scala interface.
    """
    session = spark._jsparkSession  # noqa: SLF001
    plan = spark.table(table)._jdf.queryExecution().analyzed()  # noqa: SLF001
    files = plan.collectLeaves().apply(0).relation()
    known = files.copy(
        files.location(),
        _required(spark, files.partitionSchema(), optional),
        _required(spark, files.dataSchema(), optional),
        files.bucketSpec(),
        files.fileFormat(),
        files.options(),
        files.sparkSession(),
    )
    return DataFrame(session.baseRelationToDataFrame(known), spark)


def _required(spark: SparkSession, schema: Any, optional: Collection[str]) -> Any:
    assert spark._jvm is not None  # noqa: SLF001
    found = spark._jvm.org.apache.spark.sql.types.StructType()  # noqa: SLF001
    for field in schema.fields():
        found = found.add(field.name(), field.dataType(), field.name() in optional)
    return found


_TYPES = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
}
MOST_LOGS = 100_000
_FEW = 5_000
"""Rows that are sent along with a query rather than kept by Spark."""
_GLOBS = "__globPaths__"
"""Spark's option to take a path for a pattern, which brackets and braces make of it."""


class Relations:
    """The relations of a session over registered tables, each registered when it is first needed.

    Working out what a query means takes a cold JVM a tenth of a second and more, so it is done
    while others are under way. Safe to use by several threads.
    """

    def __init__(self, spark: SparkSession, *, several: bool, held: bool) -> None:
        self._spark, self._several, self._held = spark, several, held
        self._known: set[str] = set()
        self._lock = Lock()

    def need(self, relations: Iterable[Relation]) -> None:
        with self._lock:
            for relation in in_order(relations):
                if relation.name not in self._known:
                    # Kept as a plan: a view of CREATE VIEW is read again whenever it is used.
                    sql = relation.query() if self._several else relation.of_one()
                    found = self._spark.sql(sql)
                    if self._held and relation.shared:
                        found = found.localCheckpoint(eager=True)
                    found.createOrReplaceTempView(relation.name)
                    if relation.sized and not self._held:
                        self._spark.sql(f"CACHE TABLE {relation.name}")
                    elif relation.cached and not self._held:
                        self._spark.sql(f"CACHE LAZY TABLE {relation.name}")
                    self._known.add(relation.name)


def register(
    spark: SparkSession,
    histories: Sequence[History],
    database: str,
    *,
    held: Collection[str] = (),
    room: Path | None = None,
) -> Relations:
    """Make the tables of histories the current database, and return the relations over them.

    Buckets that cannot be read are left out of all large tables alike, so that what is left can be
    judged; small tables that cannot be read are empty.

    Runs are numbered in this order. All rows of the tables that are ``held`` are in memory: those
    that are read in less time than it takes to plan how to read them. In ``room``, a directory of
    this machine, are links to what can be read of a history of which buckets cannot; they have to
    stay until all is unregistered. Without it such a history has to be alone.
    """
    if room and len(histories) > 1:
        histories = [_linked(one, room / database / str(run)) for run, one in enumerate(histories)]
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    rows = _rows(histories, held)
    for name in TABLES:
        table = _held(spark, rows[name]) if name in rows else _table(spark, histories, name)
        table.createOrReplaceTempView(name)
    spark.sql(release_text([history.version for history in histories])).createOrReplaceTempView(
        "release"
    )
    return Relations(spark, several=len(histories) > 1, held=BUCKETED.keys() <= set(held))


def keep_records(
    spark: SparkSession, relations: Iterable[Relation], places: Collection[tuple[int, int, int]]
) -> None:
    """Read what relations ask of records at some runs, logs and offsets, once for all of them.

    The files say where these are, so that few others are read where files are large. Those of many
    runs are small, and nearly every one of them is read: it has to be once, by compiled code.
    """
    here = at_places(places)
    read = {name for relation in relations for name in relation.reads}
    for name in BUCKETED.keys() & read:
        few = spark.table(name).where(here).localCheckpoint(eager=True)
        few.coalesce(1).createOrReplaceTempView(f"few_{name}")


def narrowed(
    spark: SparkSession, relation: Relation, places: Collection[tuple[int, int, int]]
) -> DataFrame:
    here = at_places(places)
    few = {
        name: f"(SELECT * FROM few_{name} WHERE {here})"  # noqa: S608 - numbers
        for name in BUCKETED.keys() & relation.reads
    }
    return spark.sql(relation.query(**few))


def unregister(spark: SparkSession, database: str) -> None:
    spark.catalog.clearCache()
    for view in spark.sql("SHOW VIEWS").collect():
        spark.catalog.dropTempView(view.viewName)
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {database} CASCADE")


def release_text(versions: Sequence[str] = ("",)) -> str:
    releases = [release_of(version) for version in versions]
    rows = (f"({one.close_uncounted}, {one.throttling}, {run})" for run, one in enumerate(releases))
    return f"SELECT * FROM VALUES {', '.join(rows)} AS t(close_uncounted, throttling, run)"  # noqa: S608


def _rows(histories: Sequence[History], names: Collection[str]) -> dict[str, pa.Table]:
    """Return those tables that have rows; none if one cannot be read, which Spark is to say."""
    try:
        return tables_of(histories, names)
    except (pa.ArrowException, OSError):
        return {}


def _held(spark: SparkSession, rows: pa.Table) -> DataFrame:
    table = spark.createDataFrame(rows).coalesce(1)
    return table.localCheckpoint(eager=False) if rows.num_rows > _FEW else table


def _table(spark: SparkSession, histories: Sequence[History], name: str) -> DataFrame:
    known = [
        (run, history)
        for run, history in enumerate(histories)
        if name not in history.lost_tables and history.rows(name)
    ]
    if not known:
        columns = ", ".join(f"CAST(NULL AS {kind}) AS {col}" for col, kind in _columns(name))
        return spark.sql(f"SELECT {columns}, 0 AS run LIMIT 0")
    if len(histories) > 1:
        _create(spark, histories, name, known)
    elif name in BUCKETED:
        _create(spark, histories, name)
    else:
        schema = ", ".join(f"`{column}` {kind}" for column, kind in _columns(name))
        reader = spark.read.schema(schema).option(_GLOBS, "false")
        return reader.parquet(_location(histories[0], name)).selectExpr("*", "0 AS run")
    table = spark.table(f"all_{name}")
    if name in BUCKETED:
        table = with_required(spark, f"all_{name}", OPTIONAL)
    if len(histories) == 1:
        table = table.selectExpr("*", "0 AS run")
    elif "share_partition" in table.columns:
        moved = f"share_partition + {stride(histories)} * run"
        table = table.withColumn("share_partition", expr(moved))
    if len(histories) == 1 and histories[0].lost_buckets:
        return table.where(_good_logs(spark, histories[0]))
    return table


def _create(
    spark: SparkSession,
    histories: Sequence[History],
    name: str,
    parts: Sequence[tuple[int, History]] = (),
) -> None:
    columns = [f"`{column}` {kind}" for column, kind in _columns(name)]
    layout = ""
    if name in BUCKETED:
        order, buckets = ", ".join(BUCKETED[name]), histories[0].manifest.buckets
        layout = f"CLUSTERED BY (log) SORTED BY ({order}) INTO {buckets} BUCKETS"
    first = parts[0][1] if parts else histories[0]
    spark.sql(
        f"CREATE TABLE all_{name} ({', '.join([*columns, *(['run INT'] if parts else [])])}) "
        f"USING parquet OPTIONS ({_GLOBS} 'false') {'PARTITIONED BY (run)' if parts else ''} "
        f"{layout} LOCATION {_quoted(_location(first, name))}"
    )
    if parts:
        places = (
            f"PARTITION (run = {run}) LOCATION {_quoted(_location(history, name))}"
            for run, history in parts
        )
        spark.sql(f"ALTER TABLE all_{name} ADD {' '.join(places)}")


def _linked(history: History, folder: Path) -> History:
    """Return a history that has only files that can be read, by links to them in a directory."""
    if not history.lost_buckets:
        return history
    for name in TABLES:
        (folder / name).mkdir(parents=True)
        for file in history.readable(name):
            (folder / file.path).symlink_to((history.folder / file.path).absolute())
    return replace(history, folder=folder)


def _location(history: History, name: str) -> str:
    """Return where a table is, as Hadoop reads it: nothing is escaped, unlike in a URI."""
    if isinstance(history.folder, PosixPath):
        return f"file://{(history.folder / name).absolute()}"
    return re.sub("^s3:", "s3a:", str(history.folder / name))


def _quoted(text: str) -> str:
    return "'" + re.sub(r"[\\']", r"\\\g<0>", text) + "'"


def _columns(name: str) -> Iterable[tuple[str, str]]:
    return [(field.name, _TYPES[field.type]) for field in TABLES[name]]


def _good_logs(spark: SparkSession, history: History) -> str:
    rows = (
        _table(spark, [history], "share_partitions")
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
