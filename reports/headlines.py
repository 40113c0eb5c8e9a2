"""What the page of a run says first: the verdict in a sentence, counts, and what needs a decision.

Pure functions over results; they decide words and order, the templates only set them. Badges are
what shields.io wants of an endpoint, and the same as a picture of our own.
"""

import json
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from reports.results import Client, KnownFailure, Results, RuleResult, Run
from reports.verdicts import BROKEN, OK, UNTESTED
from spec.catalogue import Risk, load_findings, rank_of
from spec.rule import AREAS, UNCROSSED, About, Level

WORDS = ("fail", "error", "unknown", "vacuous", "out of reach", "unsupported", "pass", UNTESTED)
"""Verdicts in the order a reader wants them: what needs a decision first."""

SIGNS: Mapping[str, str] = {
    "fail": "✗",
    "error": "!",
    "unknown": "?",
    "vacuous": "∅",
    "out of reach": "⇥",
    "unsupported": "⊖",
    "pass": "✓",
    UNTESTED: "·",
}
"""Verdicts for those who do not see colours."""

MOST_REASONS = 2
"""A headline has at most so many reasons why rules are out of reach; the page lists them all."""

TIERS: Mapping[int, str] = {
    1: "what a share consumer sends: heartbeats, fetches and acknowledgements",
    2: "what share consumers, administrators and other clients send",
}
"""What the rules of a tier are about; see :mod:`spec.tiers`."""

NEEDS: Mapping[str, str] = {
    "INV-03": "members that reject",
    "INV-05": "groups that drain to the end of the log",
    "INV-06": "groups that drain to the end of the log",
    "INV-08": "an acknowledgement of several records that fails: lose-responses, lose-requests, "
    "cut-client-link, fail-state-writes",
    "INV-09": "an acknowledgement that fails: lose-responses, lose-requests, cut-client-link, "
    "fail-state-writes",
    "INV-13": "a load while records are held: elect-leader, kill-leader, fence-state-writes",
    "INV-15": "sessions that end while they hold records: members that die or leave",
    "INV-23": "records that come again: members that release, leave, or let locks end",
    "INV-26": "sessions that end early in a long lock, away from faults: members that die or leave",
    "INV-33": "a group with a dead-letter topic, and members that reject",
    "INV-34": "transactions that are aborted",
    "INV-35": "a delivery limit that is lowered while records come again and again",
    "INV-36": "deletions of records: delete-records, or the load's own",
    "INV-39": "records that come until their last delivery, and a limit that does not change",
}
"""What puts an invariant to the test that not every run does: kinds of fault, or of load."""

