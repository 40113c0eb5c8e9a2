"""Mutants of the reference broker, in virtual time: does each die, can each check fail?

All checks on the honest broker first, then all mutants, then all checks that rejected none of them:
these meet mutants of their area, and alterations in front of the honest reference broker.
"""

import hashlib
import multiprocessing
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field

from fixtures.reference.mutants import MUTANTS
from reports import evidence
from reports.evidence import Entry
from tools.campaign import rejections
from tools.campaign.options import Options, Outcome, Progress, T, means_check, means_rule, nothing
from tools.campaign.rejections import Control

KINDS = (evidence.REFERENCE_MUTANT, evidence.ALTERATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    mutants: Sequence[str]
    checks: Sequence[str]
    seed: int = 1
    full: bool = False  # Whether each mutant meets all checks of its rules, or what kills it.
    workers: int = 0  # Processes at a time; 0 for as many as there are processors.


@dataclass(slots=True, kw_only=True)
class Seen:
    plan: Plan
    rejections: list[Entry] = field(default_factory=list)
    controls: dict[str, Control] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Of every frame between the checks and the honest broker; the seed decides it."""
        lines = [f"{check} {self.controls[check].digest}\n" for check in sorted(self.controls)]
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    @property
    def troubled(self) -> list[Control]:
        return [one for one in self.controls.values() if one.trouble]

    @property
    def alive(self) -> list[str]:
        return [name for name in self.plan.mutants if not killers(self.rejections, name)]

    @property
    def beyond(self) -> list[str]:
        return [check for check, one in self.controls.items() if not one.reachable]

    @property
    def blind(self) -> list[str]:
        beyond, seen = set(self.beyond), {one.check for one in self.rejections}
        return [check for check in self.plan.checks if check not in beyond and check not in seen]


def killers(entries: Iterable[Entry], mutant: str) -> list[Entry]:
    rules = MUTANTS[mutant].rules
    killed = [one for one in entries if one.name == mutant and rejections.kills(one)]
    return sorted(killed, key=lambda one: (rules.index(one.rule), one.check))


def noticed(entries: Iterable[Entry], check: str) -> list[Entry]:
    on_reference = (e for e in entries if e.check == check and e.release == evidence.REFERENCE)
    found = [one for one in on_reference if one.verdict == "fail" and one.kind in KINDS]
    altered = evidence.ALTERATION
    return sorted(found, key=lambda one: (not rejections.kills(one), one.kind == altered, one.name))


def carry_out(seen: Seen, known: Sequence[Entry], progress: Progress) -> None:
    plan = seen.plan
    altered: dict[str, dict[str, None]] = defaultdict(dict)  # what a check fails on, really
    for one in known:
        if one.kind == evidence.ALTERATION and one.release != evidence.REFERENCE:
            altered[one.check][one.name] = None
    with pool(plan.workers) as workers:
        controls = (workers.submit(rejections.control, check, plan.seed) for check in plan.checks)
        for control in each(controls, "checks on the honest broker", progress):
            seen.controls[control.check] = control
        hunts = []
        for name in plan.mutants:
            leads = [(one.check, one.seed or 1) for one in killers(known, name)]
            hunts.append(workers.submit(rejections.hunt_mutant, name, plan.seed, leads, plan.full))
        for found in each(hunts, "mutants", progress):
            seen.rejections += found
        hunts = []
        for check in seen.blind:
            leads = [(rejections.target_of(one), one.seed or 1) for one in noticed(known, check)]
            names = list(altered[check])
            hunts.append(workers.submit(rejections.hunt_for, check, plan.seed, leads, names))
        for found in each(hunts, "checks that killed none of these", progress):
            seen.rejections += found


def pool(workers: int) -> ProcessPoolExecutor:
    # Fresh processes: a copy of this one would have copies of its threads' locks, too.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers or os.cpu_count(), mp_context=context)


def each(futures: Iterable[Future[T]], what: str, progress: Progress) -> Iterator[T]:
    waiting = list(futures)
    progress(what, 0, len(waiting))
    for done, future in enumerate(as_completed(waiting), 1):
        yield future.result()
        progress(what, done, len(waiting))


def everything(*, drafts: bool = False) -> Plan:
    return Plan(mutants=tuple(MUTANTS), checks=rejections.playable(drafts=drafts))


def matching(plan: Plan, word: str) -> tuple[list[str], list[str]]:
    checks = [check for check in plan.checks if means_check(word, rejections.checks()[check])]
    mutants = [n for n in plan.mutants if word == n or means_rule(word, MUTANTS[n].rules)]
    return mutants, checks


def play(options: Options) -> Outcome:
    whole = everything(drafts=bool(options.only))  # whoever names a draft has it played
    mutants, checks = dict[str, None](), dict[str, None]()
    for word in options.only:
        found, reached = matching(whole, word)
        if not found and not reached:
            raise nothing(word)
        mutants |= dict.fromkeys(found)
        checks |= dict.fromkeys(reached)
    plan = Plan(
        mutants=tuple(mutants) if options.only else whole.mutants,
        checks=tuple(checks) if options.only else whole.checks,
        seed=options.seed,
        full=options.full,
        workers=options.workers,
    )
    seen, store = Seen(plan=plan), options.store
    try:
        carry_out(seen, store.known, options.progress)
    finally:
        if options.full:
            old = (one for one in store.known if one.kind == evidence.REFERENCE_MUTANT)
            store.drop([one for one in old if one.name in seen.plan.mutants])
        store.add(seen.rejections)
    return _outcome(seen)


def replay(entries: Sequence[Entry], options: Options) -> list[Entry]:
    entries = [one for one in entries if one.check in rejections.checks()]
    seen: set[tuple[str, ...]] = set()
    with pool(options.workers) as workers:
        plays = [workers.submit(rejections.again, one) for one in entries]
        for found in each(plays, "entries on the reference broker", options.progress):
            options.store.add(found)
            seen |= {one.key for one in found}
    return [one for one in entries if one.key not in seen]


def _outcome(seen: Seen) -> Outcome:
    plan, alive, blind, beyond = seen.plan, seen.alive, seen.blind, seen.beyond
    problem = "the honest broker does not satisfy"
    outcome = Outcome(faults=[f"{problem} {one.check}: {one.trouble}" for one in seen.troubled])
    for name in alive:
        mutant = MUTANTS[name]
        outcome.broken.append(f"alive: {name} ({', '.join(mutant.rules)}): {mutant.sentence}")
    outcome.broken += [f"rejects nothing: {check}" for check in blind]
    mutants, checks = len(plan.mutants), len(plan.checks)
    dead, able = mutants - len(alive), checks - len(blind) - len(beyond)
    outcome.said.append(f"{dead} of {mutants} mutants killed")
    if plan.checks:
        out = f", {len(beyond)} out of its reach" if beyond else ""
        outcome.said += [
            f"{able} of {checks} checks reject a broken reference broker{out}",
            f"transcripts of the honest broker, seed {plan.seed}: {seen.digest}",
        ]
    counts = {"mutants": mutants, "killed": dead, "checks": checks, "rejecting": able}
    cases = sum(one.cases for one in seen.controls.values())
    outcome.more = {
        "digest": seen.digest,
        "summary": {**counts, "beyond": len(beyond), "cases": cases},
        "alive": alive,
        "blind": blind,
        "beyond": beyond,
        "troubled": {one.check: one.trouble for one in seen.troubled},
        "mutants": {
            name: {
                "sentence": MUTANTS[name].sentence,
                "rules": list(MUTANTS[name].rules),
                "killed_by": {one.check: one.rule for one in killers(seen.rejections, name)},
            }
            for name in plan.mutants
        },
    }
    return outcome
