"""``broker`` and ``client``: run the checks, and end with the verdict's code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from fixtures.adapters.shipped import SHIPPED
from fixtures.targets import DEFAULT_TARGET, UsageFault
from shareproof import manual
from shareproof.commands.options import (
    AsJson,
    Brokers,
    Drafts,
    Fast,
    Ledger,
    LowestLevel,
    Only,
    Out,
    Seed,
    Target,
    Workers,
)
from spec.requirement import Level

if TYPE_CHECKING:
    from suites.options import RunOptions


def broker(
    *,
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 3,
    only: Only = None,
    level: LowestLevel = Level.SHOULD,
    seed: Seed = None,
    out: Out = Path("out"),
    fast: Fast = False,
    drafts: Drafts = False,
    workers: Workers = None,
    expect_version: Annotated[
        str, typer.Option(help="Judge an external target as this release.")
    ] = "",
    profile: Ledger = "",
    as_json: AsJson = False,
) -> None:
    """Check a broker against the rules and write a report."""
    from suites.options import RunOptions

    options = RunOptions.asked(
        target=target,
        brokers=brokers,
        only=only or [],
        level=level,
        seed=seed,
        out=out,
        fast=fast,
        drafts=drafts,
        expect_version=expect_version,
        profile=profile,
    )
    _certify(options, f"target {target}", workers, as_json=as_json)


def client(
    *,
    client: Annotated[
        str,
        typer.Option(
            help=f"A shipped adapter: {', '.join(SHIPPED)}; or NAME:VERSION.",
            autocompletion=manual.clients,
        ),
    ] = "",
    adapter: Annotated[
        str, typer.Option(help="The command of your own adapter; see docs/adapter-protocol.md.")
    ] = "",
    target: Target = DEFAULT_TARGET,
    brokers: Brokers = 1,
    only: Only = None,
    level: LowestLevel = Level.SHOULD,
    seed: Seed = None,
    out: Out = Path("out"),
    fast: Fast = False,
    drafts: Drafts = False,
    workers: Workers = None,
    profile: Ledger = "",
    as_json: AsJson = False,
) -> None:
    """Check a client library against the rules and write its certificate."""
    from suites.options import Client, RunOptions

    if bool(client) is bool(adapter):
        raise UsageFault("Give --client NAME or --adapter COMMAND: one of them.")
    options = RunOptions.asked(
        target=target,
        brokers=brokers,
        only=only or [],
        level=level,
        seed=seed,
        out=out,
        fast=fast,
        drafts=drafts,
        profile=profile,
        client=Client.asked_for(client=client, adapter=adapter),
    )
    _certify(options, f"client {client or adapter}, facing {target}", workers, as_json=as_json)


def _certify(options: RunOptions, subject: str, workers: int | None, *, as_json: bool) -> NoReturn:
    from reports.console import line, screen
    from reports.plain import text_of
    from shareproof.runner.run import run_checks, show_end

    console = screen(stderr=True)
    line(console, f"seed {options.seed}, {subject}")
    ended = run_checks(options, workers, console)
    if as_json and ended.results:
        typer.echo(text_of(ended.results), nl=False)
    else:
        show_end(ended, screen(stderr=as_json))
        line(console, f"reports in {options.out}")
    raise typer.Exit(ended.code)
