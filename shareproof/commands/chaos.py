"""Histories: record one, judge recorded ones, inject faults, and do that all night."""

import dataclasses
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from fixtures.interface.names import ExternalName, UsageFault, innermost
from shareproof.commands import alone, end
from shareproof.options import (
    AnalyseOptions,
    ChaosOptions,
    LoadOptions,
    NightOptions,
    place_of,
    takes,
)
from suites.options import AsJson, Option


@takes(LoadOptions)
def load(options: LoadOptions) -> None:
    """Put a mixed load on a target, without faults, and record its history."""
    from reports.console import line, screen
    from reports.verdicts import INTERRUPTED, OK
    from shareproof import histories

    console = screen(stderr=True)
    line(console, f"seed {options.seed}, target {options.target}")
    with alone(options.out):
        done = histories.load(options, console)
    if options.as_json:
        typer.echo(json.dumps(done, indent=1))
    else:
        for name, value in done.items():
            typer.echo(f"{name}: {value}")
    raise typer.Exit(INTERRUPTED if done["interrupted"] else OK)


@takes(AnalyseOptions)
def analyse(options: AnalyseOptions) -> None:
    """Judge recorded histories by the invariants and write the verdicts."""
    from reports.console import screen
    from shareproof import histories

    results = histories.analyse(options, screen(stderr=True))
    end(results, options.folder, as_json=options.as_json, what="results")


@takes(ChaosOptions)
def chaos(options: ChaosOptions) -> None:
    """Inject faults into a cluster under load, heal it, and judge the whole history."""
    from reports.console import screen
    from shareproof import histories

    histories.require("pyarrow", "numpy", "pyspark")
    from shareproof.chaos import run as runs  # it is built of what the extra brings
    from suites.options import resolved

    if options.list_faults or options.list_scenarios:
        if options.as_json:
            faults = runs.list_faults if options.list_faults else runs.list_scenarios
            typer.echo(json.dumps(faults(), indent=1))
        elif options.list_faults:
            runs.show_faults(screen())
        else:
            runs.show_scenarios(screen())
        raise typer.Exit
    with alone(options.out):
        results = runs.run(resolved(options), screen(stderr=True))
    if results is None:
        raise typer.Exit
    if not options.as_json:
        runs.show_injections(results, screen())
    end(results, options.out, as_json=options.as_json)


@takes(NightOptions)
def night(options: NightOptions) -> None:
    """Play random schedules for hours; confirm and shrink what broke; write the night's page."""
    from shareproof import histories

    histories.require("pyarrow", "numpy", "pyspark")
    from shareproof.chaos.night import shrink_run, spend
    from spec.plain import text_of
    from suites.options import resolved

    options = resolved(options)
    if isinstance(innermost(options.target), ExternalName):
        raise UsageFault("A night breaks brokers of its own only; `shareproof chaos` breaks yours.")

    def log(line: str) -> None:
        typer.echo(line, err=True)

    if options.shrink is not None:
        run = options.shrink.absolute()
        raise typer.Exit(shrink_run(run, options.target, options.brokers, options.rate, log))
    archive = options.archive.absolute()
    site = (options.site or archive.with_name(f"{archive.name}-site")).absolute()
    with alone(archive):
        found, code = spend(dataclasses.replace(options, archive=archive, site=site), log)
    if options.as_json:
        sys.stdout.write(text_of(found.summary()))
    else:
        typer.echo(found.sentence)
        for one in found.broken:
            typer.echo(f"{one.rule} ({one.rank}): {one.verdict}: {one.reason}")
            typer.echo(f"  {found.replay(one, archive)}")
    raise typer.Exit(code)


@takes()
def rejudge(
    *,
    archive: Annotated[
        list[Path],
        Option("Runs, or directories above them, or their URIs.", argument=True, parser=place_of),
    ],
    replace: Annotated[bool, Option("Let the new results take the place of the old ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge an archive again by today's rules; print which verdicts changed."""
    from shareproof import histories

    histories.require("pyarrow", "numpy", "pyspark")
    from shareproof.chaos.verdicts import rejudge_archive

    with ExitStack() as locks:
        for place in {place for place in archive if replace and place.exists()}:
            locks.enter_context(alone(place))
        raise typer.Exit(rejudge_archive(archive, replace=replace, as_json=as_json))
