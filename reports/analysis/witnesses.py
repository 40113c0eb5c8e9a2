"""The first witnesses of broken rules, each as one sentence with the faults that it overlaps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from reports.analysis.files import History, span
from reports.analysis.queries import breaches
from reports.analysis.rules import Invariant, by_relation
from reports.analysis.tables import narrowed

WITNESSES = 3
_MOST_HITS = 10_000
_ORDER = "since, offset, log, share_partition"
"""The first of several cases is the same one, whatever is judged beside them."""

Place = tuple[int, int]
"""A log and an offset in it."""
Broken = Mapping[str, Mapping[int, Sequence[Place]]]
"""In which runs each rule is broken, and some places, of rules over records."""
Window = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """When the run of a witness began, in nanoseconds of its clock, and what was broken when."""

    began: int
    windows: Sequence[Window]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A case that breaks a rule. Numbers are -1, and times 0, where it has none."""

    rule: str
    log: int
    offset: int
    share_partition: int
    since: int
    sentence: str


def witnesses(
    spark: SparkSession, histories: Sequence[History], rules: Sequence[Invariant], broken: Broken
) -> list[dict[str, tuple[Hit, ...]]]:
    """Return up to ``WITNESSES`` cases for each rule and run over the registered histories.

    Only the records where each is ``broken`` are read again, whatever the size of the histories.
    """
    rows = spark.sql("SELECT * FROM faults ORDER BY run, since LIMIT 100000").collect()
    windows = [row.asDict() for row in rows]
    contexts = [
        Context(span(history)[0], [window for window in windows if window["run"] == run])
        for run, history in enumerate(histories)
    ]
    found: list[dict[str, tuple[Hit, ...]]] = [{} for _ in histories]
    wanted = {(run, rule) for rule, runs in broken.items() for run in runs}
    for relation, together in by_relation(rules).items():
        if relation.by_record:
            at = {
                (run, *place)
                for rule in together
                for run, places in broken[rule.id].items()
                for place in places
            }
            few = f"few_{relation.name}"
            narrowed(spark, relation, at).createOrReplaceTempView(few)
            said = _sentences(spark, breaches(few, together, "run"), contexts)
            _add(found, said, wanted)
        if missing := [rule for rule in together if rule.id in {name for _, name in wanted}]:
            said = _sentences(spark, _earliest(breaches(relation, missing, "run")), contexts)
            _add(found, said, wanted)
    return found


def _add(
    found: Sequence[dict[str, tuple[Hit, ...]]],
    said: Mapping[tuple[int, str], tuple[Hit, ...]],
    wanted: set[tuple[int, str]],
) -> None:
    for run, rule in wanted & said.keys():
        found[run][rule] = said[run, rule]
    wanted.difference_update(said)  # `-=` with keys would make another set


def _earliest(hits: str) -> str:
    """Return the query for the first hits of each rule in each run, however many there are."""
    return f"""
        SELECT * FROM (
          SELECT *, row_number() OVER (PARTITION BY run, rule ORDER BY {_ORDER}) AS place
          FROM ({hits})
        )
        WHERE place <= {WITNESSES}
    """  # noqa: S608


def _sentences(
    spark: SparkSession, hits: str, contexts: Sequence[Context]
) -> dict[tuple[int, str], tuple[Hit, ...]]:
    query = f"""
        SELECT w.*, s.`group`, s.topic, s.partition
        FROM ({hits}) AS w
        LEFT JOIN partitions AS s ON s.share_partition = w.share_partition
        LIMIT {_MOST_HITS * len(contexts)}
    """  # noqa: S608
    found: dict[tuple[int, str], tuple[Hit, ...]] = {}
    rows = spark.sql(query).collect()
    for row in sorted(rows, key=lambda row: [int(row[name] or 0) for name in _ORDER.split(", ")]):
        told = found.get((row.run, row.rule), ())
        if len(told) < WITNESSES:
            found[row.run, row.rule] = (*told, _hit(row.asDict(), contexts[row.run]))
    return found


def _hit(row: Mapping[str, Any], context: Context) -> Hit:
    log, offset, share_partition = (
        -1 if row[name] is None else int(row[name]) for name in ("log", "offset", "share_partition")
    )
    where = f"{row['topic']}-{row['partition']} " if row["topic"] else ""
    group = f" in group {row['group']}" if row["group"] else ""
    since, until = row["since"] or 0, row["until"] or row["since"] or 0
    head = f"{where}offset {row['offset']}{group}: {row['detail']}"
    during = ", ".join(
        f"{window['kind']} of {window['subject']}"
        for window in context.windows
        if window["since"] <= until and window["until"] >= since
    )
    first, last = (max(0, at - context.began) / 1e9 for at in (since, until))
    when = f"from {first:.3f} s to {last:.3f} s of the run"
    return Hit(
        rule=row["rule"],
        log=log,
        offset=offset,
        share_partition=share_partition,
        since=row["since"] or 0,
        sentence=f"{head} ({when}{f'; during {during}' if during else ''})",
    )
