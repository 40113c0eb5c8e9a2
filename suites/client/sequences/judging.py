"""What may not happen, whatever the order of calls: the invariants of sequences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType

from fixtures.clients.member import AckType
from suites.client.harness import FLOOD
from suites.client.sequences.playing import LIMIT, Place, Story
from suites.client.wire import Acked, acked, busiest

_ASKED = {AckType.ACCEPT: "accept", AckType.REJECT: "reject"}


def judge(story: Story) -> dict[str, str]:
    """Return a sentence for each invariant that a sequence broke, by the invariant's name."""
    found = {name: look(story) for name, look in INVARIANTS.items()}
    return {name: sentence for name, sentence in found.items() if sentence}


def _returns(story: Story) -> str:
    """Every call returns, and the process lives."""
    return story.stuck


def _nothing_lost(story: Story) -> str:
    """What no application accepted or rejected is not finished on the wire."""
    for one in _sent(story):
        if one.error not in {0, None}:
            continue
        place = _place(story, one)
        if one.kind == AckType.GAP and place in story.produced:
            return f"{place} is a record and was acknowledged as a gap"
        if one.kind in _ASKED and not _was_asked(story, one, place):
            kind = AckType(one.kind).name
            return f"{place} got {kind} at {one.by.sent:.3f}, and nobody had asked for it"
    return ""


def _was_asked(story: Story, one: Acked, place: Place) -> bool:
    asked = story.asked.get((place, _ASKED[AckType(one.kind)]))
    if asked is not None and asked <= one.by.sent:
        return True
    implicit = [given for given in story.given if given.by in story.implicit]
    return one.kind == AckType.ACCEPT and any(
        given.place == place and given.at <= one.by.sent for given in implicit
    )


def _once(story: Story) -> str:
    """One delivery of a record is given to the application once."""
    seen = Counter(
        (given.by, given.place, given.count)
        for given in story.given
        if given.count is not None and given.place not in story.renewed
    )
    twice = [key for key, times in seen.items() if times > 1]
    return f"given twice with the same delivery count: {twice[0][1:]}" if twice else ""


def _goes_on(story: Story) -> str:
    """An application that comes afterwards gets everything that is left."""
    most = Counter(given.place for given in story.given)
    return "" if any(times >= LIMIT for times in most.values()) else story.left


def _bounded(story: Story) -> str:
    """Requests come at a bounded rate."""
    apis = {(one.api, one.node) for one in story.exchanges}
    for api, node in sorted(apis):
        mine = [one for one in story.exchanges if (one.api, one.node) == (api, node)]
        if (most := busiest(mine)) > FLOOD:
            return f"{most} {api} requests within a second to broker {node}, {FLOOD} at most"
    return ""


def _sent(story: Story) -> list[Acked]:
    return acked([one for one in story.exchanges if one.api in {"ShareFetch", "ShareAcknowledge"}])


def _place(story: Story, one: Acked) -> Place:
    return (story.topics.get(one.topic_id, str(one.topic_id)), one.offset)


INVARIANTS: Mapping[str, Callable[[Story], str]] = MappingProxyType(
    {
        "liveness of calls": _returns,
        "loss": _nothing_lost,
        "duplicates": _once,
        "liveness of the group": _goes_on,
        "rate": _bounded,
    }
)
"""The invariants of one sequence. Memory is looked at over many."""

TIMED = frozenset({"liveness of calls", "liveness of the group"})
"""Invariants that a slow machine can break: they count only if a replay breaks them again."""
