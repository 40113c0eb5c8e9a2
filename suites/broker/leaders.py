"""Queues whose partition changes its leader, with no broker stopped and no connection lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spec.verdict import OutOfReach
from suites.broker.share import Queue, Share


async def replicated(
    share: Share,
    records: int,
    *,
    reset: str | None = "earliest",
    group_config: Mapping[str, str] | None = None,
    topic_config: Mapping[str, str] | None = None,
) -> Queue:
    """Return a queue whose partition has two replicas, with the longest locks.

    Raises:
        OutOfReach: the cluster has one broker, so no leader can move.
    """
    nodes = sorted(share.cluster.brokers)
    if len(nodes) < 2:
        raise OutOfReach("a leader can only move where there are two brokers")
    pair = share.rng.sample(nodes, 2)
    return await share.queue(
        records,
        assignments=[pair],
        reset=reset,
        lock_ms=share.bounds.longest_lock,
        group_config=group_config,
        topic_config=topic_config,
    )


async def moved(queue: Queue) -> Queue:
    """Move the partition's leadership; return the queue as consumers see it from then on."""
    described = await (await queue.share.cluster.any()).call(
        "Metadata", topics=[{"name": queue.topic.name}]
    )
    nodes = described.topics[0].partitions[0].replica_nodes
    follower = next(node for node in nodes if node != queue.topic.leaders[0])
    return replace(queue, topic=await queue.share.admin.move_leader(queue.topic, follower))
