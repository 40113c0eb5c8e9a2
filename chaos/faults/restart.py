"""Every broker in turn is restarted, as it is or as a later release, under load."""

import asyncio

import psutil

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.clients.cluster import eventually
from fixtures.interface.capability import Capability
from fixtures.interface.names import DEFAULT_VERSION, release_line
from fixtures.targets.broker import Broker
from fixtures.targets.kafka import release_before, upgrade
from spec.verdict import Undecided

TO = DEFAULT_VERSION  # What brokers are upgraded to: the release that is tested where none is named
FROM = release_before(TO)


@fault(
    "rolling-restart",
    "Restart every broker in turn, each when the previous one is in sync again.",
    *(Capability.SPARE_BROKER, Capability.STOP, Capability.START),
    lasts=(10.0, 15.0),
    takes={Resource.BROKER},
)
class RollingRestart(Injection):
    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.codes: dict[int, int | None] = {}

    async def inject(self) -> str:
        nodes = self.world.nodes
        first = self.subject % len(nodes)
        order = [*nodes[first:], *nodes[:first]]
        for node in order:
            self.world.cluster.away.add(node)
            try:
                await self._leave_and_come(node)
            finally:
                await asyncio.to_thread(self.world.broker(node).start)
                self.world.cluster.away.discard(node)
            await eventually("replicas in sync", self._whole, 60.0)
        return f"brokers {', '.join(map(str, order))}"

    async def _leave_and_come(self, node: int) -> None:
        """Shut a broker down; who calls starts it."""
        broker = self.world.broker(node)
        await asyncio.to_thread(broker.stop)
        self.codes[node] = broker.exit_code

    async def _whole(self) -> bool | None:
        return not await self.world.cluster.missing() or None

    async def hit(self) -> str:
        ended = [f"{node} with exit code {code}" for node, code in self.codes.items()]
        return f"ended: {', '.join(ended)}" if set(self.codes) == set(self.world.nodes) else ""

    async def heal(self) -> None:
        for node in self.world.nodes:
            await asyncio.to_thread(self.world.broker(node).start)
            self.world.cluster.away.discard(node)

    async def healed(self) -> str:
        return "all replicas in sync" if await self._whole() else ""


@fault(
    "rolling-upgrade",
    f"Upgrade every broker in turn from an earlier release to Kafka {TO}.",
    *(Capability.SPARE_BROKER, Capability.LOCAL_PROCESS, Capability.EARLIER_RELEASE),
    lasts=(12.0, 18.0),
    takes={Resource.BROKER},
)
class Upgrade(RollingRestart):
    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.upgraded: dict[int, Broker] = {}

    async def inject(self) -> str:
        before = self.world.target.version
        if release_line(before) >= release_line(TO):
            raise Undecided(f"Kafka {before} is no release to upgrade to {TO} from")
        return f"{await super().inject()} from Kafka {before} to {TO}"

    async def _leave_and_come(self, node: int) -> None:
        broker = next(one for one in self.world.target.brokers if one.node_id == node)
        if not isinstance(broker, Broker):
            raise Undecided(f"broker {node} is no process of ours")
        await asyncio.to_thread(upgrade, broker, TO)
        self.upgraded[node] = broker

    async def hit(self) -> str:
        pids = [broker.pid for broker in self.upgraded.values()]
        lines = [" ".join(psutil.Process(pid).cmdline()) for pid in pids if pid is not None]
        there = sum(f"kafka-clients-{TO}.jar" in line for line in lines)
        return f"{there} brokers run Kafka {TO}" if there == len(self.world.nodes) else ""
