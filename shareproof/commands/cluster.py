"""``up``, ``doctor``, ``clean`` and ``risks``: clusters, to try things on and to look at."""

from __future__ import annotations

import json
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fixtures.targets import DEFAULT_TARGET, TargetOptions, UsageFault, open_target, started
from shareproof.commands.pages import writing
from shareproof.options import takes
from spec.catalogue import RANKS, load_findings, load_risks
from suites.options import LISTED, AsJson, Brokers, CommandConfig, Option, Target, repeated, split

if TYPE_CHECKING:
    from fixtures.targets.leftovers import Cleaned


@takes()
def up(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 1,
    prop: Annotated[
        tuple[str, ...],
        Option("Broker property KEY=VALUE; repeatable.", "--property", kind=LISTED, parse=repeated),
    ] = (),
    as_json: AsJson = False,
) -> None:
    """Start a cluster, print its bootstrap servers, and keep it until Ctrl-C."""
    from fixtures.targets.arguments import check_properties, parse_properties, resolve_target

    properties = parse_properties("--property", prop)
    check_properties("--property", properties, named := resolve_target(target))
    cluster = open_target(named, TargetOptions(brokers=brokers, properties=properties))
    ended = threading.Event()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with started(cluster):
        info = cluster.info
        typer.echo(info.to_json() if as_json else ",".join(info.bootstrap))
        sys.stdout.flush()
        ended.wait()


@takes()
def doctor(*, as_json: AsJson = False) -> None:
    """Check prerequisites, and show how to install what is missing."""
    from rich.markup import escape
    from rich.table import Table

    from fixtures.targets.doctor import examine
    from reports.console import screen
    from reports.verdicts import FAULT

    findings = examine()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        table = Table(box=None, show_header=False)
        for finding in findings:
            lacking = "[bold red]no[/]" if finding.needed else "[yellow]no[/]"
            mark = "[green]ok[/]" if finding.ok else lacking
            table.add_row(mark, finding.name, escape(finding.detail))
            if not finding.ok and finding.remedy:
                table.add_row("", "", f"[bold]{escape(finding.remedy)}[/]")
        screen().print(table)
    raise typer.Exit(0 if all(each.ok or not each.needed for each in findings) else FAULT)


@takes()
def clean(
    *,
    target: Target = "external",
    command_config: CommandConfig = "",
    dry_run: Annotated[bool, Option("List what would be removed, and remove nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove groups, topics, configurations, quotas and ACLs that killed runs left behind."""
    from fixtures.interface.credentials import security_of
    from fixtures.interface.names import ExternalName, innermost
    from fixtures.machine.loops import run_blocking
    from fixtures.targets.arguments import resolve_target
    from fixtures.targets.leftovers import clean as clean_cluster
    from reports.console import line, screen
    from reports.verdicts import FAULT, OK

    name = resolve_target(target, command_config)
    if not isinstance(innermost(name), ExternalName):
        raise UsageFault(f"--target {name}: its brokers end with the run; give external:HOST:PORT.")
    cluster = open_target(name, TargetOptions(security=security_of(command_config)))
    cluster.start()
    done = run_blocking(clean_cluster(cluster.info, dry_run=dry_run))
    if as_json:
        typer.echo(json.dumps(asdict(done), indent=1))
    else:
        for sentence in _lines(done, dry_run=dry_run):
            line(screen(), sentence)
    raise typer.Exit(FAULT if done.left else OK)


@takes()
def risks(
    *,
    target: Target = "external",
    brokers: Brokers = 1,
    command_config: CommandConfig = "",
    release: Annotated[str, Option("The release of an external cluster, such as 4.3.1.")] = "",
    fail_on: Annotated[
        str, Option(f"Exit with 1 for avoidable risks from this rank up: {', '.join(RANKS)}.")
    ] = "stall",
    accept: Annotated[
        tuple[str, ...],
        Option(
            "Risks that the exit code is not to count, such as reset-latest or 109; repeatable.",
            kind=LISTED,
            parse=split,
        ),
    ] = (),
    out: Annotated[Path | None, Option("Output directory for a page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Read a cluster, write nothing, and list findings and configurations that users regret."""
    from contextlib import nullcontext

    from fixtures.interface.credentials import security_of
    from fixtures.interface.names import ExternalName, innermost
    from fixtures.machine.loops import run_blocking
    from fixtures.targets.arguments import resolve_target
    from reports.console import line, screen
    from reports.verdicts import BROKEN, OK
    from shareproof.risks import lines, page, read, risks_of
    from spec.ledger import load_ledger
    from spec.plain import text_of
    from spec.releases import numbers

    if fail_on not in RANKS:
        raise UsageFault(f"--fail-on {fail_on}: give one of {', '.join(RANKS)}.")
    known = {one.number for one in (*load_findings().values(), *load_risks().values())}
    if strange := [one for one in accept if one not in known]:
        raise UsageFault(f"--accept {strange[0]}: give what the list has before the colon, or 051.")
    if release:
        numbers(release)
    name = resolve_target(target, command_config)
    security = security_of(command_config)
    cluster = open_target(name, TargetOptions(brokers=brokers, security=security))
    if external := isinstance(innermost(name), ExternalName):
        cluster.start()  # and no stop, which looks for what a run would have left
    with nullcontext() if external else started(cluster):
        facts, ledger = run_blocking(read(cluster.info, release)), cluster.info.ledger
    found = risks_of(facts, load_ledger(ledger))
    if out is not None:
        with writing():
            out.mkdir(parents=True, exist_ok=True)
            (out / "risks.html").write_text(page(facts, found), encoding="utf-8")
    worst = RANKS[: RANKS.index(fail_on) + 1]
    counted = [one.risk for one in found if one.avoidable and one.risk.rank in worst]
    counts = [one.number for one in counted if one.number not in accept]
    if as_json:
        typer.echo(text_of({"facts": facts, "risks": found, "counted": counts}), nl=False)
    for sentence in () if as_json else lines(facts, found):
        line(screen(), sentence)
    if not as_json:
        line(screen(), f"exit code {BROKEN}: {', '.join(counts)}" if counts else f"exit code {OK}")
    raise typer.Exit(BROKEN if counts else OK)


def _lines(done: Cleaned, *, dry_run: bool) -> list[str]:
    rows = []
    for kind, names in done.found.items():
        gone = [name for name in names if name not in done.left]
        rows += [f"{'found' if dry_run else 'removed'} {len(gone)} {kind}"] if gone else []
        rows += [f"  {name}" for name in gone] if dry_run else []
    rows += [f"left: {name}: {why}" for name, why in sorted(done.left.items())]
    rows += [f"left alone: {prefix}* of a run that goes on" for prefix in done.busy]
    rows += [f"not looked for: {sentence}" for sentence in done.blind]
    return rows or ["nothing is left behind"]
