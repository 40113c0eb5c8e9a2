"""Find past defects again, on the releases that had them, and write down what was seen.

``python -m tools.track_record`` asks every release named in ``spec/track_record.toml`` about the
rules named there, with a ledger that foresees nothing, or plays a chaos scenario on it and asks
what Spark says of the history. A defect counts as found again when the rule is broken on the
release that has it and holds on the one that has not. The result is ``docs/track-record.md``; exit
code 1 when an entry was not confirmed.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from reports.reading import read
from reports.results import RuleResult
from spec.requirement import load_requirements
from spec.track_record import Past, load_track_record

PAGE = Path(__file__).resolve().parent.parent / "docs" / "track-record.md"
LEDGER = "strict"

HEAD = """\
# Track record

Past defects of Apache Kafka that shareproof finds again on the releases from Maven Central that had
them. Each was confirmed on both sides: the rule is broken on the release named first and holds on
the one named last. The commands of checks use the ledger `strict`, which foresees nothing, so a
broken rule makes them exit with 1. A rule INV is one about whole histories: a
[chaos scenario](chaos.md) was played on the release, and Spark judged what it left. A bug id is our
attribution by symptom and release; where there is none we know of no public report.

This page is written by `tox -e trackrecord` from `spec/track_record.toml`.
"""


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
        SystemExit: the run left no results.
    """
    with tempfile.TemporaryDirectory(prefix="shareproof-track-") as out:
        command = [sys.executable, "-m", *words(question, rules), "--out", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        results = Path(out) / "results.json"
        if not results.exists():
            raise SystemExit(f"{shlex.join(command)} left no results:\n{done.stdout}{done.stderr}")
        found = read(results)
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


Answers = Mapping[Question, Mapping[str, Seen]]
"""What was seen of each rule in each run."""


def doubt(entry: Past, answers: Answers) -> str:
    """Return why an entry is not confirmed, or nothing."""
    sides = [(entry.seen, "fail")] + ([(entry.mended, "pass")] if entry.mended else [])
    for release, expected in sides:
        seen = answers[about(entry, release)].get(entry.rule, Seen("missing", ""))
        if seen.verdict != expected:
            return f"{entry.rule} on {release}: {seen.verdict}, not {expected}: {seen.reason}"
    return ""


def page(entries: Iterable[Past], answers: Answers) -> str:
    """Return the page about confirmed entries."""
    rules = load_requirements()
    rows = ["| bug | what went wrong | rule | broken on | holds on |", "|---|---|---|---|---|"]
    parts: list[str] = []
    for entry in entries:
        bug = entry.bug or (f"finding {entry.finding[:3]}" if entry.finding else "none known")
        mended = entry.mended or "none yet"
        rows.append(f"| {bug} | {entry.title} | {entry.rule} | {entry.seen} | {mended} |")
        sentence = " ".join(rules[entry.rule].text.split())
        question = about(entry, entry.seen)
        parts.append(
            f"## {bug}: {entry.title}\n\n{entry.rule}: {sentence}\n\n"
            f"    $ {shlex.join(words(question, [entry.rule]))}\n"
            f"    {entry.rule} fail: {answers[question][entry.rule].reason}\n"
        )
        if entry.finding:
            parts[-1] += f"\nMore in [findings/{entry.finding}](findings/{entry.finding}.md).\n"
    return "\n".join([HEAD, *rows, "", *parts])


def main() -> int:
    """Ask, compare, write; exit code 1 when an entry was not confirmed."""
    parser = argparse.ArgumentParser(description="Find past defects again on old releases.")
    parser.add_argument("--only", nargs="*", default=[], help="rules or bug ids to look at")
    options = parser.parse_args()
    chosen = [
        entry
        for entry in load_track_record()
        if not options.only or {entry.rule, entry.bug} & set(options.only)
    ]
    answers: dict[Question, dict[str, Seen]] = {}
    for question, rules in questions(chosen).items():
        answers[question] = ask(question, rules)
        what = question.scenario or f"{len(rules)} rules"
        print(f"kafka:{question.release}: {what} asked", flush=True)
    doubts = {entry: why for entry in chosen if (why := doubt(entry, answers))}
    for entry, why in doubts.items():
        print(f"not confirmed: {entry.bug or entry.title}: {why}")
    confirmed = [entry for entry in chosen if entry not in doubts]
    print(f"{len(confirmed)} of {len(chosen)} past defects found again")
    if not options.only:
        PAGE.write_text(page(confirmed, answers), encoding="utf-8")
    return int(bool(doubts))


if __name__ == "__main__":
    raise SystemExit(main())
