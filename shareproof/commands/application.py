"""``app``: try any program that consumes from a share group, while things break around it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from fixtures.targets import DEFAULT_TARGET, UsageFault
from shareproof.commands.options import (
    AsJson,
    Brokers,
    CommandConfig,
    Ledger,
    LowestLevel,
    Only,
    Out,
    Seed,
    Target,
    takes,
)
from spec.requirement import Level


@dataclass(frozen=True, slots=False, kw_only=True)
class AppOptions:
    """The options of ``shareproof app``."""

    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...",
            help="Your program. {bootstrap}, {topic}, {group}, {output} and {dead_letters} in it "
            "are replaced; SHAREPROOF_BOOTSTRAP, _TOPIC, _GROUP, _OUTPUT and _DEAD_LETTERS are "
            "set.",
        ),
    ] = None
    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    only: Only = None
    scenario: Annotated[
        list[str] | None, typer.Option(help="Play this scenario only; repeatable, or a,b,c.")
    ] = None
    list_them: Annotated[
        bool, typer.Option("--list-scenarios", help="List the scenarios, and exit.")
    ] = False
    name: Annotated[
        str, typer.Option(help="What reports call the program. Default: its command.")
    ] = ""
    records: Annotated[int, typer.Option(min=10, help="Records in each scenario.")] = 40
    record: Annotated[str, typer.Option(help="Value of a record, with {key} in it.")] = (
        '{"id": "{key}", "work_ms": 20}'
    )
    poison: Annotated[
        str, typer.Option(help="Value that your program cannot process, with {key} in it.")
    ] = "this is no JSON: {key}"
    poison_every: Annotated[
        int, typer.Option(min=0, help="One in so many records is poison; 0 for none.")
    ] = 10
    attempts: Annotated[
        int,
        typer.Option(
            min=0,
            help="The delivery by which your program finishes what fails. Default: the broker's "
            "limit does.",
        ),
    ] = 0
    patience: Annotated[
        float,
        typer.Option(min=1, help="Seconds without progress that end a scenario."),
    ] = 20.0
    grace: Annotated[
        float, typer.Option(min=1, help="Seconds that the program may take to end.")
    ] = 20.0
    starting: Annotated[
        float, typer.Option(min=1, help="Seconds that it may take to join the group.")
    ] = 60.0
    level: LowestLevel = Level.SHOULD
    seed: Seed
    out: Out = Path("out")
    profile: Ledger = ""
    command_config: CommandConfig = None
    as_json: AsJson = False


@takes(AppOptions)
def try_app(asked: AppOptions) -> None:
    """Run your program against a cluster, inject faults, and judge it by the FRM rules."""
    from reports.console import line, screen, show
    from reports.plain import text_of
    from shareproof.app import trying

    if asked.list_them:
        if asked.as_json:
            typer.echo(json.dumps(trying.list_scenarios(), indent=1))
        else:
            trying.show_scenarios(screen())
        raise typer.Exit
    if not asked.command:
        raise UsageFault("Give the command of your program after --.")
    results = trying.run(asked, screen(stderr=True))
    if asked.as_json:
        typer.echo(text_of(results), nl=False)
    else:
        show(results, screen())
        line(screen(stderr=True), f"reports in {asked.out}")
    raise typer.Exit(results.run.exit_code)