_ADDRESS = re.compile(r"https://\S+|\b(?:KAFKA|KIP)-\d+\b")
_PLACES: Mapping[str, str] = {
    "KAFKA": "https://issues.apache.org/jira/browse/",
    "KIP": "https://cwiki.apache.org/confluence/display/KAFKA/",
}
"""Where what these words begin with is; anything else is an address already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A run in a sentence. ``tone`` is the verdict whose colour suits it."""

    tone: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    rule: str
    judged: int
    excuses: Mapping[str, int]

    @property
    def every(self) -> int:
        return self.judged + sum(self.excuses.values())

    @property
    def share(self) -> float:
        return self.judged / self.every if self.every else 1.0

    @property
    def sentence(self) -> str:
        why = ", ".join(f"{count} because {reason}" for reason, count in self.excuses.items())
        return f"{self.share:.1%} of {self.every} cases judged" + (
            f"; excused: {why}" if why else ""
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    started: str
    verdict: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    known: KnownFailure
    finding: Risk | None
    rules: Sequence[RuleResult]


def headline(results: Results) -> Headline:
    run = results.run
    if run.partial:
        return Headline(tone="unknown", sentence="This run was interrupted and gives no verdict.")
    if run.exit_code not in {OK, BROKEN}:
        sentence = "The suite or its environment failed, so the verdicts cannot be trusted."
        return Headline(tone="error", sentence=sentence)
    if run.exit_code == BROKEN:
        rules = len(results.unexpected)
        sentence = f"{rules} unexpected result{'' if rules == 1 else 's'}."
        if not rules:
            wrong = "The ledger is wrong." if results.problems else ""
            sentence = wrong or "A fault did not hit, or a check failed."
        return Headline(tone="fail", sentence=sentence)
    return Headline(tone="pass", sentence=f"{_holding(results)}.")


def _holding(results: Results) -> str:
    summary = results.summary
    others = summary["fail"] + summary["unknown"]
    words = {"pass", "fail", "unknown", "out of reach"}
    judged = [rule for rule in results.rules if rule.verdict in words]
    contract = [rule for rule in judged if rule.by_contract]
    rest = [rule for rule in judged if not rule.by_contract]
    told = [_held(contract, "contract rules hold")] if contract else []
    if rest:
        told.append(_held(rest, "others" if contract else "rules hold"))
    if others:
        told.append(f"{others} known failure{'' if others == 1 else 's'}")
    if idle := summary["vacuous"]:
        told.append(f"{idle} {'was' if idle == 1 else 'were'} not exercised")
    return "; ".join(told)


def _held(rules: Sequence[RuleResult], what: str) -> str:
    held = f"{sum(rule.verdict == 'pass' for rule in rules)} of {len(rules)} {what}"
    if not (why := out_of_reach(rules)):
        return held
    said = ", ".join(f"{reason} ({count})" for reason, count in why[:MOST_REASONS])
    more = len(why) - MOST_REASONS
    others = f", and {more} other reason{'' if more == 1 else 's'}" if more > 0 else ""
    single = why[0][0] if len(why) == 1 else f"{said}{others}"
    return f"{held}, {sum(count for _, count in why)} out of reach: {single}"


def causes(results: Results) -> dict[str, list[Cause]]:
    seen: dict[str, list[tuple[KnownFailure, RuleResult]]] = {}
    for rule in results.known_failures:
        said = "\n".join((rule.reason, *rule.witness))
        entries = [one for one in rule.known_failures if re.search(one.match, said, re.DOTALL)]
        for entry in (entries or rule.known_failures)[:1]:
            seen.setdefault(entry.finding or entry.bug or entry.reason, []).append((entry, rule))
    findings = load_findings()
    found: dict[str, list[Cause]] = {}
    for name in [
        name for name in (*findings, *sorted(seen.keys() - findings.keys())) if name in seen
    ]:
        rules = [rule for _, rule in seen[name]]
        cause = Cause(known=seen[name][0][0], finding=findings.get(name), rules=rules)
        found.setdefault(rank_of(name), []).append(cause)
    return found


def out_of_reach(rules: Sequence[RuleResult]) -> list[tuple[str, int]]:
    return Counter(rule.reason for rule in rules if rule.verdict == "out of reach").most_common()


def areas(results: Results) -> list[dict[str, Any]]:
    found = []
    for area, entries in groupby(results.rules, key=lambda entry: entry.area):
        rules = list(entries)
        title = AREAS.get(area, "")
        found.append({"id": area, "title": title, "rules": rules, "tally": tally(rules)})
    return found


def tally(rules: Sequence[RuleResult]) -> dict[str, int]:
    words = [rule.verdict for rule in rules]
    return {word: words.count(word) for word in WORDS if word in words}


def levels(results: Results) -> list[tuple[str, dict[str, int]]]:
    by_level = [
        (level.value, [rule for rule in results.rules if rule.level is level]) for level in Level
    ]
    return [(level, tally(found)) for level, found in by_level if found]


def bases(results: Results) -> list[tuple[str, dict[str, int]]]:
    rules = [rule for rule in results.rules if rule.basis]
    kinds = {
        "contract": [rule for rule in rules if rule.by_contract],
        "reference": [rule for rule in rules if not rule.by_contract and not rule.internal],
        "Kafka's own": [rule for rule in rules if rule.internal],
    }
    return [(name, tally(found)) for name, found in kinds.items() if found]


def uncrossed(rule: RuleResult) -> str:
    return UNCROSSED.get(rule.about, "") if rule.about else ""


def crossed(results: Results) -> tuple[int, int]:
    met = [r for r in results.rules if r.about is About.STATE and r.situations]
    return sum(len(rule.situations) > 1 for rule in met), len(met)


def by_broker(client: Client) -> list[tuple[str, dict[str, int]]]:
    return [
        (name, {word: counts[word] for word in WORDS if word in counts})
        for name, counts in client.brokers.items()
    ]


def command(run: Run) -> str:
    program, *rest = run.command
    name = Path(program).name
    return shlex.join(["shareproof" if name == "__main__.py" else name, *rest])


def linked(text: str) -> list[tuple[str, str]]:
    pieces: list[tuple[str, str]] = []
    at = 0
    for found in _ADDRESS.finditer(text):
        kind = found[0].partition("-")[0]
        pieces.append((text[at : found.start()], ""))
        pieces.append((found[0], f"{_PLACES.get(kind, '')}{found[0]}"))
        at = found.end()
    return [piece for piece in [*pieces, (text[at:], "")] if piece[0]]


def runtime(client: Client) -> str:
    language, said = client.language, client.runtime
    return said if said.lower().startswith(language.lower()) else f"{language} {said}".strip()


def cases(results: Results, run: str) -> list[Cases]:
    found = [
        Cases(rule=rule.id, judged=check.cases, excuses=check.excuses)
        for rule in results.rules
        for check in rule.checks
        if check.excuses and check.check.endswith(f"[{run}]")
    ]
    return sorted(found, key=lambda one: one.share)


GOOD, BAD, DIM = "#1a7f37", "#c4212b", "#9a6700"

MOST = 0.9
"""The share of rules that has to hold for a green badge, however well known all other bugs are."""

HALF = 0.5  # the share of rules that the target has to be asked for a green badge


@dataclass(frozen=True, slots=True)
class Badge:
    label: str
    message: str
    colour: str

    def endpoint(self) -> str:
        fields = {"schemaVersion": 1, "label": self.label, "message": self.message}
        return json.dumps(fields | {"color": self.colour}, indent=1) + "\n"

    def picture(self) -> str:
        left, right = (7 * len(text) + 10 for text in (self.label, self.message))
        return _SVG.format(
            label=escape(self.label),
            message=escape(self.message),
            left=left,
            right=right,
            width=left + right,
            colour=self.colour,
            label_at=left / 2,
            message_at=left + right / 2,
        )

    def write(self, out: Path) -> None:
        (out / "badge.json").write_text(self.endpoint(), encoding="utf-8")
        (out / "badge.svg").write_text(self.picture(), encoding="utf-8")


def of_results(results: Results) -> Badge:
    """Return the badge of a run: how many required rules hold, and whether all is as expected.

    A run that was cut short, that failed itself or that judged nothing says so and is never green,
    nor is one with that many known failures, or with most rules out of reach.
    """
    run, summary = results.run, results.summary
    judged = summary["pass"] + summary["fail"] + summary["unknown"] + summary["vacuous"]
    beyond = summary["out of reach"]
    message = f"{summary['pass']} of {judged + beyond} rules"
    message += f", {beyond} out of reach" if beyond else ""
    colour = {OK: GOOD, BROKEN: BAD}.get(run.exit_code, DIM)
    if run.partial or run.errors:
        message, colour = f"{message}, cut short", DIM
    elif not judged:
        message, colour = "nothing could be judged", DIM
    elif run.exit_code == OK:
        message += f", {summary['fail']} known bugs" if summary["fail"] else ""
        enough = not summary["fail"] or summary["pass"] >= MOST * judged
        colour = GOOD if enough and judged >= HALF * (judged + beyond) else DIM
    label = f"share groups, tier {run.tier}" if run.tier else "share groups"
    return Badge(label, message, colour)


_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"
 aria-label="{label}: {message}">
<title>{label}: {message}</title>
<rect width="{left}" height="20" fill="#444"/>
<rect x="{left}" width="{right}" height="20" fill="{colour}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="{label_at}" y="14">{label}</text>
<text x="{message_at}" y="14">{message}</text>
</g>
</svg>
"""
