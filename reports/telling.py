"""What the page of a run says at first sight: the verdict in a sentence, and what needs a reader.

Pure functions over a results document; they decide words and order, the templates only set them.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from reports.results import Document, text_of
from reports.verdicts import BROKEN, OK, UNTESTED
from spec.requirement import AREAS, Level

WORDS = ("fail", "error", "unknown", "vacuous", "unsupported", "pass", UNTESTED)
"""Verdicts in the order a reader wants them: what needs a decision first."""

SIGNS: Mapping[str, str] = {
    "fail": "✗",
    "error": "!",
    "unknown": "?",
    "vacuous": "∅",
    "unsupported": "⊖",
    "pass": "✓",
    UNTESTED: "·",
}
"""Verdicts for those who do not see colours."""

_ADDRESS = re.compile(r"https://\S+|\b(?:KAFKA|KIP)-\d+\b")
_TRACKER = "https://issues.apache.org/jira/browse/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A run in a sentence. ``tone`` is the verdict whose colour suits it."""

    tone: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What another run said of a rule; ``address`` is relative to the page, or empty."""

    started: str
    verdict: str
    address: str


def subject(document: Document) -> str:
    """Return who was tested: a client with its version, or a target."""
    client = document.get("client")
    return f"{client['name']} {client['version']}" if client else str(document["target"]["name"])


def is_partial(document: Document) -> bool:
    """Tell whether a run was cut short, or looked at a part of the rules only."""
    run = document["run"]
    return bool(run["partial"] or run["only"] or run["fast"])


def headline(document: Document) -> Headline:
    """Return the run's outcome in a sentence that claims no more than the exit code does."""
    run, summary = document["run"], document["summary"]
    if run["partial"]:
        return Headline(tone="unknown", sentence="This run was cut short and gives no verdict.")
    if run["exit_code"] not in {OK, BROKEN}:
        sentence = "The suite or its machine failed, so the verdicts cannot be trusted."
        return Headline(tone="error", sentence=sentence)
    if run["exit_code"] == BROKEN:
        return Headline(tone="fail", sentence=_to_explain(document))
    return Headline(tone="pass", sentence=f"{_holding(summary)}.")


def _holding(summary: Mapping[str, int]) -> str:
    others = summary["fail"] + summary["unknown"]
    told = [f"{summary['pass']} of {summary['pass'] + others} rules hold"]
    if others:
        they = "one that does" if others == 1 else f"{others} that do"
        told.append(f"the ledger foresees the {they} not")
    if idle := summary["vacuous"]:
        told.append(f"{idle} {'was' if idle == 1 else 'were'} not put to the test")
    return "; ".join(told)


def areas(document: Document) -> list[dict[str, Any]]:
    """Return each area with its title, its rules and how often each verdict was given."""
    found = []
    for area, entries in groupby(document["requirements"], key=lambda entry: entry["area"]):
        rules = list(entries)
        title = AREAS.get(area, "")
        found.append({"id": area, "title": title, "requirements": rules, "tally": tally(rules)})
    return found


def tally(rules: Sequence[Document]) -> dict[str, int]:
    """Count the verdicts of some rules, those that were given, in the order of ``WORDS``."""
    words = [rule["verdict"] for rule in rules]
    return {word: words.count(word) for word in WORDS if word in words}


def levels(document: Document) -> list[tuple[str, dict[str, int]]]:
    """Return how often each verdict was given, by level."""
    rules = document["requirements"]
    by_level = [(level.value, [r for r in rules if r["level"] == level.value]) for level in Level]
    return [(level, tally(found)) for level, found in by_level if found]


def by_broker(document: Document) -> list[tuple[str, dict[str, int]]]:
    """Return how often each verdict was given, by the broker that a client faced."""
    brokers = document.get("client", {}).get("brokers", {})
    return [
        (name, {word: counts[word] for word in WORDS if word in counts})
        for name, counts in brokers.items()
    ]


def to_decide(document: Document) -> list[Document]:
    """Return the rules whose verdict nobody foresaw, or whose ledger entry is wrong."""
    return [r for r in document["requirements"] if not r["expected"] or r["problem"]]


def known(document: Document) -> list[Document]:
    """Return the rules that do not hold, or are undecided, as the ledger says."""
    return [
        rule
        for rule in document["requirements"]
        if rule["expected"] and not rule["problem"] and rule["verdict"] in {"fail", "unknown"}
    ]


def command(document: Document) -> str:
    """Return what was typed to start the run, without where the program is on its machine."""
    program, *rest = document["run"]["command"]
    name = Path(program).name
    return shlex.join(["shareproof" if name == "__main__.py" else name, *rest])


def fingerprint(document: Document) -> str:
    """Return the SHA-256 of results.json, so that a printed certificate names what it rests on."""
    return hashlib.sha256(text_of(document).encode()).hexdigest()


def linked(text: str) -> list[tuple[str, str]]:
    """Split a text into pieces, each with the address that it links to, or none."""
    pieces: list[tuple[str, str]] = []
    at = 0
    for found in _ADDRESS.finditer(text):
        pieces.append((text[at : found.start()], ""))
        pieces.append((found[0], _address(found[0])))
        at = found.end()
    return [piece for piece in [*pieces, (text[at:], "")] if piece[0]]


def _address(word: str) -> str:
    if word.startswith("KAFKA-"):
        return f"{_TRACKER}{word}"
    if word.startswith("KIP-"):
        return f"https://cwiki.apache.org/confluence/display/KAFKA/{word}"
    return word


def _to_explain(document: Document) -> str:
    rules, problems = len(to_decide(document)), len(document["problems"])
    if rules:
        return "1 rule is not as foreseen." if rules == 1 else f"{rules} rules are not as foreseen."
    return "The ledger is wrong." if problems else "A fault did not hit, or a check failed."


def runtime(client: Mapping[str, str]) -> str:
    """Return what a client runs on: its language, unless the runtime begins with its name."""
    language, said = client["language"], client["runtime"]
    return said if said.lower().startswith(language.lower()) else f"{language} {said}".strip()
