"""Sequences of calls: what is drawn, what may not happen, and a broken client that is caught."""

from __future__ import annotations

import io
import json
import random
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from rich.console import Console

from fixtures.adapters.shipped import command_of
from fixtures.interface.names import UsageFault
from shareproof.sweep.sequences import _read, search
from spec.adapter import Capability
from suites.client.sequence_search import Found, Searcher
from suites.client.sequences import (
    INVARIANTS,
    LIMIT,
    LONGEST,
    Given,
    SequenceRun,
    Step,
    judge,
    sequences,
)
from suites.options import Client, RunOptions

TOPIC = UUID(int=7)
EVERYTHING = frozenset(map(str, Capability))
LITTLE = frozenset({"explicit", "ack-record"})
HELD_AND_CLOSED: list[Step] = [
    {"call": "open", "by": 0, "mode": "explicit"},
    {"call": "subscribe", "by": 0, "topics": [0]},
    *[{"call": "poll", "by": 0, "ms": 1000}] * 4,
    {"call": "close", "by": 0},
]


@settings(max_examples=30, deadline=None)
@given(sequences(EVERYTHING))
def test_a_sequence_is_a_script(script: list[Step]) -> None:
    assert json.loads(json.dumps(script)) == script
    assert 2 <= len(script) <= LONGEST


@settings(max_examples=30, deadline=None)
@given(sequences(LITTLE))
def test_calls_that_a_client_lacks_are_not_drawn(script: list[Step]) -> None:
    calls = {step["call"] for step in script}
    assert not calls & {"wakeup", "unsubscribe", "commit_sync", "commit_async", "lock_duration"}
    assert {step["mode"] for step in script if step["call"] == "open"} <= {"explicit"}
    assert not any("beside" in step or step.get("kind") == "renew" for step in script)


class Seen:
    """An exchange as the judge needs it."""

    def __init__(self, at: float, kind: int, *, error: int = 0, api: str = "ShareAcknowledge"):
        batch = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [kind]}
        part: dict[str, Any] = {"partition_index": 0, "acknowledgement_batches": [batch]}
        self.api, self.node, self.sent, self.responded = api, 1, at, at + 0.01
        self.request = {"topics": [{"topic_id": TOPIC, "partitions": [part]}]}
        told = {"partition_index": 0, "error_code": error}
        self.response = {"error_code": 0, "responses": [{"topic_id": TOPIC, "partitions": [told]}]}


def story(*seen: Any, **more: Any) -> SequenceRun:
    """Return a story of one topic with one record."""
    made = SequenceRun(topics={TOPIC: "t"}, produced={("t", 0)}, **more)
    made.exchanges = list(seen)
    return made


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    place = ("t", 0)
    assert judge(story(Seen(2.0, 1), asked={(place, "accept"): 1.0})) == {}
    given_ = [Given(1.0, "c", place, 1)]
    assert judge(story(Seen(2.0, 1), given=given_, implicit={"c"})) == {}
    assert judge(story(Seen(2.0, 2))) == {}
    assert judge(story(Seen(2.0, 0, error=121))) == {}


@pytest.mark.parametrize(
    ("invariant", "told"),
    [
        ("loss", story(Seen(2.0, 1))),
        ("loss", story(Seen(2.0, 3), asked={(("t", 0), "accept"): 1.0})),
        ("loss", story(Seen(2.0, 0))),
        ("loss", story(Seen(2.0, 1), asked={(("t", 0), "accept"): 3.0})),
        ("duplicates", story(given=[Given(1.0, "c", ("t", 0), 1)] * 2)),
        ("liveness of calls", story(stuck="no reply to poll within 25 s")),
        ("liveness of the group", story(left="a new consumer did not get the rest")),
        ("rate", story(*[Seen(1.0 + n / 1000, 2) for n in range(100)])),
    ],
)
def test_each_invariant_can_break(invariant: str, told: SequenceRun) -> None:
    assert set(judge(told)) == {invariant}
    assert invariant in INVARIANTS


def test_what_the_limit_archives_is_not_a_stall() -> None:
    often = [Given(float(n), "c", ("t", 0), n) for n in range(LIMIT)]
    assert judge(story(given=often, left="a new consumer did not get the rest")) == {}


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("client", "broken"), [("model", False), ("model:accepts-when-closed", True)]
)
def test_a_broken_client_is_caught(client: str, broken: bool) -> None:
    searcher = Searcher(command_of(client), 1, lambda _: None)
    times, found, _ = searcher.replay(HELD_AND_CLOSED, 1)
    assert (times, [set(one) for one in found]) == ((1, [{"loss"}]) if broken else (0, []))


@pytest.mark.parametrize("seconds", [0.0, 0.2])
@pytest.mark.parametrize("number", range(3))
def test_a_search_survives_the_end_of_shrinking(
    monkeypatch: pytest.MonkeyPatch, number: int, seconds: float
) -> None:
    monkeypatch.setattr("suites.client.sequence_search.SHRINKS", seconds)
    monkeypatch.setattr("suites.client.sequence_search.sequences", lambda _: sequences(EVERYTHING))
    searcher = Searcher(command_of("model"), number, lambda _: None)

    luck = random.Random(number)

    def broken(script: list[Step]) -> dict[str, str]:
        # Breaks only now and then, as what depends on the time does.
        return {"loss": "one was lost"} if luck.random() < 0.7 and len(script) > 3 else {}

    monkeypatch.setattr(searcher, "_broken", broken)
    searcher._round(time.monotonic() + 60, 0)
    assert set(searcher.search.found) == {"loss"}


@pytest.mark.parametrize("invariant", sorted(INVARIANTS))
def test_what_no_replay_breaks_again_counts_unless_it_is_about_time(
    monkeypatch: pytest.MonkeyPatch, invariant: str
) -> None:
    searcher = Searcher(command_of("model"), 1, lambda _: None)
    monkeypatch.setattr(searcher, "_broken", lambda *_: {})
    found = Found(invariant, "it broke once", HELD_AND_CLOSED, [])
    searcher._confirm(found)
    counted = invariant in {"loss", "duplicates", "rate"}
    assert (list(searcher.search.found), searcher.search.slow) == (
        ([invariant], []) if counted else ([], [found])
    )


def test_an_interrupted_search_keeps_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Searcher, _minutes: float) -> None:
        self.search.played = 9
        self.search.found["loss"] = Found("loss", "one was lost", HELD_AND_CLOSED, ["open -> done"])
        raise KeyboardInterrupt

    monkeypatch.setattr(Searcher, "run", interrupted)
    options = RunOptions(client=Client.asked_for(client="model", adapter=""), out=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        search(options, 30, Console(file=io.StringIO()))
    assert json.loads((tmp_path / "sequences.json").read_text())["played"] == 9
    assert _read(tmp_path / "loss.json") == HELD_AND_CLOSED


def test_a_file_without_a_script_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text('{"call": "poll"}', encoding="utf-8")
    with pytest.raises(UsageFault, match="a list of steps is needed"):
        _read(file)
