"""``up``, ``doctor`` and ``clean``: a cluster to try things on, what one needs, what runs left."""

from __future__ import annotations

import json
import signal
import sys
import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fixtures.targets import DEFAULT_TARGET, TargetOptions, UsageFault, open_target, started
from shareproof.options import takes
from suites.options import LISTED, AsJson, Brokers, CommandConfig, Option, Target, repeated

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
    from fixtures.targets.asked import asked_properties, asked_target, check_properties

    properties = asked_properties("--property", prop)
    check_properties("--property", properties, named := asked_target(target))
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
    from fixtures.targets.asked import asked_target
    from fixtures.targets.blocking import run_blocking
    from fixtures.targets.leftovers import clean as clean_cluster
    from reports.console import line, screen
    from reports.verdicts import FAULT, OK

    name = asked_target(target, command_config)
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


def _lines(done: Cleaned, *, dry_run: bool) -> list[str]:
    told = []
    for kind, names in done.found.items():
        gone = [name for name in names if name not in done.left]
        told += [f"{'found' if dry_run else 'removed'} {len(gone)} {kind}"] if gone else []
        told += [f"  {name}" for name in gone] if dry_run else []
    told += [f"left: {name}: {why}" for name, why in sorted(done.left.items())]
    told += [f"left alone: {prefix}* of a run that goes on" for prefix in done.busy]
    told += [f"not looked for: {sentence}" for sentence in done.blind]
    return told or ["nothing is left behind"]
