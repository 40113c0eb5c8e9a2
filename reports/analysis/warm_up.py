"""Spark's start before a run has drained: its JVM, tried on what the run has recorded so far.

A JVM that was just started spends most of the time that a small history takes on loading classes,
on planning by code that is interpreted, and on compiling what it plans. Little of that needs the
whole history: what is compiled for the first half of a run is there for all of it.
"""

import contextlib
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reports.analysis.batch import judge_batches
from reports.analysis.files import History, open_history
from reports.analysis.judge import Judged, Request, Tell
from reports.analysis.rules import load_invariants
from reports.analysis.session import MEDIUM_ROWS, is_local, open_session, settings_for
from reports.analysis.timeline import INTERVALS
from spec.history import BUCKETED, TABLES, File, Manifest, bucket_of
from spec.verdict import EnvironmentFault

_TURNS = 2
"""How often what there is so far is judged. The second time all is compiled but the planner, which
the JVM compiles then."""
Recorded = Callable[[Path, threading.Event], bool]
"""Makes a run of what was recorded so far, and tells whether there is any; raises ``Enough`` if it
is not done when the event is set."""


def warm(request: Request, rows: int, recorded: Recorded) -> Callable[[], None]:
    """Start Spark in the background, at the lowest priority, so that nothing else is disturbed.

    Args:
        request: says where Spark runs, and how.
        rows: how many rows there may be to judge. For very many the JVM is started otherwise, and
            nothing is gained.
        recorded: makes what to try.

    Returns:
        A function that ends the warming, after the query under way; the JVM has the usual priority
        from then on. The session is the one that ``analyse`` opens next.
    """
    if rows > MEDIUM_ROWS // 3 or not is_local(request.master):
        return lambda: None
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    hurried = threading.Event()
    thread = threading.Thread(target=_warm, args=(request, rows, recorded, hurried), daemon=True)
    thread.start()

    def wait() -> None:
        hurried.set()
        _hurry(usual)
        thread.join()
        _hurry(usual)

    return wait


class Enough(Exception):
    """The history is there: what was not tried by now is met there."""


def _warm(request: Request, rows: int, recorded: Recorded, hurried: threading.Event) -> None:
    def tell(_: str) -> None:
        if hurried.is_set():
            raise Enough

    # On Linux that is about this thread, and about the JVM that it starts.
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)
    settings = {**settings_for(rows), **request.settings}
    # Whatever is wrong is said when the history is judged.
    with contextlib.suppress(
        Enough, PySparkException, Py4JError, EnvironmentFault, OSError, ValueError
    ):
        spark = open_session(request.master, request.memory, settings)
        with tempfile.TemporaryDirectory(prefix="shareproof-warm-") as name:
            folder = Path(name)
            for turn in range(_TURNS):
                run = folder / str(turn)
                if recorded(run, hurried):
                    try_on_run(spark, run, rows, tell)
                elif not turn:
                    try_on_one_row(spark, folder, rows, tell)


def try_on_run(spark: SparkSession, run: Path, rows: int, tell: Tell) -> list[Judged]:
    """Judge and draw a run as one of so many rows is judged; ``tell`` may end it by raising."""
    found = open_history(run)
    files = list(found.manifest.files)
    for at, file in enumerate(files):
        if file.table == "deliveries" and file.rows:
            others = sum(one.rows for one in files) - file.rows
            files[at] = replace(file, rows=max(file.rows, rows - others))
            break
    history = replace(found, manifest=replace(found.manifest, files=tuple(files)))
    return judge_batches(spark, [(history, INTERVALS)], load_invariants(), tell)


def try_on_one_row(spark: SparkSession, folder: Path, rows: int, tell: Tell) -> list[Judged]:
    """Do so with a history that has a row in each table."""
    files = []
    for name, schema in TABLES.items():
        path = f"{name}/part-00000.parquet"
        if name in BUCKETED:
            path = f"{name}/part-00000_{bucket_of(0):05}.parquet"
        (folder / name).mkdir()
        columns = [pa.array(["" if one.type == pa.string() else 0]) for one in schema]
        row = [column.cast(one.type) for column, one in zip(columns, schema, strict=True)]
        pq.write_table(pa.Table.from_arrays(row, schema=schema), folder / path)
        many = rows if name == "deliveries" else 1
        bucket = bucket_of(0) if name in BUCKETED else -1
        files.append(File(table=name, path=path, rows=many, size=0, crc=0, bucket=bucket))
    history = History(folder=folder, manifest=Manifest(files=tuple(files)), run={})
    return judge_batches(spark, [(history, INTERVALS)], load_invariants(), tell)


def _hurry(priority: int) -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):
            if "SparkSubmit" in " ".join(process.cmdline()):
                for thread in process.threads():
                    os.setpriority(os.PRIO_PROCESS, thread.id, priority)
