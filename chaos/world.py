"""A cluster under load as faults see it: what to break, and how to see that it broke."""

import asyncio
import contextlib
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from fixtures.clients.admin import Admin, read_log
from fixtures.clients.cluster import SHARE, Cluster
from fixtures.clocks import Clocks
from fixtures.interface.names import Address
from fixtures.interface.target import Handle, Plugged
from fixtures.proxies.broker_proxies import BrokerProxies, FrameProxies
from fixtures.targets import Target
from fixtures.targets.broker import Broker
from fixtures.targets.hooks import HookedBroker, Hooks, hooked_brokers
from fixtures.wire.codec import Struct
from fixtures.wire.connection import answers
from fixtures.wire.state_records import share_key
from fixtures.workload.load import RunningLoad
from spec.verdict import EnvironmentFault, Undecided

STATE, OFFSETS = "__share_group_state", "__consumer_offsets"
_LINES = 5  # How many lines of a log are shown.
_SILENT_FOR = 1.0  # Seconds without a word after which a broker counts as silent.


@dataclass(slots=True, kw_only=True)
class World:
    """What there is to break. ``subject`` is always a number, taken modulo how many there are."""

    target: Target
    course: RunningLoad
    proxies: BrokerProxies | None = None
    clocks: Clocks | None = None
    hooks: Hooks | None = None
    hooked: tuple[HookedBroker, ...] = ()
    broker_to_spare: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a broker is away: without two of three there is no quorum."""

    @property
    def cluster(self) -> Cluster:
        return self.course.cluster

    @property
    def admin(self) -> Admin:
        return self.course.admin

    @property
    def nodes(self) -> list[int]:
        return sorted(self.cluster.brokers)

    def partition(self, subject: int) -> int:
        return subject % self.course.load.partitions

    def group(self, subject: int) -> str:
        groups = self.course.groups
        return groups[subject % len(groups)]

    def broker(self, node: int) -> Handle:
        """Return the handle on a broker, ours or by hooks; raises Undecided if it is neither."""
        for broker in self.victims:
            if broker.node_id == node:
                return broker
        raise Undecided(f"broker {node} is not ours to break")

    @property
    def victims(self) -> Sequence[Handle]:
        if self.target.brokers or self.hooks is None:
            return self.target.brokers
        self.hooked = self.hooked or hooked_brokers(self.cluster, self.hooks)
        return self.hooked

    @property
    def broker_proxies(self) -> BrokerProxies:
        """The proxies in front of the brokers; raises Undecided where there are none."""
        if self.proxies is None:
            raise Undecided("there are no proxies in front of these brokers")
        return self.proxies

    @property
    def frame_proxies(self) -> FrameProxies:
        if not isinstance(self.proxies, FrameProxies):
            raise Undecided("the proxies in front of these brokers do not decode frames")
        return self.proxies

    @property
    def all_clocks(self) -> Clocks:
        """The clocks of brokers and clients; raises Undecided where they cannot be moved."""
        if self.clocks is None:
            raise Undecided("brokers and clients have clocks that cannot be moved")
        return self.clocks

    async def topic(self, name: str) -> Struct:
        connection = await self.cluster.any()
        answer = await connection.call("Metadata", topics=[{"name": name}])
        found: Struct = answer.topics[0]
        return found

    async def part(self, name: str, partition: int) -> Struct:
        found = await self.topic(name)
        part: Struct = next(p for p in found.partitions if p.partition_index == partition)
        return part

    async def leader(self, name: str, partition: int) -> int:
        return int((await self.part(name, partition)).leader_id)

    async def offsets(self, name: str, partition: int, first: int, end: int) -> set[int]:
        """Return the offsets from ``first`` to before ``end`` at which a log holds something."""
        topic = await self.cluster.topic(name)
        found: set[int] = set()
        async for batch in read_log(self.cluster, topic, partition, since=first):
            if batch.base_offset >= end:
                break
            found |= {record.offset for record in batch.records}
        return found

    async def share_coordinator(self, subject: int) -> int:
        topic, partition = self.course.topic, self.partition(subject)
        key = share_key(self.group(subject), topic.id, partition)
        return await self.cluster.coordinator(key, SHARE)

    async def answers(self, node: int) -> bool:
        host, port = self.cluster.brokers[node]
        return await self.answers_at(Address(host=host, port=port))

    async def answers_at(self, address: Address) -> bool:
        security, schemas = self.cluster.info.security, self.cluster.schemas
        return await answers(
            address.host, address.port, schemas=schemas, security=security, timeout=_SILENT_FOR
        )

    async def serves(self, node: int) -> bool:
        if not await self.answers(node):
            return False
        answer = await (await self.cluster.any()).call("Metadata", timeout=5, topics=None)
        if node not in {broker.node_id for broker in answer.brokers}:
            return False
        parts = [part for topic in answer.topics for part in topic.partitions]
        return all(node in p.isr_nodes for p in parts if node in p.replica_nodes)

    async def mend(self, within: float) -> str:
        """Start the brokers that are away, and wait until the cluster is whole.

        What is missing for ``within`` seconds is restarted, broker by broker, as somebody on call
        would do: a wall clock that steps back may keep timers of Kafka from running out for as long
        as the step. Returns what was still missing then. EnvironmentFault says which broker is not
        back, with the last lines of its log.
        """
        for broker in self.victims:
            await asyncio.to_thread(broker.resume)
            if isinstance(broker, Plugged):
                await asyncio.to_thread(broker.connect)
            await self._start(broker)
        self.cluster.away.clear()
        missing = await self._still_missing(within)
        if missing and self.hooks is None:
            for broker in self.victims:
                if broker.is_alive:
                    await asyncio.to_thread(broker.kill)
                await self._start(broker)
            if not (last := await self._still_missing(within)):
                return missing
            missing = last
        if missing:
            found = re.search(r"broker (\d+)", missing)
            lines = self._last_lines(int(found[1])) if found else ""
            reason = f"the cluster did not come back within {within:g} s: {missing}"
            raise EnvironmentFault(f"{reason}{lines}")
        return ""

    async def _start(self, broker: Handle) -> None:
        if not broker.is_alive:
            with contextlib.suppress(EnvironmentFault):
                await asyncio.to_thread(broker.start)

    async def _still_missing(self, within: float) -> str:
        seen: set[str] = set()
        deadline = time.monotonic() + within
        while missing := await self.cluster.missing():
            if missing not in seen:
                seen.add(missing)
                deadline = time.monotonic() + within
            if time.monotonic() > deadline:
                return missing
            await asyncio.sleep(0.25)
        return ""

    def _last_lines(self, node: int) -> str:
        for broker in self.victims:
            if broker.node_id == node and isinstance(broker, Broker):
                with contextlib.suppress(OSError):
                    text = (broker.home / "broker.log").read_text(
                        encoding="utf-8", errors="replace"
                    )
                    return "; its log ends: " + " | ".join(text.splitlines()[-_LINES:])
        return ""


def broker_clock(node: int) -> str:
    return f"broker-{node}"


def client_clock(process: int) -> str:
    return f"client-{process}"
