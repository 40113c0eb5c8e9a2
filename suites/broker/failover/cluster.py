"""The stage: three brokers to kill, stop, freeze and start again, and how they are mended.

Brokers and groups are placed at will, on our own cluster or on somebody's, by ``--hooks``.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fixtures.clients.cluster import RETRIABLE, SHARE, Cluster, Topic, eventually
from fixtures.interface.target import Handle
from fixtures.targets.hooks import Hooks, hooked_brokers
from fixtures.wire.codec import Struct
from fixtures.wire.connection import CallFailed, Connection
from fixtures.wire.state_records import partition_of, share_key
from spec.verdict import OutOfReach, Undecided
from suites.broker.env import Env, Queue

STATE, OFFSETS = "__share_group_state", "__consumer_offsets"
INTERNAL = (STATE, OFFSETS)
_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Layout:
    """The leader of each partition of the two internal topics.

    A group belongs to the __consumer_offsets partition that its id hashes to, and a share-partition
    to the __share_group_state partition that its key hashes to (KIP-932 §Share coordinator);
    whoever leads that partition is the coordinator. So a check that wants a certain coordinator
    draws names until one fits.
    """

    state: tuple[int, ...]
    offsets: tuple[int, ...]


def state_partition(layout: Layout, group: str, topic: Topic, partition: int = 0) -> int:
    return partition_of(share_key(group, topic.id, partition), len(layout.state))


async def described(connection: Connection, *names: str) -> list[Struct]:
    response = await connection.call("Metadata", topics=[{"name": name} for name in names])
    return list(response.topics)


Place = tuple[str, int]  # A topic and a partition.


async def reassign(connection: Connection, replicas: Mapping[Place, Sequence[int]]) -> None:
    topics = [
        {"name": name, "partitions": [{"partition_index": index, "replicas": list(nodes)}]}
        for (name, index), nodes in replicas.items()
    ]
    await connection.call("AlterPartitionReassignments", topics=topics)


def leaders(topic: Struct) -> tuple[int, ...]:
    ordered = sorted(topic.partitions, key=lambda p: p.partition_index)
    return tuple(p.leader_id for p in ordered)


async def layout(cluster: Cluster) -> Layout:
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
    """Return a fresh group id with the wanted share coordinator and group coordinator.

    ``state`` and ``shard`` are about partition 0 of the topic: the node, and the partition of the
    state topic, that are to hold its state.
    """
    for _ in range(_DRAWS):
        name = cluster.fresh_name("g")
        if shard not in {-1, state_partition(now, name, topic)}:
            continue
        if state not in {None, now.state[state_partition(now, name, topic)]}:
            continue
        if group in {None, now.offsets[partition_of(name, len(now.offsets))]}:
            return name
    raise Undecided(f"no group has broker {state} for its state and {group} for its members")


MENDED_WITHIN = 60.0
"""Seconds until a mended cluster has to be whole; a log that is recovered takes a few."""

_NO_TOPIC = uuid.UUID(int=1)
_NAMES = [f"nobody-{number}" for number in range(200)]
"""Groups that do not exist; asking for them shows whether a coordinator is at work."""


class FailoverCluster:
    """A cluster of three brokers that a check may break, and the check's own share of it.

    Nothing here judges. ``env.cluster`` asks nothing of brokers that are away, and takes a new
    connection where one was lost.
    """

    def __init__(self, env: Env, brokers: Sequence[Handle]) -> None:
        self.env, self.brokers = env, brokers

    @property
    def cluster(self) -> Cluster:
        return self.env.cluster

    @property
    def nodes(self) -> list[int]:
        return sorted(self.cluster.brokers)

    def broker(self, node: int) -> Handle:
        return next(broker for broker in self.brokers if broker.node_id == node)

    async def kill(self, *nodes: int) -> None:
        self.cluster.away.update(nodes)
        await _together(self.broker(node).kill for node in nodes)

    async def stop(self, *nodes: int) -> None:
        self.cluster.away.update(nodes)
        await _together(self.broker(node).stop for node in nodes)

    def pause(self, node: int) -> None:
        """Freeze a broker: its connections stay, and nothing answers."""
        self.cluster.away.add(node)
        self.broker(node).pause()

    def resume(self, node: int) -> None:
        self.broker(node).resume()
        self.cluster.away.discard(node)

    async def start(self, *nodes: int) -> None:
        await _together(self.broker(node).start for node in nodes)
        self.cluster.away.difference_update(nodes)

    async def victim(self) -> int:
        """Return a broker to break: any but the active controller."""
        controller = await self.cluster.active_controller()
        return self.env.rng.choice([node for node in self.nodes if node != controller])

    async def layout(self) -> Layout:
        return await layout(self.cluster)

    async def queue(
        self,
        *replicas: int,
        state: int | None = None,
        group: int | None = None,
        lock_ms: int | None = None,
        **options: Any,
    ) -> Queue:
        """Return a new queue on ``replicas``, the leader first, with the wanted coordinators.

        Locks last as long as they may if ``lock_ms`` is left out. ``options`` are ``topic_config``,
        ``shard`` as in :func:`draw_group`, and further group configs.
        """
        configs = options.pop("topic_config", None)
        placed = [list(replicas)]
        bare = await self.env.queue(assignments=placed, reset=None, topic_config=configs)
        now = await self.layout()
        name = draw_group(
            self.cluster, now, bare.topic, state=state, group=group, shard=options.pop("shard", -1)
        )
        wanted = {"share.auto.offset.reset": "earliest"} | options
        wanted["share.record.lock.duration.ms"] = str(lock_ms or self.env.bounds.longest_lock)
        await self.env.admin.group_config(name, wanted)
        return replace(bare, group=name)

    async def led_by(self, name: str, partition: int, node: int) -> None:
        """Let a broker lead a partition of a topic that has replicas on all."""
        topic = await self.cluster.topic(name)
        await self.env.admin.move_leader(topic, node, partition)

    async def mend(self) -> None:
        """Bring every broker back and wait until nothing shows that one was ever away.

        Every broker knows all others, every replica is in sync, whoever should lead an internal
        partition leads it, and the coordinators answer.
        """
        await self.revive()
        await self._poll("the first replicas leading", self._in_order)
        await self.answering()

    async def revive(self) -> None:
        for broker in self.brokers:
            broker.resume()
        await self.start(*(b.node_id for b in self.brokers if not b.is_alive))
        self.cluster.away.clear()
        await self.caught_up()

    async def answering(self) -> None:
        await self._poll("coordinators that answer", self._answering)

    async def caught_up(self) -> None:
        await self._poll("all brokers and replicas in sync", self._in_sync)

    async def _poll(self, what: str, look: Callable[[], Awaitable[bool]]) -> None:
        async def ask() -> bool | None:
            with contextlib.suppress(CallFailed):
                return await look() or None
            return None

        await eventually(what, ask, MENDED_WITHIN)

    async def _in_sync(self) -> bool:
        return not await self.cluster.missing()

    async def _in_order(self) -> bool:
        """Have partition 0 of an internal topic led by the first broker, and so on in turn."""
        connection = await self.cluster.any()
        topics = await described(connection, *INTERNAL)
        astray = {
            (topic.name, part.partition_index): self._order(part)
            for topic in topics
            for part in topic.partitions
            if part.replica_nodes != self._order(part)
        }
        if astray:
            await reassign(connection, astray)
        await connection.call("ElectLeaders", election_type=0, topic_partitions=None)
        for node in self.nodes:
            topics = await described(await self.cluster.to(node), *INTERNAL)
            parts = [part for topic in topics for part in topic.partitions]
            if any(part.leader_id != self._order(part)[0] for part in parts):
                return False
        return True

    def _order(self, part: Struct) -> list[int]:
        first = part.partition_index % len(self.nodes)
        return [*self.nodes[first:], *self.nodes[:first]]

    async def _answering(self) -> bool:
        now = await self.layout()
        codes: list[int] = []
        for index, node in enumerate(now.offsets):
            group = next(n for n in _NAMES if partition_of(n, len(now.offsets)) == index)
            connection = await self.cluster.to(node)
            response = await connection.call("ShareGroupDescribe", group_ids=[group])
            codes.append(response.groups[0].error_code)
        keys = {name: share_key(name, _NO_TOPIC, 0) for name in _NAMES}
        asked = {"topic_id": _NO_TOPIC, "partitions": [{"partition": 0, "leader_epoch": 0}]}
        for index, node in enumerate(now.state):
            group = next(n for n, k in keys.items() if partition_of(k, len(now.state)) == index)
            response = await (await self.cluster.to(node)).call(
                "ReadShareGroupStateSummary", group_id=group, topics=[asked]
            )
            if response.results:
                codes.append(response.results[0].partitions[0].error_code)
        return not RETRIABLE.intersection(codes)


async def _together(calls: Iterable[Callable[[], None]]) -> None:
    """Run blocking calls side by side, so that the loop goes on meanwhile."""
    await asyncio.gather(*(asyncio.to_thread(call) for call in calls))


NO_HOOKS = "needs hooks that break brokers: give --hooks FILE"


class GuestCluster(FailoverCluster):
    """Somebody's brokers; make it by :meth:`of`.

    Of the internal topics only partitions that a check's own group uses are moved. Replicas trade
    places, none is added or removed, and the order that was found is restored after the check.

    Brokers are broken by their owner's hooks only, and only where that loses nothing: of three
    brokers that are in sync, each with a replica of every partition of the internal topics.
    """

    def __init__(self, env: Env, brokers: Sequence[Handle] = ()) -> None:
        super().__init__(env, brokers)
        self._found: Mapping[Place, Struct] = {}

    @classmethod
    async def of(cls, env: Env, hooks: Hooks | None = None) -> GuestCluster:
        if len(env.cluster.brokers) < 3:
            raise OutOfReach("a coordinator can be moved about where there are three brokers")
        topic = await env.admin.create_topic()
        # Asking for coordinators makes the internal topics where nobody has used them yet.
        await env.cluster.coordinator(env.cluster.info.prefix)
        await env.cluster.coordinator(share_key(env.cluster.info.prefix, topic.id, 0), SHARE)
        stage = cls(env, hooked_brokers(env.cluster, hooks) if hooks else ())
        stage._found = await stage._partitions()
        if {name for name, _ in stage._found} != set(INTERNAL):
            raise OutOfReach(f"no topics {' and '.join(INTERNAL)} say which broker coordinates")
        if not stage.brokers:
            return stage
        nodes = set(stage.nodes)
        if len(nodes) != 3 or any(set(_order(each)) != nodes for each in stage._found.values()):
            raise OutOfReach(
                "brokers are broken where there are three, each with all of the internal topics"
            )
        try:
            await stage.caught_up()
        except Undecided as reason:
            raise OutOfReach(f"no broker is broken before all is well: {reason}") from None
        return stage

    async def mend(self) -> None:
        """Give the partitions of internal topics the order of replicas and the leader they had."""
        if self.brokers:
            await self.revive()
        await self._poll("the leaders that were found leading again", self._restored)
        if self.brokers:
            await self.answering()

    async def _restored(self) -> bool:
        now = await self._partitions()
        astray = [p for p, was in self._found.items() if _order(now[p]) != _order(was)]
        unled = [p for p, was in self._found.items() if now[p].leader_id != was.leader_id]
        connection = await self.cluster.any()
        if astray:
            await reassign(connection, {place: _order(self._found[place]) for place in astray})
        elif unled:
            named = [{"topic": name, "partitions": [index]} for name, index in unled]
            await connection.call("ElectLeaders", election_type=0, topic_partitions=named)
        return not astray and not unled

    async def _partitions(self) -> dict[Place, Struct]:
        topics = await described(await self.cluster.any(), *INTERNAL)
        return {(topic.name, p.partition_index): p for topic in topics for p in topic.partitions}


def _order(partition: Struct) -> list[int]:
    return list(partition.replica_nodes)
