"""Judging what others show of a share-partition: start offsets, durable state, dead letters."""

from __future__ import annotations

from collections.abc import Sequence

from spec.model.cells import Cell, Cells, may_end, must_have_ended
from spec.model.cells import expired as lock_ended
from spec.model.durable import StateBatch
from spec.model.judgement import Refusal
from spec.model.operations import Operation
from spec.model.possible import Change, Possible
from spec.model.runs import Runs
from spec.model.table import OVER, TERMINAL, State

__all__ = ["Change", "dead_lettered", "expired", "overdue", "persisted", "start_seen"]


def expired(
    possible: Possible, look: Operation, member: str, first: int, last: int
) -> list[Refusal]:
    """Refuse the end of a lock that cannot have ended yet, and take in one that has."""
    refusals: list[Refusal] = []
    slack, knobs = possible.slack, possible.knobs
    possible.spread(max(first, possible.runs.first), last, look.sent, look.received)

    def end(low: int, high: int, cells: Cells) -> Cells:
        after = [
            cell for cell in cells if cell.state is not State.ACQUIRED or cell.holder != member
        ]
        held = [cell for cell in cells if cell not in after]
        for cell in held:
            if may_end(cell, look.received, slack):
                after.extend(lock_ended(cell, look.received, slack, knobs))
        if not after:
            sentence = (
                f"the lock of {member} on {low}-{high} ended at {look.received:g}, "
                f"it runs until {held[0].lo:g} at least"
            )
            refusals.append(Refusal(rule="LCK-02", sentence=sentence, first=low, last=high))
            for cell in held:
                after.extend(lock_ended(cell, look.received, slack, knobs))
        return tuple(dict.fromkeys(after))

    possible.change(first, last, look.sent, look.received, end)
    return refusals


def overdue(possible: Possible, now: float) -> list[tuple[int, int]]:
    """Return the ranges that nobody can hold any more although they are not finished."""
    late: list[tuple[int, int]] = []
    for first, last, cells in possible.runs.over(possible.runs.first, possible.highest):
        if not possible.others(0, first, last) and all(
            _is_free(cell, now, possible) for cell in cells
        ):
            late.append((first, last))
    return late


def _is_free(cell: Cell, now: float, possible: Possible) -> bool:
    if cell.state is State.AVAILABLE:
        return cell.hi <= now and not possible.knobs.over(now, now).may_vanish
    limit = possible.knobs.over(min(cell.lo - possible.slack.early_ms, now), now).limit_low
    ended = cell.state is State.ACQUIRED and must_have_ended(cell, now, possible.slack)
    return ended and cell.high < limit


def start_seen(possible: Possible, look: Operation, offset: int, before: int) -> list[Refusal]:
    """Refuse a start offset that went back, or that lies beyond an unfinished record."""
    if offset < 0:
        return []
    refusals: list[Refusal] = []
    if offset < before:
        sentence = f"the start offset went back from {before} to {offset}"
        refusals.append(Refusal(rule="OFF-18", sentence=sentence, first=offset))
    highest = max(look.start, possible.highest_start(look.sent, look.received))
    if offset > highest:
        sentence = f"the start offset was {offset}, record {highest} is not finished"
        refusals.append(Refusal(rule="OFF-17", sentence=sentence, first=highest, last=offset - 1))
    return refusals


def persisted(
    possible: Possible, look: Operation, start: int, batches: Sequence[StateBatch]
) -> list[Refusal]:
    """Refuse durable state that no history of the records explains."""
    refusals = start_seen(possible, look, start, 0)
    first = max(start, possible.runs.first)
    stored = [batch for batch in batches if batch.last >= first]
    cursor = first
    for batch in sorted(stored, key=lambda one: one.first):
        low = max(batch.first, first)
        if cursor < low:
            refusals.extend(_absent(possible, look, cursor, low - 1))
        refusals.extend(_stored(possible, look, low, batch))
        cursor = batch.last + 1
    if cursor <= possible.highest:
        refusals.extend(_absent(possible, look, cursor, possible.highest))
    return refusals


def _absent(possible: Possible, look: Operation, first: int, last: int) -> list[Refusal]:
    """Judge offsets without an entry: nothing of them may have to be durable."""
    refusals: list[Refusal] = []
    raw = possible.runs.copy()
    possible.spread(first, last, look.sent, look.received)

    def missing(low: int, high: int, cells: Cells) -> Cells:
        left = tuple(cell for cell in cells if not _must_be_stored(cell))
        before = _before(look, low, cells)
        if not left and all(_must_be_stored(cell) for cell in before):
            rule = "PER-39" if cells[0].state in OVER else "PER-41"
            sentence = f"{low}-{high} are settled and answered, the durable state lacks them"
            refusals.append(Refusal(rule=rule, sentence=sentence, first=low, last=high))
        return left if left and _calm(look, raw, low, high) else cells

    possible.change(first, last, look.sent, look.received, missing)
    return refusals


