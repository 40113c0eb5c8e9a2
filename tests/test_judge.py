"""The judge: what it accepts, what it rejects, and what it counts."""

from __future__ import annotations

import pytest

from spec.verdict import Violation
from suites.judge import MAX_TEXT, Judge, MisusedJudge

CHOICE = dict.fromkeys((6, 42), "ShareFetchResponse ErrorCode: one or the other")


@pytest.fixture
def court() -> Judge:
    """A judge of two rules."""
    return Judge(["ACK-01", "ACK-02"])


def test_evidence_counts_assertions_and_events(court: Judge) -> None:
    court["ACK-01"].equal(1, 1, "one")
    court["ACK-01"].saw(redeliveries=2)
    court["ACK-01"].saw(redeliveries=3)

    assert court.evidence("ACK-01") == {"assertions": 1, "redeliveries": 5}
    assert court.unexercised() == ("ACK-02",)


def test_nothing_seen_is_no_evidence(court: Judge) -> None:
    court["ACK-01"].saw(redeliveries=0)

    assert court.unexercised() == ("ACK-01", "ACK-02")


def test_violation_carries_rule_sentence_and_witness(court: Judge) -> None:
    with pytest.raises(Violation) as caught:
        court["ACK-02"].equal(0, 7, "error code", witness=[1, "two", "three", "four"])

    assert caught.value.rule == "ACK-02"
    assert caught.value.sentence == "error code: expected 0, got 7"
    assert caught.value.witness == ("1", "two", "three")
    assert court.evidence("ACK-02") == {}


def test_long_collections_are_shown_by_their_difference(court: Judge) -> None:
    with pytest.raises(Violation, match=r"missing \[0\], not expected \[100\]"):
        court["ACK-01"].equal(list(range(100)), list(range(1, 101)), "offsets")


def test_sentences_stay_short(court: Judge) -> None:
    with pytest.raises(Violation) as caught:
        court["ACK-01"].equal(b"x" * 10_000, b"", "payload")

    assert len(caught.value.sentence) < MAX_TEXT + 100


def test_choice_is_any_of_the_allowed(court: Judge) -> None:
    court["ACK-01"].one_of(CHOICE, 42, "error code")

    with pytest.raises(Violation, match="expected 6 or 42, got 3"):
        court["ACK-01"].one_of(CHOICE, 3, "error code")


@pytest.mark.parametrize("source", ["", "Kafka does so", "KIP-932", "KIP-932 §", "order: "])
def test_each_choice_has_a_source(court: Judge, source: str) -> None:
    with pytest.raises(MisusedJudge, match=r"nothing is said to allow \[6\]"):
        court["ACK-01"].one_of(CHOICE | {6: source}, 42, "error code")


def test_whatever_was_seen_is_allowed(court: Judge) -> None:
    court["ACK-01"].none_but(CHOICE, [42, 6, 42], "error codes")

    with pytest.raises(Violation, match=r"error codes: expected set\(\), got \{3\}"):
        court["ACK-01"].none_but(CHOICE, [42, 3], "error codes")
    with pytest.raises(MisusedJudge, match="nothing is said to allow"):
        court["ACK-01"].none_but({6: ""}, [], "error codes")


def test_expected_exception_must_come(court: Judge) -> None:
    with court["ACK-01"].raises(ConnectionError, "the broker hangs up"):
        raise ConnectionResetError
    silence = court["ACK-01"].raises(ConnectionError, "the broker hangs up")
    with pytest.raises(Violation, match="nothing was raised"), silence:
        pass


def test_only_rule_need_not_be_named() -> None:
    judge = Judge(["ACK-01"])
    judge.equal(1, 1, "one")

    assert judge.unexercised() == ()
    assert judge.evidence("ACK-01") == {"assertions": 1}


def test_one_of_several_rules_must_be_named(court: Judge) -> None:
    with pytest.raises(MisusedJudge, match="the marker names ACK-01, ACK-02"):
        court.equal(1, 1, "one")


def test_rule_that_the_marker_does_not_name_is_misuse(court: Judge) -> None:
    with pytest.raises(MisusedJudge, match="ACK-03"):
        court["ACK-03"].saw(redeliveries=1)
