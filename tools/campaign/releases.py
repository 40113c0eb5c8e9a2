"""Past defects of Kafka: found again on the releases that had them, gone on those that have not.

Every release named in ``spec/track_record.toml`` is asked about the rules named there, with the
profile ``strict``, which expects no failure; or a chaos scenario is played on it, and Spark judges
the history. A defect counts as found again when the rule is broken on the release that has it and
holds on the one that has not.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports import evidence
from reports.evidence import Entry
from reports.reading import read
from reports.results import RuleResult
from spec.catalogue import Past, load_track_record
from spec.verdict import EnvironmentFault
from tools.campaign.asked import Asked, Outcome, means_rule, nothing

LEDGER = "strict"
SCENARIO = "scenario:"
"""What begins the check of an entry that is about a whole history."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run said of one rule."""

    verdict: str
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class Question:
    """One run: the checks of some rules on a release, or a chaos scenario if one is named."""

    release: str
    scenario: str = ""
    seed: int = 1


Answers = Mapping[Question, Mapping[str, Seen]]
"""What was seen of each rule in each run."""


def words(question: Question, rules: Iterable[str]) -> list[str]:
    """Return the command that asks a release about rules."""
    target = ["--target", f"kafka:{question.release}"]
    if question.scenario:
        played = ["--scenario", question.scenario, "--seed", str(question.seed)]
        return ["shareproof", "chaos", *target, *played]
    only = [word for rule in rules for word in ("--only", rule)]
    return ["shareproof", "broker", *target, *only, "--profile", LEDGER]


def ask(question: Question, rules: list[str]) -> dict[str, Seen]:
    """Carry out a run and return what was seen of each of its rules.

    Raises:
        EnvironmentFault: the run left no results.
    """
    with tempfile.TemporaryDirectory(prefix="shareproof-track-") as out:
        command = [sys.executable, "-m", *words(question, rules), "--out", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not (Path(out) / "results.json").exists():
            said = f"{done.stdout}{done.stderr}"
            raise EnvironmentFault(f"{shlex.join(command)} left no results:\n{said}")
        found = read(Path(out))
    return {rule.id: _seen(rule) for rule in found.requirements if rule.id in rules}


def _seen(rule: RuleResult) -> Seen:
    reasons = [each.reason for each in rule.checks if each.verdict == rule.verdict and each.reason]
    return Seen(rule.verdict, reasons[0] if reasons else rule.reason)


def about(entry: Past, release: str) -> Question:
    """Return the run that shows one side of an entry."""
    return Question(release, entry.scenario, entry.seed)


def questions(entries: Iterable[Past]) -> dict[Question, list[str]]:
    """Return which rules each run has to be asked about."""
    asked: dict[Question, set[str]] = defaultdict(set)
    for entry in entries:
        for release in filter(None, (entry.seen, entry.mended)):
            asked[about(entry, release)].add(entry.rule)
    return {question: sorted(rules) for question, rules in sorted(asked.items())}


def doubt(entry: Past, answers: Answers) -> str:
    """Return why an entry is not confirmed, or nothing."""
    sides = [(entry.seen, "fail")] + ([(entry.mended, "pass")] if entry.mended else [])
    for release, expected in sides:
        seen = answers.get(about(entry, release), {}).get(entry.rule, Seen("missing", ""))
        if seen.verdict != expected:
            return f"{entry.rule} on {release}: {seen.verdict}, not {expected}: {seen.reason}"
    return ""


def answers(entries: Iterable[Entry]) -> dict[Question, dict[str, Seen]]:
    """Return what evidence has of past defects."""
    found: dict[Question, dict[str, Seen]] = defaultdict(dict)
    for one in entries:
        if one.kind == evidence.RELEASE:
            scenario = one.check.removeprefix(SCENARIO)
            question = Question(one.release, scenario, one.seed if scenario and one.seed else 1)
            found[question][one.rule] = Seen(one.verdict, one.reason)
    return found


def play(asked: Asked) -> Outcome:
    """Ask, compare, keep."""
    return _play(_chosen(asked.only), asked)


def _play(chosen: Sequence[Past], asked: Asked) -> Outcome:
    for question, rules in questions(chosen).items():
        seen = ask(question, rules)
        asked.keeper.add([_entry(question, rule, one) for rule, one in seen.items()])
        what = question.scenario or f"{len(rules)} rules"
        asked.say(f"kafka:{question.release}: {what} asked")
    found = answers(asked.keeper.known)
    doubts = [(entry, why) for entry in chosen if (why := doubt(entry, found))]
    return Outcome(
        said=[f"{len(chosen) - len(doubts)} of {len(chosen)} past defects found again"],
        broken=[f"not confirmed: {entry.bug or entry.title}: {why}" for entry, why in doubts],
    )


def replay(entries: Sequence[Entry], asked: Asked) -> list[Entry]:
    """Ask again about the defects of some entries; return the entries of those not confirmed."""
    rules = {(one.rule, one.release) for one in entries}
    wanted = [p for p in load_track_record() if {(p.rule, p.seen), (p.rule, p.mended)} & rules]
    doubted = len(_play(wanted, asked).broken)
    return [one for one in entries if doubted]


def _entry(question: Question, rule: str, seen: Seen) -> Entry:
    return Entry(
        kind=evidence.RELEASE,
        name=question.release,
        rule=rule,
        check=f"{SCENARIO}{question.scenario}" if question.scenario else "",
        verdict=seen.verdict,
        release=question.release,
        seed=question.seed if question.scenario else None,
        reason=seen.reason if seen.verdict != "pass" else "",
    )


def _chosen(only: Sequence[str]) -> list[Past]:
    """Return the past defects that words mean: by rule, area or bug."""
    every = load_track_record()
    for word in only:
        if not any(word == one.bug or means_rule(word, [one.rule]) for one in every):
            raise nothing(word)
    return [
        one
        for one in every
        if not only or any(word == one.bug or means_rule(word, [one.rule]) for word in only)
    ]
