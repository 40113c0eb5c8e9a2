"""Settlement: from observations and a ledger to one verdict per rule and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest

from reports.verdicts import BROKEN, FAULT, OK, Judged, exit_code, settle, tally
from spec.profile import Expected, Profile
from spec.requirement import Basis, Honesty, Level, Requirement
from spec.source import Kind, Source
from spec.verdict import SEVERITY, Observation, Verdict

TODAY = date(2026, 6, 1)


def rule(**changes: object) -> Requirement:
    """Return a rule."""
    facts: dict[str, object] = {
        "id": "ACK-01",
        "level": Level.MUST,
        "text": "text",
        "basis": Basis.CONTRACT,
        "source": (Source(kind=Kind.ISSUE, name="KAFKA-1"),),
        "since": "4.1",
        "honesty": Honesty.REQUIRED,
    }
    return Requirement(**{**facts, **changes})  # type: ignore[arg-type]


def saw(verdict: Verdict, reason: str = "", **changes: object) -> Observation:
    facts: dict[str, object] = {"requirement": "ACK-01", "check": "test", "verdict": verdict}
    return Observation(**{**facts, "reason": reason, **changes})  # type: ignore[arg-type]


def entry(**changes: object) -> Expected:
    """Return a ledger entry for ACK-01."""
    facts: dict[str, object] = {
        "requirement": "ACK-01",
        "verdict": Verdict.FAIL,
        "versions": ">=4.1",
        "match": "twice",
        "reason": "known",
        "expires": date(2027, 1, 1),
    }
    return Expected(**{**facts, **changes})  # type: ignore[arg-type]


def judged(
    observations: Sequence[Observation],
    *entries: Expected,
    subject: Requirement | None = None,
    unfinished: Sequence[str] = (),
    strict_reach: bool = False,
) -> list[Judged]:
    """Settle observations of one rule on 4.4.0."""
    subject = subject or rule()
    return settle(
        {subject.id: subject},
        observations,
        profile=Profile(name="p", expected=entries),
        version="4.4.0",
        today=TODAY,
        unfinished=unfinished,
        strict_reach=strict_reach,
    )


@pytest.mark.parametrize("worse", SEVERITY[1:])
def test_worst_check_decides(worse: Verdict) -> None:
    (result,) = judged([saw(Verdict.PASS), saw(worse, "why")])

    assert (result.verdict, result.reason) == (worse, "why")


def test_evidence_adds_up() -> None:
    one = saw(Verdict.PASS, evidence={"a": 1, "b": 2})
    (result,) = judged([one, saw(Verdict.PASS, evidence={"a": 4})])

    assert result.evidence == {"a": 5, "b": 2}


def test_rule_that_no_check_reached_is_not_listed() -> None:
    assert judged([]) == []


def test_untested_rule_is_listed_with_its_reason() -> None:
    (result,) = judged([], subject=rule(honesty=Honesty.UNTESTED, why="no way to see it"))

    assert (result.word, result.reason, result.expected) == ("untested", "no way to see it", True)


def test_younger_rule_is_listed_only_when_seen_refused() -> None:
    young = rule(since="4.9")

    assert judged([saw(Verdict.FAIL)], subject=young) == []
    assert judged([saw(Verdict.UNSUPPORTED)], subject=young)[0].expected


def test_known_failure_is_expected() -> None:
    (result,) = judged([saw(Verdict.FAIL, "released twice")], entry())

    assert (result.expected, result.problem) == (True, "")
    assert exit_code([result], [], Level.SHOULD) == OK


def test_wrong_reason_is_a_problem() -> None:
    (result,) = judged([saw(Verdict.FAIL, "lost")], entry())

    assert not result.expected
    assert "wrong reason" in result.problem


def test_every_failing_check_must_be_known() -> None:
    (result,) = judged([saw(Verdict.FAIL, "twice"), saw(Verdict.FAIL, "lost")], entry())

    assert not result.expected


def test_needless_entry_is_stale() -> None:
    (result,) = judged([saw(Verdict.PASS)], entry())

    assert "stale" in result.problem
    assert exit_code([result], [], Level.MUST) == BROKEN


def test_intermittent_entry_is_never_stale() -> None:
    rare = entry(intermittent=True)
    (absent,) = judged([saw(Verdict.PASS)], rare)
    (other,) = judged([saw(Verdict.FAIL, "lost")], rare)

    assert absent.problem == ""
    assert not other.expected


def test_entry_is_not_called_stale_on_half_the_checks() -> None:
    (result,) = judged([saw(Verdict.PASS)], entry(), unfinished=["ACK-01"])

    assert result.problem == ""


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.PASS])
def test_expired_entry_is_a_problem(verdict: Verdict) -> None:
    (result,) = judged([saw(verdict, "twice")], entry(expires=date(2026, 5, 31)))

    assert "expired" in result.problem


def test_entry_of_another_version_is_silent() -> None:
    (result,) = judged([saw(Verdict.FAIL, "twice")], entry(versions="<4.2"))

    assert (result.expected, result.problem, result.entries) == (False, "", ())


def test_error_is_never_expected() -> None:
    (result,) = judged([saw(Verdict.ERROR, "twice")], entry())

    assert not result.expected
    assert result.problem == ""
    assert exit_code([result], [], Level.MUST) == FAULT


def test_out_of_reach_counts_against_nobody() -> None:
    (result,) = judged([saw(Verdict.PASS), saw(Verdict.OUT_OF_REACH, "one broker")], entry())

    assert (result.word, result.reason) == ("out of reach", "one broker")
    assert (result.expected, result.problem) == (True, "")
    assert exit_code([result], [], Level.MAY) == OK


def test_strict_reach_counts_it() -> None:
    seen = [saw(Verdict.OUT_OF_REACH, "one broker")]
    for level, code in ((Level.MUST, BROKEN), (Level.MAY, OK)):
        found = judged(seen, subject=rule(level=level), strict_reach=True)
        assert exit_code(found, [], Level.SHOULD) == code


def test_out_of_reach_hides_no_failure() -> None:
    (result,) = judged([saw(Verdict.FAIL), saw(Verdict.OUT_OF_REACH)])

    assert (result.word, result.expected) == ("fail", False)


def test_excused_vacuous_counts_against_nobody() -> None:
    (result,) = judged([saw(Verdict.VACUOUS, excused=True)])

    assert result.expected


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN, Verdict.VACUOUS])
def test_levels_below_the_demanded_are_forgiven(verdict: Verdict) -> None:
    (result,) = judged([saw(verdict)], subject=rule(level=Level.MAY))

    assert exit_code([result], [], Level.SHOULD) == OK
    assert exit_code([result], [], Level.MAY) == BROKEN


def test_loose_problem_fails_the_run() -> None:
    assert exit_code([], ["stale"], Level.MUST) == BROKEN


def test_tally_names_every_verdict() -> None:
    assert tally([]) == {**{verdict.value: 0 for verdict in SEVERITY}, "untested": 0}
