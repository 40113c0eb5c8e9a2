"""What checks stand on: the judge, records that stop coming, durations, bounds of a target."""

import asyncio
import json
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fixtures import virtual
from fixtures.clients.bounds import HEARTBEAT, LOCK, SESSION, Bounds, Range, bounds_of
from fixtures.clients.cluster import Cluster
from fixtures.clients.member import Member, release
from fixtures.targets import TargetOptions, open_target, started
from fixtures.virtual import virtual_cluster
from fixtures.wire.codec import Struct
from fixtures.wire.errors import ErrorCode
from fixtures.wire.frame import Frame, Transcript, encode_request, encode_response
from shareproof.runner.outcome import observe
from spec.model.leader import Leader
from spec.verdict import OutOfReach, Stalled, Undecided, Verdict, Violation
from suites.broker.env import open_env
from suites.broker.groups import in_session
from suites.broker.hang import threads_that_matter
from suites.broker.observer import contradictions, outlived
from suites.broker.timing import ROUNDS, Span, apart, judge_span
from suites.broker.unanswered import to_repeat
from suites.judge import MAX_TEXT, Judge, MisusedJudge
from tests.release import schemas
from tests.restricted import restricted
from tests.shell import python

CHOICE = dict.fromkeys((6, 42), "ShareFetchResponse ErrorCode: one or the other")


@pytest.fixture
def court() -> Judge:
    return Judge(["ACK-01", "ACK-02"])


def test_violation_carries_rule_sentence_and_witness(court: Judge) -> None:
    with pytest.raises(Violation) as caught:
        court["ACK-02"].equal(0, 7, "error code", witness=[1, "two", "three", "four"])
    assert caught.value.rule == "ACK-02"
    assert caught.value.sentence == "error code: expected 0, got 7"
    assert caught.value.witness == ("1", "two", "three")
    assert court.evidence("ACK-02") == {}


def thread(name: str, state: str, *lines: str) -> str:
    return "\n\t".join((f'\n"{name}" #9 prio=5\n   java.lang.Thread.State: {state}', *lines, ""))


RESTING = thread("share-0", "WAITING", "at kafka.coordinator.common.EventAccumulator.poll")


def test_threads_of_a_broker_that_hangs() -> None:
    dump = "\n".join(
        (
            thread("main", "WAITING (parking)", "at kafka.server.KafkaRaftServer.awaitShutdown"),
            thread("handler-0", "BLOCKED", "at storage.Log.append", "- waiting to lock <0x0a>"),
            thread("handler-1", "BLOCKED", "at storage.Log.append", "- waiting to lock <0x0a>"),
            thread("flush", "RUNNABLE", "at nio.FileDispatcher.force0", "- locked <0x0a>"),
            thread("fetch", "RUNNABLE", "at kafka.server.share.SharePartition.acquire"),
            RESTING,
        )
    )
    found = [one.split()[0] for one in threads_that_matter(dump).split("\n\n")]
    assert found == ['"handler-0"', '"flush"', '"fetch"']
    assert '"handler-1"' in threads_that_matter(dump)
    assert threads_that_matter(RESTING).startswith('"share-0"')
    assert threads_that_matter("") == ""


def test_sentences_stay_short(court: Judge) -> None:
    with pytest.raises(Violation, match=r"missing \[0\], not expected \[100\]"):
        court["ACK-01"].equal(list(range(100)), list(range(1, 101)), "offsets")
    with pytest.raises(Violation) as caught:
        court["ACK-01"].equal(b"x" * 10_000, b"", "payload")
    assert len(caught.value.sentence) < MAX_TEXT + 100


def test_other_rules_judge_delivery_counts(court: Judge) -> None:
    court["ACK-01"].delivered({3: 2}, {3: 2}, "records")
    with pytest.raises(Undecided, match=r"delivery counts are \{3: 1\}, not \{3: 2\}"):
        court["ACK-01"].delivered({3: 2}, {3: 1}, "records")
    with pytest.raises(Violation, match=r"expected \[3\], got \[3, 4\]"):
        court["ACK-01"].delivered({3: 2}, {3: 1, 4: 1}, "records")


