"""The acting half of the model: taking records, sessions, assignments, a group's heartbeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec.model.durable import Coordinator, StateBatch, combine
from spec.model.leader import Leader, Want
from spec.model.log import Log
from spec.model.membership import Beat, Membership, Reply, Terms, assign, malformed
from spec.model.operations import Batch, Error, Mode, Range
from spec.model.sessions import FINAL, LAST, Denial, Place, Session, Sessions
from spec.model.settings import Settings
from spec.model.table import State

FEW = settings(deadline=None, derandomize=True, database=None, max_examples=100)
TOPIC = UUID(int=1)
WHO = ("group", "member")


# ---------------------------------------------------------------------- taking


def leading(*sizes: int, **options: Any) -> Leader:
    """Return the leader of a log of batches with these sizes."""
    leader = Leader(settings=Settings(**options))
    for size in sizes:
        leader.produce(size)
    return leader


def offered(leader: Leader, want: Want) -> list[tuple[int, int]]:
    """Return what a fetch would be given."""
    return [(take.first, take.last) for take in leader.plan(want)]


def test_planning_takes_nothing() -> None:
    leader = leading(3, 3)

    assert offered(leader, Want()) == offered(leader, Want()) == [(0, 2), (3, 5)]
    assert leader.end == 0


@pytest.mark.parametrize(
    ("want", "expected"),
    [
        (Want(max_records=1), [(0, 2)]),
        (Want(max_records=4), [(0, 2), (3, 5)]),
        (Want(max_records=4, mode=Mode.RECORD_LIMIT), [(0, 2), (3, 3)]),
        (Want(max_bytes=1), [(0, 2)]),
        (Want(max_bytes=6), [(0, 2), (3, 5)]),
        (Want(max_records=0), []),
    ],
)
def test_limits_of_a_plan(want: Want, expected: list[tuple[int, int]]) -> None:
    assert offered(leading(3, 3, 3), want) == expected


@pytest.mark.parametrize(("size", "expected"), [(1, 3), (3, 3), (4, 2), (7, 1)])
def test_ranges_end_by_batch_size(size: int, expected: int) -> None:
    leader = leading(3, 3, 3)

    assert len(leader.ranges(leader.plan(Want()), size)) == expected


def test_holes_are_passed_over() -> None:
    leader = leading(2, 2, 2)
    assert isinstance(leader.log, Log)
    leader.acquire(0, "a", max_records=2)
    leader.acknowledge(0, "a", [Batch(0, 1, (2,))])
    leader.log.compact(0, 3)

    assert leader.acquire(1, "a") == [Range(4, 5, 1)]
    assert leader.start == 4
    state = leader.coordinator.state
    assert state is not None
    assert state.complete + state.start >= 2


def test_a_state_that_cannot_be_is_not_loaded() -> None:
    for wrong in (StateBatch(5, 3, 2, 1), StateBatch(5, 5, 77, 1), StateBatch(5, 5, 1, 1)):
        coordinator = Coordinator()
        coordinator.initialize(0, 0)
        coordinator.write(state_epoch=0, leader_epoch=0, start=0, batches=[wrong])
        assert Leader(coordinator=coordinator).error is Error.UNKNOWN_SERVER_ERROR

        coordinator.write(state_epoch=0, leader_epoch=0, start=6, batches=[])
        assert Leader(coordinator=coordinator).error is Error.NONE


def test_misshapen_batches_are_kept_as_they_are() -> None:
    wrong = StateBatch(5, 3, 2, 1)

    assert combine((), [wrong], 0) == (wrong,)
    assert combine([wrong], [StateBatch(0, 1, 2, 1)], 0) == (StateBatch(0, 1, 2, 1), wrong)
    assert combine([wrong], [], 6) == ()


def test_everything_written_reaches_the_sink() -> None:
    seen: list[object] = []
    coordinator = Coordinator(sink=seen.append)
    coordinator.initialize(0, 0)
    coordinator.delete()
    coordinator.delete()

    assert len(seen) == 2
    assert seen[-1] is None


def test_nothing_changes_while_nothing_can_be_written() -> None:
    ready = True
    coordinator = Coordinator(ready=lambda _: ready)
    coordinator.initialize(0, 0)
    leader = Leader(coordinator=coordinator)
    leader.produce(2)
    leader.acquire(0, "a")
    before, ready = coordinator.state, False
    unavailable = Error.COORDINATOR_NOT_AVAILABLE

    assert leader.acknowledge(0, "a", [Batch(0, 1, (1,))]) is unavailable
    assert coordinator.initialize(1, 0) is unavailable
    assert coordinator.read(5) == (unavailable, None)
    assert coordinator.delete() is unavailable
    assert coordinator.state == before
    ready = True
    assert leader.acknowledge(0, "a", [Batch(0, 1, (1,))]) is Error.NONE
    assert coordinator.delete() is Error.NONE


def test_stale_is_who_has_another_state_epoch() -> None:
    leader = leading(1)
    assert not leader.stale
    leader.coordinator.initialize(1, 0)
    assert leader.stale
    leader.reload()
    assert not leader.stale


def test_dead_letters_know_why() -> None:
    leader = leading(1, 1, delivery_limit=2)
    leader.settings = Settings(delivery_limit=2, dead_letters=True)
    for _ in range(2):
        leader.acquire(0, "a")
        leader.acknowledge(0, "a", [Batch(1, 1, (2,))])
    leader.acknowledge(0, "a", [Batch(0, 0, (3,))])

    due = leader.write_dead_letters(0)
    assert [(first, last, record.why) for first, last, record in due] == [
        (0, 0, "reject"),
        (1, 1, "release"),
    ]
    assert leader.start == 2
    assert leader.write_dead_letters(0) == []
    assert State.ARCHIVING not in {record.state for _, _, record in leader.records.over(2)}


# ---------------------------------------------------------------------- sessions


def opened(limit: int = 10) -> tuple[Sessions, Session]:
    """Return sessions of which one is open."""
    sessions = Sessions(limit)
    session = sessions.open(WHO, "connection")
    assert isinstance(session, Session)
    return sessions, session


def test_epochs_of_a_session() -> None:
    sessions, session = opened()

    assert sessions.next(WHO, 1) is session
    assert sessions.next(WHO, 1) is Denial.WRONG_EPOCH
    assert sessions.next(WHO, 3) is Denial.WRONG_EPOCH
    assert sessions.next(WHO, 2) is session
    assert sessions.next(WHO, FINAL) is session
    session.epoch = LAST
    assert sessions.next(WHO, LAST) is session
    assert sessions.next(WHO, 1) is session
    sessions.end(WHO)
    assert sessions.next(WHO, 2) is Denial.NOT_FOUND


def test_limit_of_sessions() -> None:
    sessions, first = opened(limit=1)

    assert sessions.open(("group", "other"), "b") is Denial.FULL
    again = sessions.open(WHO, "c")
    assert isinstance(again, Session)
    assert again is not first
    assert sessions.lost("connection") == []
    assert sessions.lost("c") == [WHO]
    assert isinstance(sessions.open(("group", "other"), "b"), Session)


def test_partitions_take_turns() -> None:
    _, session = opened()
    places = [(TOPIC, index) for index in range(3)]
    session.add(places)

    assert [session.rotated()[0][1] for _ in range(4)] == [0, 1, 2, 0]
    session.forget(places)
    assert session.rotated() == []


# ---------------------------------------------------------------------- assignments


@FEW
@given(
    partitions=st.lists(st.integers(0, 6), max_size=4),
    wishes=st.lists(st.sets(st.integers(0, 3)), max_size=6),
)
def test_assignments(partitions: list[int], wishes: list[set[int]]) -> None:
    topics: dict[str, Sequence[Place]] = {
        str(number): [(UUID(int=number), index) for index in range(count)]
        for number, count in enumerate(partitions)
    }
    members = {f"m{n}": [str(one) for one in sorted(wish)] for n, wish in enumerate(wishes)}
    found = assign(members, topics)

    wanted = {name for names in members.values() for name in names} & topics.keys()
    read = {place for places in found.values() for place in places}
    assert read == {place for name in wanted for place in topics[name]}
    for member, names in members.items():
        own = {place for name in names if name in topics for place in topics[name]}
        assert found[member] <= own
        assert bool(found[member]) == bool(own)


# ---------------------------------------------------------------------- heartbeats


class Crowd:
    """A group, with a topic of some partitions."""

    def __init__(self, partitions: int = 1, **terms: float) -> None:
        self.group = Membership()
        self.terms = Terms(**terms)  # type: ignore[arg-type]
        self.topics: Mapping[str, Sequence[Place]] = {
            "t": [(TOPIC, index) for index in range(partitions)]
        }

    def beat(self, member: str, epoch: int, now: float = 0, **fields: object) -> Reply:
        """Send a heartbeat."""
        beat = Beat(member=member, epoch=epoch, **fields)  # type: ignore[arg-type]
        return self.group.heartbeat(now, beat, self.terms, self.topics)


def test_joining_and_leaving() -> None:
    crowd = Crowd(2)
    joined = crowd.beat("a", 0, topics=("t",))
    assert joined.epoch > 0
    assert joined.assignment == frozenset({(TOPIC, 0), (TOPIC, 1)})
    assert crowd.beat("a", joined.epoch).assignment is None
    assert crowd.beat("a", -1).epoch == -1
    assert crowd.beat("a", joined.epoch).error is Error.UNKNOWN_MEMBER_ID
    assert crowd.group.assignment_epoch == crowd.group.epoch
    assert crowd.beat("a", 0, topics=("t",)).epoch > joined.epoch


def test_epochs_of_members() -> None:
    crowd = Crowd()
    first = crowd.beat("a", 0, topics=("t",)).epoch
    crowd.beat("b", 0, topics=("t",))
    second = crowd.beat("a", first).epoch
    assert second > first
    again = crowd.beat("a", first)
    assert (again.epoch, again.assignment is None) == (second, False)
    for wrong in (second + 1, first - 1):
        assert crowd.beat("a", wrong).error is Error.FENCED_MEMBER_EPOCH


def test_silence_and_crowding() -> None:
    crowd = Crowd(max_size=1, session_ms=100)
    crowd.beat("a", 0, topics=("t",))
    assert crowd.beat("b", 0, 99, topics=("t",)).error is Error.GROUP_MAX_SIZE_REACHED
    assert crowd.beat("b", 0, 100, topics=("t",)).error is Error.NONE


def test_assignments_wait_for_the_interval() -> None:
    crowd = Crowd(2, assignment_ms=100)
    first = crowd.beat("a", 0, topics=("t",)).epoch
    early = crowd.beat("b", 0, 10, topics=("t",))
    assert early.epoch == first
    assert early.assignment == frozenset()
    late = crowd.beat("b", early.epoch, 100)
    assert late.epoch > first
    assert late.assignment


@pytest.mark.parametrize(
    "wrong",
    [
        {"member": ""},
        {"member": "m" * 37},
        {"epoch": -2},
        {"topics": ()},
        {"topics": None},
        {"rack": ""},
    ],
)
def test_malformed_heartbeats(wrong: dict[str, object]) -> None:
    sound: dict[str, object] = {"member": "m", "epoch": 0, "topics": ("t",)}
    assert malformed("g", Beat(**sound)) is None  # type: ignore[arg-type]
    assert malformed("g", Beat(**sound | wrong)) is not None  # type: ignore[arg-type]
    assert malformed("", Beat(**sound)) is not None  # type: ignore[arg-type]
