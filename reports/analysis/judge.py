"""From a history to verdicts: counts of what exercised each rule, and witnesses of what broke it.

Rules over one relation are asked together, in one pass over it. Only counts come back, and for a
broken rule its first witnesses.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from reports.analysis.files import History
from reports.analysis.queries import OFFSET_BITS, counts, excuse_bits, patterns
from reports.analysis.relations import PARTITIONS, Relation
from reports.analysis.rules import BORNE, Invariant, by_relation
from reports.analysis.session import (
    INTERPRETED,
    SMALL_ROWS,
    by_runs,
    configured,
    run_parallel,
    sibling_session,
)
from reports.analysis.stories import WITNESSES, Hit, Place, witnesses
from reports.analysis.tables import Relations, keep_records
from reports.results import Measure, Reached, Results
from spec.history import BUCKETED, TABLES
from spec.rule import Level
from spec.verdict import Observation, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    runs: tuple[Path, ...]  # The runs to judge.
    # A run without faults that broken rules are compared with; its own verdicts do not count.
    # Without it, one of the runs serves if nothing was done to it.
    control: Path | None = None
    master: str = "local[*]"
    memory: str = "1g"
    level: Level = Level.SHOULD
    only: tuple[str, ...] = ()
    # The rules that each run had to put to the test, where that is not what it says itself. That it
    # never exercised another one is not held against it.
    owed: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    ledger: str = ""  # What the runs say unless given, as the version.
    version: str = ""
    # Verdicts and witnesses only: no distributions, states, timeline or stories.
    brief: bool = False
    # Whether chaos runs are held to what they owe: rules, faults and cases not excused.
    strict: bool = False
    command: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    results: Results
    timelines: Mapping[str, Any]


Tell = Callable[[str], None]

_LONGEST = 400
"""Characters of what is told of an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one history says about one rule.

    ``places`` are some logs and offsets at which it is broken, of rules over records.
    """

    exercised: int
    broken: int
    seconds: float
    places: tuple[Place, ...] = ()
    hits: tuple[Hit, ...] = ()
    excuses: Mapping[str, int] = field(default_factory=dict)
    fault: str = ""

    @property
    def witness(self) -> tuple[str, ...]:
        return tuple(hit.sentence for hit in self.hits)


@dataclass(slots=True)
class Judged:
    history: History
    found: dict[str, Found]
    distributions: list[Measure]
    reached: list[Reached]
    drawn: dict[str, Any]


def judge(
    spark: SparkSession,
    histories: Sequence[History],
    relations: Relations,
    invariants: Sequence[Invariant],
    tell: Tell,
) -> list[dict[str, Found]]:
    """Judge histories by every invariant; a query that fails is an ``error`` of its rules alone."""
    whose = _names(histories)
    little = sum(_small_rows(one) for one in histories) < SMALL_ROWS
    asked = [rule for rule in invariants if any(askable(one, [rule]) for one in histories)]
    questions = by_relation(asked)
    small = [relation for relation in questions if not relation.over_records]
    brief = _Brief(spark, relations, small) if little else None

    def ask(relation: Relation, rules: Sequence[Invariant]) -> list[dict[str, Found]]:
        tell(f"{whose}: {', '.join(rule.id for rule in rules)} over {relation.name}")

        def count() -> list[dict[str, Found]]:
            relations.need([relation])
            session = spark if relation.over_records or brief is None else brief.session
            return _together(session, rules, len(histories))

        return _guarded(count, rules, len(histories))

    idle = {rule.id: Found(exercised=0, broken=0, seconds=0) for rule in invariants}
    found = [dict(idle) for _ in histories]
    # What takes long comes first, so that all else fits in beside it.
    some = sorted(questions.items(), key=lambda question: not question[0].over_records)
    for answers in run_parallel(ask, some):
        for one, history, told in zip(found, histories, answers, strict=True):
            mine = (rule.id for rule in askable(history, asked))
            one |= {rule: told[rule] for rule in mine if rule in told}
    broken = [rule for rule in asked if any(one[rule.id].broken for one in found)]
    if broken:
        tell(f"{whose}: witnesses of {', '.join(rule.id for rule in broken)}")
        relations.need([PARTITIONS])
        for one, hits in zip(found, _shown(spark, histories, broken, found, little), strict=True):
            one |= {name: replace(one[name], hits=some) for name, some in hits.items()}
    return found


class _Brief:
    """The session of questions about small tables: nothing is compiled for them."""

    def __init__(
        self, spark: SparkSession, relations: Relations, asked: Iterable[Relation]
    ) -> None:
        self._spark, self._relations, self._asked = spark, relations, asked

    @cached_property
    def session(self) -> SparkSession:
        # It knows the views that there are when it is made.
        self._relations.need(self._asked)
        return sibling_session(self._spark, INTERPRETED)


def _small_rows(history: History) -> int:
    return sum(history.rows(name) for name in TABLES if name not in BUCKETED)


def _shown(
    spark: SparkSession,
    histories: Sequence[History],
    broken: Sequence[Invariant],
    found: Sequence[Mapping[str, Found]],
    little: bool,
) -> list[dict[str, tuple[Hit, ...]]]:
    places = {
        rule.id: {run: one[rule.id].places for run, one in enumerate(found) if one[rule.id].broken}
        for rule in broken
    }
    records = {
        (run, *place) for runs in places.values() for run, some in runs.items() for place in some
    }
    keep_records(spark, {rule.over for rule in broken if rule.over.by_record}, records)
    with configured(spark, INTERPRETED, when=little):
        return witnesses(spark, histories, broken, places)


def _names(histories: Sequence[History]) -> str:
    first = str(histories[0].folder)
    return f"{first} and {len(histories) - 1} more" if len(histories) > 1 else first


def askable(history: History, invariants: Sequence[Invariant]) -> list[Invariant]:
    return [rule for rule in invariants if not rule.about or history.rows(rule.about)]


def observation(
    rule: Invariant, found: Found, history: History, control: Mapping[str, Found] | None
) -> Observation:
    """Return what a history says about a rule as reports take it.

    ``control`` is what was found in a run without faults, to be named beside a broken rule.
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
        rule=rule.id,
        check=f"reports/analysis/invariants::{rule.id}[{history.folder.parent.name}]",
        verdict=verdict,
        reason=reason,
        evidence={"cases": found.exercised} if found.exercised else {},
        witness=witness,
        seconds=round(found.seconds, 3),
        excuses=dict(found.excuses),
    )


