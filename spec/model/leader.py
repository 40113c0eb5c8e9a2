"""A share-partition leader that acts by the table: where the spec leaves freedom, it chooses.

It is what the reference broker runs and what valid histories are generated from. Its choices are
the plainest ones: the lowest available records first, whole batches, everything durable at once.
Time is given with every call and must not go back.
"""

from collections.abc import Callable, Sequence

from spec.model.acquisition import Acquirer, Want
from spec.model.durable import Coordinator, Durable, StateBatch, complete_count
from spec.model.inflight import NEW, Record
from spec.model.log import Log, Readable
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
from spec.model.release import Release
from spec.model.runs import Runs
from spec.model.settings import Settings
from spec.model.table import OVER, Event, State

_ERRORS = {
    Error.NONE: Error.NONE,
    Error.COORDINATOR_NOT_AVAILABLE: Error.COORDINATOR_NOT_AVAILABLE,
    Error.FENCED_LEADER_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
    Error.FENCED_STATE_EPOCH: Error.NOT_LEADER_OR_FOLLOWER,
}
"""The error for a client by that of the share coordinator; all others are UNKNOWN_SERVER_ERROR."""


class Leader(Acquirer):
    """One share-partition on the broker that leads it.

    ``begin`` says where a share-partition begins that was initialised without a start offset.
    """

    def __init__(
        self,
        start: int = 0,
        *,
        settings: Settings | None = None,
        release: Release | None = None,
        coordinator: Coordinator | None = None,
        log: Readable | None = None,
        leader_epoch: int | None = None,
        begin: Callable[[], int] | None = None,
    ) -> None:
        super().__init__(log, settings, release)
        if coordinator is None:
            coordinator = Coordinator(self.release)
            coordinator.initialize(0, start)
        self.coordinator = coordinator
        self.begin = begin or (lambda: 0)
        self.leader_epoch, self.state_epoch = -1, -1
        self.log_start = 0
        self.error = self.reload(leader_epoch)

    # ------------------------------------------------------------------ loading and storing

    def reload(self, leader_epoch: int | None = None) -> Error:
        """Load the durable state, as a new leader or one that was fenced: no lock survives."""
        wanted = self.leader_epoch + 1 if leader_epoch is None else leader_epoch
        error, state = self.coordinator.read(wanted)
        if state is None:
            return error
        if not all(map(sound, state.batches)):
            return Error.UNKNOWN_SERVER_ERROR
        self.leader_epoch, self.state_epoch = wanted, state.state_epoch
        self._load(state)
        return error

    def _load(self, state: Durable) -> None:
        stored = self.begin() if state.start == -1 else state.start
        self.start = self.end = max(stored, self.log.start, self.log_start)
        self.records = Runs(self.start, NEW)
        for batch in state.batches:
            if batch.last >= self.start:
                self._put(batch.first, batch.last, Record(State(batch.state), batch.deliveries))
                self.end = max(self.end, batch.last + 1)
        self._advance()

    @property
    def stale(self) -> bool:
        state = self.coordinator.state
        return state is None or state.state_epoch != self.state_epoch

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
        return _ERRORS.get(error, Error.UNKNOWN_SERVER_ERROR)

    # ------------------------------------------------------------------ acquiring

    def produce(self, count: int) -> tuple[int, int]:
        if not isinstance(self.log, Log):
            raise TypeError("records are produced to this log elsewhere")
        first = self.log.last + 1
        self.log.append(first, first + count - 1)
        return first, first + count - 1

    def acquire(
        self, now: float, member: str, *, max_records: int = 500, mode: Mode = Mode.BATCH_OPTIMIZED
    ) -> list[Range]:
        want = Want(max_records=max_records, mode=mode)
        self.notice(now)
        taken = self.plan(want)
        self.hold(now, member, taken)
        return self.ranges(taken)

    def notice(self, now: float, *, committed: bool = False) -> None:
        """See what time, and the log, have done to the records, before any are taken.

        What was in flight and is gone is stored, so that the lag does not wait for traffic that may
        never come; holes that were not reached yet are found again by the next leader.
        """
        self.tick(now)
        if self.log.start > self.start:
            self.move_log_start(now, self.log.start)
        reached = self.end
        changed = [
            batch
            for low, high in self.holes(committed)
            for batch in self._move(low, high, Event.VANISH, now)
        ]
        self._pass_over()
        self._advance()
        if any(batch.first < reached for batch in changed):
            self._store([batch for batch in changed if batch.first < reached])

    # ------------------------------------------------------------------ acknowledging

    def acknowledge(
        self,
        now: float,
        member: str,
        batches: Sequence[Batch],
        *,
        renew: bool = False,
        version: int = 2,
    ) -> Error:
        """Settle or renew records: all batches, durably, or none of them."""
        self.tick(now)
        ack = Acknowledge(member=member, batches=tuple(batches), renew=renew, version=version)
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

    # ------------------------------------------------------------------ what frees records

    def tick(self, now: float) -> list[tuple[int, int, str]]:
        due = [
            (first, last, record.member)
            for first, last, record in self.records.over(self.start, self.end - 1)
            if record.state is State.ACQUIRED and record.until <= now
        ]
        changed = [b for low, high, _who in due for b in self._move(low, high, Event.EXPIRE, now)]
        self._background(changed)
        return due

    def close(self, now: float, member: str) -> None:
        self.tick(now)
        event = self.release.close_event
        self._background(self._move(self.start, self.end - 1, event, now, member))

    def move_log_start(self, now: float, offset: int) -> None:
        self.tick(now)
        self.log_start = max(self.log_start, offset)
        changed = self._move(self.start, offset - 1, Event.LOG_START, now)
        self.start = max(self.start, offset)
        self.end = max(self.end, self.start)
        self.records.trim(self.start)
        self._background(changed)

    def write_dead_letters(self, now: float) -> list[tuple[int, int, Record]]:
        """Do phase two for all records that are archiving; return ``(first, last, record)``."""
        due = [
            (first, last, record)
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
        return any(
            record.state not in OVER
            for _first, _last, record in self.records.over(self.start, self.log.end() - 1)
        )


def sound(batch: StateBatch) -> bool:
    known = {int(state) for state in State if state is not State.ACQUIRED}
    return batch.first <= batch.last and batch.state in known and batch.deliveries >= 0
