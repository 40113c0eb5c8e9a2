"""Rejections: which checks reject which broken reference brokers, played in one process.

A check that fails against the honest broker, too, has rejected nothing: each rejection is held
against the same check, played by the same seed, on the honest broker.
"""

import functools
import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS
from reports import evidence
from reports.evidence import Entry
from shareproof.runner.inventory import Check, by_rule, read_checks
from tools.campaign.options import entry_of
from tools.campaign.player import HONEST, Case, Played, cases, play

TRIES = 6  # Seeds with which a mutant is hunted: some are only seen by some random choices.


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    check: str
    evidence: Mapping[str, Mapping[str, int]]  # What a pass rests on, by rule and counted.
    reachable: bool  # Whether a reference broker has what the check needs.
    trouble: str  # What did not hold, or was not exercised, in a sentence.
    digest: str  # Of all frames of all its cases.
    cases: int


@functools.cache
def checks() -> dict[str, Check]:
    """Return all checks by id, trusted ones first; a draft may kill what no other check does."""
    found = read_checks(drafts=True)
    return {check.id: check for check in sorted(found, key=lambda check: check.draft)}


def playable(*, drafts: bool = False) -> list[str]:
    found = checks().items()
    return [name for name, check in found if (drafts or not check.draft) and cases_of(name)]


@functools.cache
def cases_of(check: str) -> tuple[Case, ...]:
    staged = check.count("/") > 2  # a stage's checks break brokers
    return () if staged else tuple(case for case in cases(checks()[check]) if case.playable)


@functools.cache
def _honest(check: str, at: int, seed: int) -> Played:
    return play(HONEST, cases_of(check)[at], seed)


def control(check: str, seed: int) -> Control:
    played = [_honest(check, at, seed) for at in range(len(cases_of(check)))]
    within = [one for one in played if one.reachable]
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for seen in (seen for one in within for seen in one.observations):
        counted[seen.rule].update(seen.evidence)
    broken = [
        f"{o.rule} {o.verdict}: {o.reason}"
        for one in within
        if not one.held
        for o in one.observations
    ]
    if within and not broken:
        broken = [f"{rule} is not exercised" for rule in checks()[check].rules if not counted[rule]]
    return Control(
        check=check,
        evidence={rule: dict(sorted(found.items())) for rule, found in sorted(counted.items())},
        reachable=bool(within),
        trouble="; ".join(broken),
        digest=hashlib.sha256("".join(one.digest for one in played).encode()).hexdigest(),
        cases=len(played),
    )


def rejection(target: str, check: str, seed: int, rule: str = "") -> Entry | None:
    rules = (rule,) if rule else checks()[check].rules
    for at, case in enumerate(cases_of(check)):
        played = play(target, case, seed)
        broken = played.broken(rule)
        if broken and broken.rule in rules and _honest(check, at, seed).held:
            return entry_of(*broken_by(target), broken, seed=seed)
    return None


def first(plays: Iterable[tuple[str, str, int]], rule: str = "") -> list[Entry]:
    tried: set[tuple[str, str, int]] = set()
    for one in plays:
        if one not in tried:
            tried.add(one)
            if seen := rejection(*one, rule):
                return [seen]
    return []


def broken_by(target: str) -> tuple[str, str]:
    kind, _, name = target.partition(":")
    if kind == HONEST:
        return evidence.REFERENCE_MUTANT, name
    return evidence.ALTERATION, name.partition("@")[0]


def target_of(entry: Entry) -> str:
    if entry.kind == evidence.REFERENCE_MUTANT:
        return f"{HONEST}:{entry.name}"
    return f"altered:{entry.name}@{HONEST}"


def kills(entry: Entry) -> bool:
    mutant = MUTANTS.get(entry.name) if entry.kind == evidence.REFERENCE_MUTANT else None
    return mutant is not None and entry.rule in mutant.rules


def again(entry: Entry) -> list[Entry]:
    target, seeds = target_of(entry), [entry.seed or 1, *range(1, 1 + TRIES)]
    return first(((target, entry.check, seed) for seed in seeds), entry.rule)


Lead = tuple[str, int]  # A check or a target to begin with, and the seed by which it was a success.


def hunt_mutant(name: str, seed: int, leads: Sequence[Lead], full: bool) -> list[Entry]:
    known = [(check, by) for check, by in leads if check in checks()]
    reach = by_rule(checks().values())
    named = dict.fromkeys(c.id for rule in MUTANTS[name].rules for c in reach.get(rule, ()))
    attempts = [(check, seed) for check, _ in known] + known
    attempts += [(check, try_) for try_ in range(seed, seed + TRIES) for check in named]
    target = f"{HONEST}:{name}"
    found: dict[str, Entry] = {}
    for check, try_ in attempts:
        killed = any(map(kills, found.values()))
        if check in found or (full and try_ != seed and killed):
            continue
        if seen := rejection(target, check, try_):
            found[check] = seen
            if kills(seen) and not full:
                break
    return list(found.values())


def hunt_for(
    check: str, seed: int, leads: Sequence[Lead], alterations: Sequence[str]
) -> list[Entry]:
    rules = set(checks()[check].rules)
    areas = {rule[:3] for rule in rules}
    near = [name for name, one in MUTANTS.items() if rules & set(one.rules)]
    area = [name for name, one in MUTANTS.items() if areas & {rule[:3] for rule in one.rules}]
    altered = [f"altered:{one}@{HONEST}" for one in alterations if one in ALTERATIONS]
    plays = [(target, seed) for target, _ in leads] + [*leads]
    plays += [(f"{HONEST}:{name}", seed) for name in near]
    plays += product(altered, range(seed, seed + TRIES))
    plays += [(f"{HONEST}:{name}", seed) for name in area]
    return first((target, check, try_) for target, try_ in plays)
