"""``shareproof self``: the suite tests itself on broken brokers, and says what it noticed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from fixtures.reference.mutants import MUTANTS
from fixtures.targets import UsageFault
from reports.results import suite_version
from reports.verdicts import BROKEN, FAULT, OK
from suites.detection import campaign, page, real
from suites.detection.campaign import Outcome, Plan, Tell
from suites.detection.record import FILE, Record


def self_test(
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Mutant, area, rule or part of a check's name; repeatable, or a,b,c."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="All checks of a mutant's rules, not only what kills it."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Decides over every random choice.")] = 1,
    workers: Annotated[
        int, typer.Option("--workers", "-n", min=0, help="Processes; 0: one per processor.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Directory for detection.json and page.")] = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="In a checkout: update the record and docs/detection.md."),
    ] = False,
    on_kafka: Annotated[
        bool,
        typer.Option("--real", help="Mutants of real Kafka instead; updates their record."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")
    ] = False,
) -> None:
    """Play the checks against broken brokers: does each mutant die, can each check fail?"""
    if record and not page.DOCS.is_dir():
        raise UsageFault("--record: that needs a checkout, this is an installation; use --out.")
    if on_kafka:
        raise typer.Exit(_hunt_real(only or [], seed, as_json))
    plan = replace(_chosen(only or []), seed=seed, full=full, workers=workers)
    began = time.monotonic()
    outcome = Outcome(plan=plan)
    try:
        with _watching(Console(stderr=True)) as tell:
            campaign.carry_out(outcome, Record.load(), tell)
    finally:
        known = campaign.updated(Record.load(), outcome)
        if record:
            known.save(FILE)
            page.write(known)
    code = _code(outcome)
    document = _document(outcome, code, time.monotonic() - began)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document, indent=1, ensure_ascii=False)
        (out / "detection.json").write_text(f"{text}\n", encoding="utf-8")
        page.write(known, out)
    if as_json:
        typer.echo(json.dumps(document, indent=1, ensure_ascii=False))
    else:
        _show(outcome)
    raise typer.Exit(code)


def _hunt_real(only: list[str], seed: int, as_json: bool) -> int:
    names = _words(only) or list(real.REAL)
    if strange := sorted(set(names) - real.REAL.keys()):
        raise UsageFault(
            f"--only {', '.join(strange)}: no such mutant; there are {', '.join(real.REAL)}."
        )
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    alive = real.hunt(names, seed, lambda line: console.print(line, markup=False))
    if as_json:
        typer.echo(json.dumps({"hunted": names, "unexplained": alive, **real.known()}, indent=1))
    return BROKEN if alive else OK


def _words(only: list[str]) -> list[str]:
    return [word.strip() for text in only for word in text.split(",") if word.strip()]


def _chosen(only: list[str]) -> Plan:
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
    console = Console(soft_wrap=True, highlight=False)
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
