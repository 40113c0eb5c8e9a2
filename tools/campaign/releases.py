"""Past defects of Kafka: found again on the releases that had them, gone on those that have not.

Every release named in ``spec/track_record.toml`` is checked by the rules named there, with the
ledger ``strict``, which expects no failure; or a chaos scenario is played on it, and Spark judges
the history. A defect counts as found again when the rule is broken on the release that has it and
holds on the one that has not.
"""

import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reports import evidence
from reports.evidence import Entry
from spec.catalogue import Past, load_track_record
from tools.campaign import runs
from tools.campaign.options import Options, Outcome, means_rule, nothing

SCENARIO = "scenario:"  # What begins the check of an entry that is about a whole history.


@dataclass(frozen=True, slots=True)
class Seen:
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True, order=True)
class Question:
    release: str
    scenario: str = ""
    seed: int = 1


Answers = Mapping[Question, Mapping[str, Seen]]  # What was seen of each rule in each run.


def words(question: Question, rules: Iterable[str]) -> list[str]:
    target = ["--target", f"kafka:{question.release}"]
    if question.scenario:
        played = ["--scenario", question.scenario, "--seed", str(question.seed)]
        return ["shareproof", "chaos", *target, *played]
    only = [word for rule in rules for word in ("--only", rule)]
    return ["shareproof", "broker", *target, *only, "--ledger", "strict"]


def verdicts(question: Question, rules: list[str]) -> dict[str, Seen]:
    with tempfile.TemporaryDirectory(prefix="shareproof-track-") as folder:
        found = runs.results_of(words(question, rules), Path(folder) / "run")
    seen = {}
    for rule in (one for one in found.rules if one.id in rules):
        reasons = (c.reason for c in rule.checks if c.verdict == rule.verdict and c.reason)
        seen[rule.id] = Seen(rule.verdict, next(reasons, rule.reason))
    return seen


def about(entry: Past, release: str) -> Question:
    return Question(release, entry.scenario, entry.seed)


def questions(entries: Iterable[Past]) -> dict[Question, list[str]]:
    found: dict[Question, set[str]] = defaultdict(set)
    for entry in entries:
        for release in filter(None, (entry.seen, entry.mended)):
            found[about(entry, release)].add(entry.rule)
    return {question: sorted(rules) for question, rules in sorted(found.items())}


def doubt(entry: Past, answers: Answers) -> str:
    sides = [(entry.seen, "fail")] + ([(entry.mended, "pass")] if entry.mended else [])
    for release, expected in sides:
        seen = answers.get(about(entry, release), {}).get(entry.rule, Seen("missing", ""))
        if seen.verdict != expected:
            return f"{entry.rule} on {release}: {seen.verdict}, not {expected}: {seen.reason}"
    return ""


def answers(entries: Iterable[Entry]) -> dict[Question, dict[str, Seen]]:
    found: dict[Question, dict[str, Seen]] = defaultdict(dict)
    for one in entries:
        if one.kind == evidence.RELEASE:
            scenario = one.check.removeprefix(SCENARIO)
            question = Question(one.release, scenario, one.seed if scenario and one.seed else 1)
            found[question][one.rule] = Seen(one.verdict, one.reason)
    return found


def play(options: Options) -> Outcome:
    record, found = load_track_record(), list[Past]()
    for word in options.only:
        mine = [one for one in record if word == one.bug or means_rule(word, [one.rule])]
        if not mine:
            raise nothing(word)
        found += mine
    return _play([one for one in record if not options.only or one in found], options)


def _play(chosen: Sequence[Past], options: Options) -> Outcome:
    for question, rules in questions(chosen).items():
        seen = verdicts(question, rules)
        options.store.add(
            Entry(
                kind=evidence.RELEASE,
                name=question.release,
                rule=rule,
                check=f"{SCENARIO}{question.scenario}" if question.scenario else "",
                verdict=one.verdict,
                release=question.release,
                seed=question.seed if question.scenario else None,
                reason=one.reason if one.verdict != "pass" else "",
            )
            for rule, one in seen.items()
        )
        what = question.scenario or f"{len(rules)} rules"
        options.say(f"kafka:{question.release}: {what} asked")
    found = answers(options.store.known)
    doubts = [(entry, why) for entry in chosen if (why := doubt(entry, found))]
    return Outcome(
        said=[f"{len(chosen) - len(doubts)} of {len(chosen)} past defects found again"],
        broken=[f"not confirmed: {entry.bug or entry.title}: {why}" for entry, why in doubts],
    )


def replay(entries: Sequence[Entry], options: Options) -> list[Entry]:
    rules = {(one.rule, one.release) for one in entries}
    wanted = [p for p in load_track_record() if {(p.rule, p.seen), (p.rule, p.mended)} & rules]
    doubted = len(_play(wanted, options).broken)
    return [one for one in entries if doubted]
