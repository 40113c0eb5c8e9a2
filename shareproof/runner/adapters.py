"""Which client a run certifies: from what was asked for to how the adapter introduces itself."""

from __future__ import annotations

import asyncio
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace

from fixtures.adapters.shipped import command_of
from fixtures.clients.adapter import Adapter
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import UsageFault
from reports import results
from shareproof.runner.inventory import CLIENT, read_checks
from suites.options import Client, RunOptions

HOSTILE = "hostile reference broker"
"""What a client faces in the checks that need answers no real broker gives on request."""


def introduced(options: RunOptions) -> RunOptions:
    """Return the options with the client as it introduces itself, if they name one that has not.

    Raises:
        UsageFault: it does not exist.
        AdapterFault: it does not say hello.
    """
    if options.client is None or options.client.command:
        return options
    flag, value = options.client.asked
    command = words(value) if flag == "--adapter" else command_of(value)
    return replace(options, client=greet(options.client.asked, command))


def words(command: str) -> tuple[str, ...]:
    """Split a command as a shell does.

    Raises:
        UsageFault: it cannot be split, is empty, or names no program.
    """
    try:
        split = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageFault(f"--adapter {command}: {error}.") from None
    if not split:
        raise UsageFault("--adapter: the command is empty.")
    if not shutil.which(split[0]):
        raise UsageFault(f"--adapter {command}: there is no program {split[0]}.")
    return split


def greet(asked: tuple[str, str], command: Sequence[str]) -> Client:
    """Start an adapter, ask it who it is, and end it.

    Raises:
        AdapterFault: it does not say hello.
    """

    async def ask() -> Client:
        adapter = Adapter(command)
        try:
            hello = await adapter.start()
        finally:
            await adapter.stop()
        return Client(
            asked=asked,
            command=tuple(command),
            name=hello.name,
            version=hello.version,
            language=hello.language,
            runtime=hello.runtime,
            capabilities=tuple(sorted(hello.capabilities)),
        )

    return asyncio.run(ask())


def faced(options: RunOptions) -> Callable[[str], str]:
    """Return what tells which broker a check puts in front of a client, if there is one."""
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