def test_choice_is_any_of_the_allowed(court: Judge) -> None:
    court["ACK-01"].one_of(CHOICE, 42, "error code")
    with pytest.raises(Violation, match="expected 6 or 42, got 3"):
        court["ACK-01"].one_of(CHOICE, 3, "error code")
    court["ACK-01"].none_but(CHOICE, [42, 6, 42], "error codes")
    with pytest.raises(Violation, match=r"error codes: expected set\(\), got \{3\}"):
        court["ACK-01"].none_but(CHOICE, [42, 3], "error codes")
    with pytest.raises(MisusedJudge, match="nothing is said to allow"):
        court["ACK-01"].none_but({6: ""}, [], "error codes")


@pytest.mark.parametrize("source", ["", "Kafka does so", "KIP-932", "KIP-932 §", "order: "])
def test_each_choice_has_a_source(court: Judge, source: str) -> None:
    with pytest.raises(MisusedJudge, match=r"nothing is said to allow \[6\]"):
        court["ACK-01"].one_of(CHOICE | {6: source}, 42, "error code")


def test_rules_that_nobody_named(court: Judge) -> None:
    with pytest.raises(MisusedJudge, match="ACK-03"):
        court["ACK-03"].saw(redeliveries=1)


def test_only_the_only_rule_need_not_be_named(court: Judge) -> None:
    judge = Judge(["ACK-01"])
    judge.equal(1, 1, "one")
    assert (judge.unexercised(), judge.evidence("ACK-01")) == ((), {"assertions": 1})
    with pytest.raises(MisusedJudge, match="the marker names ACK-01, ACK-02"):
        court.equal(1, 1, "one")


# --- Records that stop coming -----------------------------------------------------------------


async def _release_and_acquire(target: str) -> None:
    async with (
        virtual_cluster(target, brokers=1, properties={}, seed=1) as here,
        open_env(here.info, Random(1), [Transcript()], here.schemas) as env,
    ):
        consumer = await (await env.queue(1)).consumer()
        await consumer.acquire(1)
        await consumer.acked(release(0))
        await consumer.acquire(1)


def test_a_partition_that_stops_is_no_slow_machine() -> None:
    virtual.run(_release_and_acquire("reference"))
    with pytest.raises(Stalled, match="a new topic and group on the same broker went on"):
        virtual.run(_release_and_acquire("reference:a-release-stops-the-partition"))


def test_nothing_is_proved_where_nobody_gets_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leader, "plan", lambda *_: [])
    with pytest.raises(Undecided) as caught:
        virtual.run(_release_and_acquire("reference"))
    assert not isinstance(caught.value, Stalled)


def test_the_rule_that_was_next_is_broken() -> None:
    judge = Judge(["ACK-01", "ACK-02", "ACK-03"])
    judge["ACK-01"].holds(True, "fine")

    seen = {one.rule: one for one in observe("check", judge, Stalled("nothing came"), 0.0)}

    assert seen["ACK-02"].verdict is Verdict.FAIL
    assert seen["ACK-02"].reason == "nothing came"
    assert {seen["ACK-01"].verdict, seen["ACK-03"].verdict} == {Verdict.UNKNOWN}
    for rule in judge.rules:
        judge[rule].holds(True, "fine")
    last = observe("check", judge, Stalled("nothing came"), 0.0)[-1]
    assert (last.rule, last.verdict) == ("ACK-03", Verdict.FAIL)


def test_a_quota_leaves_open_what_it_may_have_caused() -> None:
    judge, slowed = Judge(["ACK-01"]), "the target throttles ShareFetch, by a quota"

    def seen(error: Exception) -> tuple[Verdict, str]:
        [one] = observe("check", judge, error, 0.0, throttled=slowed)
        return one.verdict, one.reason

    assert seen(Undecided("nothing came")) == (Verdict.OUT_OF_REACH, slowed)
    assert seen(Stalled("nothing came")) == (Verdict.OUT_OF_REACH, slowed)
    expected = f"{slowed}: ACK-01: expected 1, got 2"
    assert seen(Violation("ACK-01", "expected 1, got 2")) == (Verdict.UNKNOWN, expected)


# --- Durations --------------------------------------------------------------------------------

SHORTER, LONGER = "LCK-02", "LCK-01"


def judged(spans: Mapping[float, Sequence[Span]], late: float = 0.0) -> int:
    rounds = 0

    async def measure(configured: float) -> Sequence[Span]:
        nonlocal rounds
        rounds += configured == 1
        return spans[configured]

    async def lateness(_seconds: float) -> float:
        return late

    judge = Judge([SHORTER, LONGER])
    asyncio.run(
        judge_span(judge, "lock", (1, 3), measure, lateness, shorter=SHORTER, longer=LONGER)
    )
    return rounds


