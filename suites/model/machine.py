"""The Hypothesis state machine: members of a share group doing whatever comes to its mind.

Hypothesis thinks up actions, the player plays them on a real broker, and the model judges. A
violation makes Hypothesis look for a shorter script with the same outcome. Rules that the target's
ledger knows to be broken say nothing new: they end the example and are counted.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from spec.verdict import Undecided, Violation
from suites.model.actions import Action, Do
from suites.model.player import SEATS, Player

T = TypeVar("T")

Begin = Callable[[], Awaitable[Player]]

seats = st.integers(0, SEATS - 1)
modes = st.sampled_from([0, 0, 1])
types = st.lists(st.sampled_from([1, 1, 2, 2, 3, 4, 0]), min_size=1, max_size=8).map(tuple)


class Tally:
    """What all examples of a run came to."""

    def __init__(self) -> None:
        self.examples = 0
        self.actions = 0
        self.reached: Counter[str] = Counter()
        self.foreseen: Counter[str] = Counter()
        self.undecided: Counter[str] = Counter()
        self.failing: list[Action] = []
        self.violation = ""

    def add(self, player: Player) -> None:
        """Take over what one example reached."""
        self.examples += 1
        self.actions += len(player.script)
        self.reached.update(player.reached)


class Lockstep(RuleBasedStateMachine):
    """One example: a fresh topic and group, and actions until Hypothesis has enough."""

    runner: asyncio.Runner
    begin: Begin
    known: Collection[str] = ()
    tally: Tally

    def __init__(self) -> None:
        super().__init__()
        self.over = False
        self.player: Player | None = self._guard(type(self).begin())

    def _guard(self, work: Awaitable[T]) -> T | None:
        """Run a step; a foreseen violation and an undecided step end the example in peace."""
        try:
            return self.runner.run(_coroutine(work))
        except Undecided as reason:
            self.tally.undecided[str(reason)] += 1
        except Violation as violation:
            if violation.rule not in self.known:
                self._keep(violation)
                raise
            self.tally.foreseen[violation.rule] += 1
        self.over = True
        return None

    def _keep(self, violation: Violation) -> None:
        self.tally.violation = str(violation)
        self.tally.failing = list(self.player.script) if self.player else []

    def _play(self, action: Action) -> None:
        if self.player and not self.over:
            self._guard(self.player.play(action))

    @rule(n=st.integers(1, 8))
    def produce(self, n: int) -> None:
        """Append a batch of records."""
        self._play(Action(do=Do.PRODUCE, n=n))

    @rule(seat=seats, n=st.integers(1, 10), mode=modes)
    def fetch(self, seat: int, n: int, mode: int) -> None:
        """Fetch, in either acquire mode."""
        self._play(Action(do=Do.FETCH, seat=seat, n=n, mode=mode))

    @rule(seat=seats, other=seats, n=st.integers(1, 10))
    def race(self, seat: int, other: int, n: int) -> None:
        """Let two members fetch at once."""
        self._play(Action(do=Do.RACE, seat=seat, other=other, n=n))

    @precondition(lambda self: self.someone_holds())
    @rule(seat=seats, kinds=types)
    def ack(self, seat: int, kinds: tuple[int, ...]) -> None:
        """Acknowledge with every type there is."""
        self._play(Action(do=Do.ACK, seat=seat, types=kinds))

    @precondition(lambda self: self.someone_holds())
    @rule(seat=seats, n=st.integers(1, 10), kinds=st.lists(st.sampled_from([1, 2, 3]), min_size=1))
    def ack_on_fetch(self, seat: int, n: int, kinds: list[int]) -> None:
        """Acknowledge on the way with a fetch."""
        self._play(Action(do=Do.ACK_ON_FETCH, seat=seat, n=n, types=tuple(kinds)))

    @precondition(lambda self: self.someone_holds())
    @rule(seat=seats, other=seats, kinds=types)
    def intrude(self, seat: int, other: int, kinds: tuple[int, ...]) -> None:
        """Acknowledge what somebody else holds."""
        self._play(Action(do=Do.INTRUDE, seat=seat, other=other, types=kinds))

    @rule(seat=seats, way=st.sampled_from([Do.CLOSE, Do.DROP, Do.LEAVE]))
    def go(self, seat: int, way: Do) -> None:
        """Close the session, drop the connection, or leave the group."""
        self._play(Action(do=way, seat=seat))

    @precondition(lambda self: self.someone_holds())
    @rule(n=st.sampled_from([300, 900, 1100, 1500]))
    def wait(self, n: int) -> None:
        """Let time pass, so that locks end."""
        self._play(Action(do=Do.WAIT, n=n))

    @rule(n=st.integers(1, 4))
    def delete(self, n: int) -> None:
        """Delete the oldest records."""
        self._play(Action(do=Do.DELETE, n=n))

    @rule()
    def move(self) -> None:
        """Move the leadership of the partition."""
        self._play(Action(do=Do.MOVE))

    @rule(n=st.integers(2, 5))
    def limit(self, n: int) -> None:
        """Change the delivery count limit of the group."""
        self._play(Action(do=Do.LIMIT, n=n))

    @rule()
    def look(self) -> None:
        """Look at the start offset that the group shows."""
        self._play(Action(do=Do.LOOK))

    def someone_holds(self) -> bool:
        """Tell whether any member believes to hold a record."""
        return bool(self.player and any(seat.held for seat in self.player.seats))

    def teardown(self) -> None:
        """Drain, unless the example has ended already."""
        if self.player:
            try:
                if not self.over:
                    self._guard(self.player.finish())
            finally:
                self.tally.add(self.player)


async def _coroutine(work: Awaitable[T]) -> T:
    return await work
