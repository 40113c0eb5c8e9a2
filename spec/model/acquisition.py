"""Acquiring: which records a fetch is given, by the plainest choice that the rules leave.

The lowest available records come first, in whole record batches. What a batch holds is not looked
into: it is acquired from its first offset to its last, holes and markers included (KIP-932
§Fetching and acknowledging records), and only what is certain to be no record vanishes by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from spec.model.inflight import InFlight, Record
from spec.model.log import LogBatch
from spec.model.operations import Mode, Range
from spec.model.runs import END
from spec.model.table import Event, State, step


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """What a ShareFetch asks of one share-partition. ``committed``: its isolation level."""

    max_records: int = 500
    max_bytes: int = END
    batch_size: int = END
    mode: Mode = Mode.BATCH_OPTIMIZED
    committed: bool = False


class Take(NamedTuple):
    first: int
    last: int
    record: Record
    batch: LogBatch


class Acquirer(InFlight):
    def plan(self, want: Want) -> list[Take]:
        taken: list[Take] = []
        total = size = 0
        for take in self._available(want.committed):
            more = 0 if taken and taken[-1].batch == take.batch else take.batch.size
            if self._full(want, total, size + more, bool(taken)):
                break
            alone = self._earlier(take.record)
            if taken and alone is not None:
                break
            last = self._cut(take, want, total, alone)
            taken.append(take._replace(last=last))
            total, size = total + last - take.first + 1, size + more
            if alone is not None:
                break
        return taken

    def _full(self, want: Want, records: int, size: int, begun: bool) -> bool:
        return records >= want.max_records or (begun and size > want.max_bytes)

    def _cut(self, take: Take, want: Want, total: int, alone: int | None) -> int:
        last = take.last
        if want.mode is Mode.RECORD_LIMIT:
            last = min(last, take.first + want.max_records - total - 1)
        return last if alone is None else min(last, take.first + alone - 1)

    def _available(self, committed: bool) -> Iterator[Take]:
        end = self.log.end(committed=committed)
        for batch in self._shown(committed):
            low, high = max(batch.first, self.start), min(batch.last, end - 1)
            for first, last, record in self.records.over(low, high):
                if first >= self.end and not self._may_begin(first):
                    return
                if record.state is State.AVAILABLE:
                    yield Take(first, last, record, batch)

    def _shown(self, committed: bool) -> Iterator[LogBatch]:
        for batch in self.log.over(self.start, self.log.end(committed=committed) - 1):
            if not (committed and batch.hidden):
                yield batch

    def _may_begin(self, first: int) -> bool:
        return first < self.start + self.settings.max_locks

    def hold(self, now: float, member: str, taken: list[Take]) -> None:
        for take in taken:
            self._hold(take, member, now)

    def _hold(self, take: Take, member: str, now: float) -> None:
        record = take.record
        row = step(Event.ACQUIRE, record.state)
        if row is None:
            raise ValueError(f"{take.first}-{take.last} are {record.state.name}, not available")
        origin = record.origin if record.origin[0] >= 0 else (take.first, take.last)
        until = now + self.settings.lock_ms
        held = Record(row.after, self._counted(record), member, until, origin)
        self._put(take.first, take.last, held)
        self.end = max(self.end, take.last + 1)

    def _counted(self, record: Record) -> int:
        return record.deliveries + 1

    def ranges(self, taken: list[Take], batch_size: int = END) -> list[Range]:
        """Return what was planned as a response's acquired ranges (KIP-932 §ShareFetch)."""
        joined: list[Range] = []
        before: Take | None = None
        for take in taken:
            count = self._counted(take.record)
            if before and self._joins(joined[-1], before, take, count, batch_size):
                joined[-1] = joined[-1]._replace(last=take.last)
            else:
                joined.append(Range(take.first, take.last, count))
            before = take
        return joined

    @staticmethod
    def _joins(one: Range, before: Take, take: Take, count: int, batch_size: int) -> bool:
        begins = one.last + 1 == take.first and one.deliveries == count
        room = before.batch == take.batch or one.last - one.first + 1 < batch_size
        return begins and room

    # ------------------------------------------------------------------ what is not there any more

    def holes(self, committed: bool) -> Iterator[tuple[int, int]]:
        end = self.log.end(committed=committed)
        following = self.start
        for batch in self._shown(committed):
            if batch.first > following:
                yield following, batch.first - 1
            following = max(following, batch.last + 1)
        if following < end:
            yield following, end - 1

    def _pass_over(self) -> None:
        """Count holes right behind what was in flight as having been in flight."""
        for first, last, record in list(self.records.over(self.end)):
            if first > self.end or record.state is not State.ARCHIVED:
                return
            self.end = last + 1
