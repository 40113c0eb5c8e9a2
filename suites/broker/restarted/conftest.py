"""The stage of the restart checks: one broker whose share coordinator snapshots and prunes at once.

All that is durable about a share group is on that broker, so that its death is the death of every
leader and every coordinator. It keeps its disk: a restart is a crash, not a loss. On somebody's
cluster all brokers die together, by ``--hooks``.
"""

from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from fixtures.clients.cluster import Cluster
from fixtures.targets import Target, TargetOptions
from fixtures.targets.hooks import hooked_brokers
from fixtures.wire.frame import Transcript
from suites import clusters
from suites.broker.restarted.restarts import Restarts
from suites.options import RunOptions

PROPERTIES = {
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.prune.interval.ms": "300",
    "share.coordinator.cold.partition.snapshot.interval.ms": "1000",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
}


@pytest.fixture(scope="package")
def restarted_target(run_options: RunOptions) -> Iterator[Target | None]:
    """A cluster of one broker that its checks may kill; None where hooks break somebody's."""
    if run_options.hooks_read:
        yield None
        return
    with clusters.own_cluster(run_options, TargetOptions(properties=PROPERTIES)) as target:
        yield target


@pytest.fixture
async def lives(
    request: pytest.FixtureRequest,
    run_options: RunOptions,
    restarted_target: Target | None,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Restarts]:
    if restarted_target:
        info, brokers = restarted_target.info, restarted_target.brokers
    else:
        info = request.getfixturevalue("cluster_info")
        hooks = run_options.hooks_read
        async with Cluster(info) as cluster:
            await cluster.any()
            brokers = hooked_brokers(cluster, hooks) if hooks else ()
    lives = Restarts(info, brokers, rng, transcripts)
    yield lives
    await lives.rise()
