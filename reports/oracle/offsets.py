"""Rules about what is shown and stored of a share-partition, and about requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from reports.oracle.evidence import Case, Evidence, Position, Share, grouped
from reports.oracle.journals import Row
from reports.oracle.lives import MS, SECOND
from spec.history import AckType

TICK = SECOND // 10


def shown(evidence: Evidence) -> Iterator[Case]:
    """INV-19, INV-22, INV-24, INV-38: offsets, epochs and lags as an admin sees them."""
    for share_partition, share in evidence.partitions.items():
        high = _highest(evidence.lives.get(share_partition, []))
        for before, look in pairwise(share.looks):
            if look.sent < before.received:
                continue
            if look.spso >= 0 and before.spso >= 0:
                yield "INV-19", share_partition, look.spso < before.spso
            if look.leader_epoch >= 0:
                yield "INV-22", share_partition, look.leader_epoch < before.leader_epoch
        for look, later in pairwise(share.looks):
            if look.lag >= 0 and look.spso >= 0:
                yield "INV-38", share_partition, _wrong_lag(share, look, later.log_end, high)
        last = [look for look in share.looks if look.phase in ("drain", "quiet")][-1:]
        for look in last:
            if look.lag >= 0 or look.spso >= look.log_end:
                yield "INV-24", share_partition, look.lag > 0


def _highest(records: Sequence[list[Position]]) -> list[tuple[int, int]]:
    """Return the ticks at which the highest acquired offset rose, and to what."""
    found: list[tuple[int, int]] = []
    acquired = ((at.now.acquired // TICK, at.now.offset) for life in records for at in life)
    for tick, offset in sorted(acquired):
        if not found or offset > found[-1][1]:
            found.append((tick, offset))
    return found


def _by(high: Sequence[tuple[int, int]], tick: int) -> int | None:
    return max((offset for at, offset in high if at <= tick), default=None)


def _wrong_lag(share: Share, look: Row, end_after: int, high: list[tuple[int, int]]) -> bool:
    if look.lag > end_after - look.spso:
        return True
    if (
        share.unseen_responses
        or share.row.committed_only
        or share.reloads
        or share.log_start > share.row.first
    ):
        return False
    reached = _by(high, look.received // TICK)
    return reached is not None and look.lag < look.log_end - max(reached + 1, look.spso)


def in_flight(evidence: Evidence) -> Iterator[Case]:
    """INV-17, INV-20: how much is in flight, and what the start offset passes."""
    for share_partition, share in evidence.partitions.items():
        if share.reloads or share.log_start > share.row.first:
            continue
        records = evidence.lives.get(share_partition, [])
        high = _highest(records)
        held = _held(records)
        starts: dict[int, int] = {}
        for look in share.looks:
            tick = look.received // TICK
            starts[tick] = max(look.spso, starts.get(tick, look.spso))
        acquired = {at.now.acquired // TICK for life in records for at in life}
        for tick in sorted({*acquired, *starts, *(tick for tick, _ in held)}):
            low = min((offset for at, offset in held if at > tick), default=None)
            top = _by(high, tick)
            if low is not None and top is not None and top >= low:
                room = share.row.window + share.row.batch
                yield "INV-17", share_partition, top - low + 1 > room
            if low is not None and starts.get(tick, 0) > 0:
                yield "INV-20", share_partition, low < starts[tick]


def _held(records: Sequence[list[Position]]) -> list[tuple[int, int]]:
    """Return when which records were proven to have been held until then."""
    return [
        (at.now.ack_sent // TICK, at.now.offset)
        for life in records
        for at in life
        if at.now.kind in (AckType.ACCEPT, AckType.REJECT) and at.proven
    ]


def stored_epochs(evidence: Evidence) -> Iterator[Case]:
    """INV-22: epochs in the stored state never go back."""
    for share_partition, rows in grouped(evidence.rows["persisted"], "share_partition").items():
        for name in ("leader_epoch", "state_epoch", "snapshot_epoch"):
            epochs: dict[int, int] = {}
            for row in rows:
                epoch = getattr(row, name)
                if epoch >= 0:
                    epochs[row.position] = max(epoch, epochs.get(row.position, epoch))
            for before, epoch in pairwise(value for _, value in sorted(epochs.items())):
                yield "INV-22", share_partition, epoch < before


def received(evidence: Evidence) -> Iterator[Case]:
    """INV-25: every request is answered in time; told by the request's number.

    Time counts in seconds in which the broker answered others, so that a slow machine has more.
    """
    rows = [row for row in evidence.rows["operations"] if row.received >= 0]
    for row in rows:
        allowed = row.max_wait_ms * MS + 60 * SECOND
        late = row.received - row.sent > allowed
        yield "INV-25", row.op, late and _answering(row, rows) * SECOND >= allowed


def _answering(late: Row, rows: Sequence[Row]) -> int:
    """Count the seconds in which its process got other, quick responses from the same broker."""
    beside = (
        row
        for row in rows
        if (row.process, row.node) == (late.process, late.node)
        and late.sent <= row.sent <= row.received <= late.received
    )
    quick = (row for row in beside if row.received - row.sent <= row.max_wait_ms * MS + SECOND)
    return len({row.received // SECOND for row in quick})


CASES = (shown, in_flight, stored_epochs, received)
