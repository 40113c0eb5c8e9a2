"""Who answers for what: choosing groups so that their coordinators are where a check wants them.

A group belongs to the __consumer_offsets partition that its id hashes to, and a share-partition to
the __share_group_state partition that its key hashes to (KIP-932 §Share coordinator); whoever leads
that partition is the coordinator. So a check that wants a certain coordinator draws names until one
fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from fixtures.clients.cluster import Cluster, Topic, share_key
from fixtures.wire.codec import Struct
from fixtures.wire.connection import Connection
from fixtures.wire.placing import partition_of
from spec.verdict import Undecided

STATE, OFFSETS = "__share_group_state", "__consumer_offsets"
INTERNAL = (STATE, OFFSETS)

_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Layout:
    """The leader of each partition of the two internal topics."""

    state: tuple[int, ...]
    offsets: tuple[int, ...]

    def state_coordinator(self, group: str, topic: Topic, partition: int = 0) -> int:
        """Return the node that keeps the state of a share-partition."""
        return self.state[state_partition(self, group, topic, partition)]

    def group_coordinator(self, group: str) -> int:
        """Return the node that coordinates a group."""
        return self.offsets[partition_of(group, len(self.offsets))]


def state_partition(layout: Layout, group: str, topic: Topic, partition: int = 0) -> int:
    """Return the partition of the state topic that holds a share-partition."""
    return partition_of(share_key(group, topic.id, partition), len(layout.state))


async def described(connection: Connection, *names: str) -> list[Struct]:
    """Return topics as a broker's Metadata shows them."""
    response = await connection.call("Metadata", topics=[{"name": name} for name in names])
    return list(response.topics)


def leaders(topic: Struct) -> tuple[int, ...]:
    """Return the leaders of a described topic, partition by partition."""
    ordered = sorted(topic.partitions, key=lambda p: p.partition_index)
    return tuple(p.leader_id for p in ordered)


async def layout(cluster: Cluster) -> Layout:
    """Return who leads the internal topics now."""
    topics = await described(await cluster.any(), *INTERNAL)
    found = {topic.name: leaders(topic) for topic in topics}
    return Layout(found[STATE], found[OFFSETS])


def draw_group(
    cluster: Cluster,
    now: Layout,
    topic: Topic,
    *,
    state: int | None = None,
    group: int | None = None,
    shard: int = -1,
) -> str:
    """Return a fresh group id whose coordinators are the wanted nodes.

    Args:
        cluster: gives the names.
        now: who leads what.
        topic: the topic whose partition 0 the group will consume.
        state: the node wanted as share coordinator of partition 0; ``None`` for any.
        group: the node wanted as group coordinator; ``None`` for any.
        shard: the partition of the state topic that is to hold the state of partition 0; -1 for
            any.

    Raises:
        Undecided: that node coordinates nothing.
    """
    for _ in range(_DRAWS):
        name = cluster.fresh_name("g")
        if shard not in {-1, state_partition(now, name, topic)}:
            continue
        if state not in {None, now.state_coordinator(name, topic)}:
            continue
        if group in {None, now.group_coordinator(name)}:
            return name
    raise Undecided(f"no group has broker {state} for its state and {group} for its members")
