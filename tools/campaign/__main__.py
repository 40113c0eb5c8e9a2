"""``python -m tools.detection``: does the suite notice broken brokers?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shareproof.cli import run
from tools.detection import command


def self_test(
    *,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Mutant, area, rule or part of a check's name; repeatable, or a,b,c."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="All checks of a mutant's rules, not only what kills it."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Decides over every random choice.")] = 1,
    workers: Annotated[
        int, typer.Option("--workers", "-n", min=0, help="Processes; 0: one per processor.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Directory for detection.json and page.")] = None,
    record: Annotated[
        bool,
        typer.Option("--record", help="In a checkout: update the record and docs/detection.md."),
    ] = False,
    on_kafka: Annotated[
        bool,
        typer.Option("--real", help="Mutants of real Kafka instead; updates their record."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")
    ] = False,
) -> None:
    """Play the checks against broken brokers: does each mutant die, can each check fail?"""
    if on_kafka:
        raise typer.Exit(command.hunt_real(only or [], seed, as_json=as_json))
    asked = command.Asked(
        only=tuple(only or []), full=full, seed=seed, workers=workers, out=out, record=record
    )
    raise typer.Exit(command.play(asked, as_json=as_json))


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(self_test)
    run(app)
