"""Documents, rules and ``--help`` use the words of docs/glossary.md, and none that it replaced."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from spec.requirement import load_requirements
from tests.fake import ROOT
from tools.documents.manpage import page

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BANNED = {
    r"befalls?|befell": "target, or: happens to",
    r"whom": "name the subject",
    r"made anew|make anew|making anew": "recreate",
    r"fore(?:see|sees|seen|saw)|unforeseen": "expected, known failure",
    r"stand-ins?": "mock, emulation",
    r"good-?byes?": "SIGKILL, or: without closing",
    r"rooms?|houses?": "package, folder, environment",
    r"doors?|desks?|deeds?|mischief|seats?|tides?|tales?|weather": "the term of the field",
    r"so-manieth": "nth",
    r"in peace": "control run",
    r"(?<!dead )(?<!dead-)letters": "dead letters",
    r"(?:an?|the|no|each|every|any|its|their|one|first|last|late|lost) answers?": "response",
    r"answers? (?:of|from|to a|to an|that)": "response",
    r"lies?|lying|lied": "alteration, fault",
}
"""Words that readers stumbled over, as patterns, and what to write."""
IN_RULES = {
    r"answer\w*": "response, fails with, returns",
    r"settl\w*": "acknowledge, finish",
    r"whom|(?:is|was) told|rooms?|hand(?:s|ed)? out": "gets, place, deliver",
    r"(?<!dead )(?<!dead-)letters?": "dead letter",
}
"""Words that a rule's sentence does without; in other prose they may be what is meant."""
_CODE = re.compile(r"^```.*?^```|^(?: {4,}|\t).*?$|`[^`\n]*`|<!--.*?-->", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\([^)]*\)")

pytestmark = pytest.mark.skipif(not PAGES, reason="an installation has no documents")


def prose(markdown: str) -> str:
    """Return the prose of a page: no code, and no addresses of links."""
    return _LINK.sub("]", _CODE.sub(" ", markdown))


def found(text: str, banned: Mapping[str, str] = BANNED) -> list[str]:
    """Return each banned word of a text, with the words around it and what to write."""
    joined = " ".join(text.split())
    return [
        f"...{joined[max(0, hit.start() - 30) : hit.end() + 30]}...: write {instead}"
        for words, instead in banned.items()
        for hit in re.finditer(rf"\b(?:{words})\b", joined, re.IGNORECASE)
    ]


@pytest.mark.parametrize("file", PAGES, ids=lambda file: str(file.relative_to(ROOT)))
def test_documents_use_the_words_of_the_glossary(file: Path) -> None:
    text = prose(file.read_text(encoding="utf-8"))
    for rule in load_requirements().values():
        text = text.replace(rule.text, "")
    assert found(text) == []


def test_help_uses_the_words_of_the_glossary() -> None:
    assert found(re.sub(r"^\.\w+|\\f\w|\\", "", page(), flags=re.MULTILINE)) == []


def test_rules_use_the_words_of_the_glossary() -> None:
    rules = load_requirements().values()
    hits = {rule.id: hit for rule in rules if (hit := found(rule.text, IN_RULES))}
    assert hits == {}


def test_a_banned_word_is_found() -> None:
    text = "It befell [us](a-tale.md) in `the house`.\n\n    a lie\n\nThe last answer.\n"
    assert [one.partition("...: ")[2] for one in found(prose(text))] == [
        "write target, or: happens to",
        "write response",
    ]
