"""A rolling upgrade: every broker in turn is shut down and started as a later release."""

from __future__ import annotations

import asyncio

import psutil

from chaos.faults.fault import fault
from chaos.faults.restart import RollingRestart
from chaos.schedule import Resource
from chaos.world import World
from fixtures.interface.capability import Capability
from fixtures.interface.names import DEFAULT_VERSION, release_line
from fixtures.targets.broker import Broker
from fixtures.targets.kafka import release_before, upgrade
from spec.verdict import Undecided

TO = DEFAULT_VERSION
"""What brokers are upgraded to: the release that is tested where none is named."""
FROM = release_before(TO)


@fault(
    "rolling-upgrade",
    f"Upgrade every broker in turn from an earlier release to Kafka {TO}.",
    *(Capability.SPARE_BROKER, Capability.LOCAL_PROCESS, Capability.EARLIER_RELEASE),
    lasts=(12.0, 18.0),
    takes={Resource.BROKER},
)
class Upgrade(RollingRestart):
    """Upgrade one broker after the other, each when all replicas are in sync again."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.upgraded: dict[int, Broker] = {}

    async def inject(self) -> str:
        """Upgrade them all."""
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
        """See each of them run by the jars of the later release."""
        pids = [broker.pid for broker in self.upgraded.values()]
        lines = [" ".join(psutil.Process(pid).cmdline()) for pid in pids if pid is not None]
        there = sum(f"kafka-clients-{TO}.jar" in line for line in lines)
        return f"{there} brokers run Kafka {TO}" if there == len(self.world.nodes) else ""
