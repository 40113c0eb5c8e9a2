"""The states of one record in one share group, as one table, and why the table is what it is.

Theory of operation
===================

Rule 1. Whatever moves a record from one state to another is a row of ``TABLE``. The judge of
observed histories, the acting leader and the diagram in the docs all read these rows; none of them
has an opinion of its own. A pair of event and state without a row cannot happen.

Rule 2. A record has one of five states (KIP-932 §In-flight records; KIP-1191 adds ARCHIVING). The
numbers are those of the state batches in ``__share_group_state``. ACKNOWLEDGED and ARCHIVED are
terminal: no row leaves them. ARCHIVING is terminal for members, as it is never handed out again,
but not for the start offset, which waits until the dead letter is written.

Rule 3. ACQUIRED belongs to one member and to one lock. A row that leaves ACQUIRED ends the lock,
except RENEW, which starts it anew (KIP-1222). Only the holder's acknowledgements use the rows GAP
to RENEW; that is a condition on who sends, not on the record's state, so it is not in the table.

Rule 4. The delivery count rises in one row only: ACQUIRE. No other row raises it, which is why a
renewal or a gap is not a delivery. Two rows lower it: RELOAD, because an acquisition is never
written down (KIP-932 §Durable state), and CLOSE_UNCOUNTED, a decision of 4.1 that 4.2 took back.

Rule 5. The limit is looked at when a delivery *ends* badly, not when one begins. A record whose
count has reached the limit is archived by RELEASE, EXPIRE or CLOSE. So lowering the limit below a
record's count still permits one last delivery (KIP-1240), and REJECT and GAP ask for no count.

Rule 6. What a client asked for is durable before it is answered: ACCEPT, RELEASE, REJECT and GAP
carry PERSIST. What happens by itself (EXPIRE, CLOSE, LOG_START, VANISH) is in force at once and is
written later: PERSIST_LATER. A reload in between undoes it, also an archiving at the limit.

Rule 7. A dead letter is owed for REJECT and for a delivery count used up, if the group has a
dead-letter topic; never for a gap, a deleted, compacted or aborted record (KIP-1191). Phase one
writes ARCHIVING and answers the client; phase two writes the letter, then ARCHIVED.

Rule 8. A reload, whether the leader moved, was fenced or lost its epoch and got it back, forgets
every lock and takes counts back to what is durable, never below that (KIP-932 §Durable state). What
was terminal and durable stays; ARCHIVING starts its phase two again.

Rule 9. An acknowledgement of a record that is below the start offset changes nothing whatever it
says, and is answered without error. It uses no row, because there is no record left to move.
"""

import sys
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum


class State(IntEnum):
    """What a record is to its group; the values are the durable ones (``DeliveryState``)."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class Event(StrEnum):
    """What happens to a record. The first six are asked for by members, the others are not."""

    ACQUIRE = "acquire"
    GAP = "gap"
    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"
    RENEW = "renew"
    EXPIRE = "lock expires"
    CLOSE = "session closes"
    CLOSE_UNCOUNTED = "session closes (4.1)"
    LOG_START = "log start passes"
    VANISH = "compacted or aborted"
    DEAD_LETTER = "dead letter written or given up"
    RELOAD = "share-partition reloaded"


class Guard(Enum):
    """When a row applies: ``(last, dead_letters)`` pairs it accepts.

    ``last`` means that the delivery count has reached the limit, ``dead_letters`` that the group
    has a dead-letter topic and the release knows what that is.
    """

    ALWAYS = frozenset({(False, False), (False, True), (True, False), (True, True)})
    BELOW_LIMIT = frozenset({(False, False), (False, True)})
    AT_LIMIT = frozenset({(True, False)})
    AT_LIMIT_WITH_DLQ = frozenset({(True, True)})
    WITHOUT_DLQ = frozenset({(False, False), (True, False)})
    WITH_DLQ = frozenset({(False, True), (True, True)})


class Effect(StrEnum):
    COUNT_UP = "count + 1"
    COUNT_DOWN = "count - 1"
    COUNT_BACK = "count back to the durable one"
    LOCK = "lock starts"
    UNLOCK = "lock ends"
    PERSIST = "durable before the response"
    PERSIST_LATER = "durable later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One row of the table.

    ``rule`` is the rule it rests on; for a terminal ``after``, the one that a later
    delivery of the record would break.
    """

    event: Event
    before: State
    after: State
    rule: str
    guard: Guard = Guard.ALWAYS
    effects: tuple[Effect, ...] = ()


def _row(event: Event, before: State, after: State, rule: str, *more: Effect | Guard) -> Transition:
    guards = [item for item in more if isinstance(item, Guard)]
    return Transition(
        event=event,
        before=before,
        after=after,
        rule=rule,
        guard=guards[0] if guards else Guard.ALWAYS,
        effects=tuple(item for item in more if isinstance(item, Effect)),
    )


_E, _S, _G, _F = Event, State, Guard, Effect
_UP, _LOCK, _OPEN, _NOW, _SOON = _F.COUNT_UP, _F.LOCK, _F.UNLOCK, _F.PERSIST, _F.PERSIST_LATER
_BACK = _F.COUNT_BACK
_BELOW, _LAST, _LAST_DLQ = _G.BELOW_LIMIT, _G.AT_LIMIT, _G.AT_LIMIT_WITH_DLQ
_HELD, _FREE, _DONE, _LEAVING, _GONE = (
    _S.ACQUIRED,
    _S.AVAILABLE,
    _S.ACKNOWLEDGED,
    _S.ARCHIVING,
    _S.ARCHIVED,
)

