"""Settlement: from observations and a ledger to one verdict per rule and an exit code."""

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


def test_which_rules_are_listed() -> None:
    assert judged([]) == []
    (result,) = judged([], subject=rule(honesty=Honesty.UNTESTED, why="no way to see it"))
    assert (result.word, result.reason, result.expected) == ("untested", "no way to see it", True)
    young = rule(since="4.9")
    assert judged([saw(Verdict.FAIL)], subject=young) == []
    assert judged([saw(Verdict.UNSUPPORTED)], subject=young)[0].expected


TWICE, LOST = saw(Verdict.FAIL, "released twice"), saw(Verdict.FAIL, "lost")
GOOD, BEYOND = saw(Verdict.PASS), saw(Verdict.OUT_OF_REACH, "one broker")
YESTERDAY = date(2026, 5, 31)


@pytest.mark.parametrize(
    ("seen", "entries", "expected", "problem", "code"),
    [
        pytest.param([TWICE], [entry()], True, "", OK, id="known"),
        pytest.param([LOST], [entry()], False, "wrong reason", BROKEN, id="wrong reason"),
        pytest.param([TWICE, LOST], [entry()], False, "wrong", BROKEN, id="one of two is known"),
        pytest.param([GOOD], [entry()], True, "stale", BROKEN, id="needless"),
        pytest.param([GOOD], [entry(intermittent=True)], True, "", OK, id="never stale"),
        pytest.param([LOST], [entry(intermittent=True)], False, "wrong", BROKEN, id="another"),
        pytest.param([TWICE], [entry(expires=YESTERDAY)], None, "expired", BROKEN, id="old"),
        pytest.param([GOOD], [entry(expires=YESTERDAY)], None, "expired", BROKEN, id="old pass"),
        pytest.param([TWICE], [entry(versions="<4.2")], False, "", BROKEN, id="another version"),
        pytest.param([saw(Verdict.ERROR, "twice")], [entry()], False, "", FAULT, id="error"),
        pytest.param([GOOD, BEYOND], [entry()], True, "", OK, id="out of reach"),
        pytest.param([TWICE, BEYOND], [], False, "", BROKEN, id="hides no failure"),
        pytest.param([saw(Verdict.VACUOUS, excused=True)], [], True, "", OK, id="excused"),
    ],
)
def test_what_is_expected_of_a_rule(
    seen: list[Observation], entries: list[Expected], expected: bool | None, problem: str, code: int
) -> None:
    (result,) = judged(seen, *entries)
    assert expected in (None, result.expected)
    assert problem in result.problem
    assert bool(problem) == bool(result.problem)
    assert exit_code([result], [], Level.MUST) == code


def test_what_is_beyond_reach_or_another_versions_is_told() -> None:
    (result,) = judged([GOOD, BEYOND], entry())
    assert (result.word, result.reason) == ("out of reach", "one broker")
    assert judged([TWICE, BEYOND])[0].word == "fail"
    assert judged([TWICE], entry(versions="<4.2"))[0].entries == ()


def test_entry_is_not_called_stale_on_half_the_checks() -> None:
    (result,) = judged([saw(Verdict.PASS)], entry(), unfinished=["ACK-01"])
    assert result.problem == ""


def test_strict_reach_counts_it() -> None:
    seen = [saw(Verdict.OUT_OF_REACH, "one broker")]
    for level, code in ((Level.MUST, BROKEN), (Level.MAY, OK)):
        found = judged(seen, subject=rule(level=level), strict_reach=True)
        assert exit_code(found, [], Level.SHOULD) == code


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN, Verdict.VACUOUS])
def test_levels_below_the_demanded_are_forgiven(verdict: Verdict) -> None:
    (result,) = judged([saw(verdict)], subject=rule(level=Level.MAY))
    assert exit_code([result], [], Level.SHOULD) == OK
    assert exit_code([result], [], Level.MAY) == BROKEN


def test_a_loose_problem_fails_the_run_and_a_tally_names_every_verdict() -> None:
    assert exit_code([], ["stale"], Level.MUST) == BROKEN
    assert tally([]) == {**{verdict.value: 0 for verdict in SEVERITY}, "untested": 0}
