"""The truth about a small history: is there any legal execution that explains what was seen?

The search tries everything. It puts the events in every order that their intervals allow, lets each
take effect at the earliest moment that is left, and lets locks end at any moment once they are
over. It goes by the table of KIP-932:

* A fetch makes Available records Acquired by its member, with one count more. On its last permitted
  delivery a record comes alone (a choice of Kafka's, INV-39).
* An acknowledgement is applied whole or not at all, by the leader that has the records acquired for
  this member, and is stored before it is answered OK. Of records below the start offset it changes
  nothing, and is answered OK. Without a response it may be applied at any time, or never; without
  success it may have been stored all the same, which shows after a load, and to an admin.
* A lock ends at the earliest after its duration, and so late as it likes: a rule that waits for the
  end (INV-23) allows 15 s, more than these histories have.
* The end of a lock or session is in force at once and stored later, or never if a load comes.
* A load takes what is stored for what is. Whoever led before goes on until it hears of that: it
  gives out records, ends locks, and can store nothing.

Moments are the earliest that are left, because nothing but a response is ever too late.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations
from typing import NamedTuple

from spec.history import AckType, Outcome
from spec.verdict import Undecided
from tools.histories.small import (
    NEVER,
    Ack,
    Close,
    Deletion,
    Event,
    Fetch,
    History,
    Load,
    Look,
    Unseen,
)

AVAILABLE, ACQUIRED, DONE = range(3)
ANYBODY = -1
"""The number of a fetch that nobody saw; its client drops the session, which may end any time."""
_PATIENCE = 10_000


class Record(NamedTuple):
    state: int = AVAILABLE
    deliveries: int = 0
    holder: int = ANYBODY
    lock_ends: int = 0


Records = tuple[Record, ...]


class World(NamedTuple):
    """What is true at a moment; ``known`` is what each broker has in its memory."""

    now: int
    leader: int
    known: tuple[tuple[int, Records], ...]
    stored: Records
    log_start: int = 0
    shown: int = 0

    def of(self, node: int) -> Records:
        return next((records for known, records in self.known if known == node), ())

    def knowing(self, node: int, records: Records) -> World:
        known = ((other, records if other == node else old) for other, old in self.known)
        return self._replace(known=tuple(known))

    def storing(self, node: int, changed: dict[int, Record]) -> World:
        """Store something: the higher count wins, and of equal ones the state that is further."""
        if node != self.leader:
            return self
        stored = list(self.stored)
        for offset, record in changed.items():
            kept = stored[offset], Record(record.state, record.deliveries)
            stored[offset] = max(kept, key=lambda one: (one.deliveries, one.state))
        return self._replace(stored=tuple(stored))

    def timeless(self) -> World:
        """Return the world without the time: locks that are over might have ended at any time."""
        over = [
            (node, offset)
            for node, records in self.known
            for offset, one in enumerate(records)
            if 0 < one.lock_ends <= self.now
        ]
        world = self._replace(now=0)
        for node, offset in over:
            records = list(world.of(node))
            records[offset] = records[offset]._replace(lock_ends=0)
            world = world.knowing(node, tuple(records))
        return world

    def start(self, records: Records) -> int:
        waiting = (o for o, one in enumerate(records) if one.state != DONE and o >= self.log_start)
        return next(waiting, len(records))


def is_legal(history: History) -> bool:
    """Return whether any legal execution explains a history; Undecided if there are too many."""
    if _Search(history, left=0).finds():
        return True
    if history.drained and _Search(history, left=history.records).finds():
        raise Undecided("this history is legal if members did not fetch what was left at the end")
    return False


class _Search:
    def __init__(self, history: History, left: int) -> None:
        self.history = history
        self.may_be_left = left
        self.fetched = {one.op: one for one in history.events if isinstance(one, Fetch)}
        self.events = sorted(history.events, key=lambda one: one.sent)
        self.seen: dict[tuple[frozenset[int], World], int] = {}
        readers = (Load, Look)
        self.reading = frozenset(n for n, one in enumerate(self.events) if isinstance(one, readers))

    def finds(self) -> bool:
        new = (Record(),) * self.history.records
        nodes = {one.node for one in self.events if isinstance(one, Fetch | Load | Close)} or {1}
        left = frozenset(range(len(self.events)))
        loading = {one.node for one in self.events if isinstance(one, Load)}
        # The first load is in no history, and so may be that of any broker.
        return any(
            self._explained(
                left, World(now=0, leader=leader, known=tuple(known.items()), stored=new)
            )
            for leader in nodes
            for known in [{n: () if n in loading - {leader} else new for n in sorted(nodes)}]
        )

    def _explained(self, left: frozenset[int], world: World) -> bool:
        known = (left, world.timeless())
        if self.seen.get(known, NEVER) <= world.now:
            return False
        self.seen[known] = world.now
        if len(self.seen) > _PATIENCE:
            raise Undecided(f"no execution among {_PATIENCE} situations explains this history")
        waiting = [n for n in left if _must_happen(self.events[n])]
        if not waiting and (not self.history.drained or self._ends_drained(world)):
            return True
        deadline = min((self.events[n].received for n in waiting), default=NEVER)
        return any(self._explained(*one) for one in self._steps(left, world, deadline))

    def _steps(
        self, left: frozenset[int], world: World, deadline: int
    ) -> Iterator[tuple[frozenset[int], World]]:
        for n in sorted(left):
            event = self.events[n]
            at = max(world.now, event.sent)
            if at <= min(deadline, event.received):
                for after in self._happened(event, world._replace(now=at), left):
                    yield left - {n}, after
        for node, records in world.known:
            for offset, record in enumerate(records):
                at = max(world.now, record.lock_ends)
                if record.state == ACQUIRED and at <= deadline:
                    for after in self._let_go(world._replace(now=at), node, (offset,), left):
                        yield left, after

    def _is_read(self, left: frozenset[int]) -> bool:
        return self.history.drained or bool(left & self.reading)

    def _ends_drained(self, world: World) -> bool:
        # Until the last look, long after, all locks have ended, and that is stored.
        records = dict(enumerate(world.of(world.leader)))
        for offset, record in records.items():
            if record.state == ACQUIRED:
                records[offset] = self._ended(record, AckType.CLOSED, world.now)
        stored = world.storing(world.leader, records).stored
        left = self.history.records - world.start(tuple(records.values()))
        return world.start(stored) == self.history.records and left <= self.may_be_left

    def _happened(self, event: Event, world: World, left: frozenset[int]) -> Iterator[World]:
        match event:
            case Fetch():
                yield from self._acquired(world, event.node, event.op, dict(event.counts))
            case Unseen():
                yield from self._acquired_unseen(world)
            case Ack():
                yield from self._acknowledged(world, event, left)
            case Close():
                yield from self._closed(world, event, left)
            case Load():
                yield world._replace(leader=event.node).knowing(event.node, world.stored)
            case Deletion():
                yield world._replace(log_start=max(world.log_start, event.before))
            case Look():
                if world.shown <= event.spso <= world.start(world.stored):
                    yield world._replace(shown=event.spso)

    def _acquired_unseen(self, world: World) -> Iterator[World]:
        for node, records in world.known:
            free = [offset for offset, one in enumerate(records) if one.state == AVAILABLE]
            for some in _subsets(free):
                counts = {offset: records[offset].deliveries + 1 for offset in some}
                yield from self._acquired(world, node, ANYBODY, counts)

    def _closed(self, world: World, close: Close, left: frozenset[int]) -> Iterator[World]:
        records = world.of(close.node)
        held = [offset for offset, one in enumerate(records) if one.state == ACQUIRED]
        unsure = [offset for offset in held if records[offset].holder == ANYBODY]
        mine = [offset for offset in held if self._is_of(close, records[offset].holder)]
        for some in _subsets(unsure):
            yield from self._let_go(world, close.node, (*mine, *some), left)

    def _is_of(self, close: Close, op: int) -> bool:
        fetch = self.fetched.get(op)
        return fetch is not None and fetch.member == close.member and fetch.sent < close.sent

    def _acquired(
        self, world: World, node: int, op: int, counts: dict[int, int]
    ) -> Iterator[World]:
        records = list(world.of(node))
        limit = self.history.limit
        if not records or (limit > 2 and limit in counts.values() and len(counts) > 1):
            return
        until = world.now + (0 if op == ANYBODY else self.history.lock_ms * 1000)
        for offset, count in counts.items():
            before = records[offset]
            if (
                before.state != AVAILABLE
                or before.deliveries + 1 != count
                or offset < world.log_start
            ):
                return
            records[offset] = Record(ACQUIRED, count, op, until)
        yield world.knowing(node, tuple(records))

    def _acknowledged(self, world: World, ack: Ack, left: frozenset[int]) -> Iterator[World]:
        fetch = self.fetched[ack.op]
        records = world.of(fetch.node)
        if not records:
            return
        changed = {}
        for offset, kind in ack.kinds:
            record = records[offset]
            if offset < world.start(records):
                continue
            holder = self.fetched.get(record.holder)
            if record.state != ACQUIRED or (holder and holder.member != fetch.member):
                return
            changed[offset] = self._ended(record, kind, world.now)
        stored = {o: one for o, one in changed.items() if one.state != ACQUIRED}
        if stored and fetch.node != world.leader:
            return
        if ack.outcome is not Outcome.OK and self._is_read(left):
            yield world.storing(fetch.node, stored)
        if ack.outcome is not Outcome.FAILED:
            after = tuple(changed.get(offset, one) for offset, one in enumerate(records))
            yield world.storing(fetch.node, stored).knowing(fetch.node, after)

    def _ended(self, record: Record, kind: AckType, now: int) -> Record:
        if kind is AckType.RENEW:
            return record._replace(lock_ends=now + self.history.lock_ms * 1000)
        spent = record.deliveries >= self.history.limit
        free = kind in (AckType.RELEASE, AckType.CLOSED) and not spent
        return Record(AVAILABLE if free else DONE, record.deliveries)

    def _let_go(
        self, world: World, node: int, offsets: tuple[int, ...], left: frozenset[int]
    ) -> Iterator[World]:
        records = list(world.of(node))
        for offset in offsets:
            records[offset] = self._ended(records[offset], AckType.CLOSED, world.now)
        after = world.knowing(node, tuple(records))
        yield after
        if self._is_read(left) and node == world.leader:
            yield after.storing(node, {offset: records[offset] for offset in offsets})


def _must_happen(event: Event) -> bool:
    if isinstance(event, Ack):
        return event.outcome is Outcome.OK
    return isinstance(event, Fetch | Load | Deletion | Look)


def _subsets(offsets: list[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(offsets, n) for n in range(len(offsets) + 1))
