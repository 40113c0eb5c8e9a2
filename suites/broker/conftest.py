"""Fixtures of the broker checks: the share of the cluster that one check has to itself."""

import contextlib
import functools
from collections.abc import AsyncIterator
from random import Random

import pytest

from fixtures.interface.info import ClusterInfo
from fixtures.wire.connection import CallFailed
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault
from suites.broker.brokers import Proxied, fronted
from suites.broker.hang import find_hang, refuse_if_silent
from suites.broker.share import Share, world
from suites.broker.state import Store
from suites.judge import IN_VAIN, MAKESHIFT, PATIENCE
from suites.options import RunOptions


@pytest.fixture(scope="session")
def schemas(cluster_info: ClusterInfo) -> Schemas:
    return Schemas.from_jar(cluster_info.schema_jar)


@pytest.fixture
async def share(
    request: pytest.FixtureRequest,
    *,
    cluster_info: ClusterInfo,
    run_options: RunOptions,
    schemas: Schemas,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Share]:
    """A world of its own on the shared cluster; its frames are kept in case the check fails."""
    refuse_if_silent(cluster_info)
    look = functools.partial(find_hang, cluster_info, run_options.broker_properties)
    request.node.stash[IN_VAIN] = look
    async with contextlib.AsyncExitStack() as stack:
        try:
            share = await stack.enter_async_context(world(cluster_info, rng, transcripts, schemas))
        except (CallFailed, EnvironmentFault) as fault:
            raise await look() or fault from None
        request.node.stash[MAKESHIFT] = lambda: share.makeshift
        request.node.stash[PATIENCE] = share.bounds.patience
        yield share
        await share.disband()


@pytest.fixture
async def solo_share(
    request: pytest.FixtureRequest,
    solo_info: ClusterInfo,
    run_options: RunOptions,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Share]:
    """The same on a cluster of the check's own, which the ``solo`` marker configures."""
    look = functools.partial(find_hang, solo_info, run_options.broker_properties)
    request.node.stash[IN_VAIN] = look
    async with world(solo_info, rng, transcripts) as share:
        yield share


@pytest.fixture
async def store(share: Share) -> AsyncIterator[Store]:
    """Share-partition keys that no group serves, on the shared cluster; forgotten at the end."""
    keys = Store(share)
    yield keys
    await keys.clear()


@pytest.fixture
async def between(
    run_options: RunOptions, rng: Random, transcripts: list[Transcript]
) -> AsyncIterator[Proxied]:
    async with fronted(run_options, rng, transcripts) as own:
        yield own