def exactly(factor: float, *, slow: float = 0.0) -> dict[float, Sequence[Span]]:
    return {
        each: [Span(each * factor - slow, each * factor + slow), Span(0, 99)] for each in (1.0, 3.0)
    }


def test_as_configured_or_too_slow_to_tell() -> None:
    assert judged(exactly(1.0)) == judged(exactly(1.02, slow=0.1), late=2.0) == 1
    with pytest.raises(Violation, match="the shortest lock of 3 s"):
        judged({1.0: [Span(1.3, 1.3)], 3.0: [Span(3.9, 3.9)]}, late=0.25)
    with pytest.raises(Undecided, match="too slow"):
        judged({1.0: [Span(1.9, 2.0)], 3.0: [Span(3.9, 4.0)]}, late=1.0)
    with pytest.raises(Undecided, match="too slow"):
        judged({1.0: [Span(0.2, 9.0)], 3.0: [Span(0.2, 9.0)]})
    assert ROUNDS > 1


@pytest.mark.parametrize(("factor", "rule"), [(1.3, LONGER), (2.0, LONGER), (0.75, SHORTER)])
def test_another_factor(factor: float, rule: str) -> None:
    spans = {each: [Span(each * factor - 0.05, each * factor)] for each in (1.0, 3.0)}
    with pytest.raises(Violation) as caught:
        judged(spans, late=0.05)
    assert caught.value.rule == rule


def test_bounds_that_allow_one_duration_only() -> None:
    assert apart(1000, 60_000) == (1.0, 3.0)
    assert apart(15_000, 40_000) == (15.0, 40.0)
    with pytest.raises(OutOfReach):
        apart(15_000, 15_000)


@pytest.mark.parametrize("silent", [0.0, 60.0])
def test_members_that_the_harness_let_expire(silent: float) -> None:
    member = Member(None, "group", "member")  # type: ignore[arg-type]  # it sends nothing
    member.beaten = time.monotonic() - silent
    response = Struct("Response", {"error_code": ErrorCode.UNKNOWN_MEMBER_ID})
    if silent:
        with pytest.raises(Undecided, match="sent no heartbeat for 60 s"):
            in_session(member, response, 45_000)
    else:
        assert in_session(member, response, 45_000) is response


# --- Bounds of a target -----------------------------------------------------------------------


def bounds(locks: tuple[int, int], sessions: tuple[int, int], beats: tuple[int, int]) -> Bounds:
    return Bounds(
        locks=Range(name=LOCK, low=locks[0], high=locks[1], default=locks[1]),
        sessions=Range(name=SESSION, low=sessions[0], high=sessions[1], default=sessions[1]),
        heartbeats=Range(name=HEARTBEAT, low=beats[0], high=beats[1], default=beats[1]),
    )


OURS = bounds((1000, 60_000), (1000, 60_000), (200, 15_000))
SHIPPED = bounds((15_000, 60_000), (45_000, 60_000), (5000, 15_000))
FIXED = bounds((30_000, 30_000), (45_000, 45_000), (5000, 5000))


@pytest.mark.parametrize(
    ("target", "locks", "timing"),
    [
        (OURS, (1000, 2000, 30_000, 60_000), (1000, 500)),
        (SHIPPED, (15_000, 15_000, 45_000, 60_000), (45_000, 5000)),
    ],
)
def test_durations_are_the_shortest_allowed(
    target: Bounds, locks: tuple[int, ...], timing: tuple[int, int]
) -> None:
    found = (target.short_lock, target.prompt_lock, target.long_lock, target.longest_lock)
    assert found == locks
    assert (target.short_session, target.short_heartbeat) == timing


def test_what_is_not_allowed_is_out_of_reach() -> None:
    assert (FIXED.short_lock, FIXED.longest_lock, FIXED.short_session) == (30_000, 30_000, 45_000)
    with pytest.raises(OutOfReach, match="at most 30000 here, and 60000 is needed"):
        _ = FIXED.long_lock
    with pytest.raises(OutOfReach, match=SESSION):
        FIXED.session(50_000)
    assert (OURS.patience, SHIPPED.patience) == (0, 3 * 14 + 2 * 44)


