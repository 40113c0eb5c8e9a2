"""What each observation of a share-partition must be: could the leader say that, and what follows?

A fetch acquired ranges, an acknowledgement was answered, or a start offset was shown.
"""

from collections.abc import Iterator, Sequence
from math import ceil

from spec.model.cells import NOWHERE, Cell, Cells, Taking, acquired, apply, may_end, must_have_ended
from spec.model.log import Log
from spec.model.operations import (
    Acknowledge,
    Error,
    Fetch,
    Kind,
    Mode,
    Operation,
    Piece,
    Range,
    Refusal,
    shares_a_border,
)
from spec.model.possible import Possible, untagged
from spec.model.runs import END
from spec.model.settings import Force
from spec.model.table import OVER, Event, State


def judge_acquired(
    possible: Possible, operation: Operation, fetch: Fetch, ranges: Sequence[Range], log: Log
) -> list[Refusal]:
    refusals = list(_ill_shaped(ranges))
    if refusals:
        ranges = ()
    if ranges:
        refusals.extend(_limits(possible, operation, fetch, ranges, log))
        refusals.extend(_skipped(possible, operation, fetch, ranges, log))
    for taken in ranges:
        refusals.extend(_take(possible, operation, taken))
    if operation.spread:
        for first, last in possible.forget_tag(operation, keep=False):
            if not any(taken.first <= first and last <= taken.last for taken in ranges):
                sentence = (
                    f"offsets {first}-{last} were delivered once more than anyone was given them"
                )
                refusals.append(Refusal("DLV-20", sentence, first, last))
    if fetch.mode is Mode.RECORD_LIMIT:
        possible.seen_ahead = max(possible.seen_ahead, log.last)
    if any(taken.deliveries >= _THROTTLED for taken in ranges):
        refusals.extend(_throttled(possible, operation, ranges))
    return refusals


_THROTTLED = 3  # The first delivery that can be throttled at all, under whatever limit.


def _ill_shaped(ranges: Sequence[Range]) -> Iterator[Refusal]:
    previous = -1
    for taken in ranges:
        if taken.first > taken.last or taken.first <= previous:
            sentence = f"range {taken.first}-{taken.last} does not come after offset {previous}"
            yield Refusal("ACQ-05", sentence, taken.first, taken.last)
        previous = max(previous, taken.last)


# ---------------------------------------------------------------------- each record


def _take(possible: Possible, operation: Operation, taken: Range) -> list[Refusal]:
    refusals: list[Refusal] = []
    sent, received, member = operation.sent, operation.received, operation.member
    force = possible.knobs.over(sent, received)
    first = possible.runs.first
    if taken.first < first:
        last = min(taken.last, first - 1)
        sentence = f"offsets {taken.first}-{last} were delivered although they are finished"
        refusals.append(Refusal(possible.why_past(taken.first), sentence, taken.first, last))
    if taken.last < first:
        return refusals
    taking = Taking(member, taken.deliveries, sent, received, (taken.first, taken.last))

    def take(begin: int, end: int, cells: Cells) -> Cells:
        after = [cell for before in cells for cell in _taken(before, operation, taking, force)]
        if not after:
            refusals.append(_refuse(cells, taking, begin, end))
            after = [_as_seen(cells[0], operation, taken.deliveries, force)]
        return untagged(after, operation.id)

    possible.within(operation, taken.first, taken.last, take)
    possible.highest = max(possible.highest, taken.last)
    if not possible.reloading_since(operation):
        possible.cached = max(possible.cached, taken.last)
    return refusals


def _taken(cell: Cell, operation: Operation, taking: Taking, force: Force) -> Iterator[Cell]:
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
    return Refusal(rule, sentence, first, last)


# ---------------------------------------------------------------------- the response as a whole


