"""The two lists that the rules must reach are whole, and every entry is reached by a live rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import pytest

from spec.catalogue import Entry, entries_of, load_catalogue, load_defects
from spec.requirement import Honesty, SpecError, load_requirements
from tools.catalogue import holes, judges

# How many behaviours upstream covers in each area. An entry cannot be lost without a change here.
BEHAVIOURS: Mapping[str, int] = {
    "MEM": 25, "SES": 13, "FET": 19, "ACK": 18, "LCK": 13, "DLV": 8, "OFF": 11, "GAP": 8,
    "PER": 18, "FLO": 12, "ADM": 10, "ACL": 10, "QTA": 2, "DLQ": 17, "LAG": 6, "API": 19,
    "CFG": 6, "MET": 7, "TOO": 7,
}  # fmt: skip
DEFECTS: Mapping[str, int] = {
    "share-partition": 26, "share-session": 5, "share-coordinator": 11, "group-coordinator": 12,
    "dead-letters": 6, "java-client": 11, "librdkafka": 10, "franz-go": 13, "others": 10,
    "patches": 12,
}  # fmt: skip
Loader = Callable[[], dict[str, Entry]]
BOTH = pytest.mark.parametrize("load", [load_catalogue, load_defects])


@pytest.mark.parametrize(
    ("load", "expected"), [(load_catalogue, BEHAVIOURS), (load_defects, DEFECTS)]
)
def test_lists_are_whole(load: Loader, expected: Mapping[str, int]) -> None:
    found = Counter(entry.area for entry in load().values())

    assert expected == found


def test_behaviours_are_numbered_without_holes() -> None:
    for area in BEHAVIOURS:
        ids = [entry.id for entry in load_catalogue().values() if entry.area == area]
        plain = [identity for identity in ids if identity[-1].isdigit()]

        assert [f"{area}-{number}" for number in range(1, len(plain) + 1)] == plain
        assert all(identity.startswith(f"{area}-") for identity in ids)


@BOTH
def test_every_entry_is_reached_by_a_rule(load: Loader) -> None:
    empty = [entry.id for entry in load().values() if not entry.rules]

    assert not empty, f"no rule reaches {len(empty)} entries: {' '.join(empty)}"


@BOTH
def test_every_rule_named_is_alive(load: Loader) -> None:
    rules = load_requirements()
    unknown = {
        entry.id: missing
        for entry in load().values()
        if (missing := [rule for rule in entry.rules if rule not in rules])
    }

    assert unknown == {}


@BOTH
def test_labels_are_short_and_distinct(load: Loader) -> None:
    labels = [entry.label for entry in load().values()]

    assert [label for label in labels if not 3 <= len(label.split()) <= 6] == []
    assert [label for label, times in Counter(labels).items() if times > 1] == []


def test_only_defects_name_public_reports() -> None:
    assert [entry.id for entry in load_defects().values() if not entry.bug] == []
    assert [entry.id for entry in load_catalogue().values() if entry.bug] == []


def test_untested_rules_say_why_in_their_own_words() -> None:
    reasons = [
        rule.why for rule in load_requirements().values() if rule.honesty is Honesty.UNTESTED
    ]

    assert [reason for reason, times in Counter(reasons).items() if times > 1] == []
    assert [reason for reason in reasons if len(reason.split()) < 6] == []


def test_a_well_formed_list_is_read() -> None:
    text = '[ACK]\nACK-1 = { label = "l", rules = ["ACK-07"], star = true, bug = ["K-1"] }\n'

    expected = Entry(id="ACK-1", area="ACK", label="l", rules=("ACK-07",), star=True, bug=("K-1",))

    assert {"ACK-1": expected} == entries_of(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('A-1 = { rules = ["X-01"] }', "label is missing"),
        ('A-1 = { label = "l" }', "rules is missing"),
        ('A-1 = "text"', "must be a table"),
        ('A-1 = { label = "l", rules = [], stars = 3 }', "unknown keys"),
        ('A-1 = { label = "l", rules = "X-01" }', "list of names"),
        ('A-1 = { label = "l", rules = [7] }', "list of names"),
        ('A-1 = { label = "l", rules = ["X-01", "X-01"] }', "twice"),
        ('A-1 = { label = "l", rules = [] }\n[B]\nA-1 = { label = "m", rules = [] }', "twice"),
    ],
)
def test_a_malformed_list_is_refused(line: str, message: str) -> None:
    with pytest.raises(SpecError, match=rf"A-1.*{message}"):
        entries_of(f"[A]\n{line}\n")


def test_every_behaviour_is_checked_or_says_why_not() -> None:
    found = holes(load_catalogue(), load_requirements(), judges())

    assert found == {}


def test_a_hole_is_seen() -> None:
    entry = Entry(id="A-1", area="A", label="l", rules=("ACK-07", "CLI-45", "ACK-01", "XXX-01"))
    rules = load_requirements()
    checks = {"ACK-01": ["suites/broker/test_x.py::test_y"]}

    assert holes({"A-1": entry}, rules, checks) == {"A-1": ["ACK-07", "XXX-01"]}
