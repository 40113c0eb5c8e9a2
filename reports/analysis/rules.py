"""Invariants as data: what each one asks of the rows of a relation.

A declaration says nothing of how it is asked: :mod:`reports.analysis.queries` composes those over
one relation into one query. The text, level and source of its rule stand in
``spec/rules/inv.toml``.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

from reports.analysis import invariants
from reports.analysis.relations import Relation
from spec.rule import SpecError

LOAD = "its share-partition may have been loaded meanwhile"
LOG_START = "the start of its log may have passed it"
ORDER = "which of two deliveries came first is not known"
DEPOSED = "it was given out again by a leader that another one had deposed"
UNWELL = "something was broken while its dead letter was written"

BORNE = 100_000_000
"""The error of clocks, in nanoseconds, up to which histories are judged: durations in rules leave
much more room, and locks last for seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """One rule over a whole history; all expressions are Spark's SQL over one row."""

    id: str  # That of its rule in ``spec/rules/inv.toml``.
    over: Relation  # The relation whose rows put it to the test.
    columns: tuple[str, ...]  # The columns of ``over`` that the expressions name.
    cases: str = "true"  # Which rows put the rule to the test.
    breach: str  # Which of these break it.
    # Between which times of the run's clock a breach happened, in nanoseconds.
    since: str
    until: str
    detail: str  # What a witness says of a breach, as text.
    # Why rows that ought to put the rule to the test do not, each with the expression for it; of a
    # row that is no case the first that is true counts. Only of rules over records.
    excuses: tuple[tuple[str, str], ...] = ()
    # Where a breach is.
    share_partition: str = "share_partition"
    log: str = "log"
    offset: str = "offset"
    # Its witness is something missing: a history of which anything was lost cannot break it for
    # certain.
    needs_whole: bool = False
    about: str = ""  # A table whose rows put the rule to the test: where it is empty, nothing does.
    # The largest error of clocks, in nanoseconds, with which a breach is certain. Times of hosts
    # are widened by it, so that only what is compared with a duration, or the other way round, can
    # be wrong by it.
    clock_error: int = BORNE


def columns(names: str) -> tuple[str, ...]:
    return tuple(names.split())


def load_invariants() -> list[Invariant]:
    """Return all invariants that ``reports.analysis.invariants`` declares, by id; or SpecError."""
    found: dict[str, Invariant] = {}
    for module in iter_modules(invariants.__path__, f"{invariants.__name__}."):
        for one in import_module(module.name).INVARIANTS:
            if one.id in found:
                raise SpecError(f"{one.id} is declared twice")
            found[one.id] = one
    return [found[name] for name in sorted(found)]


def by_relation(rules: Iterable[Invariant]) -> dict[Relation, list[Invariant]]:
    found: dict[Relation, list[Invariant]] = {}
    for rule in rules:
        found.setdefault(rule.over, []).append(rule)
    return found
