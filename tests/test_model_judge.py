"""The judge of share-partitions: each rule in small, and whole histories with one lie in them."""

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fixtures.targets import UsageFault
from shareproof.cli import app
from spec.model.operations import Acknowledge, Batch, Error, Fetch, Judgement, Mode, Span
from spec.model.partition import SharePartition
from spec.model.release import RELEASES, Release
from spec.model.settings import Settings, Slack
from spec.verdict import Violation
from suites.model.actions import Action, Do, from_text, to_text
from tests.stories import EDITS, StartSeen, Step, Story, corruptions, refusals

ACCEPT, RELEASE, REJECT, RENEW, GAP = (1,), (2,), (3,), (4,), (0,)
FINE, STATE, REQUEST = Error.NONE, Error.INVALID_RECORD_STATE, Error.INVALID_REQUEST
LOCK = 1_000


def fresh(**more: object) -> SharePartition:
    chosen = Settings(lock_ms=LOCK, **more)  # type: ignore[arg-type]
    judge = SharePartition(0, settings=chosen, slack=Slack(early_ms=0, late_ms=50))
    for first in range(0, 100, 10):
        judge.produced(first, first + 9)
    return judge


def held(**more: object) -> SharePartition:
    judge = fresh(**more)
    judge.acquired(Span(0, 10), "ann", [(0, 9, 1)]).check()
    return judge


def after(*types: tuple[int, ...]) -> SharePartition:
    judge = held()
    for offset, kind in enumerate(types, start=1):
        judge.acknowledged(20, "ann", [(offset, offset, kind)]).check()
    return judge


Judging = Callable[[], Judgement]


def answered(
    judge: Callable[[], SharePartition],
    batches: list[tuple[int, int, tuple[int, ...]]],
    right: Error,
    wrong: Error,
    *,
    who: str = "ann",
    at: float = 20,
    **more: Any,
) -> tuple[Judging, Judging]:

    def judgement(error: Error) -> Judgement:
        return judge().acknowledged(at, who, batches, error, **more)

    return partial(judgement, right), partial(judgement, wrong)


def taken(
    judge: Callable[[], SharePartition],
    right: Any,
    wrong: Any,
    *,
    who: str = "ann",
    at: float = 1,
    **limits: Any,
) -> tuple[Judging, Judging]:
    return (
        lambda: judge().acquired(at, who, right, **limits),
        lambda: judge().acquired(at, who, wrong, **limits),
    )


def timed(what: str, right: Any, wrong: Any, *more: Any) -> tuple[Judging, Judging]:
    return lambda: getattr(held(), what)(right, *more), lambda: getattr(held(), what)(wrong, *more)


