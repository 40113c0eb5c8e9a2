"""The stage of the restart checks: one broker whose share coordinator snapshots and prunes at once.

All that is durable about a share group is on that broker, so that its death is the death of every
leader and every coordinator. It keeps its disk: a restart is a crash, not a loss.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from fixtures.targets import Target, TargetOptions
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
def restarted_target(run_options: RunOptions) -> Iterator[Target]:
    """A cluster of one broker that its checks may kill, as long as they start it again."""
    with clusters.own_cluster(run_options, TargetOptions(properties=PROPERTIES)) as target:
        yield target


@pytest.fixture
async def lives(
    restarted_target: Target, rng: Random, transcripts: list[Transcript]
) -> AsyncIterator[Restarts]:
    """The lives of a broker; it lives again when the check is over."""
    broker = Restarts(restarted_target, rng, transcripts)
    yield broker
    await broker.rise()
