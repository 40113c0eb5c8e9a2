"""The durable state of a share-partition, read and written as its leader does it.

These are the requests between brokers of KIP-932 §Share coordinator. They are served to any client
that may do CLUSTER_ACTION; where we may not, a check stays undecided. Both name the epoch that the
leader has, so that the leader is not fenced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fixtures.clients.cluster import SHARE, share_key
from fixtures.wire.codec import Struct
from fixtures.wire.errors import error_name
from spec.verdict import Undecided
from suites.broker.share import Queue

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
"""Delivery states as they are stored; acquired is not a stored state."""

Batch = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""


async def read_state(queue: Queue, partition: int = 0) -> Struct:
    """Return the stored state of a share-partition."""
    return await _ask(queue, partition, "ReadShareGroupState", {})


async def settled_below(queue: Queue, partition: int = 0) -> int:
    """Return the first offset that is not finished in the stored state.

    What a response of NONE has promised is stored already. The start offset that administrators are
    shown follows with the next write only.
    """
    state = await read_state(queue, partition)
    end = int(state.start_offset)
    for batch in sorted(state.state_batches, key=lambda each: int(each.first_offset)):
        if batch.first_offset > end or batch.delivery_state not in {ACKNOWLEDGED, ARCHIVED}:
            break
        end = int(batch.last_offset) + 1
    return end


async def write_state(
    queue: Queue, start: int, batches: Sequence[Batch] = (), partition: int = 0
) -> None:
    """Write a start offset and state batches, true or not, over the stored state."""
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    fields: dict[str, Any] = {
        "state_epoch": (await read_state(queue, partition)).state_epoch,
        "start_offset": start,
        "state_batches": [dict(zip(names, batch, strict=True)) for batch in batches],
    }
    await _ask(queue, partition, "WriteShareGroupState", fields)


async def _leader_epoch(queue: Queue, partition: int) -> int:
    connection = await queue.share.cluster.any()
    topics = (await connection.call("Metadata", topics=[{"name": queue.topic.name}])).topics
    found = {p.partition_index: int(p.leader_epoch) for p in topics[0].partitions}
    return found[partition]


async def _ask(queue: Queue, partition: int, api: str, fields: dict[str, Any]) -> Struct:
    cluster = queue.share.cluster
    node = await cluster.coordinator(share_key(queue.group, queue.topic.id, partition), SHARE)
    epoch = await _leader_epoch(queue, partition)
    wanted = {"partition": partition, "leader_epoch": epoch} | fields
    topics = [{"topic_id": queue.topic.id, "partitions": [wanted]}]
    response = await (await cluster.to(node)).call(api, group_id=queue.group, topics=topics)
    if not response.results:
        raise Undecided(f"{api} was answered without a result")
    result: Struct = response.results[0].partitions[0]
    if result.error_code:
        raise Undecided(f"{api}: {error_name(result.error_code)}")
    return result
