"""Which interesting states a run got into: what was never reached was not tested either.

A state is a question to each delivery, and may ask what was broken at a moment. None of them has to
be reached by every run; a report says of each how often it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

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


_GOES = ("kill-", "stop-", "pause-", "rolling-", "state-below")
_KEEPERS = ("kill-share", "stop-share", "pause-share", "cut-share", "state-below", "fail-state")
_MOVES = ("elect-leader", "reassign-leader", "stop-leader")
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
        faults=_MOVES,
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
        faults=_GOES,
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
        question=_always("kind = 1 AND outcome = 3 AND next_op IS NULL AND dry"),
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
        question=_always("kind = 1 AND outcome = 2 AND next_op IS NULL AND dry"),
    ),
    State(
        name="an acceptance came after its lock had ended, and succeeded",
        question=_always("kind = 1 AND outcome = 1 AND ack_sent > ends_by"),
    ),
    State(
        name="a share-partition was loaded while a record of it was held",
        question=_always("loads_by_ack > loads_by_acquire"),
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


def reached(spark: SparkSession) -> list[Reached]:
    """Return how often each state was reached; one query over the registered history."""
    found = spark.table("faults").orderBy("since").limit(MOST_WINDOWS).collect()
    windows = [row.asDict() for row in found]
    columns = [f"count_if({_asked(state, windows)}) AS s{n}" for n, state in enumerate(STATES)]
    row = spark.sql(f"SELECT {', '.join(columns)} FROM delivery_pairs").collect()[0]  # noqa: S608
    return [Reached(state=state.name, count=row[f"s{n}"]) for n, state in enumerate(STATES)]


def _asked(state: State, windows: Sequence[Window]) -> str:
    about = [
        window
        for window in windows
        if window["proof"] and (not state.faults or window["kind"].startswith(state.faults))
    ]
    return state.question(about)
