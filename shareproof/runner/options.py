"""The options of a run on pytest's command line, and back from there to one value."""

from __future__ import annotations

import pytest

from fixtures.targets import DEFAULT_TARGET
from spec.requirement import Level
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
    group.addoption("--drafts", action="store_true", help="run checks that are drafts, too")
    group.addoption("--expect-version", default="", help="judge an external target as this release")
    group.addoption(
        "--profile", default="", help="ledger: a shipped name, or a path to a .toml file"
    )


def from_pytest(config: pytest.Config, client: Client | None = None) -> RunOptions:
    """Read the options back from pytest; ``client`` is what its options were found to mean.

    Raises:
        UsageFault: one of them makes no sense.
    """
    option = config.option
    return checked(
        RunOptions.asked(
            target=option.target,
            brokers=option.brokers,
            only=option.only,
            level=Level(option.level),
            seed=option.seed,
            out=option.out,
            fast=option.fast,
            drafts=option.drafts,
            expect_version=option.expect_version,
            profile=option.profile,
            client=client,
        )
    )
