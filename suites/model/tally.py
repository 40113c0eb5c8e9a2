"""What the examples of a lock-step run came to, and when there have been enough of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spec.verdict import Violation
from suites.model.actions import Action
from suites.model.player import Player


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much to do.

    Attributes:
        seed: decides over all examples.
        minutes: after these no further example begins.
        steps: after so many actions no further example begins.
        actions: how many actions an example has at most.
        shrinking: minutes for finding a shorter script once a violation is found.
    """

    seed: int
    minutes: float
    steps: int
    actions: int = 40
    shrinking: float = 2.0


@dataclass(slots=True)
class Tally:
    """The state of a run; ``told`` is called after each example, and when a violation is found."""

    plan: Plan
    told: Callable[[Tally], None]
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
        """The shortest script that ended in a violation."""
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
