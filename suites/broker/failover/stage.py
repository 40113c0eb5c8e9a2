"""The stage: three brokers to kill, stop, freeze and start again, and how they are mended."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Iterable

from fixtures.clients.cluster import RETRIABLE, Cluster, eventually, share_key
from fixtures.targets import Broker, Target
from fixtures.wire.connection import CallFailed
from suites.broker.failover.placing import INTERNAL, Layout, described, layout, partition_of
from suites.broker.share import Share

MENDED_WITHIN = 60.0
"""Seconds until a mended cluster has to be whole; a log that is recovered takes a few."""

_NO_TOPIC = uuid.UUID(int=1)
_NAMES = [f"nobody-{number}" for number in range(200)]
"""Groups that do not exist; asking for them shows whether a coordinator is at work."""


class Stage:
    """A cluster of three brokers that a check may break, and the check's own share of it.

    Nothing here judges. ``share.cluster`` asks nothing of brokers that are away, and takes a new
    connection where one was lost.
    """

    def __init__(self, target: Target, share: Share) -> None:
        self.target = target
        self.share = share

    @property
    def cluster(self) -> Cluster:
        """The cluster client of the check."""
        return self.share.cluster

    @property
    def nodes(self) -> list[int]:
        """The node ids, those that are away too."""
        return sorted(self.cluster.brokers)

    def broker(self, node: int) -> Broker:
        """Return the handle on a broker."""
        return next(broker for broker in self.target.brokers if broker.node_id == node)

    async def kill(self, *nodes: int) -> None:
        """Kill brokers as a power cut would, frozen ones too."""
        self.cluster.away.update(nodes)
        await _together(self.broker(node).kill for node in nodes)

    async def stop(self, *nodes: int) -> None:
        """Shut brokers down in order: they hand over what they lead before they go."""
        self.cluster.away.update(nodes)
        await _together(self.broker(node).stop for node in nodes)

    def pause(self, node: int) -> None:
        """Freeze a broker: its connections stay, and nothing answers."""
        self.cluster.away.add(node)
        self.broker(node).pause()

    def resume(self, node: int) -> None:
        """Let a frozen broker go on."""
        self.broker(node).resume()
        self.cluster.away.discard(node)

    async def start(self, *nodes: int) -> None:
        """Start brokers and wait until they serve."""
        await _together(self.broker(node).start for node in nodes)
        self.cluster.away.difference_update(nodes)

    async def controller(self) -> int:
        """Return the active controller; who breaks it waits for two elections, not one."""
        asked = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}

        async def ask() -> int | None:
            answer = await (await self.cluster.any()).call("DescribeQuorum", topics=[asked])
            if answer.error_code:
                return None
            node = int(answer.topics[0].partitions[0].leader_id)
            return node if node >= 0 else None

        return await eventually("an active controller", ask)

    async def victim(self) -> int:
        """Return a broker to break: any but the active controller."""
        controller = await self.controller()
        return self.share.rng.choice([node for node in self.nodes if node != controller])

    async def layout(self) -> Layout:
        """Return who leads the internal topics now."""
        return await layout(self.cluster)

    async def mend(self) -> None:
        """Bring every broker back and wait until nothing shows that one was ever away.

        Every broker knows all others, every replica is in sync, whoever should lead an internal
        partition leads it, and the coordinators answer.

        Raises:
            EnvironmentFault, Undecided: that did not come about.
        """
        for broker in self.target.brokers:
            broker.resume()
        await self.start(*(b.node_id for b in self.target.brokers if not b.is_alive))
        self.cluster.away.clear()
        await self._poll("all brokers and replicas in sync", self._in_sync)
        await self._poll("the first replicas leading", self._in_order)
        await self._poll("coordinators that answer", self._answering)

    async def _poll(self, what: str, look: Callable[[], Awaitable[bool]]) -> None:
        async def ask() -> bool | None:
            with contextlib.suppress(CallFailed):
                return await look() or None
            return None

        await eventually(what, ask, MENDED_WITHIN)

    async def _in_sync(self) -> bool:
        for node in self.nodes:
            answer = await (await self.cluster.to(node)).call("Metadata", topics=None)
            parts = [part for topic in answer.topics for part in topic.partitions]
            behind = [p for p in parts if set(p.isr_nodes) != set(p.replica_nodes)]
            leaderless = [p for p in parts if p.leader_id < 0]
            if len(answer.brokers) < len(self.nodes) or behind or leaderless:
                return False
        return True

    async def _in_order(self) -> bool:
        connection = await self.cluster.any()
        await connection.call("ElectLeaders", election_type=0, topic_partitions=None)
        for node in self.nodes:
            topics = await described(await self.cluster.to(node), *INTERNAL)
            parts = [part for topic in topics for part in topic.partitions]
            if any(part.leader_id != part.replica_nodes[0] for part in parts):
                return False
        return True

    async def _answering(self) -> bool:
        now = await self.layout()
        codes = [
            *[await self._group_error(i, node, now) for i, node in enumerate(now.offsets)],
            *[await self._state_error(i, node, now) for i, node in enumerate(now.state)],
        ]
        return not RETRIABLE.intersection(codes)

    async def _group_error(self, index: int, node: int, now: Layout) -> int:
        group = next(n for n in _NAMES if partition_of(n, len(now.offsets)) == index)
        connection = await self.cluster.to(node)
        answer = await connection.call("ShareGroupDescribe", group_ids=[group])
        return int(answer.groups[0].error_code)

    async def _state_error(self, index: int, node: int, now: Layout) -> int:
        keys = {name: share_key(name, _NO_TOPIC, 0) for name in _NAMES}
        group = next(n for n, key in keys.items() if partition_of(key, len(now.state)) == index)
        asked = {"topic_id": _NO_TOPIC, "partitions": [{"partition": 0, "leader_epoch": 0}]}
        answer = await (await self.cluster.to(node)).call(
            "ReadShareGroupStateSummary", group_id=group, topics=[asked]
        )
        return int(answer.results[0].partitions[0].error_code) if answer.results else 0


async def _together(calls: Iterable[Callable[[], None]]) -> None:
    """Run blocking calls side by side, so that the loop goes on meanwhile."""
    await asyncio.gather(*(asyncio.to_thread(call) for call in calls))
