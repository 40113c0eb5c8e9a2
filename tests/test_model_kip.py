"""The two worked examples of KIP-932, replayed literally: the model leads and judges them alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spec.model.durable import Coordinator, StateBatch
from spec.model.leader import Leader
from spec.model.operations import Batch, Error, Range
from spec.model.partition import SharePartition
from spec.model.settings import Settings, Slack
from spec.model.table import State

LOCK = Settings(lock_ms=1_000)
ACCEPT, RELEASE, REJECT = 1, 2, 3
AVAILABLE, ACQUIRED, DONE, ARCHIVED = (
    State.AVAILABLE,
    State.ACQUIRED,
    State.ACKNOWLEDGED,
    State.ARCHIVED,
)
Shown = dict[range, tuple[State, int]]


class Both:
    """An acting leader and a judge who watches it."""

    def __init__(self, start: int, end: int) -> None:
        coordinator = Coordinator()
        coordinator.initialize(0, start)
        self.leader = Leader(settings=LOCK, coordinator=coordinator)
        self.judge = SharePartition(start, settings=LOCK, slack=Slack(early_ms=0, late_ms=0))
        for offset in range(end):
            self.leader.produce(1)
            self.judge.produced(offset, offset)
        self.now = 0.0

    def fetch(self, member: str, most: int) -> list[Range]:
        """Fetch with a MaxRecords; return what was acquired."""
        taken = self.leader.acquire(self.now, member, max_records=most)
        self.judge.acquired(self.now, member, taken).check()
        return taken

    def settle(self, member: str, first: int, last: int, kind: int) -> None:
        """Acknowledge offsets alike; it must succeed."""
        error = self.leader.acknowledge(self.now, member, [Batch(first, last, (kind,))])
        self.judge.acknowledged(self.now, member, [(first, last, [kind])], error).check()

        assert Error.NONE is error

    def shows(self, start: int, end: int, states: Shown) -> None:
        """Compare start offset, end offset, states and counts with a row of the KIP."""
        assert (start, end) == (self.leader.start, self.leader.end)
        assert (start, end) == (self.judge.start, self.judge.end)
        for offsets, (state, count) in states.items():
            for offset in offsets:
                self._shows_one(offset, state, count)

    def _shows_one(self, offset: int, state: State, count: int) -> None:
        record = self.leader.records[offset]
        assert (state, count) == (record.state, record.deliveries)
        cells = self.judge.cells(self.now, offset)
        assert [state] == [cell.state for cell in cells]
        if state in {AVAILABLE, ACQUIRED}:
            assert (count, count) == (cells[0].low, cells[0].high)


def test_table_of_operations_and_state_changes() -> None:
    both = Both(100, 130)
    both.shows(100, 100, {})
    assert [Range(100, 109, 1)] == both.fetch("a", 10)
    both.shows(100, 110, {range(100, 110): (ACQUIRED, 1)})
    both.settle("a", 100, 109, ACCEPT)
    both.shows(110, 110, {})
    _release_and_acknowledge(both)


def _release_and_acknowledge(both: Both) -> None:
    assert [Range(110, 112, 1)] == both.fetch("a", 3)
    both.now = 500
    assert [Range(113, 119, 1)] == both.fetch("a", 7)
    both.shows(110, 120, {range(110, 120): (ACQUIRED, 1)})
    both.settle("a", 110, 110, RELEASE)
    both.shows(110, 120, {range(110, 111): (AVAILABLE, 1), range(111, 120): (ACQUIRED, 1)})
    both.settle("a", 119, 119, ACCEPT)
    both.shows(110, 120, {range(111, 119): (ACQUIRED, 1), range(119, 120): (DONE, 1)})
    assert [Range(110, 110, 2), Range(120, 120, 1)] == both.fetch("b", 2)
    rest: Shown = {range(113, 119): (ACQUIRED, 1), range(119, 120): (DONE, 1)}
    head: Shown = {range(110, 111): (ACQUIRED, 2), range(120, 121): (ACQUIRED, 1)}
    both.shows(110, 121, head | {range(111, 113): (ACQUIRED, 1)} | rest)
    both.now = 1_000
    both.leader.tick(both.now)
    both.judge.expired(both.now, "a", 111, 112).check()
    both.shows(110, 121, head | {range(111, 113): (AVAILABLE, 1)} | rest)
    _finish(both, head)


def _finish(both: Both, head: Shown) -> None:
    both.settle("a", 113, 118, ACCEPT)
    done: Shown = {range(113, 120): (DONE, 1)}
    both.shows(110, 121, head | done | {range(111, 113): (AVAILABLE, 1)})
    assert [Range(111, 112, 2)] == both.fetch("b", 2)
    both.shows(110, 121, head | done | {range(111, 113): (ACQUIRED, 2)})
    both.settle("b", 110, 110, ACCEPT)
    both.shows(111, 121, done | {range(111, 113): (ACQUIRED, 2)})
    both.settle("b", 111, 112, ACCEPT)
    both.shows(120, 121, {range(120, 121): (ACQUIRED, 1)})


def in_flight() -> Both:
    """Bring about KIP-932's figure of in-flight records.

    The figure ends at record 8 and gives 7 and 8 no count; here nobody has fetched them, as a
    record that was fetched has a count. So the end offset is 7 where the figure points at 9.
    """
    both = Both(0, 12)
    both.fetch("a", 7)
    both.settle("a", 0, 1, ACCEPT)
    both.settle("a", 3, 3, RELEASE)
    both.settle("a", 5, 5, ACCEPT)
    both.settle("a", 6, 6, REJECT)
    both.fetch("b", 1)
    both.settle("b", 3, 3, RELEASE)
    return both


def test_example_of_in_flight_records() -> None:
    both = in_flight()

    both.shows(
        2,
        7,
        {
            range(2, 3): (ACQUIRED, 1),
            range(3, 4): (AVAILABLE, 2),
            range(4, 5): (ACQUIRED, 1),
            range(5, 6): (DONE, 1),
            range(6, 7): (ARCHIVED, 1),
            range(7, 9): (AVAILABLE, 0),
        },
    )


def test_durable_state_of_the_example() -> None:
    both = in_flight()
    state = both.leader.coordinator.state
    assert state is not None

    assert state.start == 2
    expected = [
        StateBatch(3, 3, AVAILABLE, 2),
        StateBatch(5, 5, DONE, 1),
        StateBatch(6, 6, ARCHIVED, 1),
    ]
    assert expected == list(state.batches)
    both.judge.persisted(both.now, state.start, state.batches).check()


def test_two_consumers_example() -> None:
    both = Both(100, 120)
    both.fetch("first", 10)
    both.fetch("second", 10)
    both.settle("second", 110, 119, ACCEPT)
    both.now = 1_000

    assert [Range(100, 109, 2)] == both.fetch("second", 10)


def attempts(limit: int, size: int) -> list[int]:
    """Let go of one batch again and again; return how many records came at each attempt."""
    settings = Settings(delivery_limit=limit)
    leader = Leader(settings=settings)
    judge = SharePartition(0, settings=settings)
    leader.produce(size)
    came = []
    for attempt in range(1, limit + 1):
        taken = leader.acquire(attempt, "a")
        judge.acquired(attempt, "a", taken).check()
        came.append(taken[0].last - taken[0].first + 1)
        batch = Batch(taken[0].first, taken[0].last, (RELEASE,))
        leader.acknowledge(attempt, "a", [batch])
        judge.acknowledged(attempt, "a", [batch]).check()
    return came


@pytest.mark.parametrize(
    ("limit", "size", "expected"),
    [
        (5, 100, [100, 100, 100, 50, 1]),
        (10, 512, [512, 512, 512, 512, 512, 256, 128, 64, 32, 1]),
        (2, 100, [100, 100]),
    ],
)
def test_throttled_delivery(limit: int, size: int, expected: Sequence[int]) -> None:
    assert list(expected) == attempts(limit, size)
