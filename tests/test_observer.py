"""Frames of a check that the observer accuses, and frames that it does not."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from fixtures.wire.frame import Frame, Transcript, encode_request, encode_response
from suites.broker.observer import contradictions
from tests.release import schemas
from tests.shell import python

TOPIC = uuid.UUID(int=7)
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4

Step = tuple[Any, ...]


def fetch(member: int, sent: float, at: float, count: int = 0, epoch: int = 1) -> Step:
    """A fetch that acquires offset 0 with a count, or nothing."""
    acquired = [{"first_offset": 0, "last_offset": 0, "delivery_count": count}] if count else []
    part = {"partition_index": 0, "acquired_records": acquired}
    answer = {"acquisition_lock_timeout_ms": 5000, "responses": _topic(part)}
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
