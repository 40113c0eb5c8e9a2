"""Running the state machine, round after round, and making sure of what it finds."""

from __future__ import annotations

import time
from collections.abc import Callable

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis.stateful import run_state_machine_as_test

from spec.verdict import Undecided, Violation
from suites.model.actions import Action
from suites.model.environment import Environment
from suites.model.machine import Lockstep
from suites.model.tally import Plan, Tally

ROUND = 10
"""Examples for one seed of Hypothesis, which would otherwise never begin to repeat itself."""


def run(field: Environment, plan: Plan, told: Callable[[Tally], None]) -> Tally:
    """Play examples until the plan is fulfilled or a violation is found and shrunk."""
    tally = Tally(plan, told)
    number = 0
    while not tally.done:
        _round(field, tally, plan.seed + number)
        number += 1
    if tally.violation:
        shrink(field, tally)
    return tally


def shrink(field: Environment, tally: Tally) -> None:
    """Leave out of the failing script what it does not take: halves first, single actions last.

    Hypothesis would do that too, but by many more examples than a real broker has time for.
    """
    deadline = time.monotonic() + tally.plan.shrinking * 60
    size = (len(tally.failing) + 1) // 2
    while size:
        before, begin = len(tally.failing), 0
        while begin < len(tally.failing):
            if time.monotonic() >= deadline:
                return
            shorter = [*tally.failing[:begin], *tally.failing[begin + size :]]
            if not _fails(field, tally, shorter):
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
    """Play the scripts that failed once more, the shortest one first, until one fails again.

    Returns:
        What came of it, in one sentence; the script that failed again is ``tally.failing``.
    """
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


def _round(field: Environment, tally: Tally, seed: int) -> None:
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
