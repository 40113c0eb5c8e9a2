"""Rules about what is shown and stored of a share-partition, and about requests."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from reports.oracle.evidence import Case, Evidence, Position, Share, grouped
from reports.oracle.journals import Row
from reports.oracle.lives import MS, SECOND, overtaken
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
            if look.leader_epoch >= 0 and look.spso >= 0:
                yield "INV-22", share_partition, look.leader_epoch < before.leader_epoch
        for look, later in pairwise(share.looks):
            if look.lag >= 0 and look.spso >= 0:
                yield "INV-38", share_partition, _wrong_lag(share, look, later.log_end, high)
        last = [look for look in share.looks if look.phase in ("drain", "quiet")]
        for look in last[-1:]:
            same = [one.sent for one in last if (one.spso, one.lag) == (look.spso, look.lag)]
            long = look.received - same[0] > share.row.lock_ms * MS + 30 * SECOND
            stands = look.lag > 0 and long and len(same) >= 5
            if look.lag == 0 or (look.lag < 0 and look.spso >= look.log_end) or stands:
                yield "INV-24", share_partition, stands


def _highest(records: Sequence[list[Position]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    acquired = ((at.now.acquired // TICK, at.now.offset) for life in records for at in life)
    for tick, offset in sorted(acquired):
        if not found or offset > found[-1][1]:
            found.append((tick, offset))
    return found


def _wrong_lag(share: Share, look: Row, end_after: int, high: list[tuple[int, int]]) -> bool:
    if look.lag > end_after - look.spso:
        return True
    if (
        share.unseen_responses
        or share.row.committed_only
        or share.loads
        or share.log_start > share.row.first
    ):
        return False
    reached = max((offset for at, offset in high if at <= (look.received // TICK)), default=None)
    return reached is not None and look.lag < look.log_end - max(reached + 1, look.spso)


def in_flight(evidence: Evidence) -> Iterator[Case]:
    """INV-17, INV-20: how much is in flight, and what the start offset passes.

    Both are judged from one load of a share-partition to the next.
    """
    for share_partition, share in evidence.partitions.items():
        acquired, held, first = _by_state(
            evidence.lives.get(share_partition, []), bool(share.loads)
        )
        known = sorted(
            {(tick, state) for some in (acquired, held) for state in some for tick in some[state]}
        )
        shown: dict[int, int] = {}
        for look in share.looks:
            tick = look.received // TICK
            shown[tick] = max(look.spso, shown.get(tick, look.spso))
        rows = {(tick, state, False): -1 for tick, state in known}
        for tick, spso in shown.items():
            key = (tick, _state_at(tick, known), True) if share.loads else (tick, _ONLY, False)
            rows[key] = spso
        room = share.row.window + share.row.batch
        for (tick, state, _), spso in rows.items():
            high = max((o for at, o in acquired.get(state, {}).items() if at <= tick), default=None)
            low = min((o for at, o in held.get(state, {}).items() if at > tick), default=None)
            if low is not None and high is not None and high >= low:
                yield "INV-17", share_partition, high - low + 1 > room
            # What is shown is stored, and that may be what was refused at an earlier delivery.
            low = min((o for at, o in first.get(state, {}).items() if at > tick), default=None)
            if low is not None and spso > 0:
                yield "INV-20", share_partition, low < spso


State = tuple[int, int]
"""A state of a share-partition: the broker whose memory has it, and how many loads came before."""
_NONE, _ONLY = (-2, -2), (0, 0)
"""What belongs to no state for certain, and the one state of what was never loaded again."""
Offsets = dict[State, dict[int, int]]  # for each state an offset for some ticks


def _by_state(lives: Sequence[list[Position]], loaded: bool) -> tuple[Offsets, Offsets, Offsets]:
    acquired, held, first = (Offsets(), Offsets(), Offsets())
    for at in (at for life in lives for at in life):
        now = at.now
        state = (now.node, now.loads_before_fetch) if loaded else _ONLY
        highest, tick = acquired.setdefault(state, {}), now.acquired // TICK
        highest[tick] = max(now.offset, highest.get(tick, now.offset))
        if now.kind in (AckType.ACCEPT, AckType.REJECT) and at.proven and not overtaken(at):
            for some in (held,) if at.earlier else (held, first):
                lowest, tick = some.setdefault(state, {}), now.ack_sent // TICK
                lowest[tick] = min(now.offset, lowest.get(tick, now.offset))
    return acquired, held, first


def _state_at(tick: int, known: Sequence[tuple[int, State]]) -> State:
    before, after = bisect_left(known, (tick,)), bisect_left(known, (tick + 1,))
    if not before or after == len(known) or known[before - 1][1] != known[after][1]:
        return _NONE
    return known[after][1]


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
    beside = (
        row
        for row in rows
        if (row.process, row.node) == (late.process, late.node)
        and late.sent <= row.sent <= row.received <= late.received
    )
    quick = (row for row in beside if row.received - row.sent <= row.max_wait_ms * MS + SECOND)
    return len({row.received // SECOND for row in quick})


CASES = (shown, in_flight, stored_epochs, received)
