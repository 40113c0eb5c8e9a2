"""Fixtures of the stage: one cluster of three brokers, which a check breaks and gets whole.

Somebody's cluster is broken by ``--hooks`` only. Checks marked ``moves`` only move leaders, by
requests of the admin API, and run there without. On such a cluster the stage runs when no other
check does (:mod:`shareproof.runner.scheduler`).
"""

from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from fixtures.interface.capability import Capability
from fixtures.interface.info import ClusterInfo
from fixtures.targets import Target, TargetOptions
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import OutOfReach
from suites import clusters
from suites.broker.env import open_env
from suites.broker.failover.cluster import NO_HOOKS, FailoverCluster, GuestCluster
from suites.judge import PATIENCE
from suites.options import RunOptions

PROPERTIES = {
    # Every check waits for this once: so long does a dead broker count as alive. A tenth of it
    # between heartbeats keeps a slow machine from being taken for a dead broker.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "300",
    "group.share.initialize.retry.interval.ms": "2000",
}


@pytest.fixture(scope="package")
def failover_target(run_options: RunOptions) -> Iterator[Target | None]:
    """Three brokers that the checks of this folder break and mend in turn; None elsewhere."""
    if Capability.OWN_CLUSTER not in run_options.offers:
        yield None
        return
    wanted = TargetOptions(brokers=3, properties=PROPERTIES)
    with clusters.own_cluster(run_options, wanted) as target:
        yield target


Ground = tuple[Target | None, ClusterInfo, Schemas]
"""The cluster if it is ours, what is known of it, and the message definitions of its release."""


@pytest.fixture(scope="package")
def failover_ground(request: pytest.FixtureRequest, failover_target: Target | None) -> Ground:
    """The stage's cluster, which is the one under test where that is somebody's."""
    known = failover_target.info if failover_target else request.getfixturevalue("cluster_info")
    return failover_target, known, Schemas.from_jar(known.schema_jar)


@pytest.fixture
async def stage(
    request: pytest.FixtureRequest,
    run_options: RunOptions,
    failover_ground: Ground,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[FailoverCluster]:
    """The stage, whole before the check and mended after it."""
    target, info, schemas = failover_ground
    moves = request.node.get_closest_marker("moves")
    hooks = None if moves else run_options.hooks_read
    if not (target or moves or hooks):
        raise OutOfReach(NO_HOOKS)
    async with open_env(info, rng, transcripts, schemas) as env:
        request.node.stash[PATIENCE] = env.bounds.patience
        if target:
            stage = FailoverCluster(env, target.brokers)
            await stage.mend()
        else:
            stage = await GuestCluster.of(env, hooks)
        yield stage
        await stage.mend()
        await env.disband()
