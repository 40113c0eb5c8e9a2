"""A share-partition leader that acts by the table: where the spec leaves freedom, it chooses.

It is what the reference broker runs and what valid histories are generated from. Its choices are
the plainest ones: the lowest available records first, whole batches, everything durable at once.
Time is given with every call and must not go back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

from spec.model.durable import Coordinator, StateBatch, complete_count
from spec.model.log import Log
from spec.model.operations import (
    Acknowledge,
    Batch,
    Error,
    Mode,
    Piece,
    Range,
    malformed,
    pieces_of,
    shares_a_border,
)
from spec.model.release import V4_4, Release
from spec.model.runs import END, Runs
from spec.model.settings import Settings
from spec.model.table import OVER, TERMINAL, Effect, Event, State, Transition, step


class Record(NamedTuple):
    """What the leader knows of an offset. ``until`` is when its lock ends."""

    state: State = State.AVAILABLE
    deliveries: int = 0
    member: str = ""
    until: float = math.inf
    origin: tuple[int, int] = (-1, -1)


NEW = Record()
_NOT_ALONE = 2
"""Up to this delivery limit there is no throttling: there is no delivery between first and last."""


class Leader:
    """One share-partition on the broker that leads it."""

    def __init__(
        self,
        start: int = 0,
        *,
        settings: Settings | None = None,
        release: Release = V4_4,
        coordinator: Coordinator | None = None,
    ) -> None:
        self.settings = settings or Settings()
        self.release = release
        self.log = Log()
        self.log_start = 0
        if coordinator is None:
            coordinator = Coordinator(release)
            coordinator.initialize(0, start)
        self.coordinator = coordinator
        self.leader_epoch = -1
        self.reload()

    # ------------------------------------------------------------------ loading and storing

    def reload(self, leader_epoch: int | None = None) -> Error:
        """Load the durable state, as a new leader or one that was fenced: no lock survives."""
        wanted = self.leader_epoch + 1 if leader_epoch is None else leader_epoch
        error, state = self.coordinator.read(wanted)
        if state is None:
            return error
        self.leader_epoch, self.state_epoch = wanted, state.state_epoch
        self.start = max(state.start, self.log_start)
        self.end = self.start
        self.records: Runs[Record] = Runs(self.start, NEW)
        for batch in state.batches:
            if batch.last >= self.start:
                self._put(batch.first, batch.last, Record(State(batch.state), batch.deliveries))
                self.end = max(self.end, batch.last + 1)
        self._advance()
        return error

    def _put(self, first: int, last: int, record: Record) -> None:
        def put(_first: int, _last: int, _old: Record) -> Record:
            return record

        self.records.apply(first, last, put)

    def _store(self, changed: Sequence[StateBatch]) -> Error:
        stored = [
            StateBatch(low, high, int(record.state), record.deliveries)
            for low, high, record in self.records.over(self.start, max(self.end - 1, self.start))
        ]
        error = self.coordinator.write(
            state_epoch=self.state_epoch,
            leader_epoch=self.leader_epoch,
            start=self.start,
            batches=changed,
            complete=complete_count(stored) if self.release.complete_count else -1,
        )
        if error in {Error.FENCED_LEADER_EPOCH, Error.FENCED_STATE_EPOCH}:
            return Error.NOT_LEADER_OR_FOLLOWER
        return error

    def _advance(self) -> None:
        for first, last, record in list(self.records.over(self.start, self.end - 1)):
            if record.state not in TERMINAL:
                self.start = first
                break
            self.start = last + 1
        self.records.trim(self.start)

    # ------------------------------------------------------------------ acquiring

    def produce(self, count: int) -> tuple[int, int]:
        """Append one record batch to the log and return its first and last offset."""
        first = self.log.last + 1
        self.log.append(first, first + count - 1)
        return first, first + count - 1

    def acquire(
        self,
        now: float,
        member: str,
        *,
        max_records: int = 500,
        mode: Mode = Mode.BATCH_OPTIMIZED,
    ) -> list[Range]:
        """Acquire available records for a member, as one answer's ranges."""
        self.tick(now)
        taken: list[Range] = []
        total = 0
        for first, end, record in self._available():
            last = end
            if total >= max_records or (taken and self._earlier(record) is not None):
                break
            if mode is Mode.RECORD_LIMIT:
                last = min(last, first + max_records - total - 1)
            size = self._earlier(record)
            if size is not None:
                last = min(last, first + size - 1)
            taken.append(Range(first, last, record.deliveries + 1))
            total += last - first + 1
            self._hold(first, last, record, member, now)
            if size is not None:
                break
        return _joined(taken)

    def _available(self) -> Iterator[tuple[int, int, Record]]:
        """Yield available runs, each within one record batch and within the window."""
        window = self.start + self.settings.max_locks
        for low, high, record in list(self.records.over(self.start, self.log.last)):
            if record.state is not State.AVAILABLE:
                continue
            first = low
            while first <= high and (first < self.end or first < window):
                last = min(high, self.log.batch_of(first)[1])
                yield first, last, record
                first = last + 1

    def _earlier(self, record: Record) -> int | None:
        """Return how many records of a throttled batch may go out at once; None: all of them."""
        limit = self.settings.delivery_limit
        calm = max(2, ceil(limit / 2))
        if not self.release.throttling or limit <= _NOT_ALONE or record.deliveries < calm:
            return None
        if record.deliveries >= limit - 1:
            return 1
        size = record.origin[1] - record.origin[0] + 1
        return max(1, size >> (record.deliveries - calm + 1))

    def _hold(self, first: int, last: int, record: Record, member: str, now: float) -> None:
        row = step(Event.ACQUIRE, record.state)
        if row is None:
            raise ValueError(f"{first}-{last} are {record.state.name}, not available")
        origin = record.origin if record.origin[0] >= 0 else (first, last)
        until = now + self.settings.lock_ms
        self._put(first, last, Record(row.after, record.deliveries + 1, member, until, origin))
        self.end = max(self.end, last + 1)

    # ------------------------------------------------------------------ acknowledging

    def acknowledge(
        self, now: float, member: str, batches: Sequence[Batch], *, renew: bool = False
    ) -> Error:
        """Settle or renew records: all batches, durably, or none of them."""
        self.tick(now)
        ack = Acknowledge(member=member, batches=tuple(batches), renew=renew)
        if malformed(ack, self.release) is not None:
            return Error.INVALID_REQUEST
        pieces = [piece for piece in pieces_of(batches) if piece.last >= self.start]
        error = self._refusal(member, pieces)
        if error is not Error.NONE:
            return error
        if pieces and shares_a_border(batches):
            return Error.INVALID_RECORD_STATE
        return self._settle(now, pieces)

    def _refusal(self, member: str, pieces: Sequence[Piece]) -> Error:
        for piece in pieces:
            if piece.last >= self.end:
                return Error.INVALID_REQUEST
            if piece.event is Event.RENEW and not self.settings.renewal:
                return Error.INVALID_RECORD_STATE
            for _first, _last, record in self.records.over(
                max(piece.first, self.start), piece.last
            ):
                if record.state is not State.ACQUIRED or record.member != member:
                    return Error.INVALID_RECORD_STATE
        return Error.NONE

    def _settle(self, now: float, pieces: Sequence[Piece]) -> Error:
        before = self.records.copy(), self.start
        changed = [
            batch
            for piece in pieces
            for batch in self._move(piece.first, piece.last, piece.event, now)
        ]
        self._advance()
        if changed and (error := self._store(changed)) is not Error.NONE:
            self.records, self.start = before
            return error
        return Error.NONE

    def _move(
        self, first: int, last: int, event: Event, now: float, member: str | None = None
    ) -> list[StateBatch]:
        """Move the records of a range (that a member holds) by one row; return what to store."""
        changed: list[StateBatch] = []

        def move(low: int, high: int, record: Record) -> Record:
            if member is not None and record.member != member:
                return record
            row = self._row(event, record)
            if row is None:
                return record
            after = self._after(record, row, now)
            if row.after is not State.ACQUIRED:
                changed.append(StateBatch(low, high, int(after.state), after.deliveries))
            return after

        self.records.apply(max(first, self.start), last, move)
        return changed

    def _row(self, event: Event, record: Record) -> Transition | None:
        letters = self.settings.dead_letters and self.release.dead_letters
        last = record.deliveries >= self.settings.delivery_limit
        return step(event, record.state, last=last, dead_letters=letters)

    def _after(self, record: Record, row: Transition, now: float) -> Record:
        if Effect.LOCK in row.effects:
            return record._replace(until=now + self.settings.lock_ms)
        count = record.deliveries - (Effect.COUNT_DOWN in row.effects)
        return Record(row.after, count, origin=record.origin)

    # ------------------------------------------------------------------ what frees records

    def tick(self, now: float) -> list[tuple[int, int, str]]:
        """End the locks that are due; return the ranges and whose they were."""
        due = [
            (first, last, record.member)
            for first, last, record in self.records.over(self.start, self.end - 1)
            if record.state is State.ACQUIRED and record.until <= now
        ]
        changed = [b for low, high, _who in due for b in self._move(low, high, Event.EXPIRE, now)]
        self._background(changed)
        return due

    def close(self, now: float, member: str) -> None:
        """End a member's share session: everything it holds is let go of."""
        self.tick(now)
        event = self.release.close_event
        self._background(self._move(self.start, self.end - 1, event, now, member))

    def move_log_start(self, now: float, offset: int) -> None:
        """Let the log begin at a higher offset: what lies below is archived."""
        self.tick(now)
        self.log_start = max(self.log_start, offset)
        self._background(self._move(self.start, offset - 1, Event.LOG_START, now))
        self.start = max(self.start, min(offset, END))
        self.end = max(self.end, self.start)
        self.records.trim(self.start)

    def write_dead_letters(self, now: float) -> list[tuple[int, int, int]]:
        """Do phase two for all records that are archiving; return ``(first, last, count)``."""
        due = [
            (first, last, record.deliveries)
            for first, last, record in self.records.over(self.start, self.end - 1)
            if record.state is State.ARCHIVING
        ]
        self._background(self._move(self.start, self.end - 1, Event.DEAD_LETTER, now))
        return due

    def _background(self, changed: list[StateBatch]) -> None:
        if changed:
            self._advance()
            self._store(changed)

    def unfinished(self) -> bool:
        """Tell whether the log still holds a record that is not over."""
        return any(
            record.state not in OVER
            for _first, _last, record in self.records.over(self.start, self.log.last)
        )


def _joined(ranges: list[Range]) -> list[Range]:
    joined: list[Range] = []
    for one in ranges:
        before = joined[-1] if joined else None
        if before and before.last + 1 == one.first and before.deliveries == one.deliveries:
            joined[-1] = before._replace(last=one.last)
        else:
            joined.append(one)
    return joined
