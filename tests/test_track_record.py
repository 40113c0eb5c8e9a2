"""The track record: a sound list, a page made of it, and nothing in it that is half confirmed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.analysis.rules import load_invariants
from reports.evidence import read
from shareproof.runner.inventory import by_rule, read_checks
from spec.catalogue import Past, load_track_record, past_of
from spec.requirement import SpecError, load_requirements
from suites.chaos.scenarios import SCENARIOS
from tools.campaign.releases import Question, Seen, about, answers, doubt, questions, words
from tools.documents.evidence import track_record as page

OLD, NEW = Question("4.1.1"), Question("4.2.0")
LOCK = Past(bug="KAFKA-19953", title="half released", rule="LCK-18", seen="4.1.1", mended="4.2.0")
BROKEN = Seen("fail", "expected [0, 1], got [0]")
WHOLE = Seen("pass", "")


def test_every_entry_is_reached() -> None:
    rules, checks = load_requirements(), by_rule(read_checks())
    invariants = {invariant.id for invariant in load_invariants()}
    for entry in load_track_record():
        assert entry.rule in rules
        assert entry.rule in (invariants if entry.scenario else checks)
        assert not entry.scenario or entry.scenario in SCENARIOS


def test_command_of_an_entry_asks_what_was_asked() -> None:
    for entry in load_track_record():
        assert entry.command.split() == words(about(entry, entry.seen), [entry.rule])


def test_every_entry_is_confirmed() -> None:
    found = answers(read())
    text = page(load_track_record(), found)
    missing = [e for e in load_track_record() if f"| {e.title} | {e.rule} | {e.seen} |" not in text]
    assert [why for entry in load_track_record() if (why := doubt(entry, found))] == []
    assert missing == []


def test_confirmed_on_both_sides() -> None:
    assert doubt(LOCK, {OLD: {"LCK-18": BROKEN}, NEW: {"LCK-18": WHOLE}}) == ""


@pytest.mark.parametrize(
    ("there", "here", "why"),
    [
        (WHOLE, WHOLE, "LCK-18 on 4.1.1: pass, not fail"),
        (BROKEN, BROKEN, "LCK-18 on 4.2.0: fail, not pass"),
        (Seen("unknown", "slow"), WHOLE, "unknown, not fail: slow"),
    ],
)
def test_not_confirmed(there: Seen, here: Seen, why: str) -> None:
    assert why in doubt(LOCK, {OLD: {"LCK-18": there}, NEW: {"LCK-18": here}})


def test_questions_ask_both_sides() -> None:
    assert questions([LOCK]) == {OLD: ["LCK-18"], NEW: ["LCK-18"]}


def test_a_scenario_is_a_run_of_its_own() -> None:
    played = replace(LOCK, rule="INV-26", scenario="members-die", seed=7)
    old, new = Question("4.1.1", "members-die", 7), Question("4.2.0", "members-die", 7)
    assert questions([LOCK, played]).keys() == {OLD, NEW, old, new}
    found = {old: {"INV-26": BROKEN}, new: {"INV-26": WHOLE}}
    command = "$ shareproof chaos --target kafka:4.1.1 --scenario members-die --seed 7"
    assert doubt(played, found) == ""
    assert command in page([played], found)


def test_page_quotes_what_was_seen() -> None:
    text = page([LOCK], {OLD: {"LCK-18": BROKEN}, NEW: {"LCK-18": WHOLE}})
    assert "$ shareproof broker --target kafka:4.1.1 --only LCK-18 --profile strict" in text
    assert "LCK-18 fail: expected [0, 1], got [0]" in text


@pytest.mark.parametrize(
    "text",
    [
        '[[past]]\nbug = ""\ntitle = "t"\nrule = "LCK-18"\n',
        '[[past]]\nbug = ""\ntitle = "t"\nrule = "LCK-18"\nseen = "4.1.0"\ncolour = "red"\n',
        '[[past]]\nbug = ""\ntitle = "t"\nrule = "LCK-18"\nseen = "4.1.0"\n' * 2,
    ],
)
def test_malformed_lists_are_refused(text: str) -> None:
    with pytest.raises(SpecError):
        past_of(text)
