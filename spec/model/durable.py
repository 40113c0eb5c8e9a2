"""The durable state of a share-partition: epochs, snapshots, updates, and how batches combine.

Here the spec leaves no freedom, so this part of the model acts: it answers as a share coordinator
must, and a check compares. The epochs fence (KIP-932 §Share-group state):

1. The *state epoch* grows with every Initialize, that is, when an administrator alters or deletes
   the offsets. A leader that still writes for the old state is refused with FENCED_STATE_EPOCH.
2. The *leader epoch* grows with every Read, that is, when a leader loads the state. A leader that
   was replaced and does not know is refused with FENCED_LEADER_EPOCH.
3. State is stored as snapshots, which replace, and updates, which merge. Each snapshot raises the
   snapshot epoch by one, and updates repeat it.
4. Where batches overlap, the higher delivery count wins, and between equal counts the state that
   is further on. That makes merging independent of the order of updates within one state epoch.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from spec.model.operations import Error
from spec.model.release import NEWEST, Release
from spec.model.table import TERMINAL


class StateBatch(NamedTuple):
    first: int
    last: int
    state: int
    deliveries: int


UNKNOWN_COUNT = -1  # The delivery-complete count of a writer that does not tell it (Write v0).


def combine(
    stored: Sequence[StateBatch], written: Sequence[StateBatch], start: int
) -> tuple[StateBatch, ...]:
    """Merge batches: each offset keeps its highest count, then furthest state; none below start.

    Neighbours that end up equal are one batch. The time is n log n in the number of batches.
    """
    kept = [batch for batch in (*stored, *written) if max(batch[:2]) >= start]
    # What ends before it begins is kept as it is: refusing it is the business of who loads it.
    misshapen = [batch for batch in kept if batch.first > batch.last]
    queue = sorted(batch for batch in kept if batch.first <= batch.last)
    edges = sorted(
        {max(batch.first, start) for batch in queue} | {batch.last + 1 for batch in queue}
    )
    active: list[tuple[int, int, int]] = []
    combined: list[StateBatch] = []
    index = 0
    for edge, after in pairwise(edges):
        while index < len(queue) and max(queue[index].first, start) <= edge:
            batch = queue[index]
            heapq.heappush(active, (-batch.deliveries, -batch.state, batch.last))
            index += 1
        while active and active[0][2] < edge:
            heapq.heappop(active)
        if active:
            _append(combined, StateBatch(edge, after - 1, -active[0][1], -active[0][0]))
    return (*combined, *dict.fromkeys(misshapen))


def _append(combined: list[StateBatch], batch: StateBatch) -> None:
    before = combined[-1] if combined else None
    if before and before.last + 1 == batch.first and before[2:] == batch[2:]:
        combined[-1] = before._replace(last=batch.last)
    else:
        combined.append(batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of ``__share_group_state``. ``state_epoch`` None marks an update."""

    snapshot_epoch: int
    leader_epoch: int
    start: int
    batches: tuple[StateBatch, ...] = ()
    state_epoch: int | None = None
    complete: int = UNKNOWN_COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class Durable:
    state_epoch: int = 0
    leader_epoch: int = 0
    snapshot_epoch: int = 0
    start: int = -1
    batches: tuple[StateBatch, ...] = ()
    complete: int = UNKNOWN_COUNT
    updates: int = 0

    def after(self, record: Record, release: Release = NEWEST) -> Durable:
        """Return the state after one more record: snapshots replace, updates merge."""
        if record.state_epoch is not None:
            return Durable(
                state_epoch=record.state_epoch,
                leader_epoch=record.leader_epoch,
                snapshot_epoch=record.snapshot_epoch,
                start=record.start,
                batches=record.batches,
                complete=record.complete,
            )
        start, complete = self._moved(record, release)
        return replace(
            self,
            leader_epoch=record.leader_epoch,
            start=start,
            complete=complete,
            batches=combine(self.batches, record.batches, start),
            updates=self.updates + 1,
        )

    def _moved(self, record: Record, release: Release) -> tuple[int, int]:
        if record.start == -1:
            return self.start, record.complete if record.complete >= 0 else self.complete
        if release.start_only_forward and record.start < self.start:
            return self.start, self.complete
        return record.start, record.complete


def replay(records: Iterable[Record], release: Release = NEWEST) -> Durable | None:
    state: Durable | None = None
    for record in records:
        state = (state or Durable()).after(record, release)
    return state


