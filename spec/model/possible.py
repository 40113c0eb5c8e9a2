"""All possible states of one share-partition, given what was seen, as runs of cells.

This is the judge's memory. It knows how possibilities spread and die, and nothing of rules: what an
observation must be is said in :mod:`spec.model.observations`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from itertools import pairwise

from spec.model.cells import (
    FRESH,
    NONE,
    TOO_MANY,
    Cell,
    Cells,
    aged,
    expired,
    may_end,
    must_have_ended,
    widened,
)
from spec.model.operations import Kind, Operation, Piece, Refusal
from spec.model.release import Release
from spec.model.runs import END, Runs
from spec.model.settings import Force, Knobs, Slack
from spec.model.table import OVER, TERMINAL, Event, State

Change = Callable[[int, int, Cells], Cells]


class Possible:
    def __init__(self, start: int, release: Release, knobs: Knobs, slack: Slack) -> None:
        self.release = release
        self.knobs = knobs
        self.slack = slack
        self.runs: Runs[Cells] = Runs(start, (FRESH,))
        self.open: dict[int, Operation] = {}
        self.highest = start - 1
        self.cached = start - 1
        self._past: Runs[str] = Runs(-END, "OFF-30")
        self._ripe: deque[tuple[int, int]] = deque()
        self._serial = 0
        self.peak = (-math.inf, start)
        self.highest_ever = start
        self.seen_ahead = -1
        self.reloads = 0
        self.reloading = 0
        self._hint = start

    # ------------------------------------------------------------------ operations

    def begin(self, kind: Kind, sent: float, **about: object) -> Operation:
        before = sent - self.slack.linger_ms
        for old in [one for one in self.open.values() if one.answered and one.sent < before]:
            self.spread(self.runs.first, END - 1, old.sent, old.received)
            self.finish(old)
        self._serial += 1
        operation = Operation(
            id=self._serial,
            kind=kind,
            sent=sent,
            cached=self.cached,
            reloads=self.reloads,
            **about,  # type: ignore[arg-type]
        )
        if kind is not Kind.LOOK:
            self.open[operation.id] = operation
        if kind is Kind.RELOAD:
            self.reloading += 1
        return operation

    def reloading_since(self, operation: Operation) -> bool:
        return operation.reloads != self.reloads or self.reloading > 0

    def cached_since(self, operation: Operation) -> int:
        if operation.reloads != self.reloads:
            return -1
        return min(operation.cached, self.cached)

    def finish(self, operation: Operation) -> None:
        if self.open.pop(operation.id, None) and operation.kind is Kind.RELOAD:
            self.reloading -= 1

    def others(self, mine: int, first: int, last: int) -> list[Operation]:
        return [
            one
            for one in self.open.values()
            if one.id != mine and one.first <= last and one.last >= first
        ]

    # ------------------------------------------------------------------ possibilities

    def spread(self, first: int, last: int, sent: float, received: float, *, but: int = 0) -> None:
        if len(self.open) <= (but in self.open):
            return
        others = self.others(but, first, last)
        if not others:
            return
        for begin, end, acting in _sections(others, first, last):

            def closed(_first: int, _last: int, cells: Cells, acting: list[_Act] = acting) -> Cells:
                return self._closure(cells, acting, sent, received)

            self.runs.apply(begin, end, closed)
        for operation in others:
            operation.spread = True

    def _closure(self, cells: Cells, acting: list[_Act], sent: float, received: float) -> Cells:
        found = dict.fromkeys(cells)
        queue = list(cells)
        while queue:
            cell = queue.pop()
            for after in self._successors(cell, acting, received):
                if after not in found:
                    found[after] = None
                    queue.append(after)
            if len(found) > TOO_MANY:
                return self._widened(found, acting, received)
        return tuple(
            cell
            for cell in found
            if cell.state is not State.ACQUIRED or not must_have_ended(cell, sent, self.slack)
        )

    def _widened(self, found: dict[Cell, None], acting: list[_Act], received: float) -> Cells:
        """Finish a closure that has too many cells with fewer and vaguer ones.

        Every operation acts once and a lock can end before and after it, so that many rounds do.
        """
        for tag in set().union(*(cell.ops for cell in found), (one.id for one, _event in acting)):
            if tag in self.open:
                self.open[tag].coupled = False
        cells = widened(found)
        for _round in range(2 * len(acting) + 1):
            after = dict.fromkeys(cells)
            for cell in cells:
                after.update(dict.fromkeys(self._successors(cell, acting, received)))
            before, cells = cells, widened(after)
            if cells == before:
                break
        return cells

    def _successors(self, cell: Cell, acting: list[_Act], received: float) -> Iterator[Cell]:
        if cell.state is State.ACQUIRED and may_end(cell, received, self.slack):
            yield from expired(cell, received, self.slack, self.knobs)
        for operation, event in acting:
            force = self.knobs.over(operation.sent, received)
            yield from operation.effects(cell, event, self.release, force)

    def change(self, first: int, last: int, sent: float, received: float, how: Change) -> None:
        slack, knobs = self.slack, self.knobs

        def changed(begin: int, end: int, cells: Cells) -> Cells:
            return how(begin, end, aged(cells, sent, received, slack, knobs))

        self.runs.apply(first, last, changed)
        self._hint = min(self._hint, first)

    def within(self, operation: Operation, first: int, last: int, how: Change) -> None:
        first, sent, received = max(first, self.runs.first), operation.sent, operation.received
        if first <= last:
            self.spread(first, last, sent, received, but=operation.id)
            self.change(first, last, sent, received, how)

    def forget_tag(self, operation: Operation, keep: bool) -> list[tuple[int, int]]:
        """Resolve an operation's tag: cells that suppose it stay (``keep``) or go.

        Returns the ranges of which nothing would be left; they stay as they are, without the tag.
        """
        empty: list[tuple[int, int]] = []

        def resolved(first: int, last: int, cells: Cells) -> Cells:
            left = [cell for cell in cells if keep or operation.id not in cell.ops]
            if not left:
                empty.append((first, last))
            return untagged(left or cells, operation.id)

        if operation.spread:
            last = END - 1 if operation.last > END else int(operation.last)
            self.runs.apply(max(operation.first, self.runs.first), last, resolved)
            self._hint = self.runs.first
        return empty

    # ------------------------------------------------------------------ the start offset

    def advance(self) -> None:
        certain = self.runs.first
        for _first, last, cells in self.runs.over(certain):
            cell = cells[0]
            if len(cells) != 1 or cell.state not in TERMINAL or not cell.firm or cell.ops:
                break
            certain = last + 1
        if certain > self.runs.first:
            self._ripe.append((self._serial, certain))
        if not self._ripe:
            return
        # Forgotten is what was finished before every request began that is still unanswered.
        oldest = min((one.id for one in self.open.values() if not one.answered), default=END)
        certain = self.runs.first
        while self._ripe and self._ripe[0][0] < oldest:
            certain = max(certain, self._ripe.popleft()[1])
        for first, last, cells in list(self.runs.over(self.runs.first, certain - 1)):
            self._past.put(first, last, cells[0].why)
            self.runs.trim(last + 1)
            self._hint = max(self._hint, last + 1)

    def why_past(self, offset: int) -> str:
        return self._past[offset]

    def highest_start(self, sent: float, received: float, but: int = 0) -> int:
        """Return the highest offset that the start offset can have reached by a moment.

        ``but`` is an operation that has no say in it, as it is being judged.
        """
        lately = self.peak[1] if self.peak[0] >= sent else 0
        reached = max(self._hint, self.runs.first)
        for first, last, cells in self.runs.over(reached):
            if not self._over_by_itself(cells, received):
                others = self.others(but, first, last)
                since = min([sent, *(one.sent for one in others)])
                if not _may_end_by(others, cells, self.knobs.over(since, received)):
                    return max(lately, first)
            elif reached == self._hint:
                self._hint = last + 1
            reached = last + 1
        return max(lately, reached)

    def _over_by_itself(self, cells: Cells, received: float) -> bool:
        for cell in cells:
            if cell.state in OVER:
                return True
            if cell.state is State.ACQUIRED and may_end(cell, received, self.slack):
                ending = self.knobs.over(cell.lo - self.slack.early_ms, received)
                if cell.high >= ending.limit_low:
                    return True
        return False

    # ------------------------------------------------------------------ what evidence decides

    def conclude(self, sent: float, received: float) -> Iterator[Refusal]:
        """Decide unanswered acknowledgements that the evidence leaves no choice for (INV-08)."""
        for operation in list(self.open.values()):
            if operation.answered and operation.kind is Kind.ACK and operation.spread:
                yield from self._conclude(operation, sent, received)

    def _conclude(self, operation: Operation, sent: float, received: float) -> Iterator[Refusal]:
        if not operation.coupled or not operation.pieces:
            return
        verdicts = {
            self._fate(operation, cells, last, sent, received)
            for piece in operation.pieces
            for _first, last, cells in self.runs.over(max(piece.first, self.runs.first), piece.last)
        }
        if True in verdicts and False in verdicts:
            first, last = operation.first, int(operation.last)
            sentence = (
                f"of the acknowledgement of {first}-{last} by {operation.member}, "
                "which had no response, some offsets took effect and others did not"
            )
            yield Refusal("INV-08", sentence, first, last)
        if False in verdicts:
            self.forget_tag(operation, keep=False)
            operation.spread = False
        elif True in verdicts:
            self._take_effect(operation, sent, received)

    def _fate(
        self, operation: Operation, cells: Cells, last: int, sent: float, received: float
    ) -> bool | None:
        """Return whether an offset proves (True), disproves (False) an effect, or neither."""
        supposed = [operation.id in cell.ops for cell in cells]
        if all(supposed):
            return True
        held = any(
            cell.state is State.ACQUIRED and cell.holder == operation.member for cell in cells
        )
        coming = any(
            one.kind is Kind.FETCH and one.member == operation.member for one in self.open.values()
        )
        if any(supposed) or held or coming or last < self.highest_start(sent, received):
            return None
        return None if any(cell.state in OVER for cell in cells) else False

    def _take_effect(self, operation: Operation, sent: float, received: float) -> None:
        force = self.knobs.over(operation.sent, received)
        # What it was applied to may itself rest on something unseen, such as a lost fetch.
        low = max(operation.first, self.runs.first)
        self.spread(low, int(operation.last), sent, received)
        for piece in operation.pieces:

            def taken(_first: int, _last: int, cells: Cells, piece: Piece = piece) -> Cells:
                after = [cell for cell in cells if operation.id in cell.ops]
                for cell in cells:
                    after.extend(operation.effects(cell, piece.event, self.release, force))
                return untagged(after or cells, operation.id)

            self.runs.apply(piece.first, piece.last, taken)
        self._hint = self.runs.first
        self.finish(operation)


def _may_end_by(others: list[Operation], cells: Cells, force: Force) -> bool:
    if any(one.kind in _ENDING for one in others):
        return True
    unseen = sum(one.kind is Kind.FETCH for one in others)
    return unseen > 0 and any(cell.high + unseen >= force.limit_low for cell in cells)


_ENDING = frozenset({Kind.ACK, Kind.LOG_START, Kind.CLOSE})
_Act = tuple[Operation, Event | None]


def untagged(cells: list[Cell] | Cells, tag: int) -> Cells:
    if len(cells) == 1 and tag not in cells[0].ops:
        return tuple(cells)
    return tuple(
        dict.fromkeys(
            cell._replace(ops=(cell.ops - {tag}) or NONE) if tag in cell.ops else cell
            for cell in cells
        )
    )


def _sections(
    operations: list[Operation], first: int, last: int
) -> Iterator[tuple[int, int, list[_Act]]]:
    cuts = {first, last + 1}
    for operation in operations:
        if operation.kind is Kind.LOG_START:
            cuts.add(operation.offset)
        for piece in operation.pieces:
            cuts.update((piece.first, piece.last + 1))
    edges = sorted(cut for cut in cuts if first <= cut <= last + 1)
    for begin, after in pairwise(edges):
        acting = [act for one in operations for act in _acting(one, begin)]
        if acting:
            yield begin, after - 1, acting


def _acting(operation: Operation, offset: int) -> Iterator[_Act]:
    if operation.kind is Kind.ACK:
        for piece in operation.pieces:
            if piece.first <= offset <= piece.last:
                yield operation, piece.event
    elif operation.kind is not Kind.LOG_START or offset < operation.offset:
        yield operation, None
