"""The durable state: combining batches against one offset at a time, epochs, snapshots, replay."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec.model.durable import Coordinator, Record, StateBatch, combine, complete_count, replay
from spec.model.operations import Error
from spec.model.release import RELEASES, Release

MANY = settings(deadline=None, derandomize=True, database=None, max_examples=300)


@st.composite
def state_batches(draw: st.DrawFn) -> list[StateBatch]:
    """Return a few batches, overlapping as they like."""
    return [
        StateBatch(
            first := draw(st.integers(0, 30)),
            first + draw(st.integers(0, 8)),
            draw(st.sampled_from((0, 2, 3, 4))),
            draw(st.integers(1, 4)),
        )
        for _ in range(draw(st.integers(0, 8)))
    ]


def naive(batches: list[StateBatch], start: int) -> dict[int, tuple[int, int]]:
    """Return (count, state) of each offset, looked up one offset at a time."""
    found: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(max(batch.first, start), batch.last + 1):
            found[offset] = max(found.get(offset, (-1, -1)), (batch.deliveries, batch.state))
    return found


def spread_out(batches: tuple[StateBatch, ...]) -> dict[int, tuple[int, int]]:
    """Return combined batches as (count, state) of each offset."""
    return {
        offset: (batch.deliveries, batch.state)
        for batch in batches
        for offset in range(batch.first, batch.last + 1)
    }


@MANY
@given(stored=state_batches(), written=state_batches(), start=st.integers(0, 40))
def test_combining_equals_one_offset_at_a_time(
    stored: list[StateBatch], written: list[StateBatch], start: int
) -> None:
    before = combine((), stored, 0)

    assert naive([*stored, *written], start) == spread_out(combine(before, written, start))


@MANY
@given(stored=state_batches(), start=st.integers(0, 40))
def test_combined_batches_are_few(stored: list[StateBatch], start: int) -> None:
    combined = combine((), stored, start)
    for one, two in pairwise(combined):
        assert one.last < two.first
        assert one.last + 1 < two.first or one[2:] != two[2:]


@MANY
@given(stored=state_batches(), written=state_batches(), start=st.integers(0, 40))
def test_order_of_updates_does_not_matter(
    stored: list[StateBatch], written: list[StateBatch], start: int
) -> None:
    one = combine(combine((), stored, start), written, start)
    two = combine(combine((), written, start), stored, start)

    assert one == two == combine(one, written, start)


def test_two_thousand_alternating_offsets_combine_fast() -> None:
    written = [StateBatch(offset, offset, 2 if offset % 2 else 0, 1) for offset in range(2_000)]
    stored = combine((), written, 0)
    begun = time.process_time()

    assert len(combine(stored, written, 0)) == 2_000
    assert time.process_time() - begun < 1


def started(release: Release = RELEASES["4.4"], **more: Any) -> Coordinator:
    """Return a coordinator of a share-partition that begins at 10."""
    coordinator = Coordinator(release, **more)
    assert coordinator.initialize(2, 10) is Error.NONE
    return coordinator


def write(coordinator: Coordinator, start: int = -1, **epochs: int) -> Error:
    """Write that 12-14 are acknowledged."""
    batches = (StateBatch(12, 14, 2, 1),)
    known = {"state_epoch": 2, "leader_epoch": 0} | epochs
    return coordinator.write(start=start, batches=batches, complete=3, **known)


def test_uninitialised_state_is_refused() -> None:
    coordinator = Coordinator()

    assert coordinator.read(0) == (Error.INVALID_REQUEST, None)
    assert write(coordinator) is Error.INVALID_REQUEST
    assert coordinator.records == []
    assert coordinator.summary()[2] == -1


def test_initialize_replaces_and_fences() -> None:
    coordinator = started()
    write(coordinator)

    assert coordinator.initialize(1, 0) is Error.FENCED_STATE_EPOCH
    assert coordinator.initialize(3, 50) is Error.NONE
    _error, state = coordinator.read(0)
    assert state is not None
    assert (state.state_epoch, state.start, state.batches) == (3, 50, ())
    assert write(coordinator) is Error.FENCED_STATE_EPOCH


def test_read_raises_the_leader_epoch_and_fences_the_old_leader() -> None:
    coordinator = started()
    assert coordinator.read(5)[0] is Error.NONE

    assert coordinator.read(4)[0] is Error.FENCED_LEADER_EPOCH
    assert write(coordinator, leader_epoch=4) is Error.FENCED_LEADER_EPOCH
    assert write(coordinator, leader_epoch=5) is Error.NONE


def test_write_without_start_keeps_it() -> None:
    coordinator = started()
    write(coordinator)
    state = coordinator.state
    assert state is not None

    assert (state.start, state.batches) == (10, (StateBatch(12, 14, 2, 1),))


@pytest.mark.parametrize(("release", "start"), [(RELEASES["4.3"], 11), (RELEASES["4.4"], 13)])
def test_overtaken_write(release: Release, start: int) -> None:
    coordinator = started(release)
    write(coordinator, start=13)
    write(coordinator, start=11)

    assert coordinator.summary()[2] == start


@pytest.mark.parametrize(
    ("release", "answer"),
    [
        (RELEASES["4.1"], Error.FENCED_LEADER_EPOCH),
        (RELEASES["4.3"], Error.NONE),
        (RELEASES["4.4"], Error.INVALID_REQUEST),
    ],
)
def test_read_with_no_epoch(release: Release, answer: Error) -> None:
    assert answer is started(release).read(-1)[0]


def test_write_raises_no_epoch() -> None:
    coordinator = started()
    write(coordinator, leader_epoch=7, state_epoch=9)

    assert coordinator.summary()[:2] == (2, 0)


@pytest.mark.parametrize("between", [0, 1, 3])
def test_snapshots_come_in_time(between: int) -> None:
    coordinator = started(updates_per_snapshot=between)
    for _ in range(2 * between + 2):
        write(coordinator)
    kinds = [record.state_epoch is not None for record in coordinator.records]
    epochs = [one.snapshot_epoch for one in coordinator.records if one.state_epoch is not None]

    assert ([True] + [False] * between) * 2 + [True] == kinds[: 2 * between + 3]
    assert list(range(len(epochs))) == epochs


def test_replay_equals_the_state() -> None:
    coordinator = started(updates_per_snapshot=2)
    for start in range(10, 16):
        write(coordinator, start=start)
    coordinator.read(3)

    assert coordinator.state == replay(coordinator.records)
    assert replay([]) is None


def test_delete_forgets() -> None:
    coordinator = started()

    assert coordinator.delete() is coordinator.delete() is Error.NONE
    assert coordinator.read(0)[0] is Error.INVALID_REQUEST


def test_terminal_offsets_are_counted() -> None:
    batches = (StateBatch(1, 3, 2, 1), StateBatch(4, 4, 0, 1), StateBatch(5, 6, 4, 1))

    assert complete_count((*batches, StateBatch(7, 9, 3, 1))) == 5


def test_update_without_a_snapshot_is_taken_from_nothing() -> None:
    update = Record(
        snapshot_epoch=0, leader_epoch=1, start=5, batches=(StateBatch(4, 6, 2, 1),), complete=2
    )
    state = replay([update])
    assert state is not None

    assert (state.start, state.batches) == (5, (StateBatch(5, 6, 2, 1),))
