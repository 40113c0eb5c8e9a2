"""Wall clocks jump: a broker's, or that of a process full of clients.

Locks, sessions and timeouts run by clocks that never jump, so nothing but timestamps may change.
"""

from __future__ import annotations

import time

from chaos.faults.fault import Injection, fault
from chaos.faults.roles import Role, for_each_role
from chaos.world import World, broker_clock, client_clock
from fixtures.clients.admin import Admin
from fixtures.interface.capability import Capability

_JUMPS = (3600.0, -3000.0)
"""Seconds ahead and behind. By default brokers refuse records that are an hour before their time;
nothing is to be learnt from a load that cannot write (KIP-937)."""
_AGREES = 60.0
"""Seconds by which a clock that is right may differ from ours."""
_NEWEST = -3
"""Asks ListOffsets for the greatest timestamp of a log (KIP-734)."""


class Jump(Injection):
    """The wall clock of the process with some role is wrong for a while."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.by = _JUMPS[subject % len(_JUMPS)]
        self.clock = ""

    async def heal(self) -> None:
        """Put the clock right."""
        if self.clock:
            self.world.all_clocks.move(self.clock, 0.0)

    async def hit(self) -> str:
        """See the clock wrong by about as much as it jumped."""
        ahead = await self.ahead()
        return self._said(ahead) if abs(ahead - self.by) < _AGREES else ""

    async def healed(self) -> str:
        """See the clock right."""
        ahead = await self.ahead()
        return self._said(ahead) if abs(ahead) < _AGREES else ""

    def _said(self, ahead: float) -> str:
        return f"the clock of {self.clock} is {ahead:+.1f} s off ours"

    async def ahead(self) -> float:
        """Return how far ahead of ours the clock is, in seconds."""
        raise NotImplementedError


@for_each_role(
    "shift",
    "Set the wall clock of {} an hour ahead, or almost an hour behind.",
    *(Capability.CLOCKS, Capability.CLOCK_LIBRARY),
    lasts=(4.0, 8.0),
)
class BrokerJump(Jump):
    """A broker's clock jumps; how it stamps the records of a log of its own shows it."""

    def __init__(self, world: World, subject: int, role: Role) -> None:
        super().__init__(world, subject)
        self.role, self.node = role, -1

    async def inject(self) -> str:
        """Move the clock."""
        self.node = await self.role.who(self.world, self.subject)
        self.clock = broker_clock(self.node)
        self.world.all_clocks.move(self.clock, self.by)
        return f"broker {self.node}, {self.role.title}, by {self.by:+g} s"

    async def ahead(self) -> float:
        """Have the broker stamp a record, and read the stamp."""
        admin = self.world.admin
        configs = {"message.timestamp.type": "LogAppendTime"}
        topic = await admin.create_topic(configs=configs, assignments=[[self.node]])
        await admin.produce(topic, 1)
        stamp = await _newest_stamp(admin, topic.name, self.node)
        seen = stamp / 1000 - time.time()
        await admin.delete_topics(topic.name)
        return seen


async def _newest_stamp(admin: Admin, name: str, node: int) -> int:
    asked = [{"partition_index": 0, "timestamp": _NEWEST}]
    answer = await (await admin.cluster.to(node)).call(
        "ListOffsets", replica_id=-1, topics=[{"name": name, "partitions": asked}]
    )
    return int(answer.topics[0].partitions[0].timestamp)


@fault(
    "shift-consumers",
    "Set the wall clock of a load process an hour ahead, or almost an hour behind.",
    *(Capability.CLOCKS, Capability.CLOCK_LIBRARY, Capability.LOAD_PROCESS),
    lasts=(4.0, 8.0),
)
class ClientJump(Jump):
    """The clock of a process jumps, with all its producers and consumers."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        workers = world.course.pool.workers
        self.worker = workers[subject % len(workers)]

    async def inject(self) -> str:
        """Move the clock."""
        number = self.worker.work.process
        self.clock = client_clock(number)
        self.world.all_clocks.move(self.clock, self.by)
        names = ", ".join(member.name for member in self.worker.work.members)
        return f"process {number} with {names}, by {self.by:+g} s"

    async def ahead(self) -> float:
        """Ask the process what time it is."""
        return int(await self.worker.ask("wall")) / 1e9 - time.time()
