"""The whole matrix: all checks on the honest broker, all mutants, all checks that killed none."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fixtures.reference.mutants import MUTANTS
from tools.detection import hunting
from tools.detection.hunting import Control, Found, Lead
from tools.detection.playing import HONEST
from tools.detection.record import Record, merged

T = TypeVar("T")

FALSIFIED = Path(__file__).parents[2] / "evidence" / "falsified.json"
Tell = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to play.

    Attributes:
        mutants: names of mutants of the reference broker.
        checks: ids of checks.
        seed: decides over every random choice.
        full: whether each mutant meets all checks of its rules, or only what kills it.
        workers: processes at a time; 0 for as many as there are processors.
    """

    mutants: Sequence[str]
    checks: Sequence[str]
    seed: int = 1
    full: bool = False
    workers: int = 0


@dataclass(slots=True, kw_only=True)
class Outcome:
    """What came of a plan; ``record`` holds what was seen in it and nothing older."""

    plan: Plan
    record: Record = field(default_factory=Record)
    controls: dict[str, Control] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Of every frame between the checks and the honest broker; the seed decides it."""
        lines = [f"{check} {self.controls[check].digest}\n" for check in sorted(self.controls)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def troubled(self) -> list[Control]:
        """The checks that the honest broker does not satisfy: then the suite is wrong."""
        return [one for one in self.controls.values() if one.trouble]

    @property
    def alive(self) -> list[str]:
        """The mutants that no check killed by a rule that they break."""
        return [name for name in self.plan.mutants if not any(self.record.killers(name))]

    @property
    def beyond(self) -> list[str]:
        """The checks that need what no reference broker has."""
        return [check for check, one in self.controls.items() if not one.reachable]

    @property
    def blind(self) -> list[str]:
        """The checks that rejected no broken reference broker although they could be played."""
        beyond = set(self.beyond)
        return [
            check
            for check in self.plan.checks
            if check not in beyond and not self.record.rejects.get(check)
        ]


def carry_out(outcome: Outcome, known: Record, tell: Tell) -> None:
    """Play an outcome's plan, beginning each hunt with what is known to succeed.

    What was found up to an interruption is in the outcome.
    """
    plan = outcome.plan
    # Fresh processes: a copy of this one would have copies of its threads' locks, too.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(plan.workers or os.cpu_count(), mp_context=context) as pool:
        controls = (pool.submit(hunting.control, check, plan.seed) for check in plan.checks)
        for one in _each(controls, "checks on the honest broker", tell):
            outcome.controls[one.check] = one
            if one.acceptance:
                outcome.record.accepts[one.check] = one.acceptance
        hunts: Iterable[Future[Found]] = (
            pool.submit(hunting.hunt_mutant, name, plan.seed, _killers(known, name), plan.full)
            for name in plan.mutants
        )
        _note(outcome, _each(hunts, "mutants", tell))
        lies = _lies()
        hunts = (
            pool.submit(
                hunting.hunt_for, check, plan.seed, _rejected(known, check), lies.get(check, [])
            )
            for check in outcome.blind
        )
        _note(outcome, _each(hunts, "checks that killed none of these", tell))


def _each(futures: Iterable[Future[T]], what: str, tell: Tell) -> Iterator[T]:
    waiting = list(futures)
    tell(what, 0, len(waiting))
    for done, future in enumerate(as_completed(waiting), 1):
        yield future.result()
        tell(what, done, len(waiting))


def _note(outcome: Outcome, found: Iterator[Found]) -> None:
    for rejections in found:
        for check, rejection in rejections:
            outcome.record.reject(check, rejection)


def _killers(known: Record, name: str) -> list[Lead]:
    return [(check, seen.seed) for check, seen in known.killers(name)]


def _rejected(known: Record, check: str) -> list[Lead]:
    return [(seen.target, seen.seed) for seen in known.noticed(check)]


def _lies() -> dict[str, list[str]]:
    """Return the lies that made each check fail on a real broker."""
    checks = json.loads(FALSIFIED.read_text(encoding="utf-8"))["checks"]
    return {
        check: list(dict.fromkeys(lie for lies in rules.values() for lie in lies))
        for check, rules in checks.items()
    }


def everything() -> Plan:
    """Return the plan with all mutants and all checks that can be played here."""
    return Plan(mutants=tuple(MUTANTS), checks=hunting.playable())


def matching(plan: Plan, word: str) -> tuple[list[str], list[str]]:
    """Return the mutants and the checks that a word means: a name, a rule, an area."""
    rule = word.upper()

    def named(rules: Sequence[str]) -> bool:
        return any(rule in {one, one[:3]} for one in rules)

    mutants = [name for name in plan.mutants if word == name or named(MUTANTS[name].rules)]
    checks = [
        check
        for check in plan.checks
        if named(hunting.checks()[check].rules) or (len(word) > len("ACK-01") and word in check)
    ]
    return mutants, checks


def updated(known: Record, outcome: Outcome) -> Record:
    """Return what is known after a plan was carried out, without what does not exist any more.

    What met all checks of its rules is known anew; else what was known before holds on.
    """
    again = {f"{HONEST}:{name}" for name in outcome.plan.mutants if outcome.plan.full}
    kept = known.without(hunting.checks(), set(hunting.targets()) - again)
    return merged([kept, outcome.record])
