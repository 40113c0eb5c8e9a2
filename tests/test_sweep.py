"""The sweep, sequences of calls and the account of a client: judges that tell right from wrong."""

import io
import json
import random
import re
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from rich.console import Console

from fixtures.adapters.shipped import command_of
from fixtures.clients.handle import Call, Settled
from fixtures.interface.names import REFERENCE_VERSION, UsageFault
from fixtures.machine.maven import clients_jar
from shareproof.sweep.run import Swept, observations, spread
from shareproof.sweep.sequences import _read, search
from spec.adapter import Capability
from spec.verdict import Verdict, Violation
from suites.client.account import GIVEN, SENT, TOLD, account
from suites.client.sequence_search import Found, Searcher
from suites.client.sequences import INVARIANTS, LIMIT, LONGEST, Given, SequenceRun, Step, sequences
from suites.client.sequences import judge as judge_sequence
from suites.client.sweep.application import CaseRun
from suites.client.sweep.cases import DEFINED, OTHERS, Case, all_cases
from suites.client.sweep.rules import BEHIND, LOST, MOST, RATE, RECOVERS, ROW, TOLD_OF, judge
from suites.options import Client, RunOptions
from suites.sweep import Played, chosen
from tests.exchanges import TOPIC, exchange

_CODE = re.compile(r"^ *// - (\w+) \(version", re.MULTILINE)


@pytest.mark.parametrize("api", ["ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"])
def test_codes_are_those_of_the_definition(api: str) -> None:
    with zipfile.ZipFile(clients_jar(REFERENCE_VERSION)) as jar:
        text = jar.read(f"common/message/{api}Response.json").decode()
    assert set(_CODE.findall(text)) == set(DEFINED[api])
    assert not set(DEFINED[api]) & set(OTHERS[api])


def test_names_are_unique_and_choose() -> None:
    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases)
    assert all(chosen(cases, [case.name]) == [case] for case in cases[::40])
    assert {case.api for case in chosen(cases, ["Metadata"])} == {"Metadata"}
    assert all("/9999/" in case.name for case in chosen(cases, ["*/9999/*"]))
    assert {case.api for case in cases} == set(DEFINED)


def fetched(at: float, *, accepts: int | None = None, scripted: str = "error", **more: Any) -> Any:
    acks = [] if accepts is None else [(accepts, 1)]
    return exchange(at, epoch=3, acks=acks, scripted=scripted, **more)


def story(*seen: Any, **fields: Any) -> CaseRun:
    plain: dict[str, Any] = {
        "accepted": {(0, 0): 0.5},
        "delivered": {(0, 0)},
        "produced": {(0, 0)},
        "settled": [],
        "told": [(1.0, "UNKNOWN_SERVER_ERROR")],
        "ended": 100.0,
        "recovered": 1.0,
        "exchanges": list(seen) or [fetched(1.0, accepts=0)],
    }
    return CaseRun(**plain | fields)


CASE = Case(name="ShareAcknowledge/top/9999/lasting", steps=(), owed=True, lasting=True)


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        (story(), ""),
        (story(fetched(0.1, accepts=0)), BEHIND),
        (story(fetched(1.0, accepts=5)), BEHIND),
        (story(delivered=set()), LOST),
        (
            story(
                fetched(1.0, accepts=0, error=5),
                settled=[Settled(topic="t", partition=0, offsets=(0,), error=None)],
            ),
            LOST,
        ),
        (story(*(fetched(1 + n / 100, scripted="x") for n in range(MOST + 1))), RATE),
        (story(*(fetched(1 + n / 30, error=5) for n in range(ROW + 2))), RATE),
        (story(*(fetched(1 + n / 30, scripted="x") for n in range(ROW + 2))), ""),
        (story(told=[]), TOLD_OF),
        (story(told=[(101.0, "UNKNOWN_SERVER_ERROR")]), TOLD_OF),
        (story(recovered=None, left="nothing came"), RECOVERS),
        (story(stuck="no reply to poll"), RECOVERS),
    ],
)
def test_the_judge(run: CaseRun, rule: str) -> None:
    assert [one.rule for one in judge(CASE, run) if one.broken] == ([rule] if rule else [])


