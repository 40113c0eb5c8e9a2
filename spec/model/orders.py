"""Whether any order of all that is known of one record in one group is legal.

What is known are intervals: deliveries, acknowledgements, ends of sessions, loads, responses that
nobody saw, a start offset that was shown. Time goes from one of their bounds to the next, with all
*worlds* that explain what was seen until then: who leads, what each broker has in its memory, what
is stored. What must have taken effect by then drops those in which it did not; if none is left, no
order is legal. Locks end at the earliest after their duration, and as late as they like; what
failed, or nobody answered, may be stored, even later, if it was held when it was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from spec.history import NEVER, AckType, Outcome

AVAILABLE, ACQUIRED, DONE = range(3)
NOBODY = -1
FETCH, UNSEEN, LOAD, SHOWN = range(10, 14)
"""What happened, beside the types of acknowledgements."""
_MOST = 1000  # worlds in all: of a record that has more nobody says that no order is legal


class Event(NamedTuple):
    """Something that took effect between two times, if it must have.

    ``turn`` is the delivery that it is about, ``number`` the count of one, or an outcome.
    """

    end: int
    begin: int
    what: int
    node: int = 0
    turn: int = NOBODY
    number: int = 0
    must: bool = True


class Copy(NamedTuple):
    state: int = AVAILABLE
    count: int = 0  # type: ignore[assignment]
    holder: int = NOBODY
    until: int = 0


class World(NamedTuple):
    leader: int
    copies: tuple[Copy | None, ...]
    stored: tuple[int, int] = (0, AVAILABLE)
    late: frozenset[tuple[int, int]] = frozenset()  # what may still be stored, by this leader

    def knowing(self, node: int, copy: Copy) -> World:
        return self._replace(copies=(*self.copies[:node], copy, *self.copies[node + 1 :]))

    def storing(self, node: int, count: int, state: int) -> World:
        """Store what the leader says: the higher count, and of equal ones the state further on."""
        known = (count, state) if node == self.leader else self.stored
        return self._replace(stored=max(self.stored, known))

    def by(self, now: int) -> World:
        """Return the world without the times of locks that are over: they may end any time."""
        copies = (c and c._replace(until=c.until if c.until > now else 0) for c in self.copies)
        return self._replace(copies=tuple(copies))

    def shows(self) -> set[World]:
        copy, late = self.copies[self.leader], set(self.late)
        if copy is not None:
            held = copy.state == ACQUIRED
            late.add((copy.count - held, AVAILABLE if held else copy.state))
        return {self, *(self.storing(self.leader, *one) for one in late)}


Worlds = set[tuple[World, frozenset[int]]]
"""Worlds, each with the events that may still take effect."""


class Record(NamedTuple):
    """All that is known of a record: events by their ends, and deliveries in the order of arrival.

    A delivery has a member, the time of its request and a count. ``limits`` are the lowest and the
    highest limit that its group had; ``drained``: it was finished.
    """

    events: tuple[Event, ...]
    deliveries: tuple[tuple[int, int, int], ...]
    nodes: int
    lock: int
    limits: tuple[int, int]
    drained: bool

    @classmethod
    def of(cls, events: Sequence[Event], **more: Any) -> Record:
        nodes = sorted({event.node for event in events if event.what in (FETCH, LOAD)})
        known = (e._replace(node=nodes.index(e.node) if e.node in nodes else 0) for e in events)
        return cls(events=tuple(sorted(known)), nodes=len(nodes), **more)

    def has_legal_order(self) -> bool:
        seen = tuple(event for event in self.events if event.what != UNSEEN)
        sure = tuple(event for event in seen if event.must)
        some = dict.fromkeys((sure, seen, self.events))
        return any(self._replace(events=events).is_explained() for events in some)

    def is_explained(self) -> bool:
        loaded = {event.node for event in self.events if event.what == LOAD and event.must}
        worlds: Worlds = set()
        for leader in range(self.nodes):  # the first load is in no history
            some = (None if n in loaded - {leader} else Copy() for n in range(self.nodes))
            worlds.add((World(leader, tuple(some)), frozenset()))
        moments = sorted({at for event in self.events for at in (event.begin, event.end)})
        last = max(event.end for event in self.events if event.must and event.what != LOAD)
        room = _MOST
        for now, after in zip(moments, [*moments[1:], NEVER], strict=True):
            seen, passed = self._passed(now, after, worlds, room)
            if not passed or (now >= last and not self.drained):
                return seen > room or bool(passed)
            worlds, room = passed, room - seen
        return any(self._is_done(world) for world, _ in worlds)

    def _passed(self, now: int, after: int, worlds: Worlds, room: int) -> tuple[int, Worlds]:
        begun = [n for n, event in enumerate(self.events) if event.begin == now]
        over = {n for n, event in enumerate(self.events) if event.end == now}
        owed = {n for n in over if self.events[n].must}
        todo = [(now, world, waiting.union(begun)) for world, waiting in worlds]
        seen = set(todo)
        while todo:
            at, world, waiting = todo.pop()
            world = self._asked(world, at, waiting)
            found = [
                (at, become, waiting - {n})
                for n in self._next(at, waiting)
                for become in self._happened(world, self.events[n], at)
            ]
            for node, copy in enumerate(world.copies):
                if copy is not None and copy.state == ACQUIRED and copy.until <= after:
                    later = max(at, copy.until)
                    found += [(later, one, waiting) for one in self._let_go(world, node, copy)]
            todo += {one for one in found if one not in seen}
            seen.update(found)
            if len(seen) > room:
                return len(seen), set()
        left = (
            (self._asked(world, at, waiting).by(after), waiting - over)
            for at, world, waiting in seen
            if not owed & waiting
        )
        return len(seen), set(left)

    def _asked(self, world: World, at: int, waiting: frozenset[int]) -> World:
        late = set(world.late)
        for event in (self.events[n] for n in waiting):
            settles = AckType.ACCEPT <= event.what <= AckType.REJECT and event.node == world.leader
            copy = self._held(world, event) if settles and at <= event.end else None
            if copy and event.number != Outcome.OK:
                late |= {(copy.count, state) for state in self._ends(event.what, copy.count)}
        return world._replace(late=frozenset(one for one in late if one > world.stored))

    def _next(self, at: int, waiting: frozenset[int]) -> Iterator[int]:
        unseen = min((n for n in waiting if self.events[n].what == UNSEEN), default=NOBODY)
        for n in waiting:
            if at <= self.events[n].end and (self.events[n].what != UNSEEN or n == unseen):
                yield n

    def _happened(self, world: World, event: Event, at: int) -> Iterator[World]:
        effects = {
            FETCH: self._acquired,
            UNSEEN: self._acquired_unseen,
            AckType.CLOSED: self._closed,
        }
        if event.what in (LOAD, SHOWN):
            for one in world.shows():
                count, state = one.stored
                if event.what == LOAD:
                    late = one.late if event.node == one.leader else frozenset()
                    become = one._replace(leader=event.node, late=late)
                    yield become.knowing(event.node, Copy(state, count))
                elif state == DONE:
                    yield one
        else:
            yield from effects.get(event.what, self._acknowledged)(world, event, at)

    def _acquired(self, world: World, event: Event, at: int) -> Iterator[World]:
        copy = world.copies[event.node]
        if copy is not None and (copy.state, copy.count + 1) == (AVAILABLE, event.number):
            held = Copy(ACQUIRED, event.number, event.turn, at + self.lock)
            yield world.knowing(event.node, held)

    def _acquired_unseen(self, world: World, _event: Event, _at: int) -> Iterator[World]:
        for node, copy in enumerate(world.copies):
            if copy is not None and copy.state == AVAILABLE and copy.count < self.limits[1]:
                yield world.knowing(node, Copy(ACQUIRED, copy.count + 1))

    def _closed(self, world: World, event: Event, _at: int) -> Iterator[World]:
        copy = self._held(world, event)
        if copy and (copy.holder == NOBODY or self.deliveries[copy.holder][1] <= event.begin):
            yield from self._let_go(world, event.node, copy)

    def _acknowledged(self, world: World, event: Event, at: int) -> Iterator[World]:
        node, kind, copy = event.node, event.what, self._held(world, event)
        if copy and kind == AckType.RENEW and event.number != Outcome.FAILED:
            yield world.knowing(node, copy._replace(until=at + self.lock))
        elif copy and node == world.leader and event.number != Outcome.FAILED:
            for state in self._ends(kind, copy.count):
                become = world.knowing(node, Copy(state, copy.count))
                yield become.storing(node, copy.count, state)
        below = world.copies[node]  # the start offset, where it changes nothing
        if event.number == Outcome.OK and below is not None and below.state == DONE:
            yield world

    def _held(self, world: World, event: Event) -> Copy | None:
        copy = world.copies[event.node]
        if copy is None or copy.state != ACQUIRED:
            return None
        mine = self.deliveries[event.turn][0]
        return copy if copy.holder == NOBODY or self.deliveries[copy.holder][0] == mine else None

    def _let_go(self, world: World, node: int, copy: Copy) -> Iterator[World]:
        """End a lock: in force at once, and stored then, later or never."""
        for state in self._ends(AckType.CLOSED, copy.count):
            become = world.knowing(node, Copy(state, copy.count))
            yield become
            yield become.storing(node, copy.count, state)

    def _ends(self, kind: int, count: int) -> Iterator[int]:
        gives_back = kind in (AckType.RELEASE, AckType.CLOSED)
        if gives_back and count < self.limits[1]:
            yield AVAILABLE
        if not gives_back or count >= self.limits[0]:
            yield DONE

    def _is_done(self, world: World) -> bool:
        """Tell whether it may be stored as finished: that is what is shown in the end."""
        copy = world.copies[world.leader]
        spent = copy is not None and copy.state == ACQUIRED and copy.count >= self.limits[0]
        return spent or any(one.stored[1] == DONE for one in world.shows())
