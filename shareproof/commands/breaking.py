"""``chaos``: inject faults into a cluster under load, heal it, and judge the history."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from fixtures.targets import DEFAULT_TARGET
from shareproof.commands.options import (
    AsJson,
    Brokers,
    CommandConfig,
    HooksFile,
    LowestLevel,
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
class ChaosOptions(SparkOptions):
    """The options of ``shareproof chaos``."""

    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    faults: Annotated[
        list[str] | None,
        typer.Option(help="Faults to inject; repeatable, or a,b,c. Default: all that fit."),
    ] = None
    no_faults: Annotated[
        bool, typer.Option("--no-faults", help="Control run: inject no fault.")
    ] = False
    list_faults: Annotated[
        bool, typer.Option("--list-faults", help="List the faults, and exit.")
    ] = False
    minutes: Annotated[float, typer.Option(min=0.1, help="Duration of the load.")] = 2.0
    schedule: Annotated[
        Path | None, typer.Option(help="Replay the schedule.json of an earlier run.")
    ] = None
    overlap: Annotated[
        str,
        typer.Option(
            help="Which faults of a random schedule may overlap: whole, those that do not break "
            "what the other one relies on; free, all but two that take a broker away.",
        ),
    ] = "whole"
    scenario: Annotated[
        list[str] | None, typer.Option(help="Run a scenario, several, or all; repeatable.")
    ] = None
    list_scenarios: Annotated[
        bool, typer.Option("--list-scenarios", help="List the scenarios, and exit.")
    ] = False
    proxies: Annotated[
        str,
        typer.Option(
            help="Proxy in front of the brokers: ours or toxiproxy. Default: toxiproxy for "
            "containers, unless a fault needs to decode frames; ours otherwise.",
        ),
    ] = ""
    allow_faults: Annotated[
        bool,
        typer.Option("--allow-faults", help="Allow faults in an external cluster, by --hooks."),
    ] = False
    hooks: HooksFile = None
    command_config: CommandConfig = None
    prefix: Prefix = ""
    rejudge: Annotated[
        list[Path] | None,
        typer.Option(parser=asked_place, help="Judge an earlier run again; repeatable."),
    ] = None
    judged: Annotated[
        bool, typer.Option("--judge/--no-judge", help="Judge the history at the end.")
    ] = True
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Fail where a run leaves a rule that it is for unexercised, misses a kind of "
            "fault of its scenario, or excuses too many cases. For CI of this suite.",
        ),
    ] = False
    rate: Annotated[float, typer.Option(min=1, help="Records per second.")] = 600.0
    workers_on: WorkersOn = ""
    processes: Processes = 2
    level: LowestLevel = Level.SHOULD
    seed: Seed
    out: Annotated[
        Path,
        typer.Option(
            parser=asked_place, help="Output directory, or a URI, for history and reports."
        ),
    ] = Path("out")
    as_json: AsJson = False


@takes(ChaosOptions)
def break_things(asked: ChaosOptions) -> None:
    """Inject faults into a cluster under load, heal it, and judge the whole history."""
    from reports.console import line, screen, show
    from reports.plain import text_of
    from shareproof import histories

    histories.require("pyarrow", "numpy", "pyspark")
    from fixtures.targets.asked import asked_target
    from shareproof.chaos import breaking as chaos  # it is built of what the extra brings

    if asked.list_faults or asked.list_scenarios:
        _list(asked)
        raise typer.Exit
    asked = replace(asked, target=asked_target(asked.target, str(asked.command_config or "")))
    results = chaos.run(asked, screen(stderr=True))
    if results is None:
        line(screen(stderr=True), f"not judged: shareproof chaos --rejudge {asked.out}")
        raise typer.Exit
    if asked.as_json:
        typer.echo(text_of(results), nl=False)
    else:
        chaos.show_struck(results, screen())
        show(results, screen())
        line(screen(stderr=True), f"reports in {asked.out}")
    raise typer.Exit(results.run.exit_code)


def _list(asked: ChaosOptions) -> None:
    """Print the faults, or the scenarios."""
    from reports.console import screen
    from shareproof.chaos import breaking as chaos

    if asked.as_json:
        listed = chaos.list_faults() if asked.list_faults else chaos.list_scenarios()
        typer.echo(json.dumps(listed, indent=1))
    elif asked.list_faults:
        chaos.show_faults(screen())
    else:
        chaos.show_scenarios(screen())
