"""What is said of durations: as configured, not, or too slow to tell."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

import pytest

from fixtures.clients.member import Member
from fixtures.wire.codec import Struct
from fixtures.wire.errors import ErrorCode
from spec.verdict import OutOfReach, Undecided, Violation
from suites.broker.membership import in_session
from suites.broker.timing import ROUNDS, Span, apart, judge_span
from suites.judge import Judge

SHORTER, LONGER = "LCK-02", "LCK-01"


def judged(spans: Mapping[float, Sequence[Span]], late: float = 0.0) -> int:
    """Judge spans of locks of one and of three seconds; return how often they were measured."""
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
    """Return spans of locks that last ``factor`` times as long and are seen ``slow`` too late."""
    return {
        each: [Span(each * factor - slow, each * factor + slow), Span(0, 99)] for each in (1.0, 3.0)
    }


def test_as_configured() -> None:
    assert judged(exactly(1.0)) == judged(exactly(1.02, slow=0.1), late=2.0) == 1


@pytest.mark.parametrize(("factor", "rule"), [(1.3, LONGER), (2.0, LONGER), (0.75, SHORTER)])
def test_another_factor(factor: float, rule: str) -> None:
    spans = {each: [Span(each * factor - 0.05, each * factor)] for each in (1.0, 3.0)}
    with pytest.raises(Violation) as caught:
        judged(spans, late=0.05)
    assert caught.value.rule == rule


def test_a_factor_shows_in_the_longer_one() -> None:
    longer = {1.0: [Span(1.3, 1.3)], 3.0: [Span(3.9, 3.9)]}
    with pytest.raises(Violation, match="the shortest lock of 3 s"):
        judged(longer, late=0.25)


def test_a_slow_machine_is_not_accused() -> None:
    with pytest.raises(Undecided, match="too slow"):
        judged({1.0: [Span(1.9, 2.0)], 3.0: [Span(3.9, 4.0)]}, late=1.0)
    with pytest.raises(Undecided, match="too slow"):
        judged({1.0: [Span(0.2, 9.0)], 3.0: [Span(0.2, 9.0)]})
    assert ROUNDS > 1


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
