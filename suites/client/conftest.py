"""Fixtures of the client checks: the adapter, and the two brokers that a client has to face."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from fixtures.clients.adapter import Adapter
from fixtures.interface.info import ClusterInfo
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from suites.client.brokers import hostile_target
from suites.client.capabilities import missing, seen_refusing
from suites.client.harness import Harness, harness_on
from suites.judge import REFUSED
from suites.options import RunOptions


class Adapters:
    """The adapter process of a worker; another one takes its place when it is gone."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self.command = command
        self._current: Adapter | None = None

    async def running(self) -> Adapter:
        """Return a process that runs."""
        if self._current is None or not self._current.running:
            await self.stop()
            made, self._current = Adapter(self.command), None
            try:
                await made.start()
            except BaseException:
                # No check may judge a client that did not say who it is and what it can do.
                await made.stop()
                raise
            self._current = made
        return self._current

    async def stop(self) -> None:
        """End the process."""
        if self._current is not None:
            await self._current.stop()


@pytest.fixture(scope="session")
def adapters(run_options: RunOptions) -> Iterator[Adapters]:
    """The adapter of the client under test."""
    assert run_options.client is not None
    found = Adapters(run_options.client.command)
    yield found
    asyncio.run(found.stop())


@pytest.fixture
async def adapter(adapters: Adapters) -> Adapter:
    """The client under test, in a process that checks share."""
    return await adapters.running()


@pytest.fixture
async def own_adapter(run_options: RunOptions) -> AsyncIterator[Adapter]:
    """The client under test in a process of the check's own, which it may break."""
    assert run_options.client is not None
    made = Adapter(run_options.client.command)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture(scope="session")
def schemas(cluster_info: ClusterInfo) -> Schemas:
    """The message definitions of the broker's release."""
    return Schemas.from_jar(cluster_info.schema_jar)


@pytest.fixture
async def harness(
    cluster_info: ClusterInfo,
    schemas: Schemas,
    adapter: Adapter,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Harness]:
    """The run's target behind a tap."""
    async with harness_on(cluster_info, schemas, adapter, rng, transcripts) as found:
        yield found


@pytest.fixture(scope="session")
def hostile_info() -> Iterator[ClusterInfo]:
    """A reference broker of three nodes, whatever the run's target is."""
    target = hostile_target()
    target.start()
    yield target.info
    target.stop()


@pytest.fixture(scope="session")
def hostile_schemas(hostile_info: ClusterInfo) -> Schemas:
    """The message definitions of the reference broker."""
    return Schemas.from_jar(hostile_info.schema_jar)


@pytest.fixture
async def hostile(
    hostile_info: ClusterInfo,
    hostile_schemas: Schemas,
    adapter: Adapter,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Harness]:
    """The hostile broker: three nodes of the reference broker behind a tap that plays scripts."""
    async with harness_on(hostile_info, hostile_schemas, adapter, rng, transcripts) as found:
        yield found


@pytest.fixture(autouse=True)
async def refusal_of_missing_capabilities(
    request: pytest.FixtureRequest, adapters: Adapters
) -> None:
    """Skip a check whose capability the client lacks, once the adapter was seen saying so."""
    adapter = await adapters.running()
    lacking = missing(request.node, adapter)
    if lacking:
        sentence = await seen_refusing(adapter, lacking[0])
        request.node.stash[REFUSED] = sentence
        pytest.skip(sentence)


@pytest.fixture
async def doomed(
    cluster_info: ClusterInfo,
    schemas: Schemas,
    own_adapter: Adapter,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Harness]:
    """The run's target behind a tap, with an adapter process that the check may kill."""
    async with harness_on(cluster_info, schemas, own_adapter, rng, transcripts) as found:
        yield found