ONE = [(1, 1, ACCEPT)]
# rule: (an allowed story, a story that breaks the rule)
PAIRS: dict[str, tuple[Judging, Judging]] = {
    "ACQ-05": taken(fresh, [(0, 4, 1), (5, 9, 1)], [(5, 9, 1), (0, 4, 1)]),
    "ACQ-20": timed("acquired", Span(999, 1_001), Span(990, 999), "bob", [(0, 9, 2)]),
    "ACQ-21": timed("acquired", Span(900, 1_001), 20, "ann", [(0, 9, 2)]),
    "ACQ-30": taken(fresh, [(0, 9, 1)], [(0, 19, 1)], max_records=3),
    "ACQ-33": taken(fresh, [(0, 2, 1)], [(0, 3, 1)], mode=Mode.RECORD_LIMIT, max_records=3),
    "ACQ-39": taken(fresh, [], [(0, 9, 1)], max_records=0),
    "ACQ-41": taken(
        partial(after, RELEASE), [(1, 1, 2), (10, 19, 1)], [(10, 19, 1)], who="bob", at=30
    ),
    "LCK-01": taken(held, [(0, 9, 2), (10, 19, 1)], [(10, 19, 1)], who="bob", at=1_200),
    "ACQ-50": (
        lambda: fresh(max_locks=5).acquired(1, "ann", [(0, 9, 1)]),
        lambda: held(max_locks=10).acquired(20, "bob", [(10, 19, 1)]),
    ),
    "INV-04": taken(fresh, [(90, 99, 1)], [(95, 100, 1)]),
    "DLV-01": taken(fresh, [(0, 9, 1)], [(0, 9, 2)]),
    "DLV-02": taken(partial(after, RELEASE), [(1, 1, 2)], [(1, 1, 3)], who="bob", at=30),
    "DLV-03": taken(held, [(0, 9, 2)], [(0, 9, 1)], who="bob", at=1_200),
    "ACK-01": (
        lambda: after(RELEASE).acquired(30, "bob", [(1, 1, 2)]),
        lambda: after(ACCEPT).acquired(30, "bob", [(1, 1, 2)]),
    ),
    "ACK-03": taken(partial(after, GAP), [(10, 19, 1)], [(1, 1, 2)], who="bob", at=30),
    "ACK-07": (
        lambda: after(REJECT).acquired(30, "bob", [(10, 19, 1)]),
        lambda: after(REJECT).acquired(5_000, "bob", [(1, 1, 2)]),
    ),
    "ACK-17": answered(held, [(3, 2, ACCEPT)], REQUEST, FINE),
    "ACK-18": answered(held, [(3, 4, ACCEPT), (1, 2, ACCEPT)], REQUEST, FINE),
    "ACK-19": answered(held, [(1, 4, ACCEPT), (3, 6, ACCEPT)], REQUEST, STATE),
    "ACK-20": answered(held, [(1, 4, ACCEPT), (4, 6, ACCEPT)], STATE, FINE),
    "ACK-21": answered(held, [(1, 4, ())], REQUEST, FINE),
    "ACK-23": answered(held, [(1, 3, (1, 2))], REQUEST, FINE),
    "ACK-11": answered(held, [(1, 3, RENEW)], REQUEST, FINE, version=1),
    "ACK-12": answered(held, [(1, 3, (5,))], REQUEST, FINE),
    "ACK-14": answered(held, [(1, 3, RENEW)], REQUEST, FINE),
    "ACK-27": answered(held, [(1, 3, (1, 2, 3))], FINE, STATE),
    "ACK-29": answered(held, [(1, 3, ACCEPT)], STATE, FINE, who="bob"),
    "ACK-30": answered(partial(after, RELEASE), [(1, 1, ACCEPT)], STATE, FINE, at=30),
    "ACK-31": (
        lambda: after(ACCEPT).acknowledged(30, "ann", [(1, 1, ACCEPT)], STATE),
        lambda: after(ACCEPT).acknowledged(30, "ann", [(1, 1, REJECT)], FINE),
    ),
    "ACK-32": answered(held, [(30, 31, ACCEPT)], REQUEST, STATE),
    "LCK-03": timed("acknowledged", Span(1_050, 1_100), Span(1_061, 1_100), "ann", ONE, FINE),
    "LCK-16": timed("acknowledged", Span(990, 1_000), Span(990, 999), "ann", ONE, STATE),
    "LCK-21": answered(held, [(1, 1, RENEW)], FINE, STATE, renew=True),
    "LCK-29": answered(held, [(1, 1, RENEW)], STATE, FINE, at=2_000, renew=True),
    "LCK-30": answered(held, [(1, 1, RENEW)], STATE, FINE, who="bob", renew=True),
    "LCK-31": answered(partial(after, ACCEPT), [(1, 1, RENEW)], STATE, FINE, at=30, renew=True),
    "LCK-36": answered(partial(held, renewal=False), [(1, 1, RENEW)], STATE, FINE, renew=True),
    "OFF-17": (lambda: held().spso_seen(20, 0), lambda: held().spso_seen(20, 1)),
}


@pytest.mark.parametrize("rule", PAIRS)
def test_both_sides(rule: str) -> None:
    allowed, broken = PAIRS[rule]
    assert allowed().rules == ()
    assert (rule,) == broken().rules


def test_an_unanswered_acknowledgement_keeps_both_ends_and_is_whole() -> None:
    for ranges in ([(0, 9, 2)], [(10, 19, 1)]):
        judge = held()
        judge.acknowledged(20, "ann", [(0, 9, ACCEPT)], None)
        assert judge.acquired(1_200, "bob", ranges).ok
    for error in (Error.NOT_LEADER_OR_FOLLOWER, Error.UNKNOWN_SERVER_ERROR):
        judge = held()
        judge.acknowledged(20, "ann", [(0, 9, ACCEPT)], error)
        assert judge.spso_seen(30, 10).ok, "an error may hide an effect"
    judge = held()
    judge.acknowledged(20, "ann", [(0, 1, RELEASE)], None)
    judge.acquired(30, "bob", [(0, 0, 2)]).check()
    assert judge.acknowledged(40, "ann", [(1, 1, ACCEPT)]).rules == ("ACK-30",)


