"""The table of the model is whole, its rules exist, and the picture in the docs shows it."""

from __future__ import annotations

import dataclasses
import re
from itertools import product
from pathlib import Path

import pytest

from spec.model.diagram import document
from spec.model.release import RELEASES, Release, release_of
from spec.model.table import ACK_EVENTS, NEXT, TABLE, TERMINAL, Effect, Event, Guard, State, step
from spec.releases import newest
from spec.requirement import load_requirements

ROOT = Path(__file__).parents[1]
RULE = re.compile(r'"([A-Z]{3}-\d{2,3})"')


def test_no_event_has_two_outcomes() -> None:
    unfolded = [(row.event, row.before, pair) for row in TABLE for pair in row.guard.value]

    assert len(set(unfolded)) == len(unfolded) == len(NEXT)


def test_an_event_that_can_happen_can_always_happen() -> None:
    for event, state in {(row.event, row.before) for row in TABLE}:
        for last, letters in product((False, True), repeat=2):
            assert step(event, state, last=last, dead_letters=letters) is not None


def test_terminal_states_are_never_left() -> None:
    assert not [row for row in TABLE if row.before in TERMINAL]


def test_only_an_acquisition_raises_the_count() -> None:
    raising = [row.event for row in TABLE if Effect.COUNT_UP in row.effects]

    assert raising == [Event.ACQUIRE]


def test_members_only_move_what_they_hold() -> None:
    assert [row.before for row in TABLE if row.event in ACK_EVENTS] == [State.ACQUIRED] * 8
    names = ["gap", "accept", "release", "reject", "renew"]

    assert names == [event.value for event in ACK_EVENTS]


@pytest.mark.parametrize("event", [Event.GAP, Event.ACCEPT, Event.RELEASE, Event.REJECT])
def test_what_a_client_settled_is_durable(event: Event) -> None:
    rows = [row for row in TABLE if row.event is event]

    assert all(Effect.PERSIST in row.effects for row in rows)


def test_dead_letters_are_owed_for_failures_only() -> None:
    owing = {row.event for row in TABLE if row.after is State.ARCHIVING}

    assert {Event.REJECT, Event.RELEASE, Event.EXPIRE, Event.CLOSE, Event.RELOAD} == owing


def test_guards_are_all_of_use() -> None:
    assert {row.guard for row in TABLE} == set(Guard)


def test_model_names_only_live_rules() -> None:
    rules = load_requirements()
    named = {
        rule
        for file in (ROOT / "spec" / "model").glob("*.py")
        for rule in RULE.findall(file.read_text(encoding="utf-8"))
    }

    assert not named - set(rules)
    assert len(named) > 50


def test_diagram_is_current() -> None:
    text = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
    held = text.split("<!-- generated: begin -->\n")[1].split("<!-- generated: end -->")[0]

    assert document() == held


def test_releases_differ_in_every_field() -> None:
    fields = {field.name for field in dataclasses.fields(Release)} - {"name"}

    for name in fields:
        assert len({getattr(release, name) for release in RELEASES.values()}) == 2


@pytest.mark.parametrize(
    ("version", "line"),
    [
        ("4.1.2", "4.1"),
        ("4.4.0", "4.4"),
        ("", newest().name),
        ("99.0", newest().name),
    ],
)
def test_release_of_a_version(version: str, line: str) -> None:
    assert RELEASES[line] is release_of(version)