@pytest.mark.parametrize(("shortest", "session"), [(15_000, 45_000), (1000, 1000)])
async def test_bounds_are_those_of_the_brokers(shortest: int, session: int) -> None:
    properties = {
        "group.share.min.record.lock.duration.ms": str(shortest),
        "group.share.min.session.timeout.ms": str(session),
    }
    with started(open_target("reference", TargetOptions(properties=properties))) as target:
        async with Cluster(target.info) as cluster:
            bounds = await bounds_of(cluster)
            again = await bounds_of(cluster)

    assert (bounds.short_lock, bounds.short_session) == (shortest, session)
    assert (bounds.locks.high, bounds.locks.default) == (60_000, 30_000)
    assert again is bounds


async def test_what_is_not_described_is_tried() -> None:
    usual = {
        "group.share.record.lock.duration.ms": "17000",
        "group.share.heartbeat.interval.ms": "900",
    }
    with restricted("group-configs", "broker-configs", properties=usual) as info:
        async with Cluster(replace(info, name=f"external:{info.bootstrap[0]}")) as cluster:
            bounds = await bounds_of(cluster)
    assert (bounds.short_lock, bounds.longest_lock, bounds.short_heartbeat) == (17_000, 17_000, 900)
    with pytest.raises(OutOfReach, match=LOCK):
        _ = bounds.long_lock
    with restricted("broker-configs") as info:
        async with Cluster(info) as cluster:
            bounds = await bounds_of(cluster)
    assert (bounds.short_lock, bounds.short_session) == (1000, 1000)


TOPIC = uuid.UUID(int=7)
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4

Step = tuple[Any, ...]


def fetch(
    member: int, sent: float, at: float, count: int = 0, *, epoch: int = 1, lock: int = 5
) -> Step:
    acquired = [{"first_offset": 0, "last_offset": 0, "delivery_count": count}] if count else []
    part = {"partition_index": 0, "acquired_records": acquired}
    answer = {"acquisition_lock_timeout_ms": lock * 1000, "responses": _topic(part)}
    return "ShareFetch", member, sent, at, {"share_session_epoch": epoch, "topics": []}, answer


def ack(member: int, sent: float, at: float, kind: int, *, error: int = 0, epoch: int = 1) -> Step:
    batch = {"first_offset": 0, "last_offset": 0, "acknowledge_types": [kind]}
    topics = _topic({"partition_index": 0, "acknowledgement_batches": [batch]})
    answer = {"responses": _topic({"partition_index": 0, "error_code": error})}
    return (
        "ShareAcknowledge",
        member,
        sent,
        at,
        {"share_session_epoch": epoch, "topics": topics},
        answer,
    )


def delete_records(at: float) -> Step:
    return "DeleteRecords", 0, at, at, {"topics": [], "timeout_ms": 1}, {"topics": []}


def _topic(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"topic_id": TOPIC, "partitions": [part]}]


def _frames(steps: tuple[Step, ...], closed: dict[int, float]) -> Transcript:
    transcript = Transcript()
    transcript.closed = closed
    for number, (api, member, sent, at, request, response) in enumerate(steps):
        version = schemas().request(api).valid.high
        who = {"group_id": "g", "member_id": f"m{member}"} if api.startswith("Share") else {}
        call = {"correlation_id": number, "client_id": "", "body": request | who}
        reply = {"correlation_id": number, "body": response}
        for when, payload in (
            (sent, encode_request(schemas(), api, version, **call)),
            (at, encode_response(schemas(), api, version, **reply)),
        ):
            transcript.frames.append(
                Frame(
                    at=when,
                    sent=when == sent,
                    peer="broker",
                    api=api,
                    version=version,
                    correlation_id=number,
                    payload=payload,
                    schemas=schemas(),
                    connection=member,
                )
            )
    return transcript


