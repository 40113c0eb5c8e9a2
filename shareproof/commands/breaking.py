"""``chaos``: break a cluster under load, heal it, judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fixtures.targets import DEFAULT_TARGET
from shareproof.commands.options import AsJson, Brokers, LowestLevel, Seed, Target
from spec.requirement import Level


def break_things(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 3,
    faults: Annotated[
        list[str] | None, typer.Option(help="Kinds of fault; repeatable, or a,b,c. Default: all.")
    ] = None,
    no_faults: Annotated[bool, typer.Option("--no-faults", help="A control run.")] = False,
    list_faults: Annotated[
        bool, typer.Option("--list-faults", help="List the faults and exit.")
    ] = False,
    minutes: Annotated[float, typer.Option(min=0.1, help="How long to produce.")] = 2.0,
    schedule: Annotated[
        Path | None, typer.Option(help="Play the schedule.json of an earlier run.")
    ] = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Play a scenario, some, or all; repeatable.")
    ] = None,
    list_scenarios: Annotated[
        bool, typer.Option("--list-scenarios", help="List the scenarios and exit.")
    ] = False,
    proxies: Annotated[
        str,
        typer.Option(
            help="Proxies in front of the brokers: ours or toxiproxy. In containers toxiproxy, "
            "unless a fault is about single frames.",
        ),
    ] = "",
    allow_faults: Annotated[
        bool,
        typer.Option("--allow-faults", help="Inject faults into an external cluster, by --hooks."),
    ] = False,
    hooks: Annotated[
        Path | None,
        typer.Option(help="TOML file of commands that inject and heal its faults."),
    ] = None,
    rejudge: Annotated[
        list[Path] | None, typer.Option(help="Judge an earlier run again; repeatable.")
    ] = None,
    judged: Annotated[
        bool, typer.Option("--judge/--no-judge", help="Judge the history by Spark at the end.")
    ] = True,
    rate: Annotated[float, typer.Option(min=1, help="Records a second.")] = 1000.0,
    level: LowestLevel = Level.SHOULD,
    seed: Seed = None,
    out: Annotated[Path, typer.Option(help="Directory for history and reports.")] = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Inject faults into a cluster under load, heal them, and judge the whole history."""
    from reports.console import line, screen, show
    from reports.plain import text_of
    from shareproof import histories
    from suites.options import new_seed, words

    histories.require("pyarrow", "numpy", "pyspark")
    from shareproof.chaos import breaking as chaos  # it is built of what the extra brings

    if list_faults or list_scenarios:
        _tell(scenarios=not list_faults, as_json=as_json)
        raise typer.Exit
    console = screen(stderr=True)
    if rejudge:
        results = chaos.rejudge(tuple(rejudge), out.absolute(), level, console)
    else:
        asked = chaos.Asked(
            target=target,
            brokers=brokers,
            faults=tuple(word.lower() for word in words(faults or [])),
            no_faults=no_faults,
            minutes=minutes,
            seed=new_seed() if seed is None else seed,
            schedule=schedule,
            proxies=proxies,
            allowed=allow_faults,
            hooks=hooks,
            scenarios=tuple(word.lower() for word in words(scenario or [])),
            rate=rate,
            level=level,
            out=out.absolute(),
            judged=judged,
        )
        line(console, f"seed {asked.seed}, target {target}")
        played = chaos.run(asked, console)
        if played is None:
            line(console, f"not judged: shareproof chaos --rejudge {out}")
            raise typer.Exit
        results = played
    if as_json:
        typer.echo(text_of(results), nl=False)
    else:
        chaos.show_struck(results, screen())
        show(results, screen())
        line(console, f"reports in {out}")
    raise typer.Exit(results.run.exit_code)


def _tell(*, scenarios: bool, as_json: bool) -> None:
    """Print what can be broken, or which scenarios there are."""
    from reports.console import screen
    from shareproof.chaos import breaking as chaos

    listed = chaos.list_scenarios() if scenarios else chaos.list_faults()
    if as_json:
        typer.echo(json.dumps(listed, indent=1))
    elif scenarios:
        chaos.show_scenarios(screen())
    else:
        chaos.show_faults(screen())