def test_an_unseen_fetch_may_have_raised_a_count() -> None:
    for count, allowed in ((1, True), (2, True), (3, False)):
        judge = fresh()
        judge.lost(judge.begin_fetch(0, Fetch(member="ann")), 10)
        assert allowed is judge.acquired(2_000, "bob", [(0, 9, count)]).ok


@pytest.mark.parametrize(("error", "right"), [(FINE, True), (REQUEST, False)])
def test_requests_that_overlap_may_act_in_either_order(error: Error, right: bool) -> None:
    judge = held()
    release = judge.begin_acknowledge(
        20, Acknowledge(member="ann", batches=(Batch(0, 9, RELEASE),))
    )
    fetch = judge.begin_fetch(21, Fetch(member="bob"))
    judge.fetched(fetch, 30, [(0, 9, 2)]).check()
    assert judge.answered(release, 31, error).ok is right


def test_a_reload_takes_counts_back_to_the_durable_ones() -> None:
    for count, allowed in ((1, True), (2, True), (3, True), (4, False)):
        judge = held()
        judge.acquired(1_200, "bob", [(0, 9, 2)]).check()
        judge.reloaded(1_300).check()
        assert allowed is judge.acquired(1_400, "ann", [(0, 9, count)]).ok
    judge = after(RELEASE)
    judge.reloaded(40).check()
    assert judge.acquired(50, "bob", [(1, 1, 1)]).rules == ("DLV-31",)


def test_a_reload_that_is_over_may_have_happened() -> None:
    for count, broken in ((1, ()), (2, ()), (3, ("DLV-03",))):
        judge = held()
        judge.over(judge.begin_reload(20), 30).check()
        assert judge.acquired(1_200, "bob", [(0, 9, count)]).rules == broken


@pytest.mark.parametrize(("release", "count"), [(RELEASES["4.1"], 1), (RELEASES["4.4"], 2)])
def test_session_close_counts_since_4_2(release: Release, count: int) -> None:
    judge = SharePartition(0, release=release)
    judge.acquired(0, "ann", [(0, 9, 1)]).check()
    judge.released_session(10, "ann").check()
    assert judge.acquired(20, "bob", [(0, 9, count)]).ok
    assert not judge.acquired(30, "bob", [(0, 9, count)]).ok


def test_the_log_start_ends_records_for_good() -> None:
    judge = held()
    judge.log_start_moved(20, 5).check()
    assert judge.acknowledged(30, "ann", [(0, 4, ACCEPT)], FINE).ok
    assert judge.acknowledged(31, "ann", [(0, 4, ACCEPT)], STATE).ok
    assert judge.acquired(2_000, "bob", [(0, 4, 2)]).rules == ("OFF-20",)


def test_a_lowered_limit_permits_one_last_delivery() -> None:
    judge = held(delivery_limit=5)
    judge.acknowledged(20, "ann", [(0, 9, RELEASE)]).check()
    judge.acquired(30, "ann", [(0, 9, 2)]).check()
    judge.acknowledged(40, "ann", [(0, 9, RELEASE)]).check()
    judge.configured(Span(50, 60), Settings(lock_ms=LOCK, delivery_limit=2))
    judge.acquired(70, "ann", [(0, 9, 3)]).check()
    judge.acknowledged(80, "ann", [(0, 9, RELEASE)]).check()
    assert judge.acquired(90, "ann", [(0, 9, 4)]).rules == ("DLV-10",)


def test_a_lock_ends_under_the_limit_of_its_time() -> None:
    judge = held(delivery_limit=2)
    judge.acquired(1_200, "bob", [(0, 9, 2)]).check()
    judge.configured(Span(1_300, 1_310), Settings(lock_ms=LOCK, delivery_limit=3))
    judge.configured(Span(2_400, 2_410), Settings(lock_ms=LOCK, delivery_limit=2))
    assert judge.acquired(2_500, "ann", [(0, 0, 3)]).ok
    judge = held(delivery_limit=1)
    judge.configured(Span(1_200, 1_210), Settings(lock_ms=LOCK, delivery_limit=5))
    assert judge.acquired(1_300, "bob", [(10, 19, 1)]).ok, "what is archived does not wait"
    assert judge.acquired(1_400, "bob", [(0, 9, 2)]).rules == ("DLV-11",)


