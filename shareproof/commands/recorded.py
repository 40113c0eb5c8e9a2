"""``load`` and ``analyse``: record a history, and judge recorded ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fixtures.targets import DEFAULT_TARGET
from shareproof.commands.options import (
    AsJson,
    Brokers,
    CommandConfig,
    Conf,
    LowestLevel,
    Only,
    Prefix,
    Processes,
    Seed,
    SparkOptions,
    Target,
    WorkersOn,
    asked_place,
    takes,
)
from spec.requirement import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """The options of ``shareproof load``."""

    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    seconds: Annotated[float, typer.Option(min=1, help="Duration of the load.")] = 20.0
    rate: Annotated[
        float, typer.Option(min=0, help="Records per second; 0 for as many as possible.")
    ] = 4000.0
    seed: Seed
    out: Annotated[
        Path,
        typer.Option(
            parser=asked_place, help="Output directory for the history, or a URI (s3a://…)."
        ),
    ] = Path("out")
    command_config: CommandConfig = None
    prefix: Prefix = ""
    workers_on: WorkersOn = ""
    processes: Processes = 2
    conf: Conf = None
    as_json: AsJson = False


@takes(LoadOptions)
def load(asked: LoadOptions) -> None:
    """Put a mixed load on a target, without faults, and record its history."""
    from reports.console import line, screen
    from shareproof import histories

    console = screen(stderr=True)
    line(console, f"seed {asked.seed}, target {asked.target}")
    done = histories.load(asked, console)
    if asked.as_json:
        typer.echo(json.dumps(done, indent=1))
    else:
        for name, value in done.items():
            typer.echo(f"{name}: {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyseOptions(SparkOptions):
    """The options of ``shareproof analyse``."""

    runs: Annotated[
        list[Path],
        typer.Argument(
            parser=asked_place,
            help="Directories of runs that left a history, or their URIs (s3a:, hdfs:, …).",
        ),
    ]
    control: Annotated[
        Path | None,
        typer.Option(
            parser=asked_place, help="A fault-free control run to compare broken rules with."
        ),
    ] = None
    level: LowestLevel = Level.SHOULD
    only: Only = None
    out: Annotated[
        Path | None,
        typer.Option(
            parser=asked_place, help="Output directory for the reports. Default: RUN/analysis."
        ),
    ] = None
    brief: Annotated[
        bool,
        typer.Option("--brief", help="Verdicts and witnesses only, no statistics."),
    ] = False
    as_json: AsJson = False

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return (self.out or self.runs[0] / "analysis").absolute()


@takes(AnalyseOptions)
def analyse(asked: AnalyseOptions) -> None:
    """Judge recorded histories by the invariants and write the verdicts."""
    from reports.console import line, screen, show
    from reports.plain import text_of
    from shareproof import histories

    console = screen(stderr=True)
    results = histories.analyse(asked, console)
    if asked.as_json:
        typer.echo(text_of(results), nl=False)
    else:
        show(results, screen())
        line(console, f"results in {asked.folder}")
    raise typer.Exit(results.run.exit_code)