def _limits(
    possible: Possible, operation: Operation, fetch: Fetch, ranges: Sequence[Range], log: Log
) -> Iterator[Refusal]:
    total = sum(taken.last - taken.first + 1 for taken in ranges)
    if ranges and fetch.max_records == 0:
        yield Refusal("ACQ-39", f"{total} offsets came for MaxRecords 0")
    elif fetch.max_records is not None and total > fetch.max_records:
        yield from _too_many(possible, fetch, total, ranges, log)
    if ranges and ranges[-1].last > possible.highest:
        yield from _window(possible, operation, ranges, log)
    if ranges and log.known and ranges[-1].last > log.last:
        sentence = f"offset {ranges[-1].last} was delivered, the log ends at {log.last}"
        yield Refusal("INV-04", sentence, ranges[-1].last)


def _too_many(
    possible: Possible, fetch: Fetch, total: int, ranges: Sequence[Range], log: Log
) -> Iterator[Refusal]:
    most = fetch.max_records or 0
    if fetch.mode is Mode.RECORD_LIMIT:
        sentence = f"{total} offsets came in record-limit mode, MaxRecords was {most}"
        yield Refusal("ACQ-33", sentence, ranges[0].first)
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
        yield Refusal("ACQ-30", sentence, begun, last.last)


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
        yield Refusal("ACQ-50", sentence, begun, newest.last)


def _skipped(
    possible: Possible, operation: Operation, fetch: Fetch, ranges: Sequence[Range], log: Log
) -> Iterator[Refusal]:
    """Refuse a new record beside which an older one was passed over (ACQ-41, LCK-01)."""
    newest = ranges[-1].last if ranges else -1
    if not log.known or newest <= possible.highest:
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
        return Refusal("LCK-01", sentence, first, last)
    sentence = f"{beside} had been available since before the fetch"
    return Refusal("ACQ-41", sentence, first, last)


def _waits(cell: Cell, operation: Operation, possible: Possible) -> bool:
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
    force = possible.knobs.over(operation.sent, operation.received)
    limit = force.limit_high
    if not possible.release.throttling or force.limit_low != limit or limit <= 2:
        return
    total = sum(taken.last - taken.first + 1 for taken in ranges)
    if total > 1 and any(taken.deliveries == limit for taken in ranges):
        sentence = f"a record on its last delivery ({limit}) came with {total - 1} others"
        yield Refusal("DLV-23", sentence, ranges[0].first)
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
            yield Refusal("DLV-21", sentence, taken.first, taken.last)


def judge_accepted(possible: Possible, operation: Operation, ack: Acknowledge) -> list[Refusal]:
    if operation.fault is not None:
        return [operation.fault]
    if len(ack.batches) > 1 and shares_a_border(ack.batches):
        sentence = "two batches that settle one offset both were accepted"
        first, last = ack.batches[0].first, ack.batches[-1].last
        if last >= possible.highest_start(operation.sent, operation.received, operation.id):
            return [Refusal("ACK-20", sentence, first, last)]
    refusals: list[Refusal] = []
    for piece in operation.pieces:
        refusals.extend(_accept(possible, operation, piece))
    return refusals


def _accept(possible: Possible, operation: Operation, piece: Piece) -> list[Refusal]:
    refusals: list[Refusal] = []
    sent, received = operation.sent, operation.received
    force = possible.knobs.over(sent, received)
    start: int | None = None
    # An offset below the start is finished, unless a reload brought it back before the response.
    restless = possible.reloading_since(operation)

    def accepted(first: int, last: int, cells: Cells) -> Cells:
        nonlocal start
        after, foreign = _settled(cells, operation, piece.event, force)
        if foreign:
            if start is None:
                start = possible.highest_start(sent, received, operation.id)
            if first < start:
                after.extend(cell for cell in foreign if cell.state in OVER or restless)
        if not after:
            refusals.append(
                _unowned(cells, operation, piece._replace(first=first, last=last), possible)
            )
            after = list(cells)
        return untagged(after, operation.id)

    possible.within(operation, piece.first, piece.last, accepted)
    return refusals


