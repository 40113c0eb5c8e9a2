"""``up`` and ``doctor``: a cluster to try things on, and the prerequisites of one."""

from __future__ import annotations

import json
import signal
import sys
import threading
from dataclasses import asdict
from types import FrameType
from typing import Annotated

import typer

from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from shareproof.commands.options import AsJson, Brokers, Target


def up(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 1,
    prop: Annotated[
        list[str] | None, typer.Option("--property", help="Broker property KEY=VALUE; repeatable.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a cluster, print its bootstrap servers, and keep it until Ctrl-C."""
    from fixtures.targets.asked import asked_properties, asked_target, check_properties

    properties = asked_properties("--property", prop or [])
    check_properties("--property", properties, named := asked_target(target))
    cluster = open_target(named, TargetOptions(brokers=brokers, properties=properties))
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    try:
        cluster.start()
        info = cluster.info
        typer.echo(info.to_json() if as_json else ",".join(info.bootstrap))
        sys.stdout.flush()
        ended.wait()
    finally:
        cluster.stop()


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
