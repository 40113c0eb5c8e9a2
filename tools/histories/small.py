"""Small histories of one share-partition: what clients saw, and how a run's journals have it.

Times are whole microseconds, so that two events of one history hardly ever share one.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from fixtures.history.journal import Journal
from spec.history import LOG_START, ROWS, AckType, Outcome, log_numbers

NEVER = 2**40
QUIET = 60_000_000  # When an admin looks for the last time: all locks have ended long before.
_OPERATIONS = 1000  # How many numbers of operations a history has for itself.
_US = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    sent: int
    received: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(Event):
    """What a fetch acquired for a member: ``counts`` has the delivery count of each offset."""

    op: int
    member: int
    node: int
    counts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack(Event):
    op: int
    kinds: tuple[tuple[int, AckType], ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Unseen(Event):
    """A fetch whose response nobody saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Event):
    node: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Close(Event):
    member: int
    node: int
    outcome: Outcome
    held: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion(Event):
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look(Event):
    """An admin is shown the start offset, if it is not -1, and where the log begins."""

    spso: int
    log_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    records: int
    limit: int
    lock_ms: int
    drained: bool
    events: tuple[Event, ...]

    def __str__(self) -> str:
        head = f"{self.records} records, limit {self.limit}, lock {self.lock_ms} ms"
        ordered = sorted(self.events, key=lambda one: one.sent)
        return "\n".join([f"{head}{', drained' * self.drained}", *map(str, ordered)])


def write(folder: Path, histories: Sequence[History]) -> None:
    with Journal(folder, 0) as journal:
        add(journal, histories)
    document = {"target": {"name": "random", "version": "4.4.0"}}
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")


def add(journal: Journal, histories: Sequence[History], first: int = 0) -> None:
    logs = islice(log_numbers(), first, None)
    for place, (log, history) in enumerate(zip(logs, histories, strict=False), first):
        for table, row in rows_of(place, log, history):
            journal.add(ROWS[table]._make(row))


Row = tuple[str, tuple[object, ...]]


def rows_of(place: int, log: int, history: History) -> Iterator[Row]:
    names = (f"group-{place}", f"topic-{log}", "", 0, 0)
    settings = (history.limit, history.lock_ms, 2000, 500, False, False)
    yield "share_partitions", (place, log, 0, *names, *settings)
    yield "produced", (log, 0, history.records, 1, 0, 7, 0, 1, int(Outcome.OK), 0, 0)
    # As in a run, whose observer looks at once at where logs begin.
    yield "offsets", (place, 0, _US, -1, -1, 0, history.records, 0, LOG_START)
    start = 0
    for event in sorted(history.events, key=lambda one: one.sent):
        times = (event.sent * _US, event.received * _US if event.received < NEVER else -1)
        match event:
            case Fetch():
                yield from _fetched(place, log, history.lock_ms, event)
            case Ack():
                kinds = ((event.op, offset, kind) for offset, kind in event.kinds)
                yield from _ended(place, log, event.outcome, times, kinds)
            case Close():
                held = ((op, offset, AckType.CLOSED) for op, offset in event.held)
                yield from _ended(place, log, event.outcome, times, held)
            case Unseen():
                yield "unseen_responses", (place, *times)
            case Load():
                yield "reloads", (place, event.node, *times, "read")
            case Deletion():
                start = max(start, event.before)
                yield "deletions", (log, event.before, *times, int(Outcome.OK))
            case Look():
                shown = (event.spso, -1, event.log_start, history.records)
                phase = "load" if event.spso >= 0 else LOG_START
                yield "offsets", (place, *times, *shown, 0, phase)
    if history.drained:
        shown = (history.records, 0, start, history.records)
        yield "offsets", (place, QUIET * _US, (QUIET + 1) * _US, *shown, 0, "quiet")


def _fetched(place: int, log: int, lock_ms: int, fetch: Fetch) -> Iterator[Row]:
    op, times = place * _OPERATIONS + fetch.op, (fetch.sent * _US, fetch.received * _US)
    request = (op, 0, fetch.member, "ShareFetch", fetch.node)
    yield "operations", (*request, *times, 500, int(Outcome.OK), 0)
    after = -1
    for offset, count in fetch.counts:
        row = (op, place, log, fetch.member, offset, offset, count, lock_ms, *times, after)
        yield "acquired", (*row, True, 1, offset, 7)
        after = offset


def _ended(
    place: int,
    log: int,
    outcome: Outcome,
    times: tuple[int, int],
    kinds: Iterable[tuple[int, int, AckType]],
) -> Iterator[Row]:
    error = 121 if outcome is Outcome.FAILED else 0
    for op, offset, kind in kinds:
        row = (place * _OPERATIONS + op, place, log, offset, offset, int(kind))
        yield "acknowledged", (*row, *times, int(outcome), error)