def _settled(
    cells: Cells, operation: Operation, event: Event, force: Force
) -> tuple[list[Cell], list[Cell]]:
    after: list[Cell] = []
    foreign: list[Cell] = []
    sent, received = operation.sent, operation.received
    for cell in cells:
        if operation.id in cell.ops or not operation.coupled:
            after.append(cell)
        if operation.id in cell.ops:
            continue
        if cell.state is State.ACQUIRED and cell.holder == operation.member:
            if event is not Event.RENEW or True in force.renewal:
                after.extend(apply(cell, event, sent, received, force))
        else:
            foreign.append(cell)
    return after, foreign


def _unowned(cells: Cells, operation: Operation, piece: Piece, possible: Possible) -> Refusal:
    first, last, member, verb = piece.first, piece.last, operation.member, piece.event.value
    where = f"offsets {first}-{last}" if last > first else f"offset {first}"
    rule, because = _grounds(cells, operation, piece.event, first > possible.highest)
    sentence = f"{verb} of {where} by {member} was answered without error although {because}"
    return Refusal(rule, sentence, first, last)


def _grounds(cells: Cells, operation: Operation, event: Event, unseen: bool) -> tuple[str, str]:
    renewing = event is Event.RENEW
    held = [cell for cell in cells if cell.state is State.ACQUIRED]
    if any(cell.holder == operation.member for cell in held):
        return "LCK-36", "renewals are switched off"
    if held:
        return "LCK-30" if renewing else "ACK-29", f"{held[0].holder} holds it"
    if unseen:
        return "ACK-32", "it was never acquired"
    if any(cell.state in OVER for cell in cells):
        return "LCK-31" if renewing else "ACK-31", "it is settled"
    if any(cell.why == "ACK-02" for cell in cells):
        return "LCK-31" if renewing else "ACK-30", "it was released"
    return "LCK-29" if renewing else "LCK-03", "its lock has ended"


# ---------------------------------------------------------------------- refused acknowledgements


def judge_refused(
    possible: Possible, operation: Operation, ack: Acknowledge, error: Error, start_seen: int
) -> list[Refusal]:
    fault = operation.fault
    if fault is not None:
        if error is Error.INVALID_REQUEST:
            return []
        sentence = f"{fault.sentence}, but was answered with {error.name}"
        return [fault._replace(sentence=sentence)]
    if not ack.batches:
        return [Refusal("ACK-46", f"no batches were answered with {error.name}")]
    if ack.batches[-1].last < start_seen:
        first, last = ack.batches[0].first, ack.batches[-1].last
        where = f"{first}-{last} lie below the start offset {start_seen}"
        return [Refusal("ACK-34", f"{where}, the response was {error.name}", first, last)]
    culprits = [bad for piece in operation.pieces for bad in _culprits(possible, operation, piece)]
    return list(_blame(possible, operation, ack, error, culprits))


def _culprits(
    possible: Possible, operation: Operation, piece: Piece
) -> Iterator[tuple[int, int, Cells]]:
    sent, received = operation.sent, operation.received
    low = max(piece.first, possible.runs.first)
    if piece.first < low:
        yield piece.first, min(piece.last, low - 1), ()
    if piece.last < low:
        return
    possible.spread(low, piece.last, sent, received, but=operation.id)
    force = possible.knobs.over(sent, received)
    for first, last, cells in possible.runs.over(low, piece.last):
        if any(_may_fail(cell, operation, piece.event, possible, force) for cell in cells):
            yield first, last, cells


def _may_fail(
    cell: Cell, operation: Operation, event: Event, possible: Possible, force: Force
) -> bool:
    if operation.id in cell.ops:
        return False
    if cell.state is not State.ACQUIRED or cell.holder != operation.member:
        return True
    if may_end(cell, operation.received, possible.slack):
        return True
    return event is Event.RENEW and False in force.renewal


