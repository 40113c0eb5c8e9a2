"""What the suite was seen to detect: the page that says why a verdict of this site is believed.

Made from evidence by the caller, who knows the mutants; here is only what the page needs of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from reports.evidence import ALTERATION, CLIENT_MUTANT, KAFKA_MUTANT, REFERENCE_MUTANT, RELEASE
from spec.rule import APP_AREA, AREAS, Honesty, Rule

KINDS: Mapping[str, str] = MappingProxyType(
    {
        REFERENCE_MUTANT: "mutants of the reference broker",
        ALTERATION: "alterations in front of real Kafka",
        KAFKA_MUTANT: "mutants of real Kafka",
        CLIENT_MUTANT: "mutants of the model client",
        RELEASE: "releases with defects of their own",
    }
)
"""Ways to be broken on purpose, in the order of the page's columns."""


OTHERWISE = frozenset({"INV", APP_AREA})  # areas that are judged otherwise than by checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    kind: str  # One of :data:`KINDS`.
    name: str  # What it is called on the command line.
    sentence: str  # What is wrong with it.
    rule: str  # The rule that was reported broken.
    check: str  # The check that did; its file and name.


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    kind: str
    name: str
    sentence: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """All that was tried.

    ``made`` says how many broken ones of a kind there are, for kinds of which each one was hunted.
    Alterations are not: a campaign plays one after the other until the check fails.
    ``kills`` has by rule what broke this very rule, was declared to, and was noticed;
    ``exempt`` why nothing of that kind can be built for a rule.
    """

    made: Mapping[str, int] = field(default_factory=dict)
    noticed: tuple[Noticed, ...] = ()
    missed: tuple[Missed, ...] = ()
    kills: Mapping[str, Noticed] = field(default_factory=dict)
    exempt: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    rule: Rule
    noticed: Mapping[str, tuple[Noticed, ...]]
    kill: Noticed | None = None
    exempt: str = ""


def figures(detection: Detection) -> dict[str, str]:
    found: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for one in detection.noticed:
        found[one.kind].add(one.name)
    return {
        kind: f"{len(names)} of {detection.made[kind]}"
        if kind in detection.made
        else f"{len(names)}"
        for kind, names in found.items()
    }


def matrix(detection: Detection, rules: Iterable[Rule]) -> dict[str, tuple[Row, ...]]:
    """Return the rows of each area: all rules that a check reaches, noticed by them or not.

    Invariants of whole histories, and rules for programs, are no rows: no check reaches them.
    """
    by_rule: dict[str, list[Noticed]] = {}
    for one in detection.noticed:
        by_rule.setdefault(one.rule, []).append(one)
    rows: dict[str, list[Row]] = {area: [] for area in AREAS}
    for rule in rules:
        mine = by_rule.get(rule.id, [])
        if mine or (rule.honesty is not Honesty.UNTESTED and rule.area not in OTHERWISE):
            kinds = {kind: tuple(each for each in mine if each.kind == kind) for kind in KINDS}
            why, kill = detection.exempt.get(rule.id, ""), detection.kills.get(rule.id)
            rows[rule.area].append(Row(rule=rule, noticed=kinds, kill=kill, exempt=why))
    return {area: tuple(found) for area, found in rows.items() if found}