def test_an_end_that_is_over_may_have_acted() -> None:
    judge = held()
    closing = judge.begin_close(20, "ann")
    judge.over(closing, 30).check()
    assert judge.acquired(40, "bob", [(0, 4, 2)]).ok, "it freed them"
    assert judge.acknowledged(50, "ann", [(5, 9, ACCEPT)]).ok, "or did not"
    assert judge.acquired(60, "bob", [(5, 9, 2)]).rules == ("ACK-01",)


def test_a_start_offset_below_is_done() -> None:
    judge = held()
    judge.acknowledged(20, "ann", [(0, 9, ACCEPT)]).check()
    judge.spso_seen(30, 10).check()
    assert judge.acknowledged(40, "eve", [(0, 9, REJECT)], FINE).ok
    assert judge.acknowledged(50, "eve", [(0, 9, REJECT)], STATE).rules == ("ACK-34",)
    assert judge.spso_seen(60, 9).rules == ("OFF-18",)


def test_record_limits() -> None:
    judge = fresh()
    judge.acquired(1, "ann", [(0, 4, 1)], Mode.RECORD_LIMIT, 5).check()
    assert judge.acquired(2, "bob", [(5, 29, 1)], max_records=3).ok, "what is left is cut anyhow"


def test_overdue_ranges_are_named_and_one_lie_is_told_once() -> None:
    judge = held()
    assert judge.overdue(1_000) == []
    assert judge.overdue(1_100) == [(0, 9)]
    assert not judge.acquired(20, "bob", [(0, 9, 2)]).ok
    assert judge.acknowledged(30, "bob", [(0, 9, ACCEPT)]).ok


def test_a_refusal_raises_with_its_rule() -> None:
    with pytest.raises(Violation, match="ACQ-20: offsets 0-9 came to bob") as caught:
        held().acquired(20, "bob", [(0, 9, 2)]).check("fetch of bob at 20")
    assert (caught.value.rule, caught.value.witness) == ("ACQ-20", ("fetch of bob at 20",))


# --- Whole histories --------------------------------------------------------------------------

SLACK = Slack(early_ms=1, late_ms=150)
PATIENT = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
ANY_RELEASE = st.sampled_from(list(RELEASES.values()))
GROUPS = st.builds(
    Settings,
    lock_ms=st.just(200),
    delivery_limit=st.sampled_from((2, 3, 5, 10)),
    max_locks=st.sampled_from((5, 20, 2_000)),
    dead_letters=st.booleans(),
)
SEED = st.integers(0, 2**32)


def story(seed: int, group: Settings, release: Release, lossy: float, overlap: float) -> list[Step]:
    return Story(Random(seed), group, release, lossy=lossy, overlap=overlap).run(50)


def refused(steps: list[Step], group: Settings, release: Release) -> list[str]:
    return refusals(SharePartition(settings=group, release=release, slack=SLACK), steps)


@pytest.mark.parametrize("lossy", [0.0, 0.15])
@pytest.mark.parametrize("overlap", [0.0, 1.0])
@PATIENT
@given(seed=SEED, group=GROUPS, release=ANY_RELEASE)
def test_valid_histories_are_accepted(
    lossy: float, overlap: float, seed: int, group: Settings, release: Release
) -> None:
    steps = story(seed, group, release, lossy, overlap)
    assert not refused(steps, group, release)


@PATIENT
@given(seed=SEED, group=GROUPS, release=ANY_RELEASE)
def test_seeing_less_never_refuses_more(seed: int, group: Settings, release: Release) -> None:
    steps = story(seed, group, release, 0.1, 0.5)
    kept = [one for one in steps if not isinstance(one, StartSeen) or Random(seed).random() < 0.5]
    assert not refused(kept, group, release)


# What a lie is worth depends on the moment: an acknowledgement below the start offset is answered
# without error whoever sends it. So each edit has the rate that it must at least be caught at, over
# 150 histories.
CAUGHT = {
    "count_raised": 0.85,
    "count_lowered": 0.9,
    "given_twice": 1.0,
    "wrong_holder": 0.65,
    "refused_wrongly": 0.75,
    "accepted_wrongly": 0.95,
    "redelivered": 0.95,
    "start_ahead": 0.95,
}