def _blame(
    possible: Possible,
    operation: Operation,
    ack: Acknowledge,
    error: Error,
    culprits: list[tuple[int, int, Cells]],
) -> Iterator[Refusal]:
    first, last = ack.batches[0].first, ack.batches[-1].last
    sent, received = operation.sent, operation.received
    if not culprits and not shares_a_border(ack.batches):
        rule = _denied(operation)
        until = f"{operation.member} held {first}-{last} all the time from {sent:g} to {received:g}"
        sentence = f"{until}, but was answered with {error.name}"
        yield Refusal(rule, sentence, first, last)
        return
    beyond = [run for run in culprits if run[1] > possible.cached_since(operation)]
    changing = {Kind.FETCH, Kind.RELOAD}
    fetching = any(one.kind in changing for one in possible.others(operation.id, 0, END))
    if error is Error.INVALID_REQUEST and not beyond and not fetching:
        sentence = f"{first}-{last} were all acquired once, the response was INVALID_REQUEST"
        yield Refusal("ACK-30", sentence, first, last)
    unseen = len(beyond) == len(culprits) and all(run[0] > possible.highest for run in beyond)
    if error is Error.INVALID_RECORD_STATE and beyond and unseen and not fetching:
        sentence = (
            f"{beyond[0][0]}-{last} was never acquired, the response was INVALID_RECORD_STATE"
        )
        yield Refusal("ACK-32", sentence, first, last)


def _denied(operation: Operation) -> str:
    """Return the rule that a holder's well-formed acknowledgement rests on."""
    if any(piece.event is Event.RENEW for piece in operation.pieces):
        return "LCK-21"
    return "ACK-27" if len(operation.pieces) > 1 else "LCK-16"


def take_refusal(possible: Possible, operation: Operation) -> None:
    possible.forget_tag(operation, keep=False)
    runs = [
        run
        for piece in operation.pieces
        for run in possible.runs.over(max(piece.first, possible.runs.first), piece.last)
    ]
    rivals = possible.others(operation.id, operation.first, min(END, int(operation.last)))
    lone = len(runs) == 1 and runs[0][0] == runs[0][1]
    if not lone or any(one.kind is Kind.ACK for one in rivals):
        return
    if operation.pieces[0].event is Event.RENEW:
        return

    def lost(_first: int, _last: int, cells: Cells) -> Cells:
        left = [
            cell
            for cell in cells
            if cell.state is not State.ACQUIRED or cell.holder != operation.member
        ]
        return tuple(left) or cells

    possible.change(runs[0][0], runs[0][1], operation.sent, operation.received, lost)


def overdue(possible: Possible, now: float) -> list[tuple[int, int]]:
    late: list[tuple[int, int]] = []
    for first, last, cells in possible.runs.over(possible.runs.first, possible.highest):
        if not possible.others(0, first, last) and all(
            _is_free(cell, now, possible) for cell in cells
        ):
            late.append((first, last))
    return late


def _is_free(cell: Cell, now: float, possible: Possible) -> bool:
    if cell.state is State.AVAILABLE:
        return cell.hi <= now
    limit = possible.knobs.over(min(cell.lo - possible.slack.early_ms, now), now).limit_low
    ended = cell.state is State.ACQUIRED and must_have_ended(cell, now, possible.slack)
    return ended and cell.high < limit


def start_seen(possible: Possible, look: Operation, offset: int, before: int) -> list[Refusal]:
    if offset < 0:
        return []
    refusals: list[Refusal] = []
    if offset < before:
        sentence = f"the start offset went back from {before} to {offset}"
        refusals.append(Refusal("OFF-18", sentence, offset))
    highest = max(look.start, possible.highest_start(look.sent, look.received))
    if offset > highest:
        sentence = f"the start offset was {offset}, record {highest} is not finished"
        refusals.append(Refusal("OFF-17", sentence, highest, offset - 1))
    return refusals
