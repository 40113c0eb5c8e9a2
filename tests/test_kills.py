"""One kill a rule: what is broken declares the rules that it breaks, and rules die by that."""

from __future__ import annotations

from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS
from reports import evidence
from reports.evidence import Entry
from shareproof.detected import EXEMPT, own_kills
from spec.requirement import load_requirements
from tools.campaign.rules import by_alteration, judged, without
from tools.documents.evidence import detection as evidence_page

LEAST = 625
"""Rules by which something died that breaks just them; this number only rises."""

GENERIC = {
    "accepts-refused",
    "acks-refused",
    "answers-slow",
    "counts-frozen",
    "counts-raised",
    "errors-blurred",
    "errors-swallowed",
    "errors-unexplained",
    "everybody-may",
    "one-record-lost",
    "partitions-left-out",
    "ranges-narrowed",
    "ranges-widened",
    "records-emptied",
    "redeliveries-hidden",
    "requests-refused",
    "state-errors-blurred",
    "state-errors-swallowed",
}
"""Alterations that break nearly everything: a check that notices one has shown little."""


def test_rules_have_kills_of_their_own() -> None:
    rules = judged()
    left = without(evidence.read(), rules)
    assert len(rules) - len(left) >= LEAST


def test_alterations_declare_live_rules() -> None:
    declared = {rule for one in ALTERATIONS.values() for rule in one.rules}
    assert declared <= set(judged())
    assert by_alteration(["ACQ-08"])["records-null"]


def test_what_breaks_everything_kills_no_rule() -> None:
    assert ALTERATIONS.keys() >= GENERIC
    assert [name for name in GENERIC if ALTERATIONS[name].rules] == []
    [name, *_] = sorted(GENERIC)
    one = Entry(kind=evidence.ALTERATION, name=name, rule="ACK-01", release="4.4.0")
    assert own_kills([one]) == {}


def test_a_kill_is_by_a_declared_rule() -> None:
    mutant = next(iter(MUTANTS.values()))
    good, other = (
        Entry(
            kind=evidence.REFERENCE_MUTANT,
            name=mutant.name,
            rule=rule,
            release=evidence.REFERENCE,
        )
        for rule in (mutant.rules[0], "CFG-01")
    )
    assert own_kills([good, other]) == {mutant.rules[0]: [good]}


def test_rules_without_a_kill_say_why() -> None:
    assert EXEMPT.keys() <= set(without(evidence.read(), judged())) <= load_requirements().keys()
    assert all(len(why) > len("nothing") for why in EXEMPT.values())


def test_kills_are_published_by_rule() -> None:
    page = evidence_page(evidence.read())
    shown = {row.split(" | ")[0].removeprefix("| "): row for row in page.splitlines()}
    assert set(judged()) <= shown.keys()
    assert "`released-in-a-fetch-is-not-counted`" in shown["ACK-05"]
    assert all(f"nothing | {EXEMPT[rule]}" in shown[rule] for rule in EXEMPT)