def test_what_cannot_be_decided_is_no_pass() -> None:
    assert judge(CASE, story(fetched(1.0, scripted=""))) == [], "its script came to nothing"
    fault = Played(case="a/b", rule=RECOVERS, fault="gone")
    late = Played(case="a/c", rule=RECOVERS, undecided="slow")
    seen = observations([Swept(played=fault), Swept(played=late, first=fault)])
    assert [one.verdict for one in seen] == [Verdict.ERROR, Verdict.UNKNOWN]
    assert seen[1].first is not None


def swept(kind: str, *words: str) -> tuple[dict[str, Swept], list[str]]:
    stages = []
    found = spread(
        (sys.executable, "-m", "tests.peculiar", kind),
        chosen(all_cases(), words),
        seed=1,
        brokers=1,
        watch=lambda stage, _many, _played: stages.append(stage),
    )
    return {one.played.case: one for one in found}, list(dict.fromkeys(stages))


def broken(one: Swept) -> list[str]:
    assert one.played.fault + one.played.undecided == ""
    return [each.rule for each in one.played.findings if each.broken]


def test_a_call_that_waits_for_the_end_of_an_error() -> None:
    name = "FindCoordinator/top/COORDINATOR_LOAD_IN_PROGRESS/lasting"
    found, stages = swept("patient", name)
    assert broken(found[name]) == []
    assert stages == ["cases"]


def test_a_case_that_ends_the_client() -> None:
    ends, beside = "ShareFetch/batch/count/three", "ShareFetch/batch/crc/three"
    found, stages = swept("mortal", ends, beside)
    assert broken(found[ends]) == [RECOVERS]
    assert broken(found[beside]) == []
    assert stages == ["cases", "once more", "alone"]


# --- Sequences --------------------------------------------------------------------------------

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


def acked(at: float, kind: int, **more: Any) -> Any:
    return exchange(at, acks=[(0, kind)], **more)


def story_of(*seen: Any, **more: Any) -> SequenceRun:
    made = SequenceRun(topics={TOPIC: "t"}, produced={("t", 0)}, **more)
    made.exchanges = list(seen)
    return made