def _before(look: Operation, offset: int, now: Cells) -> Cells:
    if look.runs is None or offset < look.runs.first:
        return now
    return look.runs[offset]


def _calm(look: Operation, raw: Runs[Cells], first: int, last: int) -> bool:
    """Tell whether nothing was learnt of a range while a look was under way.

    A look shows one moment of its interval. Where something changed within it, nobody knows which
    side of the change was shown, and it proves nothing.
    """
    return look.runs is None or list(look.runs.over(first, last)) == list(raw.over(first, last))


def _must_be_stored(cell: Cell) -> bool:
    if cell.state in OVER:
        return cell.firm and cell.why != "OFF-20"
    return cell.kept > 0


def _stored(possible: Possible, look: Operation, first: int, batch: StateBatch) -> list[Refusal]:
    refusals: list[Refusal] = []
    if batch.state == State.ACQUIRED:
        sentence = f"{first}-{batch.last} are stored as acquired"
        return [Refusal(rule="PER-40", sentence=sentence, first=first, last=batch.last)]
    raw = possible.runs.copy()
    possible.spread(first, batch.last, look.sent, look.received)

    def agrees(low: int, high: int, cells: Cells) -> Cells:
        left = tuple(kept for cell in cells if (kept := _agreeing(cell, batch)) is not None)
        unchanged = _calm(look, raw, low, high)
        if not left and unchanged:
            state = State(batch.state).name
            rule = "INV-21" if all(cell.state in OVER for cell in cells) else "PER-05"
            sentence = (
                f"{low}-{high} are stored as {state}, count {batch.deliveries}, and cannot be"
            )
            refusals.append(Refusal(rule=rule, sentence=sentence, first=low, last=high))
        return left if left and unchanged else cells

    possible.change(first, batch.last, look.sent, look.received, agrees)
    return refusals


def _agreeing(cell: Cell, batch: StateBatch) -> Cell | None:
    """Return what a cell becomes by a stored entry, or None if the two exclude each other."""
    if cell.why == "OFF-20":
        return cell
    if batch.state == State.AVAILABLE:
        if cell.state in OVER:
            return None if cell.firm else cell
        if not cell.kept <= batch.deliveries <= cell.high:
            return None
        kept = max(cell.kept, batch.deliveries)
        return cell._replace(low=max(cell.low, kept), kept=kept)
    if batch.state == State.ARCHIVING:
        return cell if cell.state in {State.ARCHIVING, State.ARCHIVED} else None
    archived = cell.state is State.ARCHIVING and batch.state == State.ARCHIVED
    same = cell.state in TERMINAL and cell.state == batch.state
    return cell._replace(firm=True) if archived or same else None


def dead_lettered(
    possible: Possible, look: Operation, offset: int, count: int | None
) -> list[Refusal]:
    """Refuse a dead letter of a record that was accepted or may still be delivered (DLQ-04)."""
    owed = {"ACK-07", "DLV-10", "DLV-11", "DLV-12"}
    if offset < possible.runs.first:
        if possible.why_past(offset) in owed:
            return []
        sentence = f"a dead letter was written for offset {offset}, which was not given up"
        return [Refusal(rule="DLQ-04", sentence=sentence, first=offset, last=offset)]
    refusals: list[Refusal] = []
    possible.spread(offset, offset, look.sent, look.received)

    def given_up(_first: int, _last: int, cells: Cells) -> Cells:
        left = [cell for cell in cells if cell.state in OVER and cell.why in owed]
        if not left:
            sentence = f"a dead letter was written for offset {offset}, which was not given up"
            refusals.append(Refusal(rule="DLQ-04", sentence=sentence, first=offset, last=offset))
        elif count is not None and not any(_counts(cell, count) for cell in left):
            sentence = f"the dead letter of {offset} tells count {count}"
            refusals.append(Refusal(rule="DLQ-07", sentence=sentence, first=offset, last=offset))
        return tuple(left) or cells

    possible.change(offset, offset, look.sent, look.received, given_up)
    return refusals


def _counts(cell: Cell, count: int) -> bool:
    return cell.high == 0 or cell.low <= count <= cell.high
