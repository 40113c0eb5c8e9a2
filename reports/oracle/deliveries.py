"""What journals mean record by record: each delivery, how long it was locked, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reports.oracle.journals import Row, Rows
from spec.history import NEVER, Outcome, Settle

MS = 1_000_000
_BEST = (Outcome.NONE, Outcome.FAILED, Outcome.UNKNOWN, Outcome.OK)
"""Of several answers about one delivery the last of these counts."""


@dataclass(slots=True, kw_only=True)
class Delivery:
    """One delivery of one record to one member; its names are those of ``deliveries``."""

    log: int
    offset: int
    queue: int
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
    holds_until: int
    ends_by: int
    kind: int = Settle.NONE
    settle_sent: int = NEVER
    settle_answered: int = NEVER
    outcome: int = Outcome.NONE
    error: int = 0
    attempts: int = 0
    freed: int = NEVER
    reign: int = 0
    reign_acquired: int = 0
    reign_settled: int = 0
    blind: int = 0
    blind_acquired: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One record that was produced; ``offset`` is -1 where no answer said where it went."""

    log: int
    offset: int
    producer: int
    sequence: int
    crc: int
    transaction: int


def stored(rows: Rows) -> list[Stored]:
    """Return every record of every batch that was produced."""
    return [
        Stored(
            log=batch.log,
            offset=batch.first + place if batch.first >= 0 else -1,
            producer=batch.producer,
            sequence=batch.sequence + place,
            crc=batch.crc,
            transaction=batch.transaction,
        )
        for batch in rows["produced"]
        for place in range(batch.records)
    ]


def delivered(rows: Rows) -> list[Delivery]:
    """Return every delivery with its end, in the order in which they were seen."""
    acts: dict[tuple[int, int], list[Row]] = {}
    for act in rows["settled"]:
        for offset in range(act.first, act.last + 1):
            acts.setdefault((act.op, offset), []).append(act)
    killed = {row.member: int(row.at) for row in rows["members"] if row.event == "killed"}
    loads, unseen = _by_share(rows["reloads"]), _by_share(rows["blinds"])
    found: list[Delivery] = []
    for one in _acquired(rows["acquired"]):
        mine = acts.get((one.op, one.offset), [])
        _renew(one, [act for act in mine if act.kind == Settle.RENEW])
        _acknowledge(one, [act for act in mine if act.kind not in (Settle.RENEW, Settle.CLOSED)])
        _close(one, [act for act in mine if act.kind == Settle.CLOSED])
        if one.member in killed:
            _die(one, killed[one.member])
        _count(one, loads.get(one.queue, []), unseen.get(one.queue, []))
        found.append(one)
    return sorted(found, key=lambda one: one.acquired)


def _by_share(rows: Sequence[Row]) -> Mapping[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in rows:
        found.setdefault(row.queue, []).append(row)
    return found


def _acquired(ranges: Sequence[Row]) -> Iterator[Delivery]:
    for one in ranges:
        for offset in range(one.first, one.last + 1):
            yield Delivery(
                log=one.log,
                offset=offset,
                queue=one.queue,
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
                # The broker locked it between the request and the answer.
                holds_until=one.sent + one.lock_ms * MS,
                ends_by=one.acquired + one.lock_ms * MS,
            )


def _renew(one: Delivery, renewals: Sequence[Row]) -> None:
    """Prolong the lock: certainly by what was answered OK while it certainly lasted."""
    lock = one.lock_ms * MS
    for act in sorted(renewals, key=lambda act: int(act.sent)):
        if act.outcome != Outcome.OK:
            one.ends_by = NEVER
            continue
        if act.answered <= one.holds_until:
            one.holds_until = max(one.holds_until, act.sent + lock)
        one.ends_by = max(one.ends_by, act.answered + lock)


def _best(acts: Sequence[Row]) -> Row:
    # Of equal ones the last that was written.
    return max(reversed(acts), key=lambda act: (_BEST.index(act.outcome), act.sent))


def _acknowledge(one: Delivery, acts: Sequence[Row]) -> None:
    if not acts:
        return
    best = _best(acts)
    one.attempts = len(acts)
    one.kind, one.outcome, one.error = best.kind, best.outcome, best.error
    one.settle_sent = best.sent
    one.settle_answered = best.answered if best.answered >= 0 else NEVER


def _close(one: Delivery, closings: Sequence[Row]) -> None:
    """End what nobody had acknowledged with the session of its holder."""
    if not closings:
        return
    one.freed = min(int(act.sent) for act in closings)
    if one.kind == Settle.NONE:
        one.kind, one.outcome = Settle.CLOSED, _best(closings).outcome
        one.settle_sent = one.freed


def _die(one: Delivery, at: int) -> None:
    """End a delivery with the connection of a member that was killed."""
    one.freed = min(one.freed, at)
    if one.kind == Settle.NONE:
        one.kind, one.outcome, one.settle_sent = Settle.CLOSED, Outcome.UNKNOWN, at


def _count(one: Delivery, loads: Sequence[Row], unseen: Sequence[Row]) -> None:
    """Count the loads and the unseen answers that were over, and those that may have begun."""
    one.reign = sum(load.until < one.sent for load in loads)
    one.reign_acquired = sum(load.since <= one.acquired for load in loads)
    one.reign_settled = sum(load.since <= one.settle_answered for load in loads)
    one.blind = sum(answer.until < one.sent for answer in unseen)
    one.blind_acquired = sum(answer.since <= one.acquired for answer in unseen)
