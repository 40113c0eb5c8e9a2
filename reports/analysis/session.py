"""A Spark session that suits the judge."""

import contextlib
import logging
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Row, SparkSession

from spec.verdict import EnvironmentFault

_STDERR = 2
_CHATTER = re.compile(
    rb"WARNING: |Picked up \w*JAVA\w*OPTIONS|Using Spark's default log4j|"
    rb"Setting default log level|Setting Spark log level|To adjust logging level|"
    rb"SLF4J: |\d\d/\d\d/\d\d \d\d:\d\d:\d\d (WARN|INFO) "
)
"""How lines begin that tell nobody anything: which modules it uses, how to change its log level."""
_ENDS_WITHIN = 5.0


@contextlib.contextmanager
def without_chatter() -> Iterator[None]:
    """Filter what processes started here print on standard error, for as long as they live.

    Their descriptor is a pipe from here on; ours is put back at the end. If the body fails, what is
    left in the pipe is shown first, so that the error stands below the reasons for it.
    """
    readable, writable = os.pipe()
    screen = os.dup(_STDERR)
    os.dup2(writable, _STDERR)
    os.close(writable)
    shown = threading.Thread(target=_show, args=(readable, screen), daemon=True)
    shown.start()
    try:
        yield
    except BaseException:
        os.dup2(screen, _STDERR)
        shown.join(_ENDS_WITHIN)
        raise
    os.dup2(screen, _STDERR)


def _show(readable: int, screen: int) -> None:
    with open(readable, "rb") as lines, open(screen, "wb", buffering=0) as shown:
        for line in lines:
            if not _CHATTER.match(line):
                with contextlib.suppress(OSError):
                    shown.write(line)


def _is_news(logged: logging.LogRecord) -> bool:
    # After Ctrl-C Spark's own handler asks a connection in use, of which Py4J logs pages.
    return "while sending command" not in logged.getMessage()


_TASKS = "Executor task"
_CALLED = "Thread-"
"""How the names of threads begin that run tasks, and of those that carry out calls from Python."""


def share_classes(spark: SparkSession) -> None:
    """Give the threads that plan, and those that these start later, the class loader of tasks.

    Both compile the code of a query, each for its own loader, although they are one process: all of
    it was compiled twice. A task's loader finds all that the planner's does.
    """
    java = spark._jvm.java  # type: ignore[union-attr]  # noqa: SLF001
    one = java.util.ArrayList()
    one.append(0)
    spark._jsc.parallelize(one).count()  # noqa: SLF001
    threads = {one.getName(): one for one in java.lang.Thread.getAllStackTraces().keySet()}
    loaders = [
        one.getContextClassLoader() for name, one in threads.items() if name.startswith(_TASKS)
    ]
    for name, one in threads.items() if loaders else ():
        if name.startswith(_CALLED):
            one.setContextClassLoader(loaders[0])


_LOOPBACK = "127.0.0.1"
_OPTIONS = "spark.driver.extraJavaOptions"
_AT_ONCE = 2
Answer = TypeVar("Answer")

_HUGE = "-XX:-DontCompileHugeMethods"
"""All rules over a view become one method, and the JVM only interprets those over 8000 bytes."""
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for queries that read less than there would be to compile."""
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}
"""Spark's own, for a session that was opened for fewer rows than there are in the end."""
IN_ONE_PART = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
"""Settings for tables that are in one part each: no join has to send one side to the other."""
_QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:NewSize=200m -XX:MetaspaceSize=256m"
)
"""The quick compiler alone. Without the optimising one the JVM has less room for compiled code, and
threw away what it compiled."""
SMALL = {
    **INTERPRETED,
    "spark.sql.shuffle.partitions": "1",
    # Every join and sort of every query takes a page: usually of a sixteenth of a core's memory.
    "spark.buffer.pageSize": "1m",
    _OPTIONS: f"{_QUICK} -XX:+UseSerialGC",
}
"""Settings for histories that are read faster than a compiler can be started."""
SMALL_ROWS = 120_000
COMPILED_ROWS = 50_000
"""From how many rows, held in memory, compiling queries takes less time than it saves."""
MEDIUM = {**COMPILED, "spark.sql.shuffle.partitions": "2", _OPTIONS: f"{_QUICK} -XX:+UseParallelGC"}
"""Settings for histories over which the optimising compiler would spend more than it gains."""
MEDIUM_ROWS = 6_000_000
_FOR_ROWS_ALONE = (
    "-XX:Tier4InvocationThreshold=100000 -XX:Tier4CompileThreshold=300000 "
    "-XX:Tier4BackEdgeThreshold=300000"
)
_PLANNER = Path(__file__).with_name("compiler.json")
"""What runs for each query and not for each row: parser, planner, code generator, class files."""
LARGE = {
    **COMPILED,
    # Rules that share a part would keep it in a field of the task, which costs more than to work it
    # out again; and columns outside the heap are read without a look at their length.
    "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.columnVector.offheap.enabled": "true",
    _OPTIONS: (
        f"-XX:+UseParallelGC -XX:MetaspaceSize=256m {_FOR_ROWS_ALONE} "
        "-XX:+UnlockDiagnosticVMOptions -XX:-DisplayVMOutput "
        f"'-XX:CompilerDirectivesFile={_PLANNER}'"
    ),
}
"""Settings that keep the optimising compiler to what runs for every row.

By its usual thresholds it spent three quarters of its time on the parser, the planner and class
loaders, which run for some seconds in all, while the rules waited for their turn. What of these
still reached the thresholds took it a fifth of its time: it leaves them to the quick compiler.
"""
ALL_BRANCHES = "-XX:PerMethodTrapLimit=0 -XX:PerBytecodeTrapLimit=0"
"""Options of the JVM for ``LARGE`` on Java 17, for who knows which Java Spark will take.

The optimising compiler leaves out branches that no row has taken yet: the first row that takes one
sends the whole method back to the interpreter. Rows of a kind that is rare did that to the rules
over deliveries three times, for seven seconds. Java 25 recovers by itself: there these options cost
a quarter of the time.
"""


