"""``broker`` and ``client``: run the checks, and end with the verdict's exit code."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from fixtures.targets import DEFAULT_TARGET, UsageFault
from shareproof.commands.options import (
    Adapter,
    AsJson,
    BrokerJvm,
    BrokerOption,
    Brokers,
    CommandConfig,
    Drafts,
    Fast,
    HooksFile,
    Ledger,
    LowestLevel,
    Only,
    Out,
    Prefix,
    SecondConfig,
    Seed,
    ShippedClient,
    StrictReach,
    Target,
    Tier,
    Topics,
    Workers,
    takes,
)
from spec.requirement import Level
from spec.tiers import ALL

if TYPE_CHECKING:
    from suites.options import Client, RunOptions


@dataclass(frozen=True, kw_only=True)
class Certification:
    """The options that ``shareproof broker`` and ``shareproof client`` share."""

    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    only: Only = None
    level: LowestLevel = Level.SHOULD
    seed: Seed
    out: Out = Path("out")
    fast: Fast = False
    drafts: Drafts = False
    strict_reach: StrictReach = False
    workers: Workers = None
    profile: Ledger = ""
    broker_option: BrokerOption = None
    broker_jvm: BrokerJvm = None
    command_config: CommandConfig = None
    prefix: Prefix = ""
    as_json: AsJson = False

    def options(self, client: Client | None = None) -> RunOptions:
        """Return what the run is asked to do."""
        from suites.options import RunOptions

        names = {field.name for field in fields(RunOptions)} - {"client"}
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return RunOptions.asked(
            **{name: given[name] for name in names & given.keys()}, client=client
        )


@dataclass(frozen=True, kw_only=True)
class BrokerOptions(Certification):
    """The options of ``shareproof broker``."""

    tier: Tier = ALL

    expect_version: Annotated[
        str, typer.Option(help="Judge an external target as this release.")
    ] = ""
    topics: Topics = None
    second_config: SecondConfig = None
    hooks: HooksFile = None


@dataclass(frozen=True, kw_only=True)
class ClientOptions(Certification):
    """The options of ``shareproof client``."""

    client: ShippedClient = ""
    adapter: Adapter = ""
    brokers: Brokers = 1


@takes(BrokerOptions)
def broker(asked: BrokerOptions) -> None:
    """Test a broker against the rules and write a report."""
    _certify(asked, asked.options())


@takes(ClientOptions)
def client(asked: ClientOptions) -> None:
    """Test a client library against the rules and write its certificate."""
    from suites.options import Client

    tested = Client.asked_for(client=asked.client, adapter=asked.adapter)
    if tested is None:
        raise UsageFault("Give --client NAME or --adapter COMMAND: one of them.")
    _certify(asked, asked.options(tested))


def _certify(asked: Certification, options: RunOptions) -> NoReturn:
    from reports.console import line, screen
    from reports.plain import text_of
    from shareproof.runner.run import run_checks, show_end

    console = screen(stderr=True)
    ended = run_checks(options, asked.workers, console)
    if asked.as_json and ended.results:
        typer.echo(text_of(ended.results), nl=False)
    else:
        show_end(ended, screen(stderr=asked.as_json))
        line(console, f"reports in {options.out}")
    raise typer.Exit(ended.code)