HELD = fetch(1, 1.0, 1.1, 1)
LEGAL = {
    "after the lock": (HELD, fetch(2, 5.9, 6.2, 2)),
    "after a release": (HELD, ack(1, 2.0, 2.1, RELEASE), fetch(2, 2.2, 2.3, 2)),
    "while a release is on its way": (HELD, fetch(2, 1.5, 2.4, 2), ack(1, 2.0, 2.5, RELEASE)),
    "after an acceptance that was refused": (
        HELD,
        ack(1, 2.0, 2.1, ACCEPT, error=121),
        fetch(2, 3, 4, 2),
    ),
    "after an acceptance that was late": (HELD, ack(1, 7.0, 7.1, ACCEPT), fetch(2, 8, 9, 2)),
    "after its session was closed": (HELD, ack(1, 2.0, 2.1, RENEW, epoch=-1), fetch(2, 3, 4, 1)),
    "after its session was opened again": (HELD, fetch(1, 2, 3, epoch=0), fetch(2, 4, 5, 2)),
    "in an order that nobody knows": (HELD, fetch(2, 0.9, 1.2, 1)),
    "after its records were deleted": (HELD, delete_records(2.0), fetch(2, 3, 4, 2)),
}
WRONG = {
    "ACQ-20": (HELD, fetch(2, 2.0, 5.9, 2)),
    "ACQ-21": (HELD, fetch(1, 2.0, 2.1, 2)),
    "ACK-01": (HELD, ack(1, 2.0, 2.1, ACCEPT), fetch(2, 8.0, 8.1, 2)),
    "ACK-07": (HELD, ack(1, 2.0, 2.1, REJECT), fetch(2, 2.2, 2.3, 2)),
    "DLV-02": (HELD, ack(1, 2.0, 2.1, RELEASE), fetch(2, 2.2, 2.3, 1)),
}


@pytest.mark.parametrize("name", LEGAL)
def test_says_nothing_of_what_may_be(name: str) -> None:
    assert not list(contradictions([_frames(LEGAL[name], {})]))


@pytest.mark.parametrize("rule", WRONG)
def test_names_the_rule_that_is_broken(rule: str) -> None:
    assert [one.rule for one in contradictions([_frames(WRONG[rule], {})])] == [rule]


def test_a_closed_connection_may_end_what_its_member_holds() -> None:
    assert not list(contradictions([_frames(WRONG["ACQ-20"], {1: 2.0})]))
    assert list(contradictions([_frames(WRONG["ACQ-20"], {1: 7.0})]))


async def test_what_waited_in_vain_is_sent_again() -> None:
    opening, later = fetch(1, 0.5, 0.6, epoch=0), fetch(1, 2.0, 2.1, epoch=1)
    asked = _frames((opening, later, ack(1, 3.0, 3.1, ACCEPT)), {})
    assert not to_repeat([asked], now=99.0)

    lost = Transcript()
    lost.frames.extend(frame for frame in asked.frames if frame.at <= 2.0)
    assert not to_repeat([lost], now=11.0)
    [(frame, body)] = to_repeat([lost], now=12.0)
    assert (frame.api, body["share_session_epoch"], body["max_wait_ms"]) == ("ShareFetch", 0, 0)


LONG = fetch(1, 1.0, 1.1, 1, lock=30)


@pytest.mark.parametrize(
    ("steps", "may"),
    {
        "held": ((LONG, fetch(2, 31.0, 31.1)), True),
        "given out again": ((LONG, fetch(2, 31.0, 31.1, 2), ack(2, 31.2, 31.3, ACCEPT)), True),
        "let go late": ((LONG, ack(1, 30.9, 31.1, RELEASE)), True),
        "let go": ((LONG, ack(1, 2.0, 2.1, RELEASE), fetch(2, 31.0, 31.1)), False),
        "closed": ((LONG, ack(1, 2.0, 2.1, RENEW, epoch=-1), fetch(2, 31.0, 31.1)), False),
        "in time": ((LONG, fetch(2, 30.0, 30.9)), False),
        "short": ((HELD, fetch(2, 31.0, 31.1)), False),
    }.values(),
)
def test_a_long_lock_that_may_have_ended_is_noticed(steps: tuple[Step, ...], may: bool) -> None:
    assert bool(outlived([_frames(steps, {})])) is may


def test_a_check_that_looks_at_something_else_is_observed(tmp_path: Path) -> None:
    """What is broken is not what ACK-03 looks at: a record is given out that somebody holds."""
    target = "reference:held-records-are-given-away"
    words = (
        "broker",
        "--target",
        target,
        "--only",
        "ACK-03,ACQ-21",
        "--fast",
        "--ledger",
        "strict",
    )
    assert python("-m", "shareproof", *words, "--out", str(tmp_path / "out")).returncode == 1
    rules = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["rules"]
    (seen,) = [
        one["reason"]
        for rule in rules
        for one in rule["checks"]
        if rule["id"] == "ACQ-21" and "test_gap_is_final" in one["check"]
    ]
    assert seen.startswith("observed beside: offset ")
