"""The options of a run: handed over by the command line, or read from pytest's own.

Which client it certifies follows from that and from how the adapter introduces itself.
"""

import asyncio
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest

from fixtures.adapters.shipped import command_of
from fixtures.clients.adapter import Adapter
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import UsageFault
from reports import results
from reports.results import Results
from shareproof.runner.inventory import CLIENT, read_checks
from spec.rule import Level
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


HOSTILE = "hostile reference broker"
"""What a client faces in the checks that need answers no real broker gives on request."""


@dataclass(slots=True, eq=False)
class Invocation:
    """A run that is started from within Python: its options, and afterwards its results.

    A plugin of pytest, so that neither options nor results need a way of their own through it.
    """

    options: RunOptions
    results: Results | None = None


def run_options_of(config: pytest.Config) -> RunOptions:
    invocation = invocation_of(config)
    if invocation:
        return invocation.options
    option = config.option
    values = {name: getattr(option, name) for name in options_of(RunOptions)}
    options = RunOptions.given(values | {"level": Level(option.level)})
    client = Client.from_cli(client=option.client, adapter=option.adapter)
    return checked(replace(options, client=client))


def invocation_of(config: pytest.Config) -> Invocation | None:
    plugins = config.pluginmanager.get_plugins()
    return next((each for each in plugins if isinstance(each, Invocation)), None)


def introduced(options: RunOptions) -> RunOptions:
    if options.client is None or options.client.command:
        return options
    flag, value = options.client.option
    command = words(value) if flag == "--adapter" else command_of(value)
    return replace(options, client=greet(options.client.option, command))


def words(command: str) -> tuple[str, ...]:
    try:
        split = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageFault(f"--adapter {command}: {error}.") from None
    if not split:
        raise UsageFault("--adapter: the command is empty.")
    if not shutil.which(split[0]):
        raise UsageFault(f"--adapter {command}: there is no program {split[0]}.")
    return split


def greet(option: tuple[str, str], command: Sequence[str]) -> Client:
    async def client() -> Client:
        adapter = Adapter(command)
        try:
            hello = await adapter.start()
        finally:
            await adapter.stop()
        return Client(
            option=option,
            command=tuple(command),
            name=hello.name,
            version=hello.version,
            language=hello.language,
            runtime=hello.runtime,
            capabilities=tuple(sorted(hello.capabilities)),
        )

    return asyncio.run(client())


def faced(options: RunOptions) -> Callable[[str], str]:
    if options.client is None:
        return lambda _check: ""
    hostile = {
        check.id for check in read_checks(CLIENT, drafts=True) if "hostile" in check.fixtures
    }
    return lambda check: HOSTILE if check.split("[", 1)[0] in hostile else options.target


def facing(options: RunOptions, info: ClusterInfo | None) -> results.Client | None:
    client = options.client
    if client is None:
        return None
    return results.Client(
        name=client.name,
        version=client.version,
        language=client.language,
        runtime=client.runtime,
        capabilities=client.capabilities,
        facing=options.target,
        facing_version=info.version if info else "",
        brokers={},
    )
