"""What a run is asked to do: handed over by the command line, or read from pytest's own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from reports.results import Results
from spec.requirement import Level
from suites.options import LISTED, Client, RunOptions, checked, options_of


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("shareproof", "shareproof")
    for name, (kind, option) in options_of(RunOptions).items():
        flag, usual = f"--{name.replace('_', '-')}", getattr(RunOptions, name)
        if kind is bool:
            group.addoption(flag, action="store_true", help=option.help)
        elif option.kind is LISTED:
            group.addoption(flag, action="append", default=[], help=option.help)
        elif kind is Level:
            levels = [level.value for level in Level]
            group.addoption(
                flag, type=str.upper, choices=levels, default=usual.value, help=option.help
            )
        else:
            default = None if name == "seed" else usual
            group.addoption(flag, type=kind, default=default, help=option.help)
    group.addoption("--client", default="", help="certify this client; see shareproof client")
    group.addoption("--adapter", default="", help="certify the client behind this command")
    group.addoption("--once", action="store_true", help="play no undecided check again")


@dataclass(slots=True, eq=False)
class Commission:
    """A run that somebody starts from within Python: its options, and afterwards its results.

    A plugin of pytest, so that neither options nor results need a way of their own through it.
    """

    options: RunOptions
    results: Results | None = None


def run_options_of(config: pytest.Config) -> RunOptions:
    """Return what a run is asked to do: by a :class:`Commission`, or on pytest's command line.

    Raises:
        UsageFault: one of the options makes no sense.
    """
    commission = commission_of(config)
    if commission:
        return commission.options
    option = config.option
    values = {name: getattr(option, name) for name in options_of(RunOptions)}
    options = RunOptions.given(values | {"level": Level(option.level)})
    client = Client.asked_for(client=option.client, adapter=option.adapter)
    return checked(replace(options, client=client))


def commission_of(config: pytest.Config) -> Commission | None:
    plugins = config.pluginmanager.get_plugins()
    return next((each for each in plugins if isinstance(each, Commission)), None)
