"""The Hypothesis state machine, run round after round, and making sure of what it finds.

Hypothesis thinks up actions, the player plays them on a real broker, and the model judges. Rules
that the target's ledger knows to be broken say nothing new: they end the example and are counted.

All actions are one rule of the machine, because Hypothesis leaves whole rules out of an example
(swarm testing), and one in which nobody ever fetches shows nothing. What is left out here is some
of the disturbances, which every example chooses anew.
"""

import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from spec.verdict import Undecided, Violation
from suites.model.actions import Action, Do
from suites.model.environment import Environment
from suites.model.player import MEMBER_COUNT, Player


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to do at most; ``steps`` are of all examples, ``actions`` of one."""

    minutes: float
    steps: int
    actions: int = 40
    shrinking: float = 2.0
    seed: int = 0


@dataclass(slots=True)
class Tally:
    plan: Plan
    told: Callable[["Tally"], None]
    examples: int = 0
    actions: int = 0
    reached: Counter[str] = field(default_factory=Counter)
    expected: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    violation: str = ""
    scripts: list[list[Action]] = field(default_factory=list)
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self.deadline = time.monotonic() + self.plan.minutes * 60

    @property
    def done(self) -> bool:
        enough = self.actions >= self.plan.steps or time.monotonic() >= self.deadline
        return enough or bool(self.violation)

    @property
    def failing(self) -> list[Action]:
        return self.scripts[-1]

    def keep(self, violation: Violation, script: Sequence[Action]) -> None:
        if not self.scripts or len(script) < len(self.failing):
            self.violation = str(violation)
            self.scripts.append(list(script))
            self.told(self)

    def add(self, player: Player) -> None:
        if self.violation:
            return
        self.examples += 1
        self.actions += len(player.script)
        self.reached.update(player.reached)
        self.told(self)


T = TypeVar("T")

# What members do all the time, by how often.
_USUAL = {Do.PRODUCE: 5, Do.FETCH: 4, Do.RACE: 2, Do.ACK: 6, Do.ACK_ON_FETCH: 3}
MEMBERS = [*Counter(_USUAL | {Do.WAIT: 1, Do.INTRUDE: 1}).elements()]
DISTURBANCES = (Do.CLOSE, Do.DROP, Do.LEAVE, Do.DELETE, Do.MOVE, Do.LIMIT, Do.LOOK, Do.CUT)
"""What happens now and then."""

_NEEDS_HOLDER = frozenset({Do.ACK, Do.ACK_ON_FETCH, Do.WAIT})
_OFTEN = 4  # How many actions of members there are for each disturbance.
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


_ACTIONS = {kind: st.builds(Action, do=st.just(kind), **_FIELDS[kind]) for kind in Do}


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

    def _guard(self, work: Coroutine[Any, Any, T]) -> T | None:
        try:
            return self.field.runner.run(work)
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
        # Each of the chosen disturbances is so frequent that all of them come in time.
        disturbances = self.chosen * max(1, len(MEMBERS) // len(self.chosen))
        kind = data.draw(st.sampled_from([*MEMBERS * _OFTEN, *disturbances]))
        holders = self.player.holders
        if kind in _NEEDS_HOLDER and not holders:
            kind = Do.FETCH
        action = data.draw(_ACTIONS[kind])
        if kind in _NEEDS_HOLDER:
            action = replace(action, seat=holders[action.seat % len(holders)])
        self._guard(self.player.play(action))

    def teardown(self) -> None:
        if self.player:
            try:
                if not self.over:
                    self._guard(self.field.finish(self.player))
            finally:
                self.tally.add(self.player)


ROUND = 10
"""Examples for one seed of Hypothesis, which would otherwise never begin to repeat itself."""


def run(field: Environment, plan: Plan, told: Callable[[Tally], None]) -> Tally:
    tally = Tally(plan, told)
    number = 0
    while not tally.done:
        seed = plan.seed + number
        machine = type("LockstepHere", (Lockstep,), {"field": field, "tally": tally})
        settings = hypothesis.settings(
            max_examples=ROUND,
            stateful_step_count=tally.plan.actions,
            deadline=None,
            database=None,
            print_blob=False,
            verbosity=Verbosity.quiet,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        )
        try:
            run_state_machine_as_test(hypothesis.seed(seed)(machine), settings=settings)
        except (Violation, hypothesis.errors.Flaky, BaseExceptionGroup):
            # One that came once and not again is one all the same; anything else is our own fault.
            if not tally.violation:
                raise
        number += 1
    if tally.violation:
        shrink(field, tally)
    return tally


def shrink(field: Environment, tally: Tally) -> None:
    """Leave out of the failing script what it does not take: halves first, single actions last."""
    deadline = time.monotonic() + tally.plan.shrinking * 60
    size = (len(tally.failing) + 1) // 2
    while size:
        before, begin = len(tally.failing), 0
        while begin < len(tally.failing):
            if time.monotonic() >= deadline:
                return
            if not _fails(field, tally, [*tally.failing[:begin], *tally.failing[begin + size :]]):
                begin += size
        again = size == 1 and len(tally.failing) < before
        size = size if again else size // 2


def _fails(field: Environment, tally: Tally, script: list[Action]) -> bool:
    try:
        field.replay(script, early=True)
    except Violation as violation:
        if not field.expected(violation.rule):
            tally.keep(violation, script)
            return True
    except Undecided:
        pass
    return False


def confirm(field: Environment, tally: Tally) -> str:
    shortest = list(tally.scripts)
    while tally.scripts:
        try:
            field.replay(tally.failing)
        except Violation as violation:
            tally.violation = str(violation)
            return "The script was played again and failed again."
        except Undecided:
            pass
        tally.scripts.pop()
    tally.scripts = shortest
    return "Played again, no script failed: it depends on what happens at the same time."
