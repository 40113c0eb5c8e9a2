"""The first witnesses of broken rules, each as one sentence with the faults that it overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from reports.analysis.files import History
from reports.analysis.queries import breaches
from reports.analysis.rules import Invariant, by_relation
from reports.analysis.session import narrowed
from reports.analysis.span import span

WITNESSES = 3
_MOST_HITS = 10_000

Place = tuple[int, int]
"""A log and an offset in it."""
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
    spark: SparkSession,
    history: History,
    broken: Sequence[Invariant],
    places: Mapping[str, Sequence[Place]],
) -> dict[str, tuple[Hit, ...]]:
    """Return up to ``WITNESSES`` cases for each broken rule over the registered history.

    Args:
        spark: the session.
        history: what is registered in it.
        broken: the rules.
        places: where to look, for rules over relations by record; only the records there are read
            again, whatever the size of the history.
    """
    context = Context(span(history)[0], _fault_windows(spark))
    found: dict[str, tuple[Hit, ...]] = {}
    for relation, rules in by_relation(broken).items():
        if relation.by_record:
            at = {place for rule in rules for place in places[rule.id]}
            few = f"few_{relation.name}"
            narrowed(spark, relation, at).createOrReplaceTempView(few)
            found |= _sentences(spark, breaches(few, rules), context)
        if missing := [rule for rule in rules if rule.id not in found]:
            found |= _sentences(spark, _earliest(breaches(relation, missing)), context)
    return found


def _earliest(hits: str) -> str:
    """Return the query for the first hits of each rule, however many there are."""
    return f"""
        SELECT * FROM (
          SELECT *, row_number() OVER (PARTITION BY rule ORDER BY since, offset) AS place
          FROM ({hits})
        )
        WHERE place <= {WITNESSES}
    """  # noqa: S608


def _sentences(spark: SparkSession, hits: str, context: Context) -> dict[str, tuple[Hit, ...]]:
    """Tell the first of a few hits."""
    query = f"""
        SELECT w.*, s.`group`, s.topic, s.partition
        FROM ({hits}) AS w
        LEFT JOIN partitions AS s ON s.share_partition = w.share_partition
        LIMIT {_MOST_HITS}
    """  # noqa: S608
    found: dict[str, tuple[Hit, ...]] = {}
    rows = spark.sql(query).collect()
    for row in sorted(rows, key=lambda row: (row.since or 0, row.offset)):
        told = found.get(row.rule, ())
        if len(told) < WITNESSES:
            found[row.rule] = (*told, _hit(row.asDict(), context))
    return found


def _hit(row: Mapping[str, Any], context: Context) -> Hit:
    log, offset, share_partition = (
        -1 if row[name] is None else int(row[name]) for name in ("log", "offset", "share_partition")
    )
    return Hit(
        rule=row["rule"],
        log=log,
        offset=offset,
        share_partition=share_partition,
        since=row["since"] or 0,
        sentence=_sentence(row, context),
    )


def _sentence(row: Mapping[str, Any], context: Context) -> str:
    where = f"{row['topic']}-{row['partition']} " if row["topic"] else ""
    group = f" in group {row['group']}" if row["group"] else ""
    since, until = row["since"] or 0, row["until"] or row["since"] or 0
    head = f"{where}offset {row['offset']}{group}: {row['detail']}"
    during = ", ".join(
        f"{window['kind']} of {window['subject']}"
        for window in _overlapping(context.windows, since, until)
    )
    when = _when(since - context.began, until - context.began)
    return f"{head} ({when}{f'; during {during}' if during else ''})"


def _when(since: int, until: int) -> str:
    return f"from {max(0, since) / 1e9:.3f} s to {max(0, until) / 1e9:.3f} s of the run"


def _overlapping(windows: Sequence[Window], since: int, until: int) -> Iterator[Window]:
    for window in windows:
        if window["since"] <= until and window["until"] >= since:
            yield window


def _fault_windows(spark: SparkSession) -> list[Window]:
    rows = spark.sql("SELECT * FROM faults ORDER BY since LIMIT 10000").collect()
    return [row.asDict() for row in rows]