def _verdict(rule: Invariant, found: Found, history: History) -> tuple[Verdict, str]:
    if found.fault:
        return Verdict.ERROR, found.fault
    if doubt := _doubt(rule, found, history):
        return Verdict.UNKNOWN, doubt
    if found.broken:
        return Verdict.FAIL, f"{found.broken} of {found.exercised} cases break the rule"
    if not found.exercised:
        return Verdict.VACUOUS, "nothing in the history put the rule to the test"
    return Verdict.PASS, ""


def _doubt(rule: Invariant, found: Found, history: History) -> str:
    error, cases = history.manifest.clock_error, f"{found.broken} of {found.exercised} cases"
    if error > rule.clock_error and (found.broken or (found.exercised and error > BORNE)):
        known = f"clocks of hosts are known only to {error / 1e6:.1f} ms"
        return f"{known}; by them {cases} break the rule"
    if found.broken and rule.needs_whole and not history.whole:
        return f"{cases} lack what may have been lost with the end of a journal"
    if found.broken and history.lost_excuses:
        lost = ", ".join(history.lost_excuses)
        return f"{cases} break the rule, unless what cannot be read of {lost} excuses them"
    return ""


def _together(spark: SparkSession, rules: Sequence[Invariant], runs: int) -> list[dict[str, Found]]:
    began = time.monotonic()
    count = _by_pattern if rules[0].over.by_record else _by_rule
    found = count(spark, rules, runs)
    share = (time.monotonic() - began) / len(rules) / runs
    return [{name: replace(one, seconds=share) for name, one in each.items()} for each in found]


def _by_rule(spark: SparkSession, rules: Sequence[Invariant], runs: int) -> list[dict[str, Found]]:
    rows = {row.run: row for row in spark.sql(counts(rules)).collect()}
    return [
        {
            rule.id: Found(
                exercised=rows[run][f"x{number}"] if run in rows else 0,
                broken=rows[run][f"b{number}"] if run in rows else 0,
                seconds=0,
            )
            for number, rule in enumerate(rules)
        }
        for run in range(runs)
    ]


def _by_pattern(
    spark: SparkSession, rules: Sequence[Invariant], runs: int
) -> list[dict[str, Found]]:
    rows = spark.sql(patterns(rules)).collect()
    return [_patterned(mine, rules) for mine in by_runs(rows, runs)]


def _patterned(rows: Sequence[Row], rules: Sequence[Invariant]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    excuses = excuse_bits(rules)
    for number, rule in enumerate(rules):
        excused: Counter[str] = Counter()
        for bit, (name, reason, _) in enumerate(excuses):
            if name == rule.id:
                excused[reason] += sum(row.records for row in rows if row.excused >> bit & 1)
        tested = [row for row in rows if row.cases >> number & 1]
        broken = [row for row in tested if row.breaks >> number & 1]
        places = sorted({place for row in broken for place in (row["first"], row["last"])})
        found[rule.id] = Found(
            exercised=sum(row.records for row in tested),
            broken=sum(row.records for row in broken),
            seconds=0,
            places=tuple(
                (place >> OFFSET_BITS, place % (1 << OFFSET_BITS)) for place in places[:WITNESSES]
            ),
            excuses=+excused,
        )
    return found


def told(error: Exception) -> str:
    lines = [line.strip(" :") for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith("An error occurred while")]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by")]
    return [type(error).__name__, *lines[:1], *causes][-1][:_LONGEST]


def _guarded(
    count: Callable[[], list[dict[str, Found]]], rules: Sequence[Invariant], runs: int = 1
) -> list[dict[str, Found]]:
    try:
        return count()
    except (PySparkException, Py4JError) as error:
        sentence = f"Spark could not tell: {told(error)}"
        fault = Found(exercised=0, broken=0, seconds=0, fault=sentence)
        return [{rule.id: fault for rule in rules} for _ in range(runs)]
