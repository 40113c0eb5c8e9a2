"""Tells how far a long query has come, so that nobody takes an hour's work for a hang."""

import contextlib
import threading
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

EVERY = 10.0


@contextlib.contextmanager
def progress(spark: SparkSession, tell: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, tell now and then how far the query under way has come."""
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