def settings_for(rows: int) -> dict[str, str]:
    return SMALL if rows < SMALL_ROWS else MEDIUM if rows < MEDIUM_ROWS else LARGE


def is_local(master: str) -> bool:
    return master.startswith("local")


def open_session(
    master: str = "local[*]", memory: str = "1g", settings: dict[str, str] | None = None
) -> SparkSession:
    """Return a session, in which ``settings`` win over ours; raises EnvironmentFault."""
    here = is_local(master) or "//127.0.0.1" in master or "//localhost" in master
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
        # Every join, sort and aggregate of a query takes a page, usually of a sixteenth of a core's
        # memory: half of the time of garbage collection was about these.
        "spark.buffer.pageSize": "2m",
        # All rules are some hundreds of classes, and Spark keeps a hundred by default.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # What is shuffled is small, so planning it again while it runs costs more than it gains.
        "spark.sql.adaptive.enabled": "false",
        # Where rows come by record, records need no hash table and no memory.
        "spark.sql.execution.replaceHashWithSortAgg": "true",
        _OPTIONS: "-XX:+UseParallelGC",
        "spark.sql.session.timeZone": "UTC",
        # The files of a bucket are sorted, and each bucket has one: that is what the recorder's
        # layout is for, and only these two settings let Spark believe it.
        "spark.sql.legacy.bucketedTableScan.outputOrdering": "true",
        "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
        # Witnesses are looked for at some offsets, and the files have an index of these.
        "spark.sql.parquet.pushdown.inFilterThreshold": "1000",
        # A join by log and offset is at home in buckets by log alone.
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        # Where the files of many runs are is asked by one thread sooner than by a task for each.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.log.level": "ERROR",
        **({"spark.driver.bindAddress": _LOOPBACK, "spark.driver.host": _LOOPBACK} if here else {}),
        **(settings or {}),
    }
    for name in (_OPTIONS, "spark.executor.extraJavaOptions"):
        chosen[name] = f"{chosen.get(name, '')} {_HUGE}".strip()
    builder = SparkSession.builder.master(master).appName("shareproof")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    try:
        with without_chatter():
            spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise EnvironmentFault(
            f"Spark does not start; what Java said stands above: {error}"
        ) from None
    logging.getLogger().addFilter(_is_news)
    if is_local(master):
        share_classes(spark)
    return spark


@contextlib.contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str], *, when: bool) -> Iterator[None]:
    usual = {name: spark.conf.get(name) or value for name, value in settings.items()}
    for name, value in settings.items() if when else ():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in usual.items() if when else ():
            spark.conf.set(name, value)


def sibling_session(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    found = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())  # noqa: SLF001
    for name, value in settings.items():
        found.conf.set(name, value)
    return found


def run_parallel(ask: Callable[..., Answer], questions: Iterable[Sequence[Any]]) -> list[Answer]:
    """Ask questions, and return what is said to each.

    Two are asked at the same time: while one is worked out, the next is planned and compiled, and
    what a query leaves idle at the end of its stages is used.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda question: ask(*question), questions))


def by_runs(rows: Iterable[Row], runs: int) -> list[list[Row]]:
    found: list[list[Row]] = [[] for _ in range(runs)]
    for row in rows:
        found[row.run].append(row)
    return found


def fetched(spark: SparkSession, queries: Iterable[str]) -> list[list[Row]]:
    return run_parallel(lambda query: spark.sql(query).collect(), [[query] for query in queries])
