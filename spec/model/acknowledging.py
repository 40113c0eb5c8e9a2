"""Judging what an acknowledgement was answered: could the leader say that, and what follows?"""

from __future__ import annotations

from collections.abc import Iterator

from spec.model.cells import Cell, Cells, apply, may_end
from spec.model.judgement import Refusal
from spec.model.operations import (
    Acknowledge,
    Error,
    Kind,
    Operation,
    Piece,
    shares_a_border,
)
from spec.model.possible import Possible, untagged
from spec.model.runs import END
from spec.model.settings import Force
from spec.model.table import OVER, Event, State


def judge_accepted(possible: Possible, operation: Operation, ack: Acknowledge) -> list[Refusal]:
    """Judge a response without error: every offset was the member's, or below the start offset."""
    if operation.fault is not None:
        return [operation.fault]
    if len(ack.batches) > 1 and shares_a_border(ack.batches):
        sentence = "two batches that settle one offset both were accepted"
        first, last = ack.batches[0].first, ack.batches[-1].last
        if last >= possible.highest_start(operation.sent, operation.received, operation.id):
            return [Refusal(rule="ACK-20", sentence=sentence, first=first, last=last)]
    refusals: list[Refusal] = []
    for piece in operation.pieces:
        refusals.extend(_accept(possible, operation, piece))
    return refusals


def _accept(possible: Possible, operation: Operation, piece: Piece) -> list[Refusal]:
    refusals: list[Refusal] = []
    sent, received = operation.sent, operation.received
    force = possible.knobs.over(sent, received)
    low = max(piece.first, possible.runs.first)
    if piece.last < low:
        return refusals
    possible.spread(low, piece.last, sent, received, but=operation.id)
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

    possible.change(low, piece.last, sent, received, accepted)
    return refusals


def _settled(
    cells: Cells, operation: Operation, event: Event, force: Force
) -> tuple[list[Cell], list[Cell]]:
    """Return the cells after the event, and those that it could not happen to."""
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
    return Refusal(rule=rule, sentence=sentence, first=first, last=last)


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
    """Judge an INVALID_RECORD_STATE or INVALID_REQUEST: was there an offset that deserved it?"""
    fault = operation.fault
    if fault is not None:
        if error is Error.INVALID_REQUEST:
            return []
        return [
            Refusal(
                rule=fault.rule,
                sentence=f"{fault.sentence}, but was answered with {error.name}",
                first=fault.first,
                last=fault.last,
            )
        ]
    if not ack.batches:
        return [Refusal(rule="ACK-46", sentence=f"no batches were answered with {error.name}")]
    if ack.batches[-1].last < start_seen:
        return [_below(ack, error, start_seen)]
    culprits = [bad for piece in operation.pieces for bad in _culprits(possible, operation, piece)]
    return list(_blame(possible, operation, ack, error, culprits))


def _below(ack: Acknowledge, error: Error, start: int) -> Refusal:
    first, last = ack.batches[0].first, ack.batches[-1].last
    sentence = f"{first}-{last} lie below the start offset {start}, the response was {error.name}"
    return Refusal(rule="ACK-34", sentence=sentence, first=first, last=last)


def _culprits(
    possible: Possible, operation: Operation, piece: Piece
) -> Iterator[tuple[int, int, Cells]]:
    """Yield the runs of a piece that may not have been the member's to settle."""
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
        yield Refusal(rule=rule, sentence=sentence, first=first, last=last)
        return
    beyond = [run for run in culprits if run[1] > possible.cached_since(operation)]
    changing = {Kind.FETCH, Kind.RELOAD}
    fetching = any(one.kind in changing for one in possible.others(operation.id, 0, END))
    if error is Error.INVALID_REQUEST and not beyond and not fetching:
        sentence = f"{first}-{last} were all acquired once, the response was INVALID_REQUEST"
        yield Refusal(rule="ACK-30", sentence=sentence, first=first, last=last)
    unseen = len(beyond) == len(culprits) and all(run[0] > possible.highest for run in beyond)
    if error is Error.INVALID_RECORD_STATE and beyond and unseen and not fetching:
        sentence = (
            f"{beyond[0][0]}-{last} was never acquired, the response was INVALID_RECORD_STATE"
        )
        yield Refusal(rule="ACK-32", sentence=sentence, first=first, last=last)


def _denied(operation: Operation) -> str:
    """Return the rule that a holder's well-formed acknowledgement rests on."""
    if any(piece.event is Event.RENEW for piece in operation.pieces):
        return "LCK-21"
    return "ACK-27" if len(operation.pieces) > 1 else "LCK-16"


def take_refusal(possible: Possible, operation: Operation) -> None:
    """Take in that nothing was applied, and what the refusal proves of a lone offset's lock."""
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
