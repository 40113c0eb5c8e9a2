"""What journals mean record by record: each delivery, how long it was locked, and how it ended."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reports.oracle.journals import Row, Rows
from spec.history import NEVER, AckType, Outcome

MS = 1_000_000
_BEST = (Outcome.NONE, Outcome.FAILED, Outcome.UNKNOWN, Outcome.OK)
"""Of several responses about one delivery the last of these counts."""


@dataclass(slots=True, kw_only=True)
class Delivery:
    """One delivery of one record to one member; its names are those of ``deliveries``."""

    log: int
    offset: int
    share_partition: int
    member: int
    op: int
    sent: int
    acquired: int
    count: int
    lock_ms: int
    after: int
    present: bool
    producer: int
    sequence: int
    crc: int
    holds_until: int = 0
    ends_by: int = 0
    kind: int = AckType.NONE
    ack_sent: int = NEVER
    ack_received: int = NEVER
    outcome: int = Outcome.NONE
    error: int = 0
    attempts: int = 0
    freed: int = NEVER
    node: int = -1
    loaded: int = 0
    oldest: int = 0
    loads_before_fetch: int = 0
    loads_by_acquire: int = 0
    loads_by_ack: int = 0
    unseen_before_fetch: int = 0
    unseen_by_acquire: int = 0
    unseen_meanwhile: int = 0
    kept_until: int = NEVER
    produced: int = 0
    died: int = NEVER
    acts: Sequence[Row] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    log: int
    offset: int
    producer: int
    sequence: int
    crc: int
    transaction: int
    sent: int


def stored(rows: Rows) -> list[Stored]:
    return [
        Stored(
            log=batch.log,
            offset=batch.first + place if batch.first >= 0 else -1,
            producer=batch.producer,
            sequence=batch.sequence + place,
            crc=batch.crc,
            transaction=batch.transaction,
            sent=batch.sent,
        )
        for batch in rows["produced"]
        for place in range(batch.records)
    ]


def delivered(rows: Rows) -> list[Delivery]:
    # One response may hold the same offset of several logs.
    acts: dict[tuple[int, int, int], list[Row]] = {}
    for act in rows["acknowledged"]:
        for offset in range(act.first, act.last + 1):
            acts.setdefault((act.op, act.log, offset), []).append(act)
    killed = {row.member: int(row.at) for row in rows["members"] if row.event == "killed"}
    loads, unseen = _by_share(rows["reloads"]), _by_share(rows["unseen_responses"])
    locks = _by_share(rows["locks"])
    nodes = {row.op: int(row.node) for row in rows["operations"]}
    stored_at = {(record.log, record.offset): record.sent for record in stored(rows)}
    starts = _starts(rows)
    found: list[Delivery] = []
    for one in _acquired(rows["acquired"]):
        mine = acts.get((one.op, one.log, one.offset), [])
        others = [row for row in locks.get(one.share_partition, []) if row.until >= one.sent]
        _lock(one, [row.lock_ms for row in others if row.since <= one.acquired])
        _renew(one, [act for act in mine if act.kind == AckType.RENEW], [r.lock_ms for r in others])
        _acknowledge(one, [act for act in mine if act.kind not in (AckType.RENEW, AckType.CLOSED)])
        _close(one, [act for act in mine if act.kind == AckType.CLOSED])
        one.acts, one.died = mine, killed.get(one.member, NEVER)
        if one.died < NEVER:
            _die(one, one.died)
        one.node = nodes.get(one.op, -1)
        its = loads.get(one.share_partition, [])
        _count(one, [load for load in its if one.node == -1 or load.node in (-1, one.node)])
        one.produced = stored_at.get((one.log, one.offset), 0)
        _count_unseen(one, unseen.get(one.share_partition, []))
        moved = (at for at, start in starts.get(one.log, []) if start > one.offset)
        one.kept_until = min(moved, default=NEVER)
        found.append(one)
    first: dict[int, set[int]] = {}
    for one in found:
        if not one.loads_by_acquire:
            first.setdefault(one.share_partition, set()).add(one.node)
    # A broker that never loaded it before has no older state, unless it may have led first.
    for one in found:
        led = first.get(one.share_partition, {one.node})
        one.oldest = one.oldest if one.loads_before_fetch or one.node in led else one.loaded
    return sorted(found, key=lambda one: one.acquired)


def _by_share(rows: Sequence[Row]) -> Mapping[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row.share_partition, []).append(row)
    return found


def _acquired(ranges: Sequence[Row]) -> Iterator[Delivery]:
    for one in ranges:
        for offset in range(one.first, one.last + 1):
            yield Delivery(
                log=one.log,
                offset=offset,
                share_partition=one.share_partition,
                member=one.member,
                op=one.op,
                sent=one.sent,
                acquired=one.acquired,
                count=one.count,
                lock_ms=one.lock_ms,
                after=one.after,
                present=one.present,
                producer=one.producer,
                sequence=one.sequence + offset - one.first if one.present else -1,
                crc=one.crc,
            )


def _lock(one: Delivery, others: Sequence[int]) -> None:
    one.holds_until = one.sent + min([one.lock_ms, *others]) * MS
    one.ends_by = one.acquired + max([one.lock_ms, *others]) * MS


def _renew(one: Delivery, renewals: Sequence[Row], others: Sequence[int]) -> None:
    shortest, longest = (end([one.lock_ms, *others]) * MS for end in (min, max))
    for act in sorted(renewals, key=lambda act: int(act.sent)):
        if act.outcome != Outcome.OK:
            one.ends_by = NEVER
            continue
        if act.received <= one.holds_until:
            one.holds_until = max(one.holds_until, act.sent + shortest)
        one.ends_by = max(one.ends_by, act.received + longest)


def _best(acts: Sequence[Row]) -> Row:
    # Of equal ones the last that was written.
    return max(reversed(acts), key=lambda act: (_BEST.index(act.outcome), act.sent))


def _acknowledge(one: Delivery, acts: Sequence[Row]) -> None:
    if not acts:
        return
    best = _best(acts)
    one.attempts = len(acts)
    one.kind, one.outcome, one.error = best.kind, best.outcome, best.error
    one.ack_sent = best.sent
    one.ack_received = best.received if best.received >= 0 else NEVER


def _close(one: Delivery, closings: Sequence[Row]) -> None:
    if not closings:
        return
    one.freed = min(int(act.sent) for act in closings)
    if one.kind == AckType.NONE:
        one.kind, one.outcome = AckType.CLOSED, _best(closings).outcome
        one.ack_sent = one.freed
        one.ack_received = max(max(int(act.sent), int(act.received)) for act in closings)


def _die(one: Delivery, at: int) -> None:
    one.freed = min(one.freed, at)
    if one.kind == AckType.NONE:
        one.kind, one.outcome = AckType.CLOSED, Outcome.UNKNOWN
        one.ack_sent = one.ack_received = at


def _starts(rows: Rows) -> Mapping[int, list[tuple[int, int]]]:
    """Return for each log where its start may have been, and from when on.

    Where admins saw no start but those that deletions asked for, each came by its deletion. What
    retention moves was moved at any time since the admin who looked before.
    """
    moves: dict[int, list[tuple[int, int]]] = {}
    looks: dict[int, list[tuple[int, int]]] = {}
    logs = {row.share_partition: row.log for row in rows["share_partitions"]}
    for row in rows["deletions"]:
        moves.setdefault(row.log, []).append((row.sent, row.before))
    for row in rows["offsets"]:
        looks.setdefault(logs[row.share_partition], []).append((row.sent, row.log_start))
    for log, seen in looks.items():
        asked = {before for _, before in moves.get(log, [])}
        seen.sort()
        first = max(0, seen[0][1])
        all_asked = all(start <= first or start in asked for _, start in seen)
        since = 0
        for sent, start in seen[:1] if all_asked else seen:
            moves.setdefault(log, []).append((since, start))
            since = sent
    return {log: list(_rising(sorted(some))) for log, some in moves.items()}


def _rising(moves: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    highest = -1
    for at, start in moves:
        if start > highest:
            yield at, start
            highest = start


def _count_unseen(one: Delivery, unseen: Sequence[Row]) -> None:
    one.unseen_before_fetch = sum(response.until < one.sent for response in unseen)
    begun = [response for response in unseen if response.since <= one.acquired]
    one.unseen_by_acquire = len(begun)
    one.unseen_meanwhile = sum(response.until >= one.produced for response in begun)


def _count(one: Delivery, loads: Sequence[Row]) -> None:
    one.loads_before_fetch = sum(load.until < one.sent for load in loads)
    one.loads_by_acquire = sum(load.since <= one.acquired for load in loads)
    begins = [0, *sorted(int(load.since) for load in loads)]
    one.loaded, one.oldest = begins[one.loads_by_acquire], begins[one.loads_before_fetch]
    one.loads_by_ack = sum(load.since <= one.ack_received for load in loads)
