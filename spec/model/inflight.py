"""The records of one share-partition as its leader knows them: states, counts, locks, the window.

This is what :mod:`spec.model.acquisition` takes records from and :mod:`spec.model.leader` settles.
"""

import math
from math import ceil
from typing import NamedTuple

from spec.model.durable import StateBatch
from spec.model.log import Log, Readable
from spec.model.release import NEWEST, Release
from spec.model.runs import Runs
from spec.model.settings import Settings
from spec.model.table import TERMINAL, Effect, Event, State, Transition, step


class Record(NamedTuple):
    """What the leader knows of an offset. ``until`` is when its lock ends.

    ``why`` is the event that makes an archiving record undeliverable.
    """

    state: State = State.AVAILABLE
    deliveries: int = 0
    member: str = ""
    until: float = math.inf
    origin: tuple[int, int] = (-1, -1)
    why: Event | None = None


NEW = Record()
_NOT_ALONE = 2
"""Up to this delivery limit there is no throttling: there is no delivery between first and last."""


class InFlight:
    """Everything from the start offset on; ``end`` is behind the last offset ever in flight."""

    def __init__(
        self, log: Readable | None, settings: Settings | None, release: Release | None
    ) -> None:
        self.settings = settings or Settings()
        self.release = release or NEWEST
        self.log: Readable = Log() if log is None else log
        self.start = self.end = 0
        self.records: Runs[Record] = Runs(0, NEW)

    def _put(self, first: int, last: int, record: Record) -> None:
        self.records.put(first, last, record)

    def _move(
        self, first: int, last: int, event: Event, now: float, member: str | None = None
    ) -> list[StateBatch]:
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
        last = self._used_up(record)
        return step(event, record.state, last=last, dead_letters=letters)

    def _used_up(self, record: Record) -> bool:
        return record.deliveries >= self.settings.delivery_limit

    def _after(self, record: Record, row: Transition, now: float) -> Record:
        if Effect.LOCK in row.effects:
            return record._replace(until=now + self.settings.lock_ms)
        count = record.deliveries - (Effect.COUNT_DOWN in row.effects)
        why = row.event if row.after is State.ARCHIVING else None
        return Record(row.after, count, origin=record.origin, why=why)

    def _advance(self) -> None:
        for first, last, record in list(self.records.over(self.start, self.end - 1)):
            if record.state not in TERMINAL:
                self.start = first
                break
            self.start = last + 1
        self.records.trim(self.start)

    def _earlier(self, record: Record) -> int | None:
        limit = self.settings.delivery_limit
        calm = self._calm(limit)
        if not self.release.throttling or limit <= _NOT_ALONE or record.deliveries < calm:
            return None
        if record.deliveries >= limit - 1:
            return 1
        size = record.origin[1] - record.origin[0] + 1
        return max(1, size >> (record.deliveries - calm + 1))

    @staticmethod
    def _calm(limit: int) -> int:
        return max(2, ceil(limit / 2))
