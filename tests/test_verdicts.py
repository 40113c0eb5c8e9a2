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
    """Return an observation of ACK-01."""
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
    """A rule gets the worst verdict of its checks, with that check's reason."""
    (result,) = judged([saw(Verdict.PASS), saw(worse, "why")])

    assert (result.verdict, result.reason) == (worse, "why")


def test_evidence_adds_up() -> None:
    """Evidence of several checks is counted together."""
    one = saw(Verdict.PASS, evidence={"a": 1, "b": 2})
    (result,) = judged([one, saw(Verdict.PASS, evidence={"a": 4})])

    assert result.evidence == {"a": 5, "b": 2}


def test_rule_that_no_check_reached_is_not_listed() -> None:
    """A rule the run did not reach has no verdict, and no pass."""
    assert judged([]) == []


def test_untested_rule_is_listed_with_its_reason() -> None:
    """A rule declared untested says so, and is never a pass."""
    (result,) = judged([], subject=rule(honesty=Honesty.UNTESTED, why="no way to see it"))

    assert (result.word, result.reason, result.expected) == ("untested", "no way to see it", True)


def test_younger_rule_is_listed_only_when_seen_refused() -> None:
    """A release does not owe a rule that came later; refusing it may still be seen."""
    young = rule(since="4.9")

    assert judged([saw(Verdict.FAIL)], subject=young) == []
    assert judged([saw(Verdict.UNSUPPORTED)], subject=young)[0].expected


def test_known_failure_is_expected() -> None:
    """The ledger knows a failure by verdict and reason."""
    (result,) = judged([saw(Verdict.FAIL, "released twice")], entry())

    assert (result.expected, result.problem) == (True, "")
    assert exit_code([result], [], Level.SHOULD) == OK


def test_wrong_reason_is_a_problem() -> None:
    """A failure for another reason than the ledger's is unexpected."""
    (result,) = judged([saw(Verdict.FAIL, "lost")], entry())

    assert not result.expected
    assert "wrong reason" in result.problem


def test_every_failing_check_must_be_known() -> None:
    """One known bug does not excuse another one of the same rule."""
    (result,) = judged([saw(Verdict.FAIL, "twice"), saw(Verdict.FAIL, "lost")], entry())

    assert not result.expected


def test_needless_entry_is_stale() -> None:
    """An entry that nothing matches any more fails the run."""
    (result,) = judged([saw(Verdict.PASS)], entry())

    assert "stale" in result.problem
    assert exit_code([result], [], Level.MUST) == BROKEN


def test_intermittent_entry_is_never_stale() -> None:
    """What shows in some runs only is still known in the others, and excuses nothing else."""
    rare = entry(intermittent=True)
    (absent,) = judged([saw(Verdict.PASS)], rare)
    (other,) = judged([saw(Verdict.FAIL, "lost")], rare)

    assert absent.problem == ""
    assert not other.expected


def test_entry_is_not_called_stale_on_half_the_checks() -> None:
    """Without all checks of a rule nobody knows whether its entry is still needed."""
    (result,) = judged([saw(Verdict.PASS)], entry(), unfinished=["ACK-01"])

    assert result.problem == ""


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.PASS])
def test_expired_entry_is_a_problem(verdict: Verdict) -> None:
    """An entry past its date fails the run, whatever it matches."""
    (result,) = judged([saw(verdict, "twice")], entry(expires=date(2026, 5, 31)))

    assert "expired" in result.problem


def test_entry_of_another_version_is_silent() -> None:
    """An entry speaks for its own versions only."""
    (result,) = judged([saw(Verdict.FAIL, "twice")], entry(versions="<4.2"))

    assert (result.expected, result.problem, result.entries) == (False, "", ())


def test_error_is_never_expected() -> None:
    """A broken harness exits with 3 and makes no statement on the ledger."""
    (result,) = judged([saw(Verdict.ERROR, "twice")], entry())

    assert not result.expected
    assert result.problem == ""
    assert exit_code([result], [], Level.MUST) == FAULT


def test_out_of_reach_counts_against_nobody() -> None:
    """What the target cannot be asked is expected, and no entry of the ledger is stale for it."""
    (result,) = judged([saw(Verdict.PASS), saw(Verdict.OUT_OF_REACH, "one broker")], entry())

    assert (result.word, result.reason) == ("out of reach", "one broker")
    assert (result.expected, result.problem) == (True, "")
    assert exit_code([result], [], Level.MAY) == OK


def test_strict_reach_counts_it() -> None:
    """Where everything has to be asked, a rule that is out of reach fails the run; MAY does not."""
    seen = [saw(Verdict.OUT_OF_REACH, "one broker")]
    for level, code in ((Level.MUST, BROKEN), (Level.MAY, OK)):
        found = judged(seen, subject=rule(level=level), strict_reach=True)
        assert exit_code(found, [], Level.SHOULD) == code


def test_out_of_reach_hides_no_failure() -> None:
    """A rule that one check found broken is broken, whatever another could not ask."""
    (result,) = judged([saw(Verdict.FAIL), saw(Verdict.OUT_OF_REACH)])

    assert (result.word, result.expected) == ("fail", False)


def test_excused_vacuous_counts_against_nobody() -> None:
    """What a run was not there to exercise is expected."""
    (result,) = judged([saw(Verdict.VACUOUS, excused=True)])

    assert result.expected


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN, Verdict.VACUOUS])
def test_levels_below_the_demanded_are_forgiven(verdict: Verdict) -> None:
    """A MAY that does not hold is reported, and fails the run only when MAY is demanded."""
    (result,) = judged([saw(verdict)], subject=rule(level=Level.MAY))

    assert exit_code([result], [], Level.SHOULD) == OK
    assert exit_code([result], [], Level.MAY) == BROKEN


def test_loose_problem_fails_the_run() -> None:
    """A ledger problem that belongs to no rule fails the run too."""
    assert exit_code([], ["stale"], Level.MUST) == BROKEN


def test_tally_names_every_verdict() -> None:
    """Counts have all verdicts, also those that did not occur."""
    assert tally([]) == {**{verdict.value: 0 for verdict in SEVERITY}, "untested": 0}
