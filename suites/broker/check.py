"""What makes a test a check: its rules, and the situations in which it is played.

A check makes one topic, one partition, one member and one session, and begins at offset 0 of a
partition that nobody has touched. A defect that acts from the second partition on, inside a batch,
or behind a reload, is not met there. So ``@check(..., crossed=...)`` plays it again in other
set-ups, and the check does not know: partitions and offsets are translated on the way out and back.
What each set-up brings about is said in :data:`SITUATIONS`, and which it is in :data:`SETUPS`.
"""

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from fixtures.clients.access import refusal
from spec.verdict import OutOfReach, Undecided
from suites.broker.crossing import Below, CrossedEnv, CrossedStore, Setup
from suites.judge import AS_WRITTEN, Judge

IDLE = "nothing in flight"
ACROSS_START, ACROSS_END = "range across the start", "range across the end"
ACROSS_GAP, ACROSS_BATCHES = "range across a gap", "range across batches"
IN_LISTS = "many in one request"

SITUATIONS = MappingProxyType(
    {
        AS_WRITTEN: "the set-up that the check itself makes",
        "second topic": "the topic is the second of three in the session and in every request",
        "second partition": "the partition is not the topic's first, and not its last",
        "second session": "the member has opened and closed a session before",
        "second member": "another member joined before, and holds records right below",
        "start inside a batch": "the first record lies in the middle of a record batch",
        "compressed batches": "the records are compressed, by a codec drawn for the check",
        "two batches": "records that the check writes as one batch are two",
        "stored start": "the start offset, and what is below it, was read back from the state",
        IDLE: "nothing is acquired: never yet, not any more, or not since the state was loaded",
        ACROSS_START: "a range reaches from below the start offset to above it",
        ACROSS_END: "a range reaches beyond what was acquired",
        ACROSS_GAP: "a range reaches across offsets without records",
        ACROSS_BATCHES: "a range reaches across record batches",
        IN_LISTS: "every list of a request has three elements or more, and a bad one at any place",
        "reload": "the state is loaded again before another member looks at what is left",
    }
)
"""What a rule can be met in. Everything but the first is brought about by a set-up below."""

BESIDE, BEHIND, RELOADED = "beside", "behind", "reloaded"
AMONG, KEYS = "among", "keys"

SETUPS: Mapping[str, Setup | type[CrossedStore]] = MappingProxyType(
    {
        BESIDE: Setup(beside=True, below=Below.DELETED, compressed=True),
        BEHIND: Setup(below=Below.HELD, compressed=True, two_batches=True),
        RELOADED: Setup(below=Below.SETTLED, reloads=True),
        # Translates nothing, so that checks which name topics and offsets can be played.
        AMONG: Setup(among=True, compressed=True),
        KEYS: CrossedStore,
    }
)
"""Set-ups by the name that a check's id shows. Each brings about several situations at once."""

Check = Callable[..., Coroutine[Any, Any, None]]


def in_situations(check: Check, setups: Sequence[str], situations: Sequence[str]) -> Check:
    """Return a check that is played as it is written, and in each of some set-ups.

    ``situations`` are those that it brings about itself, on top of those of its set-ups. Where a
    set-up is out of the target's reach, or refused by it, the check is played as it is written.

    The check takes ``judge``, and ``env`` or ``store``. It may use what goes through queues,
    consumers and their sessions, or through keys, which are translated; not topics by name, raw
    requests, or the stored state, unless its set-up translates nothing.
    """

    @functools.wraps(check)
    async def play(*, judge: Judge, setup: str = AS_WRITTEN, **given: Any) -> None:
        judge.situations = (AS_WRITTEN, *situations)
        if setup == AS_WRITTEN:
            await check(judge=judge, **given)
            return
        name = "env" if "env" in given else "store"
        made, part = SETUPS[setup], given[name]
        elsewhere = CrossedEnv(part, made) if isinstance(made, Setup) else made(part)
        try:
            await check(judge=judge, **given | {name: elsewhere})
        except Undecided as error:
            # The target cannot be put there, which says nothing of the check itself.
            env = elsewhere.env if isinstance(elsewhere, CrossedStore) else elsewhere
            if not isinstance(error, OutOfReach) and not refusal([env.cluster.transcript]):
                raise
            elsewhere.met = {AS_WRITTEN}
            await check(judge=judge, **given)
        finally:
            judge.situations = (*situations, *elsewhere.met)

    if not setups:
        return play
    signature = inspect.signature(check)
    extra = inspect.Parameter("setup", inspect.Parameter.KEYWORD_ONLY)
    parameters = [*signature.parameters.values(), extra]
    play.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    named = [pytest.param(name, marks=pytest.mark.crossed) for name in setups]
    first = pytest.mark.parametrize("setup", [AS_WRITTEN, *named]).mark
    play.pytestmark = [first, *getattr(check, "pytestmark", [])]  # type: ignore[attr-defined]
    return play


Names = str | Sequence[str]


def check(
    *rules: str,
    fast: bool = False,
    feature: Names = (),
    needs: Names = (),
    crossed: Names = (),
    meets: Names = (),
    solo: Mapping[str, object] | None = None,
    timeout: float | None = None,
    moves: bool = False,
    draft: str = "",
) -> Callable[[Check], Check]:
    """Say which rules a check judges.

    Args:
        *rules: their ids. One rule is judged by ``judge.equal``, several by ``judge[rule].equal``.
        fast: whether it takes less than about two seconds, and so is part of the ``--fast`` subset.
        feature: what it needs that a ledger may declare absent.
        needs: what it needs of the client under test; ``a|b`` needs one of them.
        crossed: set-ups in which it is played again, see :mod:`suites.broker.check`.
        meets: situations that it brings about itself.
        solo: broker properties of the cluster of its own that it needs, of one broker or as many
            as ``brokers`` says.
        timeout: seconds, if it needs more than the usual minute.
        moves: whether this check of a stage only moves leaders, and may do so on somebody's
            cluster.
        draft: why it is not trusted yet.
    """
    marks = [pytest.mark.rule(*rules)]
    marks += [pytest.mark.feature(name) for name in _names(feature)]
    marks += [pytest.mark.needs(*_names(needs))] if needs else []
    marks += [pytest.mark.fast] if fast else []
    marks += [pytest.mark.solo(dict(solo))] if solo is not None else []
    marks += [pytest.mark.timeout(timeout)] if timeout else []
    marks += [pytest.mark.moves] if moves else []
    marks += [pytest.mark.draft(draft)] if draft else []

    def declare(function: Check) -> Check:
        if crossed or meets:
            function = in_situations(function, _names(crossed), _names(meets))
        for mark in marks:
            function = mark(function)
        return function

    return declare


def _names(given: Names) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given
