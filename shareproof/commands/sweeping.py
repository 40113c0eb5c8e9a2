"""``sweep``: every error code of every API that a client calls, in every rhythm."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fixtures.targets import UsageFault
from shareproof.commands.options import (
    Adapter,
    AsJson,
    Ledger,
    LowestLevel,
    Out,
    Seed,
    ShippedClient,
    takes,
)
from spec.requirement import Level

if TYPE_CHECKING:
    from suites.options import RunOptions


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """The options of ``shareproof sweep``."""

    client: ShippedClient = ""
    adapter: Adapter = ""
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Cases by API (Metadata) or name (ShareFetch/*/9999/*); repeatable, or a,b,c."
        ),
    ] = None
    list_cases: Annotated[bool, typer.Option("--list-cases", help="List the cases, and exit.")] = (
        False
    )
    hostile_brokers: Annotated[
        int,
        typer.Option(
            "--hostile-brokers",
            "-n",
            min=1,
            help="Number of hostile brokers, each in a "
            "process of its own, with many cases at a time.",
        ),
    ] = 2
    sequences: Annotated[
        bool,
        typer.Option(
            "--sequences",
            help="Draw sequences of calls instead, and shrink those that break an invariant.",
        ),
    ] = False
    minutes: Annotated[float, typer.Option(min=0.1, help="How long to draw sequences.")] = 10.0
    replay: Annotated[Path | None, typer.Option(help="Play a script that --sequences wrote.")] = (
        None
    )
    level: LowestLevel = Level.SHOULD
    seed: Seed
    out: Out = Path("out")
    profile: Ledger = ""
    as_json: AsJson = False


@takes(SweepOptions)
def sweep(asked: SweepOptions) -> None:
    """Respond to a client's requests with every error code, and judge what it does then."""
    from suites.client.sweep.cases import chosen
    from suites.client.sweep.edges import all_cases
    from suites.options import Client

    words = [word for value in asked.only or () for word in value.split(",") if word]
    cases = chosen(all_cases(), words)
    if not cases:
        raise UsageFault(f"No case matches {', '.join(words)}; --list-cases prints them.")
    if asked.list_cases:
        for case in cases:
            typer.echo(case.name)
        raise typer.Exit
    tested = Client.asked_for(client=asked.client, adapter=asked.adapter)
    if tested is None:
        raise UsageFault("Give --client NAME or --adapter COMMAND: one of them.")
    from reports.console import line, screen, show
    from reports.plain import text_of
    from shareproof.sweep import running
    from suites.options import RunOptions

    console = screen(stderr=True)
    options = RunOptions.asked(
        target="reference",
        only=None,
        seed=asked.seed,
        out=asked.out,
        profile=asked.profile,
        level=asked.level,
        client=tested,
    )
    if asked.sequences or asked.replay:
        line(console, f"seed {asked.seed}, client {tested.asked[1]}")
        raise typer.Exit(_sequences(asked, options))
    line(console, f"seed {asked.seed}, client {tested.asked[1]}, {len(cases)} cases")
    results = running.run(options, cases, words, asked.hostile_brokers, console)
    if asked.as_json:
        typer.echo(text_of(results), nl=False)
    else:
        show(results, screen())
        line(console, f"reports in {options.out}")
    raise typer.Exit(results.run.exit_code)


def _sequences(asked: SweepOptions, options: RunOptions) -> int:
    from reports.console import screen
    from shareproof.sweep import sequencing

    if asked.replay:
        return sequencing.replay(options, asked.replay, screen(stderr=True))
    return sequencing.search(options, asked.minutes, screen(stderr=True))
