"""Mutants of real Kafka: what kills them, and why nothing kills the others.

Each mutant of :mod:`fixtures.mutants` is certified like any other broker, by the checks of the
rules that it breaks. It is dead when a check of one of its rules reports that rule broken which
passes on the release itself. Every mutant is a JVM that starts, so this takes minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fixtures.mutants import MUTANTS
from fixtures.targets import DEFAULT_TARGET
from reports import evidence
from reports.evidence import Entry
from shareproof.runner.inventory import by_rule, read_checks
from tools.campaign import runs
from tools.campaign.asked import Asked, Outcome, means_check, means_rule, nothing

PATIENCE = 0.5
"""A broken broker keeps many checks waiting to the deadline; here that is the expected outcome."""

RELEASE = DEFAULT_TARGET.partition(":")[2]


def play(asked: Asked) -> Outcome:
    """Hunt mutants; certify the release itself last by what killed them."""
    names = _chosen(asked.only)
    for name in names:
        kill = hunt(name, asked)
        _note(name, kill, asked)
        told = f"{kill.rule} by {kill.check.rpartition('/')[2]}" if kill else "alive"
        asked.say(f"{name}: {told}")
    for name in control(names, asked):
        asked.say(f"{name}: what killed it fails on the release itself, too")
    dead = {one.name for one in _mine(asked) if one.verdict == "fail"}
    explained = {one.name for one in _mine(asked) if one.verdict == "survived" and one.reason}
    return Outcome(
        said=[f"{len(dead & set(names))} of {len(names)} mutants of {DEFAULT_TARGET} killed"],
        broken=[f"alive: {name}" for name in names if name not in dead | explained],
    )


def replay(entries: Sequence[Entry], asked: Asked) -> list[Entry]:
    """Hunt the mutants of some entries again; return the entries of those not killed again."""
    names = [name for name in dict.fromkeys(one.name for one in entries) if name in MUTANTS]
    for name in names:
        _note(name, hunt(name, asked), asked)
    control(names, asked)
    seen = {one.name for one in asked.keeper.new}
    return [one for one in entries if one.name not in seen and one.verdict == "fail"]


def hunt(name: str, asked: Asked) -> Entry | None:
    """Play the checks of one rule of a mutant after the other; return what killed it."""
    mutant, checks = MUTANTS[name], by_rule(read_checks())
    for rule in mutant.rules:
        ids = [check.id for check in checks.get(rule, ())]
        found = runs.results(
            f"{DEFAULT_TARGET}:{name}",
            ids,
            patience=PATIENCE,
            brokers=mutant.brokers,
            seed=asked.seed,
        )
        for one in runs.seen(found):
            if one.verdict == "fail" and one.rule in mutant.rules:
                return _entry(name, one, asked.seed)
            asked.say(f"  {name}: {one.rule} {one.verdict} {one.check} {one.reason[:200]}")
    return None


def control(names: Iterable[str], asked: Asked) -> list[str]:
    """Play what killed mutants on the release itself; bring back to life whom it kills, too."""
    kills = {one.name: one for one in _mine(asked) if one.verdict == "fail" and one.name in names}
    if not kills:
        return []
    ids = sorted({one.check for one in kills.values()})
    brokers = max(MUTANTS[name].brokers for name in kills)
    honest = runs.results(DEFAULT_TARGET, ids, patience=PATIENCE, brokers=brokers, seed=asked.seed)
    bad = {(one.check, one.rule) for one in runs.seen(honest) if one.verdict != "pass"}
    revived = [name for name, kill in kills.items() if (kill.check, kill.rule) in bad]
    for name in revived:
        _note(name, None, asked)
    return revived


def _note(name: str, kill: Entry | None, asked: Asked) -> None:
    """Keep what killed a mutant; of a survivor, why it survives if that is known."""
    before = [one for one in _mine(asked) if one.name == name]
    why = next((one.reason for one in before if one.verdict == "survived"), "")
    asked.keeper.drop(before)
    asked.keeper.add([kill or _survived(name, why)])


def _mine(asked: Asked) -> list[Entry]:
    return [one for one in asked.keeper.known if one.kind == evidence.KAFKA_MUTANT]


def _entry(name: str, seen: runs.Seen, seed: int) -> Entry:
    return Entry(
        kind=evidence.KAFKA_MUTANT,
        name=name,
        rule=seen.rule,
        check=seen.check,
        verdict="fail",
        release=RELEASE,
        date="",
        seed=seed,
        reason=seen.reason,
    )


def _survived(name: str, why: str) -> Entry:
    return Entry(
        kind=evidence.KAFKA_MUTANT,
        name=name,
        rule=MUTANTS[name].rules[0],
        verdict="survived",
        release=RELEASE,
        date="",
        reason=why,
    )


def _chosen(only: Sequence[str]) -> list[str]:
    """Return the mutants that words mean by name, rule, area or a check of their rules."""
    checks, found = read_checks(), dict[str, None]()
    for word in only:
        rules = [rule for check in checks if means_check(word, check) for rule in check.rules]
        mine = [
            name
            for name, one in MUTANTS.items()
            if word == name or means_rule(word, one.rules) or set(rules) & set(one.rules)
        ]
        if not mine:
            raise nothing(word)
        found |= dict.fromkeys(mine)
    return list(found) if only else list(MUTANTS)