def rates(lossy: float, overlap: float, histories: int) -> dict[str, float]:
    tried: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    for seed in range(histories):
        random = Random(seed)
        release = random.choice(list(RELEASES.values()))
        group = Settings(
            lock_ms=200,
            delivery_limit=random.choice((2, 3, 5)),
            max_locks=random.choice((5, 20, 2_000)),
        )
        steps = story(seed, group, release, lossy, overlap)
        for name, bad in corruptions(steps, random):
            tried[name] += 1
            caught[name] += bool(refused(bad, group, release))
    found = {name: caught[name] / tried[name] for name in tried}
    return found | {"all": caught.total() / tried.total()}


def test_single_lies_are_caught() -> None:
    found = rates(0.0, 0.0, 150)
    weak = {name: rate for name, rate in found.items() if rate < CAUGHT.get(name, 0.85)}
    assert not weak
    assert set(CAUGHT) == {edit.__name__ for edit in EDITS}


def test_lies_are_caught_in_turmoil_too() -> None:
    assert rates(0.05, 0.5, 60)["all"] > 0.55


# --- Lock-step ---------------------------------------------------------------------------------

ALL = [
    Action(do=Do.PRODUCE, n=5),
    Action(do=Do.FETCH, seat=0, n=2, mode=1, wait=50),
    Action(do=Do.RACE, seat=1, other=2, n=10),
    Action(do=Do.ACK, seat=0, types=(1, 4)),
    Action(do=Do.INTRUDE, seat=1, other=0, types=(1,)),
    Action(do=Do.ACK_ON_FETCH, seat=1, n=5, types=(3, 2)),
    Action(do=Do.CLOSE, seat=1, types=(1,)),
    Action(do=Do.DROP, seat=2),
    Action(do=Do.LEAVE, seat=0),
    Action(do=Do.WAIT, n=1100),
    Action(do=Do.LIMIT, n=3),
    Action(do=Do.DELETE, n=1),
    Action(do=Do.PRODUCE, n=4),
    Action(do=Do.CUT, n=1),
    Action(do=Do.MOVE),
    Action(do=Do.FETCH, seat=2, n=10),
    Action(do=Do.LOOK),
]
"""Every kind of action."""


def main(arguments: list[str]) -> int:
    try:
        return int(app(["model", *arguments], standalone_mode=False) or 0)
    except UsageFault:
        return 2


def test_scripts_are_read_back() -> None:
    assert {action.do for action in ALL} == set(Do)
    assert from_text(f"# why\n\n{to_text(ALL)}") == ALL


@pytest.mark.parametrize(
    "line", ['{"do": "dance"}', "[]", "{", '{"do": "look", "far": 1}', '{"do": "ack", "types": 1}']
)
def test_lines_that_are_no_actions(line: str, tmp_path: Path) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(f'{{"do": "look"}}\n{line}\n', encoding="utf-8")
    assert main(["--replay", str(script), "--target", "reference"]) == 2
    with pytest.raises(ValueError, match="line 2 is no action"):
        from_text(script.read_text(encoding="utf-8"))


def test_every_action_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(to_text(ALL), encoding="utf-8")
    assert main(["--replay", str(script), "--target", "reference"]) == 0
    assert f"{len(ALL)} actions played, everything allowed" in capsys.readouterr().out


def test_the_reference_broker_is_never_accused(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--target", "reference", "--seed", "7", "--steps", "150", "--json"]
    assert main([*arguments, "--actions", "30", "--minutes", "10"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["violation"] is None
    assert not document["undecided"]
    assert document["reached"]["redeliveries"] > 0
    assert document["reached"]["acks taken"] > 0


@pytest.mark.parametrize(
    ("mutant", "rules"),
    [
        ("locks-never-end", {"LCK-01", "ACQ-41", "ACQ-25"}),
        ("accept-releases", {"ACK-01", "INV-24", "ACQ-25"}),
    ],
)
def test_mutants_are_found_and_shrunk(
    mutant: str, rules: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script, target = tmp_path / "script.jsonl", f"reference:{mutant}"
    arguments = ["--target", target, "--seed", "3", "--minutes", "5", "--json"]
    assert main([*arguments, "--shrinking", "1", "--out", str(script)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["violation"].partition(":")[0] in rules
    assert len(from_text(script.read_text(encoding="utf-8"))) <= 12
    assert main(["--replay", str(script), "--target", target]) == 1
    assert main(["--replay", str(script), "--target", "reference"]) == 0
