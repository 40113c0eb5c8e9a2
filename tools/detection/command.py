"""``python -m tools.detection``: play the checks against broken brokers."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fixtures.reference.mutants import MUTANTS
from fixtures.targets import UsageFault
from reports.console import screen
from reports.results import suite_version
from reports.verdicts import BROKEN, FAULT, OK
from tools.detection import campaign, page, real
from tools.detection.campaign import Outcome, Plan, Tell
from tools.detection.record import FILE, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of ``python -m tools.detection``; ``workers`` 0 stands for one per processor."""

    only: tuple[str, ...]
    full: bool
    seed: int
    workers: int
    out: Path | None
    record: bool


def play(asked: Asked, *, as_json: bool) -> int:
    """Play the checks against mutants of the reference broker, tell, and return the exit code.

    Raises:
        UsageFault: there is nothing of a name that was given, or no place for the record.
    """
    if asked.record and not page.DOCS.is_dir():
        raise UsageFault("--record: that needs a checkout, this is an installation; use --out.")
    plan = replace(_chosen(asked.only), seed=asked.seed, full=asked.full, workers=asked.workers)
    began = time.monotonic()
    outcome = Outcome(plan=plan)
    try:
        with _watching(screen(stderr=True)) as tell:
            campaign.carry_out(outcome, Record.load(), tell)
    finally:
        known = campaign.updated(Record.load(), outcome)
        if asked.record:
            known.save(FILE)
            page.write(known)
    code = _code(outcome)
    document = _document(outcome, code, time.monotonic() - began)
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document, indent=1, ensure_ascii=False)
        (asked.out / "detection.json").write_text(f"{text}\n", encoding="utf-8")
        page.write(known, asked.out)
    if as_json:
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        _show(outcome)
    return code


def hunt_real(only: Sequence[str], seed: int, *, as_json: bool) -> int:
    """Hunt mutants of real Kafka, update their record, and return the exit code.

    Raises:
        UsageFault: there is no mutant of a name that was given.
    """
    names = _words(only) or list(real.REAL)
    if strange := sorted(set(names) - real.REAL.keys()):
        raise UsageFault(
            f"--only {', '.join(strange)}: no such mutant; there are {', '.join(real.REAL)}."
        )
    console = screen(stderr=True, soft_wrap=True, highlight=False)
    alive = real.hunt(names, seed, lambda line: console.print(line, markup=False))
    if as_json:
        typer.echo(json.dumps({"hunted": names, "unexplained": alive, **real.known()}, indent=1))
    return BROKEN if alive else OK


def _words(only: Sequence[str]) -> list[str]:
    return [word.strip() for text in only for word in text.split(",") if word.strip()]


def _chosen(only: Sequence[str]) -> Plan:
    plan = campaign.everything()
    words = _words(only)
    if not words:
        return plan
    mutants: dict[str, None] = {}
    checks: dict[str, None] = {}
    for word in words:
        found, reached = campaign.matching(plan, word)
        if not found and not reached:
            raise UsageFault(
                f"--only {word}: no mutant, area, rule or check is called that; "
                "docs/detection.md lists them."
            )
        mutants |= dict.fromkeys(found)
        checks |= dict.fromkeys(reached)
    return replace(plan, mutants=tuple(mutants), checks=tuple(checks))


def _code(outcome: Outcome) -> int:
    if outcome.troubled:
        return FAULT
    return BROKEN if outcome.alive or outcome.blind else OK


def _document(outcome: Outcome, code: int, seconds: float) -> dict[str, Any]:
    plan, record = outcome.plan, outcome.record
    return {
        "schema": 1,
        "run": {
            "seed": plan.seed,
            "full": plan.full,
            "command": sys.argv,
            "version": suite_version(),
            "seconds": round(seconds, 1),
            "exit_code": code,
            "digest": outcome.digest,
        },
        "summary": {
            "mutants": len(plan.mutants),
            "killed": len(plan.mutants) - len(outcome.alive),
            "checks": len(plan.checks),
            "rejecting": len(plan.checks) - len(outcome.blind) - len(outcome.beyond),
            "beyond": len(outcome.beyond),
            "cases": sum(one.cases for one in outcome.controls.values()),
        },
        "alive": outcome.alive,
        "blind": outcome.blind,
        "beyond": outcome.beyond,
        "troubled": {one.check: one.trouble for one in outcome.troubled},
        "mutants": {
            name: {
                "sentence": MUTANTS[name].sentence,
                "rules": list(MUTANTS[name].rules),
                "killed_by": {check: seen.rule for check, seen in record.killers(name)},
            }
            for name in plan.mutants
        },
        **record.to_plain(),
    }


def _show(outcome: Outcome) -> None:
    console = screen(soft_wrap=True, highlight=False)
    for one in outcome.troubled:
        console.print(
            f"the honest broker does not satisfy {one.check}: {one.trouble}", markup=False
        )
    for name in outcome.alive:
        rules = ", ".join(MUTANTS[name].rules)
        console.print(f"alive: {name} ({rules}): {MUTANTS[name].sentence}", markup=False)
    for check in outcome.blind:
        console.print(f"rejects nothing: {check}", markup=False)
    plan = outcome.plan
    dead = len(plan.mutants) - len(outcome.alive)
    console.print(f"{dead} of {len(plan.mutants)} mutants killed")
    if plan.checks:
        able = len(plan.checks) - len(outcome.blind) - len(outcome.beyond)
        beyond = f", {len(outcome.beyond)} out of its reach" if outcome.beyond else ""
        console.print(
            f"{able} of {len(plan.checks)} checks reject a broken reference broker{beyond}"
        )
        console.print(f"transcripts of the honest broker, seed {plan.seed}: {outcome.digest}")


@contextmanager
def _watching(console: Console) -> Iterator[Tell]:
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
                if not console.is_terminal:
                    console.print(f"{what}: {total}", highlight=False)
            progress.update(tasks[what], completed=done)

        yield tell
