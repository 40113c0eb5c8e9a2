"""What one offset may be: a handful of cells, each of them a state that the evidence allows.

A judge never guesses. Where two histories explain what was seen, it keeps both as two cells, and
later evidence throws out the one that was not so. Everything here applies the table of
:mod:`spec.model.table` to one cell and returns the cells that may come of it.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from spec.model.settings import Force, Knobs, Slack
from spec.model.table import OVER, TERMINAL, Effect, Event, State, Transition, step

NONE: frozenset[int] = frozenset()
NOWHERE = (-1, -1)  # The origin of a record that was never delivered.
FORGOTTEN = (-2, -2)
"""The origin of a record whose share-partition was reloaded: its batch is cut anew, unseen."""
TOO_MANY = 24  # More cells are widened: precision for an offset is given up, never soundness


class Cell(NamedTuple):
    """One possible state of an offset.

    ``low``..``high`` is the delivery count in memory and ``kept`` the lowest one that a reload may
    take it back to. ``lo``..``hi`` is when the lock ends, for an acquired cell, and when the cell
    was entered, for an available one. ``why`` is the rule of the row that led here. ``firm`` says
    that a reload cannot undo it. ``origin`` is the range of the first delivery, for throttling.
    ``ops`` are the unanswered requests that this cell supposes to have taken effect.
    """

    state: State
    low: int
    high: int
    kept: int
    holder: str
    lo: float
    hi: float
    why: str
    firm: bool
    origin: tuple[int, int]
    ops: frozenset[int]


Cells = tuple[Cell, ...]

FRESH = Cell(State.AVAILABLE, 0, 0, 0, "", -math.inf, -math.inf, "", True, NOWHERE, NONE)
"""A record that nobody has ever acquired."""


def rows(cell: Cell, event: Event, force: Force) -> Iterator[Transition]:
    for last in (False, True):
        if last and cell.high < force.limit_low:
            continue
        if not last and cell.low >= force.limit_high:
            continue
        for letters in force.letters:
            row = step(event, cell.state, last=last, dead_letters=letters)
            if row is not None:
                yield row


def moved(cell: Cell, row: Transition, begin: float, end: float, force: Force) -> Cell:
    effects = row.effects
    if Effect.LOCK in effects:
        return cell._replace(lo=begin + force.lock_low, hi=end + force.lock_high)
    if row.after in OVER:
        firm = Effect.PERSIST in row.effects or cell.state is State.ARCHIVING
        why = cell.why if cell.state is State.ARCHIVING else row.rule
        if firm and row.after in TERMINAL:
            return Cell(row.after, 0, 0, 0, "", 0, 0, why, True, NOWHERE, cell.ops)
        return cell._replace(state=row.after, holder="", lo=0, hi=0, why=why, firm=firm)
    low, high = cell.low, cell.high
    if Effect.COUNT_DOWN in effects:
        low, high = max(low - 1, 0), max(high - 1, 0)
    kept = low if Effect.PERSIST in effects else min(cell.kept, low)
    origin = cell.origin
    if Effect.COUNT_BACK in effects:
        low, origin = min(cell.kept, low), FORGOTTEN
    return Cell(State.AVAILABLE, low, high, kept, "", begin, end, row.rule, True, origin, cell.ops)


def apply(cell: Cell, event: Event, begin: float, end: float, force: Force) -> Iterator[Cell]:
    if len(force.letters) == 1 and cell.low == cell.high and force.limit_low == force.limit_high:
        last = cell.low >= force.limit_low
        row = step(event, cell.state, last=last, dead_letters=force.letters[0])
        if row is not None:
            yield moved(cell, row, begin, end, force)
        return
    seen: set[Transition] = set()
    for row in rows(cell, event, force):
        if row not in seen:
            seen.add(row)
            yield moved(cell, row, begin, end, force)


class Taking(NamedTuple):
    """An acquisition: by whom, when, and in which range.

    ``deliveries`` is None as long as its response was not seen.
    """

    member: str
    deliveries: int | None
    sent: float
    received: float
    origin: tuple[int, int]


def acquired(cell: Cell, taking: Taking, force: Force) -> Cell | None:
    """Return the cell after an acquisition, or None if it or its count cannot have come of it."""
    member, count, sent, received, origin = taking
    if cell.state is not State.AVAILABLE:
        return None
    low, high = cell.low + 1, cell.high + 1
    if count is not None:
        if not low <= count <= high:
            return None
        low = high = count
    if cell.origin != NOWHERE:
        origin = cell.origin
    return Cell(
        State.ACQUIRED,
        low,
        high,
        min(cell.kept, low - 1),
        member,
        max(sent, cell.lo) + force.lock_low,
        received + force.lock_high,
        "",
        True,
        origin,
        cell.ops,
    )


def reloaded(cell: Cell, begin: float, end: float, force: Force) -> Iterator[Cell]:
    if cell.high == 0 and cell.state is State.AVAILABLE:
        yield cell
        return
    if cell.state in TERMINAL:
        yield cell._replace(firm=True)
    if cell.state in OVER and not cell.firm:
        back = min(cell.kept, cell.low)
        yield cell._replace(
            state=State.AVAILABLE,
            low=back,
            lo=begin,
            hi=end,
            why="LCK-19",
            firm=True,
            origin=FORGOTTEN,
        )
    if cell.state in TERMINAL:
        return
    yield from apply(cell, Event.RELOAD, begin, end, force)


def deleted(cell: Cell) -> Cell:
    return Cell(State.ARCHIVED, 0, 0, 0, "", 0, 0, "OFF-20", True, NOWHERE, cell.ops)


def may_end(cell: Cell, received: float, slack: Slack) -> bool:
    return received >= cell.lo - slack.early_ms


def must_have_ended(cell: Cell, sent: float, slack: Slack) -> bool:
    return sent > cell.hi + slack.late_ms


def expired(cell: Cell, received: float, slack: Slack, knobs: Knobs) -> Iterator[Cell]:
    """Yield what the end of its lock, at the latest by ``received``, makes of an acquired cell.

    What counts are the settings of that moment, not those of the one at which it is noticed.
    """
    begin, end = cell.lo - slack.early_ms, cell.hi + slack.late_ms
    force = knobs.over(begin, max(begin, min(end, received)))
    yield from apply(cell, Event.EXPIRE, begin, end, force)


def aged(cells: Cells, sent: float, received: float, slack: Slack, knobs: Knobs) -> Cells:
    if not any(cell.state is State.ACQUIRED and may_end(cell, received, slack) for cell in cells):
        return cells
    return tuple(dict.fromkeys(_aged(cells, sent, received, slack, knobs)))


def _aged(cells: Cells, sent: float, received: float, slack: Slack, knobs: Knobs) -> Iterator[Cell]:
    for cell in cells:
        ends = cell.state is State.ACQUIRED and may_end(cell, received, slack)
        if not ends or not must_have_ended(cell, sent, slack):
            yield cell
        if ends:
            yield from expired(cell, received, slack, knobs)


def widened(cells: Iterable[Cell]) -> Cells:
    merged: dict[tuple[State, str, str], Cell] = {}
    for cell in cells:
        key = (cell.state, cell.holder, cell.why if cell.state in OVER else "")
        other = merged.get(key)
        merged[key] = cell if other is None else _hull(cell, other)
    return tuple(merged.values())


def _hull(one: Cell, other: Cell) -> Cell:
    return one._replace(
        low=min(one.low, other.low),
        high=max(one.high, other.high),
        kept=min(one.kept, other.kept),
        lo=min(one.lo, other.lo),
        hi=max(one.hi, other.hi),
        firm=one.firm and other.firm,
        ops=one.ops & other.ops,
    )
