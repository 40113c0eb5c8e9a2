"""How many replicas in sync a write to the state topic demands, and changing that."""

from __future__ import annotations

from fixtures.clients.admin import TOPIC_RESOURCE
from fixtures.clients.cluster import eventually
from fixtures.clients.configs import alter
from fixtures.wire.errors import error_name
from spec.verdict import Undecided
from suites.broker.failover.failover_cluster import FailoverCluster
from suites.broker.failover.placing import STATE

IN_SYNC = "min.insync.replicas"


async def demand(stage: FailoverCluster, in_sync: str) -> str:
    """Demand so many replicas in sync of every state write; return how many were before."""
    before = (await stage.share.admin.configs(TOPIC_RESOURCE, STATE))[IN_SYNC]
    response = await alter(stage.cluster, TOPIC_RESOURCE, STATE, {IN_SYNC: in_sync})
    if response.error_code:
        raise Undecided(f"altering {STATE}: {error_name(response.error_code)}")
    return before


async def in_force(stage: FailoverCluster, in_sync: str) -> None:
    """Wait until every broker that is there has heard of the demand."""

    async def ask() -> bool | None:
        there = [node for node in stage.nodes if node not in stage.cluster.away]
        shown = [await stage.share.admin.configs(TOPIC_RESOURCE, STATE, node=n) for n in there]
        return True if all(configs[IN_SYNC] == in_sync for configs in shown) else None

    await eventually(f"{IN_SYNC} {in_sync} of {STATE} in force", ask)