@pytest.mark.parametrize(
    ("invariant", "run"),
    [
        ("loss", story_of(acked(2.0, 1))),
        ("loss", story_of(acked(2.0, 3), asked={(("t", 0), "accept"): 1.0})),
        ("loss", story_of(acked(2.0, 0))),
        ("loss", story_of(acked(2.0, 1), asked={(("t", 0), "accept"): 3.0})),
        ("duplicates", story_of(given=[Given(1.0, "c", ("t", 0), 1)] * 2)),
        ("liveness of calls", story_of(stuck="no reply to poll within 25 s")),
        ("liveness of the group", story_of(left="a new consumer did not get the rest")),
        ("account", story_of(account=[Violation("CLI-127", "stuck")])),
        ("rate", story_of(*[acked(1.0 + n / 1000, 2) for n in range(100)])),
    ],
)
def test_each_invariant_can_break(invariant: str, run: SequenceRun) -> None:
    assert set(judge_sequence(run)) == {invariant}
    assert invariant in INVARIANTS


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    place = ("t", 0)
    given_ = [Given(1.0, "c", place, 1)]
    often = [Given(float(n), "c", place, n) for n in range(LIMIT)]
    for right in (
        story_of(acked(2.0, 1), asked={(place, "accept"): 1.0}),
        story_of(acked(2.0, 1), given=given_, implicit={"c"}),
        story_of(acked(2.0, 2)),
        story_of(acked(2.0, 0, error=121)),
        story_of(given=often, left="a new consumer did not get the rest"),  # it is archived
    ):
        assert judge_sequence(right) == {}


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
    counted = invariant in {"loss", "duplicates", "rate", "account"}
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
    options = RunOptions(client=Client.from_cli(client="model", adapter=""), out=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        search(options, 30, Console(file=io.StringIO()))
    assert json.loads((tmp_path / "sequences.json").read_text())["played"] == 9
    assert _read(tmp_path / "loss.json") == HELD_AND_CLOSED
    (tmp_path / "script.json").write_text('{"call": "poll"}', encoding="utf-8")
    with pytest.raises(UsageFault, match="a list of steps is needed"):
        _read(tmp_path / "script.json")


METADATA: Any = SimpleNamespace(
    api="Metadata",
    client_id="c",
    responded=0.0,
    scripted="",
    response={"topics": [{"topic_id": TOPIC, "name": "t"}]},
)
AWAY = 3
PLACE = {"topic": "t", "partition": 0, "offset": 0}


def call(op: str, began: float, took: float = 0.3, **fields: Any) -> Call:
    result = fields.pop("result", {"records": []} if op == "poll" else {})
    return Call(op=op, fields=fields, began=began, ended=began + took, result=result)


OPEN = call("open", 0.0, config={"mode": "explicit", "callback": "record"})
CLOSE = call("close", 20.0)
GAVE = call("poll", 1.2, result={"records": [PLACE]})
ACCEPT = call("acknowledge", 1.6, type="accept", records=[PLACE])
EMPTY = [call("poll", 2.0 + n / 2) for n in range(5)]


def came(at: float, number: int, **more: Any) -> Any:
    return exchange(at, api="ShareFetch", number=number, got=[(0, 1)], **more)


def accepted(at: float, number: int, **more: Any) -> Any:
    return exchange(at, number=number, acks=[(0, 1)], **more)


def callbacks_of(at: float, times: int) -> list[Any]:
    one = {"topic": "t", "partition": 0, "offsets": [0] * times, "error": None}
    return [SimpleNamespace(at=at, partitions=[one])] if times else []


FETCHED = came(1.0, 1)
TAKEN = accepted(2.0, 2)
REFUSED = accepted(2.0, 2, error=121)
UNANSWERED = exchange(1.5, api="ShareFetch", number=2, answered=False)
COMMIT = call("commit_sync", 2.0, result={"partitions": []})


@pytest.mark.parametrize(
    ("broken", "calls", "exchanges", "times"),
    [
        (GIVEN, [OPEN, *EMPTY, CLOSE], [FETCHED], 0),
        (SENT, [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN, accepted(2.5, 3)], 1),
        (SENT, [OPEN, GAVE, ACCEPT, COMMIT], [FETCHED], 0),
        (TOLD, [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN], 0),
        (TOLD, [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN], 2),
        # Nothing is wrong, or not known to be.
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN], 1),
        ("", [OPEN, *EMPTY[:2], CLOSE], [FETCHED], 0),
        ("", [OPEN, *EMPTY, CLOSE], [FETCHED, UNANSWERED], 0),
        ("", [OPEN, *EMPTY, CLOSE], [FETCHED, exchange(1.5, number=2, connection=2)], 0),
        ("", [OPEN, *EMPTY, CLOSE], [came(1.0, 1, scripted="ranges beyond")], 0),
        ("", [OPEN, *EMPTY, CLOSE], [FETCHED, exchange(1.6, number=2, acks=[(0, 2)])], 0),
        ("", [OPEN, *EMPTY, CLOSE], [FETCHED, exchange(1.6, number=2, epoch=-1)], 0),
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, TAKEN, came(2.1, 3), accepted(2.5, 4)], 2),
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, REFUSED, accepted(2.5, 3)], 1),
        ("", [OPEN, GAVE, ACCEPT], [FETCHED], 0),
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [came(1.0, 1, node=AWAY)], 0),
        ("", [OPEN, GAVE, ACCEPT, CLOSE], [FETCHED, accepted(2.0, 2, answered=False)], 0),
    ],
)  # fmt: skip
def test_account(broken: str, calls: list[Call], exchanges: list[Any], times: int) -> None:
    adapter = SimpleNamespace(has=lambda _: True)
    handle: Any = SimpleNamespace(
        name="c", calls=calls, adapter=adapter, callbacks=callbacks_of(3.0, times)
    )
    made = account([handle], [METADATA, *exchanges], {AWAY: 1.9})
    assert [one.rule for one in made.breaches] == [broken] * bool(broken)
