"""How a run went, not only whether it was right: interval by interval, and by phase and fault.

A page draws the intervals, and no more than a page can draw. Spark does all counting; back come a
few hundred intervals, however long the run was. Times are seconds since the run began, counts are
per second, and None stands where nothing was seen.

Distributions of times and counts, by phase and fault, come of one query. So do the interesting
states that a run got into: what was never reached was not tested either. A state is a question to
each delivery, and may ask what was broken at a moment. None of them has to be reached by every run;
a report says of each how often it was.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pyspark.sql import Row, SparkSession

from reports.analysis.queries import by_run
from reports.analysis.session import by_runs, fetched
from reports.analysis.stories import Hit
from reports.results import Measure, Reached

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


MOST_MEASURED = 40
MOST_ROWS = 2_000_000
"""Deliveries that are measured in full; percentiles of more would tell no more."""
_MS = 1_000_000
_QUANTILES = "array(0.5, 0.9, 0.99, 1.0)"

MEASURES = {
    "deliveries of a record": "CASE WHEN next_op IS NULL THEN count END",
    "lock age at its end, ms": (
        f"CASE WHEN kind IN (1, 2, 3) AND outcome = 1 THEN (ack_received - acquired) DIV {_MS} END"
    ),
    "redelivery after a release, ms": (
        f"CASE WHEN kind = 2 AND outcome = 1 THEN (next_acquired - ack_sent) DIV {_MS} END"
    ),
    # Of those whose lock did not end before.
    "redelivery after a session's end, ms": (
        "CASE WHEN kind = 5 AND next_acquired >= ack_sent "
        f"THEN (next_acquired - ack_sent) DIV {_MS} END"
    ),
    "redelivery after a lock's end, ms": (
        f"CASE WHEN kind = 0 THEN (next_acquired - ends_by) DIV {_MS} END"
    ),
    "response to an acknowledgement, ms": (
        f"CASE WHEN kind IN (1, 2, 3) AND outcome = 1 THEN (ack_received - ack_sent) DIV {_MS} END"
    ),
}
"""What is measured, as expressions over the view ``delivery_pairs``."""


def distributions(spark: SparkSession, rows: Sequence[int] = (0,)) -> list[list[Measure]]:
    """Return for each run count, median, high percentiles and maximum of measures by window.

    ``rows`` is how many deliveries each has, if known. Of very many every nth record is measured,
    and the results say ``one_in`` how many that was.
    """
    sampled = [one_in(some) for some in rows]
    columns = [
        f"percentile_approx({measure}, {_QUANTILES}, 10000) AS q{number}, "
        f"count({measure}) AS n{number}"
        for number, measure in enumerate(MEASURES.values())
    ]
    query = f"""
        SELECT run, {by_run(_fault_windows(spark, len(rows)))} AS at, {", ".join(columns)}
        FROM delivery_pairs WHERE {_sample(sampled)} GROUP BY 1, 2 ORDER BY 1, 2
    """  # noqa: S608 - our own expressions
    found: list[list[Measure]] = [[] for _ in rows]
    for row in spark.sql(query).collect():
        for number, name in enumerate(MEASURES):
            quantiles: Sequence[int] | None = row[f"q{number}"]
            if quantiles:
                median, p90, p99, most = quantiles
                found[row["run"]].append(
                    Measure(
                        during=row["at"],
                        measure=name,
                        count=row[f"n{number}"],
                        median=median,
                        p90=p90,
                        p99=p99,
                        max=most,
                        one_in=sampled[row["run"]],
                    )
                )
    return found


def one_in(rows: int) -> int:
    return max(1, rows // MOST_ROWS)


def _sample(sampled: Sequence[int]) -> str:
    """Return the expression that chooses records, with all of their deliveries."""
    if max(sampled) == 1:
        return "true"
    return f"pmod(hash(offset), {by_run([str(one) for one in sampled])}) = 0"


def _fault_windows(spark: SparkSession, runs: int) -> list[str]:
    faults = spark.table("faults").selectExpr(
        "run", "concat(kind, ' of ', subject) AS name", "since", "until"
    )
    phases = spark.table("phases").selectExpr("run", "phase AS name", "since", "until")
    windows = [
        row
        for table in (faults, phases)
        for row in table.orderBy("run", "since").limit(MOST_MEASURED * runs).collect()
    ]
    return [_window(mine) for mine in by_runs(windows, runs)]


def _window(windows: Sequence[Row]) -> str:
    cases = [
        f"WHEN acquired BETWEEN {row.since} AND {row.until} THEN {_quoted(row.name)}"
        for row in windows
    ]
    return f"CASE {' '.join(cases)} ELSE 'outside' END" if cases else "'run'"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


INTERVALS = 600
INTERVALS_OF_ALL = 6000
"""How many intervals all runs of a page have together."""
FEWEST_INTERVALS = 120
SHORTEST = 200_000_000
_SECOND = 1e9
MOST_FAULTS = 500

Timeline = dict[str, Any]


def intervals_for(runs: int) -> int:
    return max(FEWEST_INTERVALS, min(INTERVALS, INTERVALS_OF_ALL // max(1, runs)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    since: int  # From when to when, in nanoseconds of its clock.
    until: int
    intervals: int = INTERVALS  # How many there are to be at most.
    rows: int = 0  # How many deliveries there are. Of very many only some are looked at.

    @property
    def step(self) -> int:
        """How long each interval is, in nanoseconds."""
        return max(SHORTEST, -(-(self.until - self.since) // max(1, self.intervals)))


def timelines(spark: SparkSession, runs: Sequence[Course]) -> list[Timeline]:
    """Return the timelines of the registered histories; an empty one for a run without length.

    What breaks a rule is known later, and is marked in them then (:func:`marks`).

    ``runs`` says for each history, in their order, what to draw.
    """
    asked = {
        "since": by_run([f"{run.since}L" for run in runs]),
        "step": by_run([f"{run.step}L" for run in runs]),
        "one_in": by_run([str(one_in(run.rows)) for run in runs]),
    }
    names = ("produced", "flows", "responses", "samples", "partitions", "faults", "phases")
    said = fetched(spark, [_query(name, asked) for name in names])
    of_runs = [by_runs(rows, len(runs)) for rows in said]
    return [
        _drawn(run, dict(zip(names, mine, strict=True))) if run.until > run.since else {}
        for run, *mine in zip(runs, *of_runs, strict=True)
    ]


def _drawn(run: Course, found: Mapping[str, Sequence[Any]]) -> Timeline:
    count, seconds = (run.until - run.since) // run.step + 1, run.step / _SECOND
    responses = found["responses"]
    return {
        "began": run.since,
        "step": seconds,
        "bins": count,
        "produced": _rates(found["produced"], "records", count, seconds),
        "groups": _groups(found["flows"], count, seconds),
        "response_ms": {
            name: _column(
                ((row["bin"], round(row["quantiles"][at], 2)) for row in responses), count
            )
            for at, name in enumerate(("median", "p99"))
        },
        "partitions": [
            {
                "group": name["group"],
                "partition": f"{name['topic']}-{name['partition']}",
                # Seldom seen compared with what is counted: intervals only where something was.
                "seen": sorted(
                    (round(row["bin"] * seconds, 2), row["spso"], row["lag"])
                    for row in found["samples"]
                    if row["share_partition"] == name["share_partition"]
                ),
            }
            for name in found["partitions"]
            if any(row["share_partition"] == name["share_partition"] for row in found["samples"])
        ],
        "faults": _windows(found["faults"], "kind subject", run.since),
        "phases": _windows(found["phases"], "phase", run.since),
    }


def marks(hits: Sequence[Hit], began: int) -> list[dict[str, Any]]:
    return [
        {
            "rule": hit.rule,
            "at": round((hit.since - began) / _SECOND, 3) if hit.since else None,
            "text": hit.sentence,
        }
        for hit in hits
    ]


def _query(name: str, asked: Mapping[str, str]) -> str:
    file = resources.files("reports") / "analysis" / "timeline_queries" / f"{name}.sql"
    return file.read_text(encoding="utf-8").format(**asked)


def _column(pairs: Any, count: int) -> list[Any]:
    column: list[Any] = [None] * count
    for interval, value in pairs:
        if 0 <= interval < count:
            column[interval] = value
    return column


def _rates(rows: Sequence[Any], name: str, count: int, seconds: float) -> list[float]:
    found = _column(((row["bin"], row[name]) for row in rows), count)
    return [round((value or 0) / seconds, 1) for value in found]


def _groups(rows: Sequence[Any], count: int, seconds: float) -> list[dict[str, Any]]:
    found = []
    for group in sorted({row["group"] for row in rows}):
        own = [row for row in rows if row["group"] == group]
        held, in_flight = 0, []
        for more in _column(((row["bin"], row["more"]) for row in own), count):
            held += more or 0
            in_flight.append(held)
        rates = {
            name: _rates(own, name, count, seconds) for name in ("acquired", "again", "finished")
        }
        found.append({"group": group, **rates, "in_flight": in_flight})
    return found


def _windows(rows: Sequence[Any], names: str, began: int) -> list[dict[str, Any]]:
    return [
        {name: row[name] for name in names.split()}
        | {end: round((row[end] - began) / _SECOND, 3) for end in ("since", "until")}
        for row in sorted(rows, key=lambda row: int(row["since"]))[:MOST_FAULTS]
    ]
