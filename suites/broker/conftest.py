"""Fixtures of the broker checks: the environment of one check."""

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
from suites.broker.env import Env, open_env
from suites.broker.hang import find_hang, refuse_if_silent
from suites.broker.state import Store
from suites.judge import IN_VAIN, MAKESHIFT, OBSERVED, PATIENCE
from suites.options import RunOptions


@pytest.fixture(scope="session")
def schemas(cluster_info: ClusterInfo) -> Schemas:
    return Schemas.from_jar(cluster_info.schema_jar)


@pytest.fixture
async def env(
    request: pytest.FixtureRequest,
    *,
    cluster_info: ClusterInfo,
    run_options: RunOptions,
    schemas: Schemas,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Env]:
    """An environment of its own on the cluster; its frames are kept in case the check fails."""
    refuse_if_silent(cluster_info)
    look = functools.partial(find_hang, cluster_info, run_options.broker_properties, transcripts)
    request.node.stash[IN_VAIN] = look
    async with contextlib.AsyncExitStack() as stack:
        try:
            env = await stack.enter_async_context(open_env(cluster_info, rng, transcripts, schemas))
        except (CallFailed, EnvironmentFault) as fault:
            raise await look() or fault from None
        request.node.stash[MAKESHIFT] = lambda: env.makeshift
        request.node.stash[PATIENCE] = env.bounds.patience
        request.node.stash[OBSERVED] = True
        yield env
        await env.disband()


@pytest.fixture
async def solo_env(
    request: pytest.FixtureRequest,
    solo_info: ClusterInfo,
    run_options: RunOptions,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Env]:
    """The same on a cluster of the check's own, which the ``solo`` marker configures."""
    refuse_if_silent(solo_info)
    look = functools.partial(find_hang, solo_info, run_options.broker_properties, transcripts)
    request.node.stash[IN_VAIN] = look
    async with open_env(solo_info, rng, transcripts) as env:
        yield env


@pytest.fixture
async def store(env: Env) -> AsyncIterator[Store]:
    """Share-partition keys that no group serves, on the shared cluster; forgotten at the end."""
    keys = Store(env)
    yield keys
    await keys.clear()


@pytest.fixture
async def between(
    run_options: RunOptions, rng: Random, transcripts: list[Transcript]
) -> AsyncIterator[Proxied]:
    async with fronted(run_options, rng, transcripts) as own:
        yield own
