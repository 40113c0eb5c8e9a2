"""``load`` and ``analyse``: record a history, and judge recorded ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fixtures.targets import DEFAULT_TARGET
from shareproof.commands.options import AsJson, Brokers, LowestLevel, Only, Seed, Target
from spec.requirement import Level


def load(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 3,
    seconds: Annotated[float, typer.Option(min=1, help="How long to produce.")] = 20.0,
    rate: Annotated[
        float, typer.Option(min=0, help="Records a second; 0 for as many as possible.")
    ] = 4000.0,
    seed: Seed = None,
    out: Annotated[Path, typer.Option(help="Directory for the history.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Run a mixed load against a target, without faults, and record its history."""
    from reports.console import line, screen
    from shareproof import histories
    from suites.options import new_seed

    chosen = new_seed() if seed is None else seed
    console = screen(stderr=True)
    line(console, f"seed {chosen}, target {target}")
    done = histories.load(
        target=target,
        brokers=brokers,
        seconds=seconds,
        rate=rate,
        seed=chosen,
        out=out.absolute(),
        console=console,
    )
    if as_json:
        typer.echo(json.dumps(done, indent=1))
    else:
        for name, value in done.items():
            typer.echo(f"{name}: {value}")


def analyse(
    runs: Annotated[list[Path], typer.Argument(help="Directories of runs that left a history.")],
    *,
    control: Annotated[
        Path | None, typer.Option(help="A run without faults, to compare broken rules with.")
    ] = None,
    master: Annotated[
        str, typer.Option(help="Where Spark runs: local[N] or spark://HOST:PORT.")
    ] = "local[*]",
    memory: Annotated[str, typer.Option(help="Memory of Spark's driver and executors.")] = "2g",
    level: LowestLevel = Level.SHOULD,
    only: Only = None,
    out: Annotated[Path | None, typer.Option(help="Directory for results.json.")] = None,
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Verdicts and witnesses only, no statistics."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge recorded histories by the invariants and write the verdicts."""
    from reports.console import line, screen, show
    from reports.plain import text_of
    from shareproof import histories
    from suites.options import words

    console = screen(stderr=True)
    where = (out or runs[0] / "analysis").absolute()
    results = histories.analyse(
        runs,
        control=control,
        master=master,
        memory=memory,
        level=level,
        only=words(only or []),
        out=where,
        brief=brief,
        console=console,
    )
    if as_json:
        typer.echo(text_of(results), nl=False)
    else:
        show(results, screen())
        line(console, f"results in {where}")
    raise typer.Exit(results.run.exit_code)
