"""What a run is asked to do: handed over by the command line, or read from pytest's own."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fixtures.targets import DEFAULT_TARGET
from reports.results import Results
from spec.requirement import Level
from spec.tiers import ALL, TIERS
from suites.options import DEFAULT_BROKERS, Client, RunOptions, checked


def add_options(parser: pytest.Parser) -> None:
    """Register what a run can be asked on pytest's command line."""
    group = parser.getgroup("shareproof", "shareproof")
    group.addoption(
        "--target",
        default=DEFAULT_TARGET,
        help="kafka:VERSION, container:IMAGE, external:HOST:PORT,... or reference",
    )
    group.addoption("--brokers", type=int, default=DEFAULT_BROKERS, help="1 or 3 (default 3)")
    group.addoption(
        "--only", action="append", default=[], help="area or rule; repeatable or comma-separated"
    )
    group.addoption(
        "--level",
        type=str.upper,
        choices=[level.value for level in Level],
        default=Level.SHOULD.value,
        help="rules from MUST down to this level must hold (default SHOULD)",
    )
    group.addoption("--client", default="", help="certify this client; see shareproof client")
    group.addoption("--adapter", default="", help="certify the client behind this command")
    group.addoption("--seed", type=int, help="repeat a run's random choices (default: new)")
    group.addoption("--out", default="", help="directory for the reports (default: none)")
    group.addoption("--fast", action="store_true", help="run the fast subset only")
    group.addoption(
        "--strict-reach", action="store_true", help="a rule that is out of reach fails the run"
    )
    group.addoption("--once", action="store_true", help="play no undecided check again")
    group.addoption("--tier", type=int, choices=TIERS, default=ALL, help="rules of this tier")
    group.addoption("--drafts", action="store_true", help="run checks that are drafts, too")
    group.addoption("--expect-version", default="", help="judge an external target as this release")
    group.addoption(
        "--profile", default="", help="ledger: a shipped name, or a path to a .toml file"
    )
    group.addoption("--command-config", default="", help="client.properties of an external target")
    group.addoption("--second-config", default="", help="the same of a second principal")
    group.addoption(
        "--topics", action="append", default=[], help="topics of an external target to use"
    )
    group.addoption("--prefix", default="", help="what names have to begin with there")
    group.addoption("--hooks", default="", help="commands that break and heal an external target")
    group.addoption(
        "--broker-option", action="append", default=[], help="broker property KEY=VALUE; repeatable"
    )
    group.addoption(
        "--broker-jvm", action="append", default=[], help="JVM option of brokers; repeatable"
    )


_ACCESS = (
    *("expect_version", "strict_reach", "tier", "command_config", "topics", "prefix"),
    *("second_config", "hooks", "broker_option", "broker_jvm"),
)


@dataclass(slots=True, eq=False)
class Commission:
    """A run that somebody starts from within Python: its options, and afterwards its results.

    A plugin of pytest, so that neither options nor results need a way of their own through it.
    """

    options: RunOptions
    results: Results | None = None


def options_of(config: pytest.Config) -> RunOptions:
    """Return what a run is asked to do: by a :class:`Commission`, or on pytest's command line.

    Raises:
        UsageFault: one of the options makes no sense.
    """
    commission = commission_of(config)
    if commission:
        return commission.options
    option = config.option
    names = ("target", "brokers", "only", "seed", "out", "fast", "drafts")
    return checked(
        RunOptions.asked(
            **{name: getattr(option, name) for name in (*names, *_ACCESS, "profile")},
            level=Level(option.level),
            client=Client.asked_for(client=option.client, adapter=option.adapter),
        )
    )


def commission_of(config: pytest.Config) -> Commission | None:
    """Return the commission that started pytest, if one did."""
    plugins = config.pluginmanager.get_plugins()
    return next((each for each in plugins if isinstance(each, Commission)), None)
