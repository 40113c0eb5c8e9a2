"""The steps of a sequence, and how they are drawn: every call in every order, also twice.

A step is a dict that JSON can hold, so that a sequence is a script that can be played again:
``{"call": "poll", "by": 0, "ms": 300}``. ``by`` is the consumer, ``beside`` a second call of the
same consumer that another thread makes meanwhile. ``begin`` opens a consumer, subscribes it, and
polls until records come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from spec.adapter import Capability

Step = dict[str, Any]

CONSUMERS = 2
LONGEST = 14
"""Steps of a sequence at most."""

_NEEDS: Mapping[str, Capability] = {
    "unsubscribe": Capability.UNSUBSCRIBE,
    "commit_sync": Capability.COMMIT_SYNC,
    "commit_async": Capability.COMMIT_ASYNC,
    "wakeup": Capability.WAKEUP,
    "subscription": Capability.SUBSCRIPTION,
    "lock_duration": Capability.LOCK_DURATION,
}
"""What a call needs of a client."""

_KINDS = ("accept", "release", "reject")
_WHICH = ("all", "first", "last", "former")
"""Of the latest poll's records all, one, or those of an earlier poll."""


def sequences(capabilities: frozenset[str]) -> st.SearchStrategy[list[Step]]:
    """Return a strategy for sequences of calls that a client has, behind a consumer that begins."""
    modes = st.sampled_from(_modes(capabilities))
    begin = _step("begin", by=st.just(0), mode=modes)
    rest = st.lists(st.one_of(*_steps(capabilities)), min_size=1, max_size=LONGEST - 1)
    return st.builds(lambda first, others: [first, *others], begin, rest)


def _modes(capabilities: frozenset[str]) -> list[str]:
    return [mode for mode in ("explicit", "implicit") if mode in capabilities]


def _steps(capabilities: frozenset[str]) -> list[st.SearchStrategy[Step]]:
    by = st.integers(0, CONSUMERS - 1)
    modes = st.sampled_from(_modes(capabilities))
    kinds = _KINDS + (("renew",) if Capability.RENEW in capabilities else ())
    poll = _step("poll", by=by, ms=st.sampled_from([300, 0, 1000]))
    acknowledge = _step(
        "acknowledge", by=by, kind=st.sampled_from(kinds), which=st.sampled_from(_WHICH)
    )
    steps = [
        poll,
        poll,
        _step("begin", by=by, mode=modes),
        _step("open", by=by, mode=modes),
        _step("subscribe", by=by, topics=st.sampled_from([[0], [1], [0, 1]])),
        _step("close", by=by),
        _step("produce", count=st.integers(1, 3)),
        _step("pause"),
    ]
    if Capability.ACK_RECORD in capabilities or Capability.ACK_OFFSET in capabilities:
        steps += [acknowledge, acknowledge]
    steps += [_step(call, by=by) for call, need in _NEEDS.items() if need in capabilities]
    if Capability.CONCURRENT in capabilities:
        beside = [st.just({"call": "poll", "ms": 0})]
        if Capability.COMMIT_SYNC in capabilities:
            beside.append(st.just({"call": "commit_sync"}))
        steps.append(
            st.builds(lambda step, other: step | {"beside": other}, poll, st.one_of(*beside))
        )
    return steps


def _step(call: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.fixed_dictionaries({"call": st.just(call), **fields})
