"""The judge of membership: epochs rise, members stay for as long as they heartbeat, no longer."""

from __future__ import annotations

import pytest

from spec.model.group import Heartbeat, ShareGroup
from spec.model.judgement import Span
from spec.model.operations import Error


def beat(
    epoch: int, answered: int = 0, error: int | None = Error.NONE, *, topics: bool = False
) -> Heartbeat:
    """Return a heartbeat of one member."""
    return Heartbeat(
        member="ann", epoch=epoch, answered=answered, error=error, subscribes=topics or epoch == 0
    )


def joined(epoch: int = 3) -> ShareGroup:
    """Return a group that one member has joined by time 10."""
    group = ShareGroup(session_ms=1_000, late_ms=100)
    group.heartbeat(Span(0, 10), beat(0, epoch)).check()
    return group


ALLOWED = {
    "own epoch": beat(3, 3),
    "epoch rises": beat(3, 5),
    "join again": beat(0, 4),
    "leave": beat(-1, -1),
    "epoch too high is fenced": beat(9, error=Error.FENCED_MEMBER_EPOCH),
    "no answer": beat(3, error=None),
    "not our business": beat(3, error=Error.COORDINATOR_NOT_AVAILABLE),
}
REFUSED = {
    "MEM-03": beat(-1, 4),
    "MEM-05": beat(0, error=Error.FENCED_MEMBER_EPOCH),
    "MEM-23": beat(7, 7),
    "MEM-24": beat(2, 3),
    "MEM-26": beat(3, error=Error.FENCED_MEMBER_EPOCH),
    "MEM-31": beat(3, error=Error.INVALID_REQUEST),
    "MEM-34": beat(-2, 3),
    "MEM-36": beat(3, error=Error.GROUP_MAX_SIZE_REACHED),
    "MEM-38": beat(3, error=Error.UNKNOWN_MEMBER_ID),
    "INV-22": beat(3, 2),
    "MEM-01": beat(0, error=Error.UNKNOWN_MEMBER_ID),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed_answers(name: str) -> None:
    """What a coordinator may answer a member's next heartbeat is accepted."""
    assert joined().heartbeat(Span(20, 30), ALLOWED[name]).ok


@pytest.mark.parametrize("rule", REFUSED)
def test_refused_answers(rule: str) -> None:
    """An answer that breaks a rule is refused by its name."""
    assert joined().heartbeat(Span(20, 30), REFUSED[rule]).rules == (rule,)


def test_previous_epoch_is_good_once_more() -> None:
    """MEM-25: after an answer that may have been lost the epoch before it is still accepted."""
    group = joined()
    group.heartbeat(20, beat(3, 5)).check()

    assert group.heartbeat(30, beat(3, 5)).ok


def test_unanswered_heartbeats_leave_epochs_open() -> None:
    """After lost answers neither an accepted nor a fenced heartbeat proves anything."""
    for following in (beat(3, 9), beat(3, error=Error.FENCED_MEMBER_EPOCH)):
        group = joined()
        group.heartbeat(Span(20, 30), beat(3, error=None))

        assert group.heartbeat(40, following).ok


@pytest.mark.parametrize(
    ("now", "may_stay", "may_go"), [(900, True, False), (1_050, True, True), (1_200, False, True)]
)
def test_session_timeout(now: float, may_stay: bool, may_go: bool) -> None:
    """MEM-37, MEM-38: removed not before the timeout, gone after it, either in between."""
    gone = beat(3, error=Error.UNKNOWN_MEMBER_ID)

    assert may_stay is joined().heartbeat(now, beat(3, 3)).ok
    assert may_go is joined().heartbeat(now, gone).ok


def test_epochs_of_a_member_that_came_back_rise() -> None:
    """MEM-04: who joins again gets an epoch above every one it had."""
    group = joined()
    group.heartbeat(20, beat(-1, -1)).check()

    assert group.heartbeat(30, beat(0, 3)).rules == ("MEM-04",)


def test_descriptions() -> None:
    """MEM-49, INV-22: a description names who is in, its state fits, and its epoch never falls."""
    group = joined()
    assert group.described(20, 4, {"ann"}, "Stable").ok

    assert group.described(30, 3, {"ann"}, "Stable").rules == ("INV-22",)
    assert group.described(30, 4, set(), "Empty").rules == ("MEM-38",)
    assert group.described(30, 4, {"ann"}, "Empty").rules == ("MEM-49",)
    assert group.described(5_000, 4, {"ann"}, "Stable").rules == ("MEM-37",)
