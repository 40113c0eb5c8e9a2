"""Wall clocks jump: a broker's, or that of a process full of clients.

Locks, sessions and timeouts run by clocks that never jump, so nothing but timestamps may change.
"""

import asyncio

from chaos.faults.fault import Injection, Role, fault, for_each_role
from chaos.schedule import Resource
from chaos.world import World, broker_clock, client_clock
from fixtures.interface.capability import Capability

_JUMPS = (3600.0, -3000.0)
"""Seconds ahead and behind. By default brokers refuse records that are an hour before their time;
nothing is to be learnt from a load that cannot write (KIP-937)."""


class Jump(Injection):
    """The wall clock of the process with some role is wrong for a while.

    The proof is what the process itself was told when it last asked for the time, so it needs
    nobody else: another fault may have stopped the process, but then its clock jumps no less.
    """

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.by = _JUMPS[subject % len(_JUMPS)]
        self.clock = ""

    def move(self, clock: str) -> None:
        self.clock = clock
        self.world.all_clocks.move(clock, self.by)

    async def heal(self) -> None:
        if self.clock:
            self.world.all_clocks.move(self.clock, 0.0)

    async def hit(self) -> str:
        return self._applied(self.by)

    async def healed(self) -> str:
        return self._applied(0.0)

    def _applied(self, wanted: float) -> str:
        if not self.clock or self.world.all_clocks.applied(self.clock) != wanted:
            return ""
        return f"{self.clock} read a clock that is {wanted:+.1f} s off ours"


@for_each_role(
    "shift",
    "Set the wall clock of {} an hour ahead until it is restarted, or almost an hour behind.",
    *(Capability.CLOCKS, Capability.CLOCK_LIBRARY, Capability.SPARE_BROKER),
    *(Capability.STOP, Capability.START),
    lasts=(4.0, 8.0),
    takes={Resource.CLOCK, Resource.BROKER},
)
class BrokerJump(Jump):
    """A broker's clock jumps.

    KRaft and Kafka's network clients wait by the wall clock. After a step back by an hour of the
    active controller of 4.4.0 no metadata record was written any more, and a broker that had been
    away could not register, twice of two times: a restart is what heals that.
    """

    def __init__(self, world: World, subject: int, role: Role) -> None:
        super().__init__(world, subject)
        self.role = role
        self.node = -1

    async def inject(self) -> str:
        self.node = await self.role.who(self.world, self.subject)
        self.move(broker_clock(self.node))
        return f"broker {self.node}, {self.role.title}, by {self.by:+g} s"

    async def heal(self) -> None:
        """Put the clock right; a step back needs a restart."""
        if self.node < 0:
            return
        if self.by < 0:
            await super().heal()
            return
        broker = self.world.broker(self.node)
        self.world.cluster.away.add(self.node)
        await asyncio.to_thread(broker.stop)
        await super().heal()
        await asyncio.to_thread(broker.start)
        self.world.cluster.away.discard(self.node)

    async def healed(self) -> str:
        right = await super().healed()
        return right if right and await self.world.serves(self.node) else ""


@fault(
    "shift-consumers",
    "Set the wall clock of a load process an hour ahead, or almost an hour behind.",
    *(Capability.CLOCKS, Capability.CLOCK_LIBRARY, Capability.LOAD_PROCESS),
    lasts=(4.0, 8.0),
    relies_on={Resource.PROCESS},
)
class ClientJump(Jump):
    """The clock of a process jumps, with all its producers and consumers."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        workers = world.course.pool.workers
        self.worker = workers[subject % len(workers)]

    async def inject(self) -> str:
        work = self.worker.work
        self.move(client_clock(work.process))
        await self.worker.send("wall")
        names = ", ".join(member.name for member in work.members)
        return f"process {work.process} with {names}, by {self.by:+g} s"

    async def heal(self) -> None:
        await super().heal()
        if self.worker.alive:
            await self.worker.send("wall")
