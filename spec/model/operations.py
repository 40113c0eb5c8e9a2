"""What was asked for and may take effect: requests, their validation, and what each can do.

A request acts at one moment after it was sent. Until its response came, every state that it touches
may be with or without it; if no response ever comes it stays so until some evidence decides.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from itertools import pairwise
from typing import NamedTuple

from spec.model.cells import FORGOTTEN, Cell, Taking, acquired, apply, reloaded
from spec.model.release import Release
from spec.model.settings import Force
from spec.model.table import ACK_EVENTS, Event, State
from spec.verdict import Violation


class Span(NamedTuple):
    """When something happened: at one moment between ``sent`` and ``received``, in milliseconds.

    That is all an observer on the client side knows of a request. What the observer did itself at
    one moment has equal ends.
    """

    sent: float
    received: float


Moment = Span | float | int


def span(moment: Moment) -> Span:
    """Return a span; a bare number is a moment that is known exactly."""
    return moment if isinstance(moment, Span) else Span(moment, moment)


class Refusal(NamedTuple):
    rule: str
    sentence: str
    first: int = -1
    last: int = -1

    def __str__(self) -> str:
        return f"{self.rule}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Judgement:
    refusals: tuple[Refusal, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.refusals

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(refusal.rule for refusal in self.refusals))

    def check(self, *witness: str) -> None:
        """Raise the first refusal as a Violation, which carries the rule and ``witness``."""
        if self.refusals:
            first = self.refusals[0]
            raise Violation(first.rule, first.sentence, witness)


FINE = Judgement()


class Error(IntEnum):
    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    NOT_LEADER_OR_FOLLOWER = 6
    COORDINATOR_NOT_AVAILABLE = 15
    UNKNOWN_MEMBER_ID = 25
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FENCED_LEADER_EPOCH = 74
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_MEMBER_EPOCH = 110
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124


CERTAIN_REFUSALS = frozenset(
    {
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.UNSUPPORTED_VERSION,
        Error.INVALID_REQUEST,
        Error.INVALID_RECORD_STATE,
        Error.SHARE_SESSION_NOT_FOUND,
        Error.INVALID_SHARE_SESSION_EPOCH,
    }
)
"""Errors after which nothing has been applied. After every other error it may have been: the
leader can lose the response of the share coordinator to a write that was stored."""


class Mode(IntEnum):
    BATCH_OPTIMIZED = 0
    RECORD_LIMIT = 1


class Range(NamedTuple):
    """An acquired range of a ShareFetch response; ``last`` is inclusive."""

    first: int
    last: int
    deliveries: int


class Batch(NamedTuple):
    """An acknowledgement batch: one type byte for all its offsets, or one for each."""

    first: int
    last: int
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    member: str
    mode: Mode = Mode.BATCH_OPTIMIZED
    max_records: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledge:
    member: str
    batches: tuple[Batch, ...]
    renew: bool = False
    version: int = 2


class Kind(StrEnum):
    FETCH = "fetch"
    ACK = "acknowledge"
    CLOSE = "session close"
    RELOAD = "reload"
    LOG_START = "log start"
    LOOK = "look"


class Piece(NamedTuple):
    first: int
    last: int
    event: Event


@dataclass(slots=True, kw_only=True)
class Operation:
    """Something that has begun.

    ``spread``: some cell may suppose it. ``coupled``: all its offsets are known to share its fate.
    ``answered``: nothing more will be heard of it, but it may still act. ``cached``, ``reloads``
    and ``start`` are what was so when it began. ``fault`` is why an acknowledgement must
    be refused, whatever the state of its records is.
    """

    id: int
    kind: Kind
    sent: float
    received: float = math.inf
    member: str = ""
    fetch: Fetch | None = None
    ack: Acknowledge | None = None
    fault: Refusal | None = None
    pieces: tuple[Piece, ...] = ()
    offset: int = 0
    spread: bool = False
    coupled: bool = True
    answered: bool = False
    cached: int = -1
    reloads: int = 0
    start: int = 0

    @property
    def first(self) -> int:
        return self.pieces[0].first if self.kind is Kind.ACK and self.pieces else 0

    @property
    def last(self) -> int | float:
        if self.kind is Kind.ACK:
            return self.pieces[-1].last if self.pieces else -1
        return self.offset - 1 if self.kind is Kind.LOG_START else math.inf

    def effects(
        self, cell: Cell, event: Event | None, release: Release, force: Force
    ) -> Iterator[Cell]:
        if self.id in cell.ops:
            return
        if self.kind is Kind.FETCH:
            unseen = Taking(self.member, None, self.sent, self.received, FORGOTTEN)
            ghost = acquired(cell, unseen, force)
            if ghost is not None:
                yield ghost._replace(ops=cell.ops | {self.id})
        elif self.kind is Kind.LOG_START:
            yield from apply(cell, Event.LOG_START, self.sent, self.received, force)
        elif self.kind in {Kind.RELOAD, Kind.CLOSE}:
            yield from self.sweep(cell._replace(ops=cell.ops | {self.id}), release, force)
        elif cell.state is State.ACQUIRED and cell.holder == self.member:
            yield from self._settle(cell, event, force)

    def _settle(self, cell: Cell, event: Event | None, force: Force) -> Iterator[Cell]:
        if event is not None and (event is not Event.RENEW or True in force.renewal):
            tagged = cell._replace(ops=cell.ops | {self.id})
            yield from apply(tagged, event, self.sent, self.received, force)

    def sweep(self, cell: Cell, release: Release, force: Force) -> Iterator[Cell]:
        if self.kind is Kind.RELOAD:
            yield from reloaded(cell, self.sent, self.received, force)
        elif cell.state is State.ACQUIRED and cell.holder == self.member:
            yield from apply(cell, release.close_event, self.sent, self.received, force)
        else:
            yield cell


def pieces_of(batches: Sequence[Batch]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for batch in batches:
        if len(batch.types) == 1:
            pieces.append(Piece(batch.first, batch.last, ACK_EVENTS[batch.types[0]]))
            continue
        begin = 0
        for index in range(1, len(batch.types) + 1):
            if index == len(batch.types) or batch.types[index] != batch.types[begin]:
                event = ACK_EVENTS[batch.types[begin]]
                pieces.append(Piece(batch.first + begin, batch.first + index - 1, event))
                begin = index
    return tuple(pieces)


def malformed(ack: Acknowledge, release: Release) -> Refusal | None:
    highest = min(release.highest_ack_type, 3 if ack.version < 2 else 4)
    previous = None
    for batch in ack.batches:
        fault = _misshapen(batch, previous, highest, ack.renew)
        if fault:
            rule, sentence = fault
            return Refusal(rule, sentence, batch.first, batch.last)
        previous = batch
    return None


def _misshapen(
    batch: Batch, previous: Batch | None, highest: int, renew: bool
) -> tuple[str, str] | None:
    where = f"batch {batch.first}-{batch.last}"
    if batch.first > batch.last:
        return "ACK-17", f"{where} ends before it begins"
    if previous is not None and batch.first < previous.last:
        rule = "ACK-18" if batch.last < previous.first else "ACK-19"
        return rule, f"{where} does not come after {previous.first}-{previous.last}"
    fault = _mistyped(batch, highest, renew)
    return (fault[0], f"{where} {fault[1]}") if fault else None


def _mistyped(batch: Batch, highest: int, renew: bool) -> tuple[str, str] | None:
    if not batch.types:
        return "ACK-21", "has no acknowledge types"
    if len(batch.types) not in {1, batch.last - batch.first + 1}:
        return "ACK-23", f"has {len(batch.types)} types"
    wrong = [kind for kind in batch.types if not 0 <= kind <= highest]
    if wrong:
        return "ACK-12" if highest == 4 else "ACK-11", f"has acknowledge type {wrong[0]}"
    if 4 in batch.types and not renew:
        return "ACK-14", "renews in a request that does not say so"
    return None


def shares_a_border(batches: Sequence[Batch]) -> bool:
    """Tell whether two neighbouring batches name one offset both (ACK-20)."""
    return any(one.last == two.first for one, two in pairwise(batches))
