"""Which interesting states a run got into: what was never reached was not tested either.

A state is a question to each delivery, and may ask what was broken at a moment. None of them has to
be reached by every run; a report says of each how often it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from reports.analysis.queries import by_run
from reports.analysis.session import by_runs
from reports.results import Reached

MOST_WINDOWS = 100

Window = Mapping[str, Any]
Question = Callable[[Sequence[Window]], str]
"""Gives an expression over ``delivery_pairs``, for the windows of the faults it asks about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state; ``faults`` are beginnings of the names of faults that it is about, all if none."""

    name: str
    faults: tuple[str, ...] = ()
    question: Question


def _always(expression: str) -> Question:
    return lambda _: expression


def _each(template: str) -> Question:
    """Ask the same of each window; ``{since}`` and ``{until}`` are its ends."""

    def question(windows: Sequence[Window]) -> str:
        asked = [f"({template.format(**window)})" for window in windows]
        return " OR ".join(asked) or "false"

    return question


_KEEPERS = ("kill-share", "stop-share", "pause-share", "cut-share", "state-below", "fail-state")
_SAID = "kind IN (1, 2, 3)"
_UNDER_WAY = _SAID + " AND ack_sent < {since} AND ack_received > {since}"

STATES = (
    State(
        name="an acknowledgement was under way when a broker was killed",
        faults=("kill-",),
        question=_each(_UNDER_WAY),
    ),
    State(
        name="an acknowledgement was under way when its leader was replaced in order",
        faults=("elect-leader", "reassign-leader", "stop-leader"),
        question=_each(_UNDER_WAY),
    ),
    State(
        name="an acknowledgement succeeded less than a second before a broker was killed",
        faults=("kill-",),
        question=_each(
            f"{_SAID} AND proven AND ack_received BETWEEN {{since}} - 1000000000 AND {{since}}"
        ),
    ),
    State(
        name="a lock ran out while its state could not be stored",
        faults=_KEEPERS,
        question=_each("(kind = 0 OR outcome <> 1) AND ends_by BETWEEN {since} AND {until}"),
    ),
    State(
        name="an acknowledgement failed while its state could not be stored",
        faults=_KEEPERS,
        question=_each(f"{_SAID} AND outcome = 2 AND ack_sent BETWEEN {{since}} AND {{until}}"),
    ),
    State(
        name="records were delivered while a broker was away",
        faults=("kill-", "stop-", "pause-", "rolling-", "state-below"),
        question=_each("acquired BETWEEN {since} + 1000000000 AND {until}"),
    ),
    State(
        name="a consumer slept through the end of its lock",
        faults=("nap-",),
        question=_each("acquired < {since} AND ends_by BETWEEN {since} AND {until}"),
    ),
    State(name="an acknowledgement got no response", question=_always(f"{_SAID} AND outcome = 3")),
    State(
        name="an acceptance without a response had been carried out",
        question=_always("kind = 1 AND outcome = 3 AND next_op IS NULL AND drained"),
    ),
    State(
        name="an acceptance without a response had not been carried out",
        question=_always("kind = 1 AND outcome = 3 AND next_op IS NOT NULL"),
    ),
    State(
        name="an acceptance was refused, and the record came again",
        question=_always("kind = 1 AND outcome = 2 AND next_op IS NOT NULL"),
    ),
    State(
        name="an acceptance was refused, and had been carried out all the same",
        question=_always("kind = 1 AND outcome = 2 AND next_op IS NULL AND drained"),
    ),
    State(
        name="an acceptance came after its lock had ended, and succeeded",
        question=_always("kind = 1 AND outcome = 1 AND ack_sent > ends_by"),
    ),
    State(
        name="a share-partition was loaded while a record of it was held",
        question=_always("loads_by_ack > loads_before_fetch"),
    ),
    State(
        name="a delivery count fell back when a share-partition was loaded",
        question=_always("next_op IS NOT NULL AND next_count <= count AND NOT no_load_between"),
    ),
    State(
        name="a record was delivered for the last time that the limit allows",
        question=_always("count >= lowest_limit"),
    ),
)


def reached(spark: SparkSession, runs: int = 1) -> list[list[Reached]]:
    """Return how often each run got into each state; one query over the registered histories."""
    found = spark.table("faults").orderBy("run", "since").limit(MOST_WINDOWS * runs).collect()
    windows = [[row.asDict() for row in mine] for mine in by_runs(found, runs)]
    columns = [
        f"count_if({by_run([_asked(state, some) for some in windows])}) AS s{n}"
        for n, state in enumerate(STATES)
    ]
    counted = f"SELECT run, {', '.join(columns)} FROM delivery_pairs GROUP BY run"  # noqa: S608
    rows = {row.run: row for row in spark.sql(counted).collect()}
    return [
        [
            Reached(state=state.name, count=rows[run][f"s{n}"] if run in rows else 0)
            for n, state in enumerate(STATES)
        ]
        for run in range(runs)
    ]


def _asked(state: State, windows: Sequence[Window]) -> str:
    about = [
        window
        for window in windows
        if window["proof"] and (not state.faults or window["kind"].startswith(state.faults))
    ]
    return state.question(about)
