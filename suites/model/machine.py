"""The Hypothesis state machine: members of a share group doing whatever comes to its mind.

Hypothesis thinks up actions, the player plays them on a real broker, and the model judges. Rules
that the target's ledger knows to be broken say nothing new: they end the example and are counted.

All actions are one rule of the machine, because Hypothesis leaves whole rules out of an example
(swarm testing), and one in which nobody ever fetches shows nothing. What is left out here is some
of the disturbances, which every example chooses anew.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from spec.verdict import Undecided, Violation
from suites.model.actions import Action, Do
from suites.model.environment import Environment
from suites.model.members import MEMBER_COUNT
from suites.model.player import Player
from suites.model.tally import Tally

T = TypeVar("T")

MEMBERS = (
    [Do.PRODUCE] * 5
    + [Do.FETCH] * 4
    + [Do.RACE] * 2
    + [Do.ACK] * 6
    + [Do.ACK_ON_FETCH] * 3
    + [Do.WAIT, Do.INTRUDE]
)
"""What members do all the time, by how often."""

DISTURBANCES = (
    Do.CLOSE,
    Do.DROP,
    Do.LEAVE,
    Do.DELETE,
    Do.MOVE,
    Do.LIMIT,
    Do.LOOK,
    Do.CUT,
)
"""What happens now and then."""

_NEEDS_HOLDER = frozenset({Do.ACK, Do.ACK_ON_FETCH, Do.WAIT})
_OFTEN = 4
"""How many actions of members there are for each disturbance."""

seats = st.integers(0, MEMBER_COUNT - 1)
records = st.integers(1, 10)
modes = st.sampled_from([0, 0, 1])
waits = st.sampled_from([0, 0, 50])
types = st.lists(st.sampled_from([1, 2, 1, 2, 3, 4, 0]), min_size=1, max_size=8).map(tuple)
pauses = st.sampled_from([100, 300, 900, 1000, 1100, 1500, 4200])

_FIELDS: dict[Do, dict[str, st.SearchStrategy[object]]] = {
    Do.PRODUCE: {"n": st.integers(1, 8)},
    Do.FETCH: {"seat": seats, "n": records, "mode": modes, "wait": waits},
    Do.RACE: {"seat": seats, "other": seats, "n": records, "mode": modes, "wait": waits},
    Do.ACK: {"seat": seats, "types": types},
    Do.ACK_ON_FETCH: {"seat": seats, "n": records, "mode": modes, "types": types},
    Do.INTRUDE: {"seat": seats, "other": seats, "types": types},
    Do.CLOSE: {"seat": seats, "types": st.one_of(st.just(()), types)},
    Do.DROP: {"seat": seats},
    Do.LEAVE: {"seat": seats},
    Do.WAIT: {"n": pauses},
    Do.DELETE: {"n": st.integers(1, 2)},
    Do.CUT: {"n": st.integers(1, 3)},
    Do.MOVE: {},
    Do.LIMIT: {"n": st.integers(2, 5)},
    Do.LOOK: {},
}


def _built(kind: Do) -> st.SearchStrategy[Action]:
    return st.builds(Action, do=st.just(kind), **_FIELDS[kind])


_ACTIONS = {kind: _built(kind) for kind in Do}


class Lockstep(RuleBasedStateMachine):
    """One example: a fresh topic and group, and actions until Hypothesis has enough."""

    field: Environment
    tally: Tally

    def __init__(self) -> None:
        super().__init__()
        self.player: Player | None = None
        self.over = self.tally.done
        if not self.over:
            self.player = self._guard(self.field.begin())

    def _guard(self, work: Awaitable[T]) -> T | None:
        """Run a step; an expected violation or an undecided step ends the example."""
        try:
            return self.field.runner.run(_coroutine(work))
        except Undecided as reason:
            self.tally.undecided[str(reason)] += 1
        except Violation as violation:
            if not self.field.expected(violation.rule):
                self.tally.keep(violation, self.player.script if self.player else [])
                raise
            self.tally.expected[violation.rule] += 1
        self.over = True
        return None

    @initialize(chosen=st.lists(st.sampled_from(DISTURBANCES), min_size=1, unique=True))
    def choose(self, chosen: list[Do]) -> None:
        self.chosen = chosen

    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        if self.player is None or self.over:
            return
        kind = data.draw(st.sampled_from([*MEMBERS * _OFTEN, *self._disturbing()]))
        holders = self.player.holders
        if kind in _NEEDS_HOLDER and not holders:
            kind = Do.FETCH
        action = data.draw(_ACTIONS[kind])
        if kind in _NEEDS_HOLDER:
            action = replace(action, seat=holders[action.seat % len(holders)])
        self._guard(self.player.play(action))

    def _disturbing(self) -> list[Do]:
        """Return the chosen disturbances, each so often that all of them come in time."""
        return self.chosen * max(1, len(MEMBERS) // len(self.chosen))

    def teardown(self) -> None:
        """Drain, unless the example has ended already."""
        if self.player:
            try:
                if not self.over:
                    self._guard(self.field.finish(self.player))
            finally:
                self.tally.add(self.player)


async def _coroutine(work: Awaitable[T]) -> T:
    return await work
