"""From a history to verdicts: counts of what exercised each rule, and witnesses of what broke it.

Rules that ask a question of each row of a view are told together, in one pass over that view; the
others run by themselves. Only counts come back, and for a broken rule its first witnesses.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from reports.analysis.files import History
from reports.analysis.rules import Invariant, by_view
from reports.analysis.session import BY_RECORD, OVER_RECORDS, SMALL_ROWS, interpreted
from reports.analysis.witnesses import Hit, witnesses
from spec.history import BUCKETED, TABLES
from spec.verdict import Observation, Verdict

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a history says about one rule.

    ``offsets`` are the first and the last at which it is broken, of rules over records.
    """

    exercised: int
    broken: int
    seconds: float
    offsets: tuple[int, ...] = ()
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
    few = sum(history.rows(name) for name in TABLES if name not in BUCKETED) < SMALL_ROWS
    idle = [rule for rule in invariants if rule.about and not history.rows(rule.about)]
    found = {rule.id: Found(exercised=0, broken=0, seconds=0) for rule in idle}
    invariants = [rule for rule in invariants if rule not in idle]
    for view, rules in by_view(invariants).items():
        tell(f"{history.folder}: {len(rules)} rules over {view}")
        with interpreted(spark, when=few and view not in OVER_RECORDS):
            found.update(_guarded(partial(_together, spark, view, rules), rules))
    for rule in (rule for rule in invariants if rule.simple is None):
        tell(f"{history.folder}: {rule.id}")
        found.update(_guarded(partial(_alone, spark, rule), [rule]))
    broken = [rule for rule in invariants if found[rule.id].broken]
    if broken:
        tell(f"{history.folder}: witnesses of {', '.join(rule.id for rule in broken)}")
        offsets = {rule.id: found[rule.id].offsets for rule in broken}
        with interpreted(spark, when=few):
            said = witnesses(spark, broken, offsets)
        found |= {name: replace(found[name], hits=hits) for name, hits in said.items()}
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


def fused(view: str, rules: Sequence[Invariant], *, located: bool = False) -> str:
    """Return the query that counts the cases and the broken cases of rules over one view.

    Args:
        view: the view.
        rules: rules over it.
        located: also say between which offsets the broken cases of each rule lie.
    """
    asked: list[str] = []
    columns: list[str] = []
    for number, rule in enumerate(rules):
        assert rule.simple is not None
        exercised, broken = rule.simple.exercised, rule.simple.broken
        asked.append(f"({exercised}) AS x{number}, ({exercised}) AND ({broken}) AS b{number}")
        columns.append(f"count_if(x{number}) AS x{number}, count_if(b{number}) AS b{number}")
        if located:
            where = f"CASE WHEN b{number} THEN offset END"
            columns.append(f"min({where}) AS f{number}, max({where}) AS l{number}")
    asked += ["offset"] if located else []
    inner = f"SELECT {', '.join(asked)} FROM {view}"  # noqa: S608 - our own files
    return f"SELECT {', '.join(columns)} FROM ({inner})"  # noqa: S608


def _together(spark: SparkSession, view: str, rules: Sequence[Invariant]) -> dict[str, Found]:
    began = time.monotonic()
    located = view in BY_RECORD
    row = spark.sql(fused(view, rules, located=located)).collect()[0]
    share = (time.monotonic() - began) / len(rules)
    found: dict[str, Found] = {}
    for number, rule in enumerate(rules):
        at = {row[f"f{number}"], row[f"l{number}"]} - {None} if located else set()
        found[rule.id] = Found(
            exercised=row[f"x{number}"],
            broken=row[f"b{number}"],
            seconds=share,
            offsets=tuple(sorted(at)),
        )
    return found


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
