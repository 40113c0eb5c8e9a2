"""Evidence: nothing missing, nothing about what is gone, one kill a rule, and the track record."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.adapters.model.mutants import MUTANTS as CLIENT_MUTANTS
from fixtures.machine.java import find_java
from fixtures.mutants import MUTANTS as KAFKA_MUTANTS
from fixtures.mutants.agency import known
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS as REFERENCE_MUTANTS
from reports import evidence
from reports.analysis.rules import load_invariants
from reports.evidence import FILE, FOLDER, Entry, read
from shareproof.detected import EXEMPT, own_kills
from shareproof.runner.inventory import CLIENT, by_rule, read_checks
from spec.catalogue import Past, load_track_record, past_of
from spec.rule import SpecError, load_rules
from suites.chaos.scenarios import SCENARIOS
from tools.campaign import options
from tools.campaign.__main__ import gone
from tools.campaign.fields import UNANSWERED, UNASSERTED, leaves, listed
from tools.campaign.options import EvidenceStore, write
from tools.campaign.rejections import cases_of, checks, kills, playable
from tools.campaign.releases import Question, Seen, about, answers, doubt, questions, words
from tools.campaign.rules import by_alteration, judged, without
from tools.documents.evidence import detection as evidence_page
from tools.documents.evidence import track_record as track_record_page

ENOUGH_OF_KAFKA, ENOUGH_OF_CLIENTS = 60, 25
"""Mutants that there must be at least; those of Kafka must be dead."""

OUTSIDE = (
    "suites/broker/test_adm_tools.py",
    "suites/broker/test_adm_console.py",
    "suites/broker/test_adm_other_tools.py",
    "suites/broker/test_dlq_settings.py::test_broker_settings_change",
    "suites/broker/test_dlv_throttled.py",
    "suites/broker/test_off_stored.py::test_empty_group_outlives_retention",
    "suites/broker/test_per_topic.py::test_cold_snapshot",
    "suites/broker/test_per_topic.py::test_first_use_with_an_old_list_of_protocols",
    "suites/broker/test_per_topic.py::test_log_is_pruned",
    "suites/broker/test_per_topic.py::test_persister_that_keeps_nothing",
)
"""Checks out of a reference broker's reach: they run Kafka's own tools, set quotas, wait for what a
share coordinator does from time to time, have brokers stamp records, or take their persister
away."""

UPDATE = "run `python -m tools.campaign --record`"


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    return read()


def test_each_leaf_of_a_share_response_is_asserted_or_argued(entries: list[Entry]) -> None:
    """A new field or error of a new release is red until somebody decides which rule asserts it."""
    noticed = {one.name for one in entries if one.kind == evidence.FIELD}
    silent = [one for one in leaves() if one not in noticed]
    argued = {one: [end for end in UNASSERTED if one.endswith(end)] for one in silent}
    assert [one for one in silent if not argued[one]] == []
    assert {end for ends in argued.values() for end in ends} == set(UNASSERTED)
    answered = {(one.partition(" ")[0], one.partition("=")[2]) for one in noticed}
    assert {error for _, error in listed() - answered} == set(UNANSWERED)


def rejections(entries: list[Entry]) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = defaultdict(list)
    for one in entries:
        if one.release == evidence.REFERENCE and one.verdict == "fail":
            found[one.check].append(one)
    return found


def altered(entries: list[Entry]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for one in entries:
        if one.kind == evidence.ALTERATION and one.release != evidence.REFERENCE:
            found[one.check][one.rule].append(one.name)
    return found


def test_nothing_is_about_what_is_gone_or_said_twice(entries: list[Entry]) -> None:
    found = [one.key for one in gone(entries)]
    assert found == [], "run `python -m tools.campaign --again`, which forgets these"
    strange = [entry(name="no-such-mutant"), entry(rule="ACK-01"), entry(check="x.py::test_y")]
    assert gone([*strange, entry()]) == strange
    assert len({one.key for one in entries}) == len(entries)


def test_every_mutant_of_the_reference_broker_is_dead(entries: list[Entry]) -> None:
    killed = {one.name for one in entries if kills(one)}
    assert [name for name in REFERENCE_MUTANTS if name not in killed] == []


def test_every_check_has_a_rejecting_example(entries: list[Entry]) -> None:
    found, seen = rejections(entries), altered(entries)
    outside = {check for check in seen if check.startswith(OUTSIDE) and seen[check]}
    on_reference = (evidence.REFERENCE_MUTANT, evidence.ALTERATION)
    shown = [one for some in found.values() for one in some if one.kind in on_reference]
    assert [c for c in playable() if not found.get(c) and c not in outside] == [], UPDATE
    assert [one.key for one in shown if not one.reason] == []
    # Those that no reference broker can play reject alterations in front of real Kafka.
    trusted = [check for check, one in checks().items() if not one.draft]
    assert [check for check in trusted if not cases_of(check) and not seen.get(check)] == []


def test_every_check_was_seen_failing_each_of_its_rules(entries: list[Entry]) -> None:
    seen = altered(entries)
    never = [
        f"{check.id} {rule}"
        for check in read_checks()
        for rule in check.rules
        if not seen.get(check.id, {}).get(rule)
    ]
    assert never == [], (
        "run `python -m tools.campaign alterations --record`, and give each of these an alteration "
        "that it can notice"
    )


def test_the_agent_has_every_mutant_of_kafka_and_each_breaks_live_rules() -> None:
    assert known(find_java()) == list(KAFKA_MUTANTS)
    assert all(mutant.sentence and mutant.rules for mutant in KAFKA_MUTANTS.values())
    broken = {rule for mutant in KAFKA_MUTANTS.values() for rule in mutant.rules}
    assert broken <= load_rules().keys()


def test_every_mutant_of_kafka_is_dead_or_explained(entries: list[Entry]) -> None:
    mine = [one for one in entries if one.kind == evidence.KAFKA_MUTANT]
    dead = [one for one in mine if one.verdict == "fail"]
    alive = [one for one in mine if one.verdict == "survived"]
    assert sorted(one.name for one in mine) == sorted(KAFKA_MUTANTS)
    assert len(dead) + len(alive) == len(mine)
    assert len(dead) >= ENOUGH_OF_KAFKA
    assert [one.name for one in alive if not one.reason] == []
    assert [one.name for one in dead if one.rule not in KAFKA_MUTANTS[one.name].rules] == []


def test_mutants_of_the_client_break_live_rules() -> None:
    rules = load_rules()
    reached = {rule for check in read_checks(CLIENT) for rule in check.rules}
    strange = [
        (mutant.name, rule)
        for mutant in CLIENT_MUTANTS.values()
        for rule in mutant.rules
        if rule not in rules or rule not in reached
    ]
    assert len(CLIENT_MUTANTS) >= ENOUGH_OF_CLIENTS
    assert strange == []
    assert [mutant.name for mutant in CLIENT_MUTANTS.values() if not mutant.sentence] == []


def test_every_mutant_of_the_client_is_killed(entries: list[Entry]) -> None:
    mine = [one for one in entries if one.kind == evidence.CLIENT_MUTANT]
    judged = {rule for check in read_checks(CLIENT) for rule in check.rules}
    killers = {one.check for one in mine}
    assert sorted(CLIENT_MUTANTS.keys() - {one.name for one in mine}) == []
    assert [one.name for one in mine if one.rule not in CLIENT_MUTANTS[one.name].rules] == []
    assert [check.id for check in read_checks(CLIENT) if check.id not in killers] == []
    assert sorted(judged - {one.rule for one in mine}) == []


def entry(**fields: str) -> Entry:
    known = {
        "kind": evidence.REFERENCE_MUTANT,
        "rule": "LCK-01",
        "check": "suites/broker/test_lck_expiry.py::test_expired_lock_frees_the_records",
        "name": "locks-never-end",
        "verdict": "fail",
        "release": evidence.REFERENCE,
        "date": "2026-01-01",
        "reason": "still locked",
    }
    return Entry(**{**known, **fields})  # type: ignore[arg-type]


def test_evidence_survives_a_round_trip(entries: list[Entry], tmp_path: Path) -> None:
    write(reversed(entries), tmp_path)
    assert read(tmp_path) == entries
    assert (tmp_path / FILE).read_text(encoding="utf-8") == (FOLDER / FILE).read_text("utf-8")


def test_what_is_newer_wins_where_it_is_recorded(tmp_path: Path) -> None:
    write([entry()], tmp_path)
    store = EvidenceStore(record=False, folder=tmp_path)
    store.add([entry(reason="new")])
    store.drop([entry()])
    assert read(tmp_path) == [entry()]
    store = EvidenceStore(record=True, folder=tmp_path)
    store.add([entry(reason="held on.  For ever. And ever.")])
    [kept] = read(tmp_path)
    assert store.known == store.new == [kept]
    assert kept.reason == "held on."
    assert (kept.date, kept.commit) == (options.today(), options.commit())


# --- One kill a rule --------------------------------------------------------------------------

LEAST = 618  # rules by which something died that breaks just them; only retiring lowers it

GENERIC = {
    *("accepts-refused", "acks-refused", "answers-slow", "counts-frozen", "counts-raised"),
    *("errors-blurred", "errors-swallowed", "errors-unexplained", "everybody-may"),
    *("one-record-lost", "partitions-left-out", "ranges-narrowed", "ranges-widened"),
    *("records-emptied", "redeliveries-hidden", "requests-refused"),
    *("state-errors-blurred", "state-errors-swallowed"),
}
"""Alterations that break nearly everything: a check that notices one has shown little."""


def test_rules_have_kills_of_their_own_or_say_why_not() -> None:
    left = without(evidence.read(), judged())
    assert len(judged()) - len(left) >= LEAST
    assert EXEMPT.keys() <= set(left) <= load_rules().keys()
    assert all(len(why) > len("nothing") for why in EXEMPT.values())
    assert {rule for one in ALTERATIONS.values() for rule in one.rules} <= set(judged())
    assert by_alteration(["ACQ-08"])["records-null"]


def test_a_kill_is_by_a_declared_rule_and_by_nothing_that_breaks_everything() -> None:
    assert ALTERATIONS.keys() >= GENERIC
    assert [name for name in GENERIC if ALTERATIONS[name].rules] == []
    one = Entry(kind=evidence.ALTERATION, name=min(GENERIC), rule="ACK-01", release="4.4.0")
    assert own_kills([one]) == {}
    mutant = next(iter(REFERENCE_MUTANTS.values()))
    facts = {"kind": evidence.REFERENCE_MUTANT, "name": mutant.name, "release": evidence.REFERENCE}
    good, other = (entry(**facts, rule=rule) for rule in (mutant.rules[0], "CFG-01"))
    assert own_kills([good, other]) == {mutant.rules[0]: [good]}


def test_kills_are_published_by_rule() -> None:
    page = evidence_page(evidence.read())
    shown = {row.split(" | ")[0].removeprefix("| "): row for row in page.splitlines()}
    assert set(judged()) <= shown.keys()
    assert "`released-in-a-fetch-is-not-counted`" in shown["ACK-05"]
    assert all(f"nothing | {EXEMPT[rule]}" in shown[rule] for rule in EXEMPT)


# --- The track record -------------------------------------------------------------------------

OLD, NEW = Question("4.1.1"), Question("4.2.0")
LOCK = Past(bug="KAFKA-19953", title="half released", rule="LCK-18", seen="4.1.1", mended="4.2.0")
BROKEN = Seen("fail", "expected [0, 1], got [0]")
WHOLE = Seen("pass", "")


def test_every_entry_of_the_track_record_is_reached_and_confirmed() -> None:
    rules, checked = load_rules(), by_rule(read_checks())
    invariants = {invariant.id for invariant in load_invariants()}
    found, past = answers(read()), load_track_record()
    text = track_record_page(past, found)
    for entry in past:
        assert entry.rule in rules
        assert entry.rule in (invariants if entry.scenario else checked)
        assert not entry.scenario or entry.scenario in SCENARIOS
        assert entry.command.split() == words(about(entry, entry.seen), [entry.rule])
        assert f"| {entry.title} | {entry.rule} | {entry.seen} |" in text
        assert doubt(entry, found) == ""


def test_confirmed_on_both_sides() -> None:
    found = {OLD: {"LCK-18": BROKEN}, NEW: {"LCK-18": WHOLE}}
    text = track_record_page([LOCK], found)
    assert doubt(LOCK, found) == ""
    assert questions([LOCK]) == {OLD: ["LCK-18"], NEW: ["LCK-18"]}
    assert "$ shareproof broker --target kafka:4.1.1 --only LCK-18 --ledger strict" in text
    assert "LCK-18 fail: expected [0, 1], got [0]" in text
    # A scenario is a run of its own.
    played = replace(LOCK, rule="INV-26", scenario="members-die", seed=7)
    old, new = Question("4.1.1", "members-die", 7), Question("4.2.0", "members-die", 7)
    assert questions([LOCK, played]).keys() == {OLD, NEW, old, new}
    found = {old: {"INV-26": BROKEN}, new: {"INV-26": WHOLE}}
    command = "$ shareproof chaos --target kafka:4.1.1 --scenario members-die --seed 7"
    assert doubt(played, found) == ""
    assert command in track_record_page([played], found)


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
