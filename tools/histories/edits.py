"""Edits of one event of a small history: each is one thing that a broken broker might do.

Many edits leave a history legal: whether one did is for ``truth`` to say.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from spec.history import AckType, Outcome
from tools.histories.legal import MEMBERS
from tools.histories.small import NEVER, Ack, Close, Deletion, Event, Fetch, History, Load, Look

E = TypeVar("E", bound=Event)
_SECOND = 1_000_000
Edit = Callable[[History, Random], Sequence[Event] | None]
"""Returns the events of the edited history, or None if there is nothing to edit."""
EDITS: list[Edit] = []


def _edit(
    kind: type[E], fits: Callable[[E], object] = lambda _: True
) -> Callable[[Callable[[History, E, Random], Sequence[Event] | None]], Edit]:
    """Register an edit of one event of a kind, which is drawn among those that fit."""

    def register(change: Callable[[History, E, Random], Sequence[Event] | None]) -> Edit:
        @functools.wraps(change)
        def edit(history: History, random: Random) -> Sequence[Event] | None:
            found = [one for one in history.events if isinstance(one, kind) and fits(one)]
            return change(history, random.choice(found), random) if found else None

        EDITS.append(edit)
        return edit

    return register


@_edit(Fetch)
def given_to_another(history: History, fetch: Fetch, random: Random) -> Sequence[Event] | None:
    """A delivery went to another member, with what became of it."""
    moved = replace(fetch, member=_another(fetch.member, random))
    return _instead(history.events, fetch, moved)


@_edit(Fetch)
def came_earlier(history: History, fetch: Fetch, random: Random) -> Sequence[Event]:
    by = random.randint(0, min(_SECOND, fetch.sent))
    moved = replace(fetch, sent=fetch.sent - by, received=fetch.received - by)
    return _instead(history.events, fetch, moved)


@_edit(Fetch)
def came_later(history: History, fetch: Fetch, random: Random) -> Sequence[Event]:
    """A delivery came later, though before its holder acknowledged it."""
    acts = [one.sent for one in history.events if _is_about(one, fetch.op)]
    by = random.randint(0, min([fetch.received + _SECOND, *acts]) - fetch.received)
    moved = replace(fetch, sent=fetch.sent + by, received=fetch.received + by)
    return _instead(history.events, fetch, moved)


@_edit(Fetch)
def given_twice(history: History, fetch: Fetch, random: Random) -> Sequence[Event]:
    """What was delivered came to another member, too, who often accepts it."""
    begin, more = fetch.received + random.randint(-20_000, _SECOND // 2), random.randint(0, 1)
    again = replace(
        fetch,
        op=len(history.events),
        member=_another(fetch.member, random),
        sent=max(begin, 1),
        received=max(begin, 1) + random.randint(1, 30_000),
        counts=tuple((offset, count + more) for offset, count in fetch.counts),
    )
    if random.random() < 0.5:
        return [*history.events, again]
    kinds = tuple((offset, AckType.ACCEPT) for offset, _ in again.counts)
    sent = again.received + random.randint(1, 100_000)
    times = {"sent": sent, "received": sent + random.randint(1, 30_000)}
    return [*history.events, again, Ack(op=again.op, kinds=kinds, outcome=Outcome.OK, **times)]


@_edit(Fetch)
def counted_otherwise(history: History, fetch: Fetch, random: Random) -> Sequence[Event]:
    which, by = random.choice(fetch.counts), random.choice((-1, 1, 2))
    counts = tuple((o, n + by if (o, n) == which else n) for o, n in fetch.counts)
    return _instead(history.events, fetch, replace(fetch, counts=counts))


@_edit(Ack)
def outcome_turned(history: History, ack: Ack, random: Random) -> Sequence[Event]:
    outcomes = {Outcome.OK, Outcome.FAILED, Outcome.UNKNOWN} - {ack.outcome}
    outcome = random.choice(sorted(outcomes))
    received = ack.sent + random.randint(1, 30_000) if ack.received == NEVER else ack.received
    if outcome is Outcome.UNKNOWN:
        received = NEVER
    return _instead(history.events, ack, replace(ack, outcome=outcome, received=received))


@_edit(Ack)
def kind_turned(history: History, ack: Ack, random: Random) -> Sequence[Event] | None:
    if ack.kinds[0][1] is AckType.RENEW:
        return None
    kind = random.choice((AckType.ACCEPT, AckType.RELEASE, AckType.REJECT))
    return _instead(
        history.events, ack, replace(ack, kinds=tuple((offset, kind) for offset, _ in ack.kinds))
    )


@_edit(Event)
def dropped(history: History, event: Event, _random: Random) -> Sequence[Event] | None:
    """Something did not happen, and nothing that came of it."""
    if isinstance(event, Deletion | Load):  # what others have recorded
        return None
    return [
        one
        for one in history.events
        if one is not event
        and not (isinstance(event, Fetch) and isinstance(one, Ack) and one.op == event.op)
    ]


@_edit(Look, lambda look: look.spso)
def start_moved_back(history: History, look: Look, random: Random) -> Sequence[Event]:
    return _instead(history.events, look, replace(look, spso=random.randrange(look.spso)))


def edited(history: History, edit: Edit, random: Random) -> History | None:
    """Return an edited history, unless there is nothing to edit or no client could have seen it.

    Clients acknowledge the last delivery of a record that they have seen; brokers know no other.
    """
    events = edit(history, random)
    if events is None:
        return None
    fetches = {one.op: one for one in events if isinstance(one, Fetch)}
    for close in (one for one in events if isinstance(one, Close)):  # asks for nothing meanwhile
        where = close.member, close.node
        its = (one for one in fetches.values() if (one.member, one.node) == where)
        if any(one.sent < close.sent < one.received for one in its):
            return None
    for ack in (one for one in events if isinstance(one, Ack)):
        mine, offsets = fetches[ack.op], {offset for offset, _ in ack.kinds}
        for other in fetches.values():
            same = (other.member, other.node) == (mine.member, mine.node)
            if (
                same
                and mine.sent < other.sent < ack.sent
                and offsets & {o for o, _ in other.counts}
            ):
                return None
    return replace(history, events=tuple(_as_closed(one, events) for one in events))


def _as_closed(event: Event, events: Sequence[Event]) -> Event:
    if not isinstance(event, Close):
        return event
    held: dict[int, int] = {}
    for one in sorted((one for one in events if one.sent < event.sent), key=lambda one: one.sent):
        if isinstance(one, Fetch) and (one.member, one.node) == (event.member, event.node):
            held |= {offset: one.op for offset, _ in one.counts}
        elif isinstance(one, Ack) and one.outcome is Outcome.OK:
            for offset, kind in one.kinds:
                if kind is not AckType.RENEW and held.get(offset) == one.op:
                    del held[offset]
        elif isinstance(one, Close) and (one.member, one.node) == (event.member, event.node):
            held = {}
    return replace(event, held=tuple(sorted((op, offset) for offset, op in held.items())))


def _another(member: int, random: Random) -> int:
    return random.choice([one for one in MEMBERS if one != member])


def _instead(events: Iterable[Event], old: Event, new: Event) -> list[Event]:
    return [new if one is old else one for one in events]


def _is_about(event: Event, op: int) -> bool:
    if isinstance(event, Close):
        return op in {other for other, _ in event.held}
    return isinstance(event, Ack) and event.op == op
