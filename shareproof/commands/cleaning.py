"""``clean``: remove what killed runs left behind on somebody's cluster."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from fixtures.interface.names import UsageFault
from fixtures.interface.target import TargetOptions
from fixtures.targets import open_target
from shareproof.commands.options import AsJson, CommandConfig, Target

if TYPE_CHECKING:
    from fixtures.targets.leftovers import Cleaned


def clean(
    *,
    target: Target = "external",
    command_config: CommandConfig = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be removed, and remove nothing.")
    ] = False,
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

    config = str(command_config or "")
    name = asked_target(target, config)
    if not isinstance(innermost(name), ExternalName):
        raise UsageFault(f"--target {name}: its brokers end with the run; give external:HOST:PORT.")
    cluster = open_target(name, TargetOptions(security=security_of(config)))
    cluster.start()
    done = run_blocking(clean_cluster(cluster.info, dry_run=dry_run))
    if as_json:
        typer.echo(json.dumps(asdict(done), indent=1))
    else:
        for sentence in _told(done, dry_run=dry_run):
            line(screen(), sentence)
    raise typer.Exit(FAULT if done.left else OK)


def _told(done: Cleaned, *, dry_run: bool) -> list[str]:
    told = []
    for kind, names in done.found.items():
        gone = [name for name in names if name not in done.left]
        told += [f"{'found' if dry_run else 'removed'} {len(gone)} {kind}"] if gone else []
        told += [f"  {name}" for name in gone] if dry_run else []
    told += [f"left: {name}: {why}" for name, why in sorted(done.left.items())]
    told += [f"left alone: {prefix}* of a run that goes on" for prefix in done.busy]
    told += [f"not looked for: {sentence}" for sentence in done.blind]
    return told or ["nothing is left behind"]