class Coordinator:
    def __init__(
        self,
        release: Release = NEWEST,
        *,
        updates_per_snapshot: int = 500,
        sink: Callable[[Record | None], None] | None = None,
        ready: Callable[[int], bool] | None = None,
    ) -> None:
        """Begin without state.

        ``sink`` is given each record that is written, None a tombstone. ``ready`` tells whether one
        with so many state batches could be written; while it cannot, nothing changes and the
        response is an error.
        """
        self._release = release
        self._per_snapshot = updates_per_snapshot
        self._sink = sink
        self._ready = ready or (lambda _: True)
        self.state: Durable | None = None
        self.records: list[Record] = []

    def initialize(self, state_epoch: int, start: int) -> Error:
        """Answer InitializeShareGroupState (PER-01, PER-02, PER-03)."""
        if state_epoch < 0 and self._release.negative_epochs_refused:
            return Error.INVALID_REQUEST
        known = self.state or Durable()
        if self.state is not None and 0 <= state_epoch < known.state_epoch:
            return Error.FENCED_STATE_EPOCH
        if not self._ready(0):
            return Error.COORDINATOR_NOT_AVAILABLE
        epoch = known.snapshot_epoch + 1 if self.state is not None else 0
        self._store(
            Record(
                snapshot_epoch=epoch,
                state_epoch=state_epoch,
                leader_epoch=known.leader_epoch,
                start=start,
                complete=UNKNOWN_COUNT if start == -1 else 0,
            )
        )
        return Error.NONE

    def read(self, leader_epoch: int) -> tuple[Error, Durable | None]:
        """Answer ReadShareGroupState; a higher leader epoch is raised durably (PER-04..08)."""
        state = self.state
        if leader_epoch < 0 and self._release.negative_epochs_refused:
            return Error.INVALID_REQUEST, None
        if state is None:
            return Error.INVALID_REQUEST, None
        anyone = leader_epoch == -1 and self._release.read_any_epoch
        if leader_epoch < state.leader_epoch and not anyone:
            return Error.FENCED_LEADER_EPOCH, None
        if leader_epoch > state.leader_epoch:
            if not self._ready(0):
                return Error.COORDINATOR_NOT_AVAILABLE, None
            self._snapshot(replace(state, leader_epoch=leader_epoch))
        return Error.NONE, self.state

    def write(
        self,
        *,
        state_epoch: int,
        leader_epoch: int,
        start: int,
        batches: Sequence[StateBatch],
        complete: int = UNKNOWN_COUNT,
    ) -> Error:
        """Answer WriteShareGroupState (PER-09 to PER-16)."""
        refused = self._fence(state_epoch, leader_epoch)
        if refused is not Error.NONE or self.state is None:
            return refused
        if not self._ready(len(batches)):
            return Error.COORDINATOR_NOT_AVAILABLE
        raising = self._release.write_raises_epochs
        update = Record(
            snapshot_epoch=self.state.snapshot_epoch,
            leader_epoch=max(leader_epoch, self.state.leader_epoch)
            if raising
            else self.state.leader_epoch,
            start=start,
            batches=tuple(batches),
            complete=complete,
        )
        if self.state.updates >= self._per_snapshot:
            self._snapshot(self.state.after(update, self._release))
        else:
            self._store(update)
        return Error.NONE

    def _fence(self, state_epoch: int, leader_epoch: int) -> Error:
        state = self.state
        negative = min(state_epoch, leader_epoch) < 0
        if state is None or (negative and self._release.negative_epochs_refused):
            return Error.INVALID_REQUEST
        if 0 <= leader_epoch < state.leader_epoch:
            return Error.FENCED_LEADER_EPOCH
        if 0 <= state_epoch < state.state_epoch:
            return Error.FENCED_STATE_EPOCH
        return Error.NONE

    def summary(self) -> tuple[int, int, int, int]:
        state = self.state or Durable()
        return state.state_epoch, state.leader_epoch, state.start, state.complete

    def delete(self) -> Error:
        """Answer DeleteShareGroupState; nothing to delete is no fault (PER-23, PER-24)."""
        if self.state is not None and not self._ready(0):
            return Error.COORDINATOR_NOT_AVAILABLE
        if self.state is not None and self._sink:
            self._sink(None)
        self.state = None
        self.records.clear()
        return Error.NONE

    def _snapshot(self, state: Durable) -> None:
        self._store(
            Record(
                snapshot_epoch=state.snapshot_epoch + 1,
                state_epoch=state.state_epoch,
                leader_epoch=state.leader_epoch,
                start=state.start,
                batches=state.batches,
                complete=state.complete,
            )
        )

    def _store(self, record: Record) -> None:
        self.records.append(record)
        if self._sink:
            self._sink(record)
        self.state = (self.state or Durable()).after(record, self._release)


def complete_count(batches: Iterable[StateBatch]) -> int:
    terminal = {int(state) for state in TERMINAL}
    return sum(one.last - one.first + 1 for one in batches if one.state in terminal)
