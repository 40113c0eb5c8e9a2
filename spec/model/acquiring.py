"""Judging what a fetch acquired: was each record there to be had, and with that count?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from spec.model.cells import NOWHERE, Cell, Cells, Taking, acquired, must_have_ended
from spec.model.judgement import Refusal
from spec.model.log import Log
from spec.model.operations import Fetch, Kind, Mode, Operation, Range
from spec.model.possible import Possible, untagged
from spec.model.settings import Force
from spec.model.table import OVER, State


def judge_acquired(
    possible: Possible, operation: Operation, fetch: Fetch, ranges: Sequence[Range], log: Log
) -> list[Refusal]:
    """Judge the acquired ranges of one response and take them in, right or wrong."""
    refusals = list(_ill_shaped(ranges))
    if refusals:
        ranges = ()
    if ranges:
        refusals.extend(_limits(possible, operation, fetch, ranges, log))
        refusals.extend(_skipped(possible, operation, fetch, ranges, log))
    for taken in ranges:
        refusals.extend(_take(possible, operation, taken))
    if operation.spread:
        refusals.extend(_not_taken(possible, operation, ranges))
    if fetch.mode is Mode.RECORD_LIMIT:
        possible.seen_ahead = max(possible.seen_ahead, log.last)
    if any(taken.deliveries >= _THROTTLED for taken in ranges):
        refusals.extend(_throttled(possible, operation, ranges))
    return refusals


_THROTTLED = 3
"""The first delivery that can be throttled at all, under whatever limit."""


def _ill_shaped(ranges: Sequence[Range]) -> Iterator[Refusal]:
    previous = -1
    for taken in ranges:
        if taken.first > taken.last or taken.first <= previous:
            sentence = f"range {taken.first}-{taken.last} does not come after offset {previous}"
            yield Refusal(rule="ACQ-05", sentence=sentence, first=taken.first, last=taken.last)
        previous = max(previous, taken.last)


# ---------------------------------------------------------------------- each record


def _take(possible: Possible, operation: Operation, taken: Range) -> list[Refusal]:
    refusals: list[Refusal] = []
    sent, received, member = operation.sent, operation.received, operation.member
    force = possible.knobs.over(sent, received)
    first = possible.runs.first
    if taken.first < first:
        refusals.append(_past(possible, taken, min(taken.last, first - 1)))
    if taken.last < first:
        return refusals
    possible.spread(max(taken.first, first), taken.last, sent, received, but=operation.id)
    taking = Taking(member, taken.deliveries, sent, received, (taken.first, taken.last))

    def take(begin: int, end: int, cells: Cells) -> Cells:
        after = [cell for before in cells for cell in _taken(before, operation, taking, force)]
        if not after:
            refusals.append(_refuse(cells, taking, begin, end))
            after = [_as_seen(cells[0], operation, taken.deliveries, force)]
        return untagged(after, operation.id)

    possible.change(taken.first, taken.last, sent, received, take)
    possible.highest = max(possible.highest, taken.last)
    if not possible.reloading_since(operation):
        possible.cached = max(possible.cached, taken.last)
    return refusals


def _taken(cell: Cell, operation: Operation, taking: Taking, force: Force) -> Iterator[Cell]:
    """Yield what a cell is if this fetch has acquired the record: now, or unseen before."""
    supposed = operation.id in cell.ops
    if not supposed:
        now = acquired(cell, taking, force)
        if now is not None:
            yield now
    if not supposed and operation.coupled:
        return
    count = taking.deliveries or 0
    if cell.state is State.ACQUIRED and cell.holder == operation.member:
        if cell.low <= count <= cell.high:
            origin = taking.origin if cell.origin == NOWHERE else cell.origin
            hi = min(cell.hi, operation.received + force.lock_high)
            yield cell._replace(low=count, high=count, hi=hi, origin=origin)
    elif count <= cell.high or cell.state in OVER:
        yield cell


def _as_seen(cell: Cell, operation: Operation, count: int, force: Force) -> Cell:
    """Believe what was seen: after a refusal the record is what the broker said it is."""
    return cell._replace(
        state=State.ACQUIRED,
        low=count,
        high=count,
        kept=min(cell.kept, max(count - 1, 0)),
        holder=operation.member,
        lo=operation.sent + force.lock_low,
        hi=operation.received + force.lock_high,
        why="",
        firm=True,
    )


def _not_taken(
    possible: Possible, operation: Operation, ranges: Sequence[Range]
) -> Iterator[Refusal]:
    for first, last in possible.forget_tag(operation, keep=False):
        if not any(taken.first <= first and last <= taken.last for taken in ranges):
            sentence = f"offsets {first}-{last} were delivered once more than anyone was given them"
            yield Refusal(rule="DLV-20", sentence=sentence, first=first, last=last)


def _past(possible: Possible, taken: Range, last: int) -> Refusal:
    why = possible.why_past(taken.first)
    sentence = f"offsets {taken.first}-{last} were delivered although they are finished"
    return Refusal(rule=why, sentence=sentence, first=taken.first, last=last)


_COUNT_RULES = {
    "ACK-02": "DLV-02",
    "LCK-01": "DLV-03",
    "LCK-18": "DLV-04",
    "LCK-19": "DLV-32",
    "DLV-32": "DLV-32",
}


def _refuse(cells: Cells, taking: Taking, first: int, last: int) -> Refusal:
    member, count, sent = taking.member, taking.deliveries, taking.sent
    free = [cell for cell in cells if cell.state is State.AVAILABLE]
    held = [cell for cell in cells if cell.state is State.ACQUIRED]
    where = f"offsets {first}-{last}" if last > first else f"offset {first}"
    if free:
        low, high = min(c.low for c in free) + 1, max(c.high for c in free) + 1
        due = str(low) if low == high else f"{low} to {high}"
        rule = "DLV-01" if high == 1 else _COUNT_RULES.get(free[0].why, "DLV-20")
        if rule == "DLV-32" and (count or 0) < low:
            rule = "DLV-31"
        sentence = f"{where} came to {member} with delivery count {count}, due was {due}"
    elif held:
        holder = held[0].holder
        rule = "ACQ-21" if holder == member else "ACQ-20"
        until = held[0].lo
        sentence = (
            f"{where} came to {member} by a fetch sent at {sent:g} although {holder} "
            f"holds it until {until:g} at least"
        )
    else:
        over = next((cell for cell in cells if cell.state in OVER), None)
        rule = over.why if over is not None else "DLV-20"
        sentence = f"{where} came to {member} although it is finished"
    return Refusal(rule=rule, sentence=sentence, first=first, last=last)


# ---------------------------------------------------------------------- the response as a whole


def _limits(
    possible: Possible, operation: Operation, fetch: Fetch, ranges: Sequence[Range], log: Log
) -> Iterator[Refusal]:
    total = sum(taken.last - taken.first + 1 for taken in ranges)
    if ranges and fetch.max_records == 0:
        yield Refusal(rule="ACQ-39", sentence=f"{total} offsets came for MaxRecords 0")
    elif fetch.max_records is not None and total > fetch.max_records:
        yield from _too_many(possible, fetch, total, ranges, log)
    if ranges and ranges[-1].last > possible.highest:
        yield from _window(possible, operation, ranges, log)
    if ranges and log.known and ranges[-1].last > log.last:
        sentence = f"offset {ranges[-1].last} was delivered, the log ends at {log.last}"
        yield Refusal(rule="INV-04", sentence=sentence, first=ranges[-1].last)


def _too_many(
    possible: Possible, fetch: Fetch, total: int, ranges: Sequence[Range], log: Log
) -> Iterator[Refusal]:
    most = fetch.max_records or 0
    if fetch.mode is Mode.RECORD_LIMIT:
        sentence = f"{total} offsets came in record-limit mode, MaxRecords was {most}"
        yield Refusal(rule="ACQ-33", sentence=sentence, first=ranges[0].first)
        return
    if not log.known:
        return
    last = ranges[-1]
    begun = max(log.batch_of(last.last)[0], last.first)
    before = total - (last.last - begun + 1)
    # What was delivered before is cut as the leader keeps it, which nobody is told: a new leader
    # finds all records of one state and one count as one batch. The same goes for what a fetch in
    # record-limit mode has left over, as the leader may keep that with what it took.
    new = begun > max(possible.highest, possible.seen_ahead) and last.deliveries == 1
    if before >= most and new:
        sentence = f"a batch was begun after {before} offsets, MaxRecords was {most}"
        yield Refusal(rule="ACQ-30", sentence=sentence, first=begun, last=last.last)


def _window(
    possible: Possible, operation: Operation, ranges: Sequence[Range], log: Log
) -> Iterator[Refusal]:
    sent, received = operation.sent, operation.received
    most = possible.knobs.over(sent, received).max_locks
    newest = ranges[-1]
    # A count above one says that it was acquired before, by a fetch whose answer nobody saw.
    if newest.last - possible.runs.first < most or newest.deliveries > 1:
        return
    start = possible.highest_start(sent, received, operation.id)
    if any(one.kind is Kind.FETCH for one in possible.others(operation.id, 0, newest.last)):
        # What is new to the observer may have been acquired unseen, before a reload took the
        # start offset back.
        start = max(start, possible.highest_ever)
    begun = newest.first
    if log.known:
        begun = max(begun, log.batch_of(newest.last)[0])
    if begun - start >= most:
        sentence = (
            f"offset {begun} was acquired beyond the window of {most} "
            f"that begins at {start} at the highest"
        )
        yield Refusal(rule="ACQ-50", sentence=sentence, first=begun, last=newest.last)


def _skipped(
    possible: Possible, operation: Operation, fetch: Fetch, ranges: Sequence[Range], log: Log
) -> Iterator[Refusal]:
    """Refuse a new record beside which an older one was passed over (ACQ-41, LCK-01)."""
    force = possible.knobs.over(operation.sent, operation.received)
    newest = ranges[-1].last if ranges else -1
    if not log.known or force.may_vanish or newest <= possible.highest:
        return
    for first, last, cells in possible.runs.over(possible.runs.first, possible.highest):
        if any(taken.first <= last and taken.last >= first for taken in ranges):
            continue
        if possible.others(operation.id, first, last):
            continue
        if all(_waits(cell, operation, possible) for cell in cells):
            yield _passed_over(fetch, newest, first, last, cells)
            return


def _passed_over(fetch: Fetch, newest: int, first: int, last: int, cells: Cells) -> Refusal:
    beside = f"{fetch.member} got new offset {newest} while {first}-{last}"
    if all(cell.state is State.ACQUIRED for cell in cells):
        ended = max(cell.hi for cell in cells)
        sentence = f"{beside} did not come, whose lock ended at {ended:g} at the latest"
        return Refusal(rule="LCK-01", sentence=sentence, first=first, last=last)
    sentence = f"{beside} had been available since before the fetch"
    return Refusal(rule="ACQ-41", sentence=sentence, first=first, last=last)


def _waits(cell: Cell, operation: Operation, possible: Possible) -> bool:
    """Tell whether a cell had been available before a fetch, and not to be throttled either."""
    sent, held = operation.sent, cell.state is State.ACQUIRED
    # What the end of a lock made of the record was up to the limit at that time.
    since = min(sent, cell.lo - possible.slack.early_ms) if held else sent
    limit = possible.knobs.over(since, operation.received).limit_low
    calm = max(2, ceil(limit / 2)) if possible.release.throttling else limit
    if held:
        return cell.high < min(calm, limit) and must_have_ended(cell, sent, possible.slack)
    return cell.state is State.AVAILABLE and cell.hi < sent and 0 < cell.high < calm


def _throttled(
    possible: Possible, operation: Operation, ranges: Sequence[Range]
) -> Iterator[Refusal]:
    """Refuse more records near the delivery limit than throttling hands out (since 4.2)."""
    force = possible.knobs.over(operation.sent, operation.received)
    limit = force.limit_high
    if not possible.release.throttling or force.limit_low != limit or limit <= 2:
        return
    total = sum(taken.last - taken.first + 1 for taken in ranges)
    if total > 1 and any(taken.deliveries == limit for taken in ranges):
        sentence = f"a record on its last delivery ({limit}) came with {total - 1} others"
        yield Refusal(rule="DLV-23", sentence=sentence, first=ranges[0].first)
        return
    calm = max(2, ceil(limit / 2))
    for taken in ranges:
        if taken.deliveries > calm:
            yield from _halved(possible, taken, taken.deliveries - calm)


def _halved(possible: Possible, taken: Range, times: int) -> Iterator[Refusal]:
    given: dict[tuple[int, int], int] = {}
    for first, last, cells in possible.runs.over(max(taken.first, possible.runs.first), taken.last):
        if cells[0].origin[0] >= 0:
            given[cells[0].origin] = given.get(cells[0].origin, 0) + last - first + 1
    for origin, size in given.items():
        most = max(1, ceil((origin[1] - origin[0] + 1) / 2**times))
        if size > most:
            sentence = (
                f"{size} records of the batch {origin[0]}-{origin[1]} came for the "
                f"{taken.deliveries}th time together, at most {most} are due"
            )
            yield Refusal(rule="DLV-21", sentence=sentence, first=taken.first, last=taken.last)
