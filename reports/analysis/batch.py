"""Judges histories together in a session: verdicts, and what a page tells of each run."""

import contextlib
import itertools
import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from reports.analysis.files import History, span, together
from reports.analysis.judge import Found, Judged, Tell, judge
from reports.analysis.relations import DELIVERY_PAIRS, PARTITIONS
from reports.analysis.rules import Invariant
from reports.analysis.session import (
    COMPILED,
    COMPILED_ROWS,
    IN_ONE_PART,
    SMALL_ROWS,
    configured,
    is_local,
)
from reports.analysis.stories import stories
from reports.analysis.tables import Relations, register, unregister
from reports.analysis.timeline import Course, distributions, marks, reached, timelines
from reports.results import Measure, Reached
from spec.history import BUCKETED, TABLES

EVERY = 10.0


@contextlib.contextmanager
def progress(spark: SparkSession, tell: Callable[[str], None]) -> Iterator[None]:
    ending = threading.Event()
    thread = threading.Thread(target=_tell_now_and_then, args=(spark, tell, ending), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _tell_now_and_then(
    spark: SparkSession, tell: Callable[[str], None], ending: threading.Event
) -> None:
    tracker, told = spark.sparkContext.statusTracker(), ""
    while not ending.wait(EVERY):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        # What has one part only is over soon.
        long = [stage for stage in stages if stage is not None and stage.numTasks > 1]
        said = ", ".join(f"{stage.numCompletedTasks} of {stage.numTasks}" for stage in long)
        if said and said != told:
            tell(f"  {said} parts of the history done")
            told = said


_NUMBERS = itertools.count()
Drawn = tuple[History, int]
"""A history, and in how many intervals it is drawn: 0 if verdicts and witnesses are all."""


def judge_batches(
    spark: SparkSession, histories: Sequence[Drawn], invariants: Sequence[Invariant], tell: Tell
) -> list[Judged]:
    """Judge histories by every invariant, as many together as may be.

    Where a query over many fails, each is judged by itself: one that cannot be read is no error of
    the others.
    """
    found: list[Judged] = []
    here = is_local(str(spark.sparkContext.master))
    with tempfile.TemporaryDirectory(prefix="shareproof-") as folder:
        judge_some = partial(_judge_together, spark, Path(folder), invariants, tell)
        for places in together([history for history, _ in histories], here=here):
            some = [histories[at] for at in places]
            judged = judge_some(some)
            if len(some) > 1 and any(one.fault for each in judged for one in each.found.values()):
                judged = [judge_some([one])[0] for one in some]
            found += judged
    return found


def _judge_together(
    spark: SparkSession,
    room: Path,
    invariants: Sequence[Invariant],
    tell: Tell,
    asked: Sequence[Drawn],
) -> list[Judged]:
    histories = [history for history, _ in asked]
    draw = any(intervals for _, intervals in asked)
    database = f"history_{os.getpid()}_{next(_NUMBERS)}"
    rows = sum(file.rows for one in histories for file in one.manifest.files)
    held = _held(spark, histories)
    settings = {**IN_ONE_PART, **(COMPILED if rows >= COMPILED_ROWS else {})}
    try:
        with configured(spark, settings, when=BUCKETED.keys() <= set(held)), progress(spark, tell):
            relations = register(spark, histories, database, held=held, room=room)
            with ThreadPoolExecutor(1) as pool:
                # What is drawn of all histories is asked beside the rules.
                drawing = pool.submit(_drawn, spark, asked, relations, tell) if draw else None
                found = judge(spark, histories, relations, invariants, tell)
            if drawing is None:
                return [Judged(*one, [], [], {}) for one in zip(histories, found, strict=True)]
            measured, states, lines = drawing.result()
            told = _with_cases(spark, histories, found, lines, tell)
            return [
                Judged(*one) for one in zip(histories, found, measured, states, told, strict=True)
            ]
    finally:
        unregister(spark, database)


def _drawn(
    spark: SparkSession, asked: Sequence[Drawn], relations: Relations, tell: Tell
) -> tuple[list[list[Measure]], list[list[Reached]], list[dict[str, Any]]]:
    histories = [history for history, _ in asked]
    relations.need([PARTITIONS, DELIVERY_PAIRS])
    tell(f"{histories[0].folder}: distributions and timeline")
    rows = [one.rows("deliveries") for one in histories]
    measured = distributions(spark, rows)
    faulty = [bool(one.rows("faults")) for one in histories]
    states = reached(spark, len(histories)) if any(faulty) else [[] for _ in histories]
    seen = zip(states, faulty, strict=True)
    courses = []
    for (history, intervals), many in zip(asked, rows, strict=True):
        began, ended = span(history)
        courses.append(Course(since=began, until=ended, intervals=intervals, rows=many))
    lines = timelines(spark, courses)
    return measured, [some if disturbed else [] for some, disturbed in seen], lines


def _held(spark: SparkSession, histories: Sequence[History]) -> Collection[str]:
    small = [name for name in TABLES if name not in BUCKETED]
    if is_local(str(spark.sparkContext.master)):
        for names in (list(TABLES), small):
            if sum(one.rows(name) for one in histories for name in names) < SMALL_ROWS:
                return names
    return ()


def _with_cases(
    spark: SparkSession,
    histories: Sequence[History],
    found: Sequence[Mapping[str, Found]],
    lines: Sequence[dict[str, Any]],
    tell: Tell,
) -> list[dict[str, Any]]:
    tell(f"{histories[0].folder}: stories")
    hits = [[hit for one in said.values() for hit in one.hits] for said in found]
    began = [span(history)[0] for history in histories]
    told = stories(spark, hits, began)
    return [
        {"timeline": {**line, "marks": marks(mine, at)} if line else {}, "stories": some}
        for line, mine, at, some in zip(lines, hits, began, told, strict=True)
    ]