TABLE: tuple[Transition, ...] = (
    _row(_E.ACQUIRE, _FREE, _HELD, "DLV-01", _UP, _LOCK),
    _row(_E.GAP, _HELD, _GONE, "ACK-03", _OPEN, _NOW),
    _row(_E.ACCEPT, _HELD, _DONE, "ACK-01", _OPEN, _NOW),
    _row(_E.RELEASE, _HELD, _FREE, "ACK-02", _BELOW, _OPEN, _NOW),
    _row(_E.RELEASE, _HELD, _GONE, "DLV-10", _LAST, _OPEN, _NOW),
    _row(_E.RELEASE, _HELD, _LEAVING, "DLV-10", _LAST_DLQ, _OPEN, _NOW),
    _row(_E.REJECT, _HELD, _GONE, "ACK-07", _G.WITHOUT_DLQ, _OPEN, _NOW),
    _row(_E.REJECT, _HELD, _LEAVING, "ACK-07", _G.WITH_DLQ, _OPEN, _NOW),
    _row(_E.RENEW, _HELD, _HELD, "LCK-21", _LOCK),
    _row(_E.EXPIRE, _HELD, _FREE, "LCK-01", _BELOW, _OPEN, _SOON),
    _row(_E.EXPIRE, _HELD, _GONE, "DLV-11", _LAST, _OPEN, _SOON),
    _row(_E.EXPIRE, _HELD, _LEAVING, "DLV-11", _LAST_DLQ, _OPEN, _SOON),
    _row(_E.CLOSE, _HELD, _FREE, "LCK-18", _BELOW, _OPEN, _SOON),
    _row(_E.CLOSE, _HELD, _GONE, "DLV-12", _LAST, _OPEN, _SOON),
    _row(_E.CLOSE, _HELD, _LEAVING, "DLV-12", _LAST_DLQ, _OPEN, _SOON),
    _row(_E.CLOSE_UNCOUNTED, _HELD, _FREE, "LCK-18", _OPEN, _F.COUNT_DOWN, _SOON),
    _row(_E.LOG_START, _FREE, _GONE, "OFF-21", _SOON),
    _row(_E.LOG_START, _HELD, _GONE, "OFF-20", _OPEN, _SOON),
    _row(_E.VANISH, _FREE, _GONE, "GAP-24", _SOON),
    _row(_E.DEAD_LETTER, _LEAVING, _GONE, "DLQ-30", _SOON),
    _row(_E.RELOAD, _FREE, _FREE, "DLV-32", _BACK),
    _row(_E.RELOAD, _HELD, _FREE, "LCK-19", _OPEN, _BACK),
    _row(_E.RELOAD, _LEAVING, _LEAVING, "DLQ-32"),
)

TERMINAL = frozenset({State.ACKNOWLEDGED, State.ARCHIVED})  # States that let the start offset pass.

OVER = TERMINAL | {State.ARCHIVING}  # States in which a record is never handed out again.

ACK_EVENTS: tuple[Event, ...] = (Event.GAP, Event.ACCEPT, Event.RELEASE, Event.REJECT, Event.RENEW)
"""Events by the acknowledge type byte of the wire, 0 to 4."""

NEXT: dict[tuple[Event, State, bool, bool], Transition] = {
    (row.event, row.before, last, letters): row
    for row in TABLE
    for last, letters in sorted(row.guard.value)
}
"""The table unfolded by its guards: ``(event, state, last, dead_letters)`` to the one row."""


def step(
    event: Event, state: State, *, last: bool = False, dead_letters: bool = False
) -> Transition | None:
    """Return the row for an event in a state, or None if that cannot happen.

    ``last``: the delivery count has reached the limit. ``dead_letters``: the group has a
    dead-letter topic that is in force.
    """
    return NEXT.get((event, state, last, dead_letters))


WORDS = {
    Guard.ALWAYS: "",
    Guard.BELOW_LIMIT: "below the limit",
    Guard.AT_LIMIT: "at the limit",
    Guard.AT_LIMIT_WITH_DLQ: "at the limit, with DLQ",
    Guard.WITHOUT_DLQ: "without DLQ",
    Guard.WITH_DLQ: "with DLQ",
}


def name(state: State) -> str:
    return state.name.capitalize()


def mermaid() -> str:
    arrows: dict[tuple[State, State, Guard], list[Event]] = {}
    for row in TABLE:
        arrows.setdefault((row.before, row.after, row.guard), []).append(row.event)
    lines = ["stateDiagram-v2", f"    [*] --> {name(State.AVAILABLE)}"]
    for (before, after, guard), events in arrows.items():
        words = ", ".join(event.value for event in events)
        condition = f" [{WORDS[guard]}]" if WORDS[guard] else ""
        lines.append(f"    {name(before)} --> {name(after)}: {words}{condition}")
    lines.extend(f"    {name(state)} --> [*]" for state in sorted(TERMINAL))
    return "\n".join(lines)


def rows() -> str:
    lines = ["| event | from | to | when | what else | rule |", "|---|---|---|---|---|---|"]
    for row in TABLE:
        effects = ", ".join(effect.value for effect in row.effects)
        cells = (row.event.value, name(row.before), name(row.after), WORDS[row.guard], effects)
        lines.append("| " + " | ".join((*cells, row.rule)) + " |")
    return "\n".join(lines)


def document() -> str:
    return f"```mermaid\n{mermaid()}\n```\n\n{rows()}\n"


if __name__ == "__main__":
    sys.stdout.write(document())
