"""``sweep``: every error code of every API that a client calls, in every rhythm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

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
    from suites.client.sweep.working import AnyCase
    from suites.options import RunOptions


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """The options of ``shareproof sweep``."""

    client: ShippedClient = ""
    adapter: Adapter = ""
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Cases by API (Metadata), setting or name (ShareFetch/*/9999/*); repeatable."
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
    settings: Annotated[
        bool,
        typer.Option(
            "--settings",
            help="Try the client's settings instead: each takes effect or is refused by name.",
        ),
    ] = False
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
    words = [word for value in asked.only or () for word in value.split(",") if word]
    if not asked.settings:
        cases = _errors(words)
        if asked.list_cases:
            _listed(cases)
    from reports.console import line, screen, show
    from reports.plain import text_of
    from shareproof.runner.adapters import introduced
    from shareproof.sweep import running, settling
    from suites.options import checked

    options = checked(_options(asked))
    assert options.client is not None
    console = screen(stderr=True)
    if asked.sequences or asked.replay:
        line(console, f"seed {asked.seed}, client {options.client.asked[1]}")
        raise typer.Exit(_sequences(asked, options))
    options = introduced(options)
    if asked.settings:
        cases = _trials(options, words)
        if asked.list_cases:
            _listed(cases)
    subject = settling.SETTINGS if asked.settings else settling.ERRORS
    line(console, f"seed {asked.seed}, client {asked.client or asked.adapter}, {len(cases)} cases")
    results = running.run(options, cases, words, asked.hostile_brokers, console, subject=subject)
    if asked.as_json:
        typer.echo(text_of(results), nl=False)
    else:
        show(results, screen())
        line(console, f"reports in {options.out}")
    raise typer.Exit(results.run.exit_code)


def _options(asked: SweepOptions) -> RunOptions:
    from suites.options import Client, RunOptions

    tested = Client.asked_for(client=asked.client, adapter=asked.adapter)
    if tested is None:
        raise UsageFault("Give --client NAME or --adapter COMMAND: one of them.")
    return RunOptions.asked(
        target="reference",
        only=None,
        seed=asked.seed,
        out=asked.out,
        profile=asked.profile,
        level=asked.level,
        client=tested,
    )


def _errors(words: Sequence[str]) -> Sequence[AnyCase]:
    from suites.client.sweep.cases import all_cases, chosen

    return _some(chosen(all_cases(), words), words)


def _trials(options: RunOptions, words: Sequence[str]) -> Sequence[AnyCase]:
    from spec.settings import settings_of
    from suites.client.settings import trials
    from suites.client.sweep.cases import chosen

    assert options.client is not None
    name, version = options.client.name, options.client.version
    found = settings_of(name, version)
    if found is None:
        raise UsageFault(f"There is no table of the settings of {name}: spec/settings/{name}.toml.")
    return _some(chosen(trials(found), words, mark="="), words)


def _some(cases: Sequence[AnyCase], words: Sequence[str]) -> Sequence[AnyCase]:
    if not cases:
        raise UsageFault(f"No case matches {', '.join(words)}; --list-cases prints them.")
    return cases


def _listed(cases: Sequence[AnyCase]) -> NoReturn:
    for case in cases:
        typer.echo(case.name)
    raise typer.Exit


def _sequences(asked: SweepOptions, options: RunOptions) -> int:
    from reports.console import screen
    from shareproof.sweep import sequencing

    if asked.replay:
        return sequencing.replay(options, asked.replay, screen(stderr=True))
    return sequencing.search(options, asked.minutes, screen(stderr=True))
