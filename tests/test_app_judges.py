"""The judges of programs, by themselves: what frames mean, and what is not held against anybody."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from fixtures.clients.member import AckType
from spec.verdict import Verdict
from suites.app.deliveries import Deliveries, Delivery, deliveries_of
from suites.app.environment import Fault
from suites.app.load import Sent, Template
from suites.app.rules import observe
from suites.app.scenarios import SCENARIOS, Instance, Membership, ScenarioResult

TOPIC = UUID(int=1)
GOOD = Sent(key="sp-1-00000", place=(TOPIC, 0, 0), poison=False)
BAD = Sent(key="sp-1-00001", place=(TOPIC, 0, 1), poison=True)


def said(
    at: float,
    *,
    member: str = "m",
    node: int = 1,
    epoch: int = 1,
    acks: tuple[tuple[int, AckType], ...] = (),
    got: tuple[tuple[int, int], ...] = (),
    error: int = 0,
    answered: bool = True,
) -> Any:
    """Return a ShareFetch as the tap keeps it: its acknowledgements, and the offsets that came."""
    batches = [{"first_offset": o, "last_offset": o, "acknowledge_types": [k]} for o, k in acks]
    part = {"partition_index": 0, "acknowledgement_batches": batches}
    ranges = [{"first_offset": o, "last_offset": o, "delivery_count": c} for o, c in got]
    back = {"partition_index": 0, "error_code": 0, "acknowledge_error_code": error}
    told = {"topic_id": TOPIC, "partitions": [{**back, "acquired_records": ranges}]}
    return SimpleNamespace(
        api="ShareFetch",
        number=1,
        node=node,
        sent=at,
        responded=at + 0.1 if answered else math.inf,
        request={
            "member_id": member,
            "share_session_epoch": epoch,
            "topics": [{"topic_id": TOPIC, "partitions": [part]}],
        },
        response={"error_code": 0, "responses": [told]} if answered else None,
    )


def became(*exchanges: Any) -> Deliveries:
    """Return what became of the deliveries; locks last ten seconds."""
    return deliveries_of(cast("Any", exchanges), 10.0)


def test_an_acknowledgement_belongs_to_the_last_delivery() -> None:
    seen = became(
        said(0, got=((0, 1),)),
        said(1, acks=((0, AckType.RELEASE),), got=((0, 2),)),
        said(2, acks=((0, AckType.ACCEPT),)),
    )
    first, second = seen.of[TOPIC, 0, 0]
    assert (first.kind, first.count, first.final) == (AckType.RELEASE, 1, False)
    assert (second.kind, second.count, second.final) == (AckType.ACCEPT, 2, True)
    assert seen.finished(GOOD.place, 5, 3.0)
    assert seen.strays == []


def test_locks_end_and_are_renewed() -> None:
    late = became(said(0, got=((0, 1),)), said(11, acks=((0, AckType.ACCEPT),), error=121))
    kept = became(
        said(0, got=((0, 1),)),
        said(9, acks=((0, AckType.RENEW),)),
        said(18, acks=((0, AckType.ACCEPT),)),
    )
    (first,), (second,) = late.of.values(), kept.of.values()
    assert first[0].lapsed(20.0)
    assert not first[0].final
    assert not second[0].lapsed(20.0)
    assert second[0].renewals == 1


def test_a_closed_session_gives_back() -> None:
    seen = became(
        said(0, got=((0, 1),)),
        said(0, member="n", got=((1, 1),)),
        said(1, epoch=-1, acks=()),
    )
    assert [one.member for one in seen.held(2.0)] == ["n"]
    assert not seen.of[TOPIC, 0, 0][0].lapsed(20.0)


@pytest.mark.parametrize(
    ("ack", "why"),
    [
        (said(1, member="n", acks=((0, AckType.ACCEPT),)), "n never acquired it, only m did"),
        (said(1, acks=((7, AckType.ACCEPT),)), "m never acquired it, nobody did"),
        (said(1, node=2, acks=((0, AckType.ACCEPT),)), "m acquired it from broker 1"),
    ],
)
def test_an_acknowledgement_by_somebody_else_is_a_stray(ack: Any, why: str) -> None:
    assert [one.why for one in became(said(0, got=((0, 1),)), ack).strays] == [why]


def test_what_was_lost_may_be_sent_again() -> None:
    ack = ((0, AckType.ACCEPT),)
    got, again = said(0, got=((0, 1),)), said(2, acks=ack)
    assert became(got, said(1, acks=ack, answered=False), again).strays == []
    assert len(became(got, said(1, acks=ack), again).strays) == 1


def test_the_limit_finishes_what_is_released() -> None:
    seen = became(said(0, got=((0, 5),)), said(1, acks=((0, AckType.RELEASE),)))
    assert seen.finished(GOOD.place, 5, 2.0)
    assert not seen.finished(GOOD.place, 6, 2.0)


# --- Judges -------------------------------------------------------------------------------------


def delivery(one: Sent, kind: AckType | None, acked: float = 1.0, **other: Any) -> Delivery:
    """Return a delivery at 0 with a lock of ten seconds."""
    usual = {"member": "m", "node": 1, "count": 1, "at": 0.0, "until": 10.0}
    acked = acked if kind is not None else math.inf
    return Delivery(place=one.place, kind=kind, acked=acked, **{**usual, **other})


def verdict(rule: str, *deliveries: Delivery, scenario: str = "calm", **facts: Any) -> str:
    """Return the verdict on a scenario in which these deliveries happened."""
    found = Deliveries()
    for one in deliveries:
        found.of.setdefault(one.place, []).append(one)
    sent = {one.place: one for one in (GOOD, BAD)}
    facts = {"over": 30.0, "group": "g", **facts}
    seen = ScenarioResult(scenario=SCENARIOS[scenario], sent=sent, deliveries=found, **facts)
    return observe(rule, seen).verdict.value


ACCEPT, RELEASE, REJECT = AckType.ACCEPT, AckType.RELEASE, AckType.REJECT
ACCEPTED, REJECTED = delivery(GOOD, ACCEPT), delivery(BAD, REJECT)
LEFT = Membership(member="m", group="g", first=0, left=1)
STOPPED: dict[str, Any] = {
    "scenario": "terminated",
    "stopping": 0.5,
    "instances": [Instance(ended=2.0, code=0, asked=True)],
}


@pytest.mark.parametrize(
    ("rule", "deliveries", "facts", "expected"),
    [
        ("FRM-01", [REJECTED], {}, "pass"),
        ("FRM-01", [delivery(BAD, ACCEPT)], {}, "fail"),
        ("FRM-01", [delivery(BAD, ACCEPT)], {"dead": {BAD.key: 0.9}}, "pass"),
        ("FRM-01", [ACCEPTED], {}, "vacuous"),
        ("FRM-02", [delivery(BAD, RELEASE, 9.0)], {}, "pass"),
        ("FRM-02", [delivery(BAD, RELEASE, 11.0)], {}, "fail"),
        ("FRM-02", [delivery(BAD, RELEASE, 11.0)], {"scenario": "paused"}, "vacuous"),
        ("FRM-03", [delivery(GOOD, None)], {}, "fail"),
        ("FRM-03", [delivery(GOOD, None, closed=5.0)], {}, "pass"),
        ("FRM-03", [delivery(GOOD, None)], {"over": 5.0}, "vacuous"),
        ("FRM-03", [delivery(GOOD, ACCEPT, 11.0)], {"starved": 0.2}, "unknown"),
        ("FRM-03", [delivery(GOOD, ACCEPT, 11.0)], {"starved": 0.05}, "fail"),
        ("FRM-03", [delivery(GOOD, ACCEPT, 16.0)], {"starved": 0.2}, "fail"),
        ("FRM-03", [delivery(GOOD, None)], {"starved": 0.2}, "fail"),
        ("FRM-04", [REJECTED], {}, "vacuous"),
        ("FRM-04", [REJECTED], {"writes_dead": True, "dead": {BAD.key: 0.9}}, "pass"),
        ("FRM-04", [REJECTED], {"writes_dead": True, "dead": {BAD.key: 1.1}}, "fail"),
        ("FRM-05", [REJECTED], {"attempts": 1}, "pass"),
        ("FRM-05", [delivery(BAD, RELEASE), REJECTED], {"attempts": 1}, "fail"),
        ("FRM-05", [delivery(BAD, RELEASE, count=5)], {}, "pass"),
        ("FRM-05", [delivery(BAD, RELEASE, count=5)], {"attempts": 5}, "fail"),
        ("FRM-05", [delivery(BAD, RELEASE, count=4)], {}, "fail"),
        ("FRM-05", [delivery(BAD, RELEASE, count=4)], {"healthy": False}, "unknown"),
        ("FRM-06", [ACCEPTED], STOPPED, "pass"),
        ("FRM-06", [delivery(GOOD, None)], STOPPED, "fail"),
        ("FRM-06", [delivery(GOOD, None, closed=1.9)], STOPPED, "pass"),
        ("FRM-06", [delivery(GOOD, ACCEPT, 0.1)], STOPPED, "vacuous"),
        ("FRM-06", [], STOPPED | {"grace": 1.0}, "fail"),
        ("FRM-08", [ACCEPTED], {"faults": [Fault(what="SIGKILL", at=0.5)]}, "pass"),
        ("FRM-08", [delivery(GOOD, REJECT)], {"faults": [Fault(what="SIGKILL", at=0.5)]}, "fail"),
        ("FRM-09", [ACCEPTED], {}, "vacuous"),
        ("FRM-09", [ACCEPTED], {"writes_output": True, "outputs": {GOOD.key: 0.9}}, "pass"),
        ("FRM-09", [ACCEPTED], {"writes_output": True, "outputs": {GOOD.key: 1.1}}, "fail"),
        ("FRM-09", [ACCEPTED], {"writes_output": True}, "fail"),
        ("FRM-10", [ACCEPTED, REJECTED], {}, "pass"),
        ("FRM-10", [ACCEPTED, REJECTED], {"moving": True}, "fail"),
        ("FRM-10", [ACCEPTED], {}, "fail"),
        ("FRM-10", [ACCEPTED], {"healthy": False}, "unknown"),
        ("FRM-11", [ACCEPTED, REJECTED], {}, "pass"),
        (
            "FRM-11",
            [ACCEPTED, REJECTED],
            {"instances": [Instance(ended=2.0, code=1, asked=False)]},
            "fail",
        ),
        (
            "FRM-12",
            [],
            STOPPED | {"members": [LEFT]},
            "pass",
        ),
        (
            "FRM-12",
            [],
            STOPPED | {"members": [Membership(member="m", group="g", first=0, left=None)]},
            "fail",
        ),
        ("FRM-13", [ACCEPTED, ACCEPTED], {"instances": [STOPPED, STOPPED]}, "fail"),
        ("FRM-13", [ACCEPTED], {"instances": [STOPPED]}, "vacuous"),
    ],
)
def test_judges_know_right_from_wrong(
    rule: str, deliveries: list[Delivery], facts: dict[str, Any], expected: str
) -> None:
    assert verdict(rule, *deliveries, **facts) == expected


def test_what_a_program_does_not_have_is_excused() -> None:
    seen = ScenarioResult(scenario=SCENARIOS["calm"], group="g", sent={}, deliveries=Deliveries())
    assert observe("FRM-04", seen, owed=False).excused
    assert not observe("FRM-04", seen, owed=True).excused
    assert observe("FRM-04", seen).verdict is Verdict.VACUOUS


def test_poison_comes_to_each_partition() -> None:
    poison = [number for number in range(40) if Template().is_poison(number)]
    assert poison == [2, 17, 22, 37]
    assert not any(Template(every=0).is_poison(number) for number in range(40))
