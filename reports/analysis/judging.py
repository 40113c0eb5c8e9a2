"""From a history to verdicts: counts of what exercised each rule, and witnesses of what broke it.

Rules that ask a question of each row of a view are told together, in one pass over that view; the
others run by themselves. Only counts come back, and for a broken rule its first witnesses.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reports.analysis.files import History
from reports.analysis.rules import Invariant
from spec.verdict import Observation, Verdict

WITNESSES = 3
MOST_HITS = 100_000
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A case that breaks a rule. Numbers are -1, and times 0, where it has none."""

    rule: str
    log: int
    offset: int
    queue: int
    since: int
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a history says about one rule."""

    exercised: int
    broken: int
    seconds: float
    hits: tuple[Hit, ...] = ()
    fault: str = ""

    @property
    def witness(self) -> tuple[str, ...]:
        """The first cases that break the rule, in sentences."""
        return tuple(hit.sentence for hit in self.hits)


def judge(
    spark: SparkSession, history: History, invariants: Sequence[Invariant], tell: Tell
) -> dict[str, Found]:
    """Judge the registered history by every invariant.

    A query that fails is an ``error`` of its rules and leaves the others alone.
    """
    found: dict[str, Found] = {}
    for view, rules in _by_view(invariants).items():
        tell(f"{history.folder}: {len(rules)} rules over {view}")
        found.update(_guarded(partial(_together, spark, view, rules), rules))
    for rule in (rule for rule in invariants if rule.simple is None):
        tell(f"{history.folder}: {rule.id}")
        found.update(_guarded(partial(_alone, spark, rule), [rule]))
    broken = [rule for rule in invariants if found[rule.id].broken]
    if broken:
        tell(f"{history.folder}: witnesses of {', '.join(rule.id for rule in broken)}")
        found.update(_with_witnesses(spark, broken, found))
    return found


def observation(
    rule: Invariant, found: Found, history: History, control: Mapping[str, Found] | None
) -> Observation:
    """Return what a history says about a rule as reports take it.

    Args:
        rule: the rule.
        found: what was found.
        history: where.
        control: what was found in a run without faults, to be named beside a broken rule.
    """
    verdict, reason = _verdict(rule, found, history)
    witness = found.witness
    if found.broken and control is not None and rule.id in control:
        without = control[rule.id]
        said = "broken too" if without.broken else "held" if without.exercised else "not exercised"
        reason = f"{reason}; in the control run it was {said}"
        witness = tuple(
            f"{sentence}, in the control run the rule was {said}" for sentence in witness
        )
    return Observation(
        requirement=rule.id,
        check=f"reports/analysis/invariants/{rule.file}[{history.folder.parent.name}]",
        verdict=verdict,
        reason=reason,
        evidence={"cases": found.exercised} if found.exercised else {},
        witness=witness,
        seconds=round(found.seconds, 3),
    )


def _verdict(rule: Invariant, found: Found, history: History) -> tuple[Verdict, str]:
    if found.fault:
        return Verdict.ERROR, found.fault
    if found.broken and rule.needs_whole and not history.whole:
        return Verdict.UNKNOWN, (
            f"{found.broken} of {found.exercised} cases lack what may have been lost with the end "
            "of a journal"
        )
    if found.broken:
        return Verdict.FAIL, f"{found.broken} of {found.exercised} cases break the rule"
    if not found.exercised:
        return Verdict.VACUOUS, "nothing in the history put the rule to the test"
    return Verdict.PASS, ""


def _by_view(invariants: Sequence[Invariant]) -> dict[str, list[Invariant]]:
    views: dict[str, list[Invariant]] = {}
    for rule in invariants:
        if rule.simple is not None:
            views.setdefault(rule.simple.view, []).append(rule)
    return views


def fused(view: str, rules: Sequence[Invariant]) -> str:
    """Return the query that counts the cases and the broken cases of rules over one view."""
    columns: list[str] = []
    for number, rule in enumerate(rules):
        assert rule.simple is not None
        exercised, broken = rule.simple.exercised, rule.simple.broken
        columns.append(f"count_if({exercised}) AS x{number}")
        columns.append(f"count_if(({exercised}) AND ({broken})) AS b{number}")
    return f"SELECT {', '.join(columns)} FROM {view}"  # noqa: S608 - our own files


def _together(spark: SparkSession, view: str, rules: Sequence[Invariant]) -> dict[str, Found]:
    began = time.monotonic()
    row = spark.sql(fused(view, rules)).collect()[0]
    share = (time.monotonic() - began) / len(rules)
    return {
        rule.id: Found(exercised=row[f"x{number}"], broken=row[f"b{number}"], seconds=share)
        for number, rule in enumerate(rules)
    }


def _alone(spark: SparkSession, rule: Invariant) -> dict[str, Found]:
    began = time.monotonic()
    query = f"SELECT count(*) AS x, count_if(broken) AS b FROM ({rule.sql})"  # noqa: S608
    row = spark.sql(query).collect()[0]
    seconds = time.monotonic() - began
    return {rule.id: Found(exercised=row.x, broken=row.b, seconds=seconds)}


def _guarded(count: Callable[[], dict[str, Found]], rules: Sequence[Invariant]) -> dict[str, Found]:
    try:
        return count()
    except PySparkException as error:
        sentence = f"Spark could not tell: {str(error).strip().splitlines()[0]}"
        return {rule.id: Found(exercised=0, broken=0, seconds=0, fault=sentence) for rule in rules}


def _with_witnesses(
    spark: SparkSession, broken: Sequence[Invariant], found: Mapping[str, Found]
) -> dict[str, Found]:
    windows = _fault_windows(spark)
    witnesses: dict[str, tuple[Hit, ...]] = {}
    for view, rules in _by_view(broken).items():
        with _kept_hits(spark, view, rules) as hits:
            witnesses |= {
                rule.id: _witnesses(spark, rule.id, rule.over(hits), windows) for rule in rules
            }
    for rule in broken:
        if not witnesses.get(rule.id):
            witnesses[rule.id] = _witnesses(spark, rule.id, rule.sql, windows)
    return {rule: replace(found[rule], hits=said) for rule, said in witnesses.items()}


@contextlib.contextmanager
def _kept_hits(spark: SparkSession, view: str, rules: Sequence[Invariant]) -> Iterator[str]:
    """Keep rows of a view that break rules: one pass over it finds the witnesses of them all.

    Where very many are broken not all are kept, and a rule may be left without its witnesses.
    """
    if len(rules) == 1:
        yield view
        return
    name = f"hits_of_{view}"
    spark.sql(f"CACHE TABLE {name} AS {hits(view, rules)} LIMIT {MOST_HITS}")
    try:
        yield name
    finally:
        spark.catalog.dropTempView(name)


def hits(view: str, rules: Sequence[Invariant]) -> str:
    """Return the query for the rows of a view that break one of the rules over it."""
    asked = [rule.simple for rule in rules if rule.simple is not None]
    either = " OR ".join(f"(({one.exercised}) AND ({one.broken}))" for one in asked)
    return f"SELECT * FROM {view} WHERE {either}"  # noqa: S608 - our own files


def _witnesses(
    spark: SparkSession, rule: str, sql: str, windows: Sequence[Mapping[str, Any]]
) -> tuple[Hit, ...]:
    query = f"""
        SELECT w.*, s.`group`, s.topic, s.partition
        FROM (
          SELECT * FROM ({sql}) WHERE broken ORDER BY since, offset LIMIT {WITNESSES}
        ) AS w
        LEFT JOIN shares AS s ON s.queue = w.queue
        ORDER BY w.since, w.offset
    """  # noqa: S608
    return tuple(_hit(rule, row.asDict(), windows) for row in spark.sql(query).collect())


def _hit(rule: str, row: Mapping[str, Any], windows: Sequence[Mapping[str, Any]]) -> Hit:
    log, offset, queue = (
        -1 if row[name] is None else int(row[name]) for name in ("log", "offset", "queue")
    )
    return Hit(
        rule=rule,
        log=log,
        offset=offset,
        queue=queue,
        since=row["since"] or 0,
        sentence=_sentence(row, windows),
    )


def _sentence(row: Mapping[str, Any], windows: Sequence[Mapping[str, Any]]) -> str:
    where = f"{row['topic']}-{row['partition']} " if row["topic"] else ""
    group = f" in group {row['group']}" if row["group"] else ""
    since, until = row["since"] or 0, row["until"] or row["since"] or 0
    head = f"{where}offset {row['offset']}{group}: {row['detail']}"
    during = ", ".join(
        f"{window['kind']} of {window['subject']}" for window in _overlapping(windows, since, until)
    )
    return f"{head} ({_span(since, until)}{f'; during {during}' if during else ''})"


def _span(since: int, until: int) -> str:
    return f"from {since / 1e9:.3f} s to {until / 1e9:.3f} s"


def _overlapping(
    windows: Sequence[Mapping[str, Any]], since: int, until: int
) -> Iterator[Mapping[str, Any]]:
    for window in windows:
        if window["since"] <= until and window["until"] >= since:
            yield window


def _fault_windows(spark: SparkSession) -> list[Mapping[str, Any]]:
    rows = spark.sql("SELECT * FROM faults ORDER BY since LIMIT 10000").collect()
    return [row.asDict() for row in rows]
