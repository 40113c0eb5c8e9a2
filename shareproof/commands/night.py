"""``night``: random schedules for hours, what broke confirmed and shrunk, and a page of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fixtures.targets import DEFAULT_TARGET, UsageFault
from shareproof.commands.options import AsJson, Brokers, Seed, Target, takes


@dataclass(frozen=True, slots=True, kw_only=True)
class NightOptions:
    """The options of ``shareproof night``."""

    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    hours: Annotated[float, typer.Option(min=0, help="How long to play; one run at least.")] = 8.0
    minutes: Annotated[float, typer.Option(min=0.1, help="Duration of each run's load.")] = 2.0
    rate: Annotated[float, typer.Option(min=1, help="Records per second.")] = 600.0
    overlap: Annotated[
        str, typer.Option(help="Which faults may overlap: whole or free; see shareproof chaos.")
    ] = "whole"
    seed: Seed
    archive: Annotated[
        Path, typer.Option(help="Where nights are kept, each in a directory of its own.")
    ] = Path("nights")
    site: Annotated[
        Path | None, typer.Option(help="Where the pages go. Default: ARCHIVE-site.")
    ] = None
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the latest night, if it was stopped.")
    ] = False
    rejudge: Annotated[
        int, typer.Option(min=0, help="Latest runs of earlier nights to judge again first.")
    ] = 10
    confirm: Annotated[
        int, typer.Option(min=0, help="Replays of a schedule that broke a rule.")
    ] = 3
    shrink_most: Annotated[
        int, typer.Option("--shrink-most", min=0, help="Runs that broke a rule to shrink.")
    ] = 3
    shrink: Annotated[
        Path | None, typer.Option(help="Shrink the schedule of this run, and do nothing else.")
    ] = None
    as_json: AsJson = False


@takes(NightOptions)
def night(asked: NightOptions) -> None:
    """Play random schedules for hours; confirm and shrink what broke; write the night's page."""
    from shareproof import histories

    histories.require("pyarrow", "numpy", "pyspark")
    from reports.plain import text_of
    from shareproof.chaos.breaking import OVERLAPS
    from shareproof.chaos.night import Asked, new_night, spend
    from shareproof.chaos.shrinking import shrink_run

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    if asked.overlap not in OVERLAPS:
        raise UsageFault(f"--overlap {asked.overlap}: give {' or '.join(OVERLAPS)}.")
    if asked.shrink is not None:
        raise typer.Exit(
            shrink_run(asked.shrink.absolute(), asked.target, asked.brokers, asked.rate, tell)
        )
    archive = asked.archive.absolute()
    new = new_night(
        target=asked.target,
        seed=asked.seed,
        minutes=asked.minutes,
        hours=asked.hours,
        overlap=asked.overlap,
        rate=asked.rate,
    )
    what = Asked(
        archive=archive,
        site=(asked.site or archive.with_name(f"{archive.name}-site")).absolute(),
        brokers=asked.brokers,
        rejudge=asked.rejudge,
        confirm=asked.confirm,
        shrink=asked.shrink_most,
        resume=asked.resume,
    )
    found, code = spend(new, what, tell)
    if asked.as_json:
        sys.stdout.write(text_of(found.summary()))
    else:
        typer.echo(found.sentence)
        for one in found.broken:
            typer.echo(f"{one.rule} ({one.rank}): {one.verdict}: {one.reason}")
            typer.echo(f"  {found.replay(one, archive)}")
    raise typer.Exit(code)
