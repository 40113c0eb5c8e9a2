"""Fixtures of the stage: one broker that these checks have to themselves."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from random import Random

import pytest

from fixtures.targets import Target, TargetOptions
from fixtures.targets.metrics import Metrics, metrics
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault
from suites import clusters
from suites.broker.alone.single_broker import SingleBroker
from suites.broker.env import open_env
from suites.options import RunOptions

PROPERTIES = {
    # Below the heartbeat interval of our brokers, so that a group can come too close to it.
    "group.share.min.session.timeout.ms": "300",
    # The state topic is cut soon and often, and idle share-partitions do not stand in the way.
    "share.coordinator.cold.partition.snapshot.interval.ms": "700",
    "share.coordinator.state.topic.prune.interval.ms": "500",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
}


@pytest.fixture(scope="package")
def lone_metrics() -> Iterator[Metrics | None]:
    """The broker's metrics, ``None`` where the agent that shows them cannot be fetched."""
    with contextlib.ExitStack() as stack:
        found: Metrics | None = None
        with contextlib.suppress(EnvironmentFault):
            found = stack.enter_context(metrics())
        yield found


@pytest.fixture(scope="package")
def lone_target(run_options: RunOptions, lone_metrics: Metrics | None) -> Iterator[Target]:
    """One broker that only the checks of this folder use, one after the other."""
    jvm = lone_metrics.jvm if lone_metrics else ()
    own = clusters.own_cluster(
        run_options, TargetOptions(properties=PROPERTIES, jvm=jvm), files=True
    )
    with own as target:
        yield target


@pytest.fixture(scope="package")
def lone_schemas(lone_target: Target) -> Schemas:
    return Schemas.from_jar(lone_target.info.schema_jar)


@pytest.fixture
async def lone(
    lone_target: Target,
    lone_schemas: Schemas,
    lone_metrics: Metrics | None,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[SingleBroker]:
    """The broker and the check's own share of it; what was set is set back after the check."""
    async with open_env(lone_target.info, rng, transcripts, lone_schemas) as env:
        lone = SingleBroker(lone_target, env, lone_metrics)
        yield lone
        await lone.mend()
        await env.disband()
