"""Fixtures of the stage: one cluster of three brokers, which a check breaks and gets whole."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from fixtures.targets import Target, TargetOptions
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from suites import clusters
from suites.broker.failover.failover_cluster import FailoverCluster
from suites.broker.share import world
from suites.options import RunOptions

PROPERTIES = {
    # Every check waits for this once: so long does a dead broker count as alive. A tenth of it
    # between heartbeats keeps a slow machine from being taken for a dead broker.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "group.share.initialize.retry.interval.ms": "2000",
}


@pytest.fixture(scope="package")
def failover_target(run_options: RunOptions) -> Iterator[Target]:
    """Three brokers that the checks of this folder break and mend in turn."""
    wanted = TargetOptions(brokers=3, properties=PROPERTIES)
    with clusters.own_cluster(run_options, wanted) as target:
        yield target


@pytest.fixture(scope="package")
def failover_schemas(failover_target: Target) -> Schemas:
    """The message definitions of the release under test."""
    return Schemas.from_jar(failover_target.info.schema_jar)


@pytest.fixture
async def stage(
    failover_target: Target,
    failover_schemas: Schemas,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[FailoverCluster]:
    """The stage, whole before the check and mended after it."""
    async with world(failover_target.info, rng, transcripts, failover_schemas) as share:
        stage = FailoverCluster(failover_target, share)
        await stage.mend()
        yield stage
        await stage.mend()
        await share.disband()
