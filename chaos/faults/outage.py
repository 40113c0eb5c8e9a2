"""A broker goes away and comes back: killed, shut down, paused, disconnected, or its disk full.

Consumers pause, too: for longer than their locks last, and go on as if nothing had happened.
"""

import asyncio
import signal
from abc import abstractmethod

import psutil

from chaos.faults.fault import Injection, Role, fault, for_each_role
from chaos.schedule import Resource
from chaos.world import STATE, World
from fixtures.clients.admin import TOPIC_RESOURCE
from fixtures.clients.configs import configure_topic
from fixtures.interface.capability import Capability
from fixtures.interface.target import Handle, Plugged
from fixtures.targets.broker import Broker
from fixtures.workload.pool import LocalWorker
from spec.verdict import EnvironmentFault, Undecided

_BY_SIGTERM = (None, 0, 143)  # Exit codes; of a broker that is not ours there is none to see.
_NO_BYTES = 1  # Bytes that a file may have: enough for none.
_MIN_ISR = "min.insync.replicas"


class Outage(Injection):
    """The broker in some role goes away; healed when all replicas are in sync again."""

    def __init__(self, world: World, subject: int, role: Role) -> None:
        super().__init__(world, subject)
        self.role = role
        self.node = -1

    @property
    def broker(self) -> Handle:
        return self.world.broker(self.node)

    async def inject(self) -> str:
        self.node = await self.role.who(self.world, self.subject)
        self.world.cluster.away.add(self.node)
        await asyncio.to_thread(self.take_down)
        return f"broker {self.node}, {self.role.title}"

    @abstractmethod
    def take_down(self) -> None:
        """Take the broker down; blocks."""

    def bring_back(self) -> None:
        self.broker.start()

    async def heal(self) -> None:
        if self.node >= 0:
            await asyncio.to_thread(self.bring_back)
            self.world.cluster.away.discard(self.node)

    async def healed(self) -> str:
        if self.node < 0:
            return "no broker went away"
        serves = await self.world.serves(self.node)
        return f"broker {self.node} serves, its replicas in sync" if serves else ""


@for_each_role(
    "kill",
    "Kill {} with SIGKILL, and start it again.",
    *(Capability.SPARE_BROKER, Capability.KILL, Capability.START),
    lasts=(7.0, 11.0),
    takes={Resource.BROKER},
)
class Kill(Outage):
    """A power cut: the broker hands nothing over."""

    def take_down(self) -> None:
        self.broker.kill()

    async def hit(self) -> str:
        code = self.broker.exit_code
        if code not in {None, -signal.SIGKILL} or await self.world.answers(self.node):
            return ""
        how = "was killed by its hook" if code is None else f"ended by signal {-code}"
        return f"broker {self.node} {how}, nobody listens at its port"


@for_each_role(
    "stop",
    "Shut {} down cleanly, and start it again.",
    *(Capability.SPARE_BROKER, Capability.STOP, Capability.START),
    lasts=(3.0, 6.0),
    takes={Resource.BROKER},
)
class Stop(Outage):
    """The broker hands over what it leads, and then ends."""

    def take_down(self) -> None:
        self.broker.stop()

    async def hit(self) -> str:
        code = self.broker.exit_code
        if code not in _BY_SIGTERM or await self.world.answers(self.node):
            return ""
        how = "by its hook" if code is None else f"with exit code {code}"
        return f"broker {self.node} was shut down {how}, nobody listens at its port"


@for_each_role(
    "pause",
    "Pause (SIGSTOP) {} beyond its session timeout, and resume it.",
    *(Capability.SPARE_BROKER, Capability.PAUSE, Capability.RESUME),
    lasts=(8.0, 12.0),
    takes={Resource.BROKER},
)
class Pause(Outage):
    """Its connections stay open, nothing responds, and it resumes as a zombie."""

    @property
    def late_broker(self) -> int:
        return self.node

    def take_down(self) -> None:
        self.broker.pause()

    def bring_back(self) -> None:
        self.broker.resume()

    async def hit(self) -> str:
        if await asyncio.to_thread(lambda: self.broker.is_frozen) is False:
            return ""
        if await self.world.answers(self.node):
            return ""
        return f"broker {self.node} is stopped and responds to nobody"


@for_each_role(
    "disconnect",
    "Disconnect {} from the container network, and reconnect it.",
    *(Capability.SPARE_BROKER, Capability.CONTAINER),
    lasts=(7.0, 11.0),
    takes={Resource.BROKER},
)
class Disconnect(Outage):
    """Only brokers in containers can be disconnected: their engine does it.

    Connections between brokers end in silence, not in a reset, as they do when a switch dies.
    """

    @property
    def late_broker(self) -> int:
        return self.node

    @property
    def plug(self) -> Plugged:
        if not isinstance(self.broker, Plugged):
            raise Undecided(f"broker {self.broker.node_id} runs in no container")
        return self.broker

    def take_down(self) -> None:
        self.plug.disconnect()

    def bring_back(self) -> None:
        self.plug.connect()

    async def hit(self) -> str:
        if await self._connected() or not self.broker.is_alive:
            return ""
        if await self.world.answers(self.node):
            return ""
        return f"broker {self.node} runs on no network and answers nobody"

    async def healed(self) -> str:
        return await super().healed() if await self._connected() else ""

    async def _connected(self) -> bool:
        return await asyncio.to_thread(lambda: self.plug.is_connected)


@for_each_role(
    "fill",
    "Make every disk write of {} fail, until it is restarted.",
    *(Capability.SPARE_BROKER, Capability.LOCAL_PROCESS),
    lasts=(7.0, 11.0),
    takes={Resource.BROKER},
)
class Fill(Outage):
    """The disk is full: no write to the log directory succeeds, and so the broker ends itself.

    No disk is filled for it. The kernel is told to let the process's files grow no further, so
    every append fails with an I/O error; Kafka treats all of those alike and takes the directory
    offline.
    """

    def take_down(self) -> None:
        self._limit(_NO_BYTES)

    def bring_back(self) -> None:
        if self.broker.is_alive:
            self._limit(None)
        super().bring_back()

    async def hit(self) -> str:
        code = self.broker.exit_code
        return f"broker {self.node} ended with exit code {code}, its disk full" if code else ""

    def _limit(self, size: int | None) -> None:
        pid = self.broker.pid if isinstance(self.broker, Broker) else None
        if pid is None or not hasattr(psutil, "RLIMIT_FSIZE"):
            raise EnvironmentFault(f"broker {self.node}: only Linux can limit a process's files")
        process = psutil.Process(pid)
        _, most = process.rlimit(psutil.RLIMIT_FSIZE)
        process.rlimit(psutil.RLIMIT_FSIZE, (most if size is None else size, most))


async def _bystander(world: World, subject: int) -> int:
    """Return a broker that keeps no state of the share-partition and does not lead it."""
    busy = {
        await world.share_coordinator(subject),
        await world.leader(world.course.topic.name, world.partition(subject)),
    }
    return next(node for node in world.nodes if node not in busy)


@fault(
    "state-below-min-isr",
    "Set min.insync.replicas of the state topic above the number of replicas.",
    *(Capability.SPARE_BROKER, Capability.STOP, Capability.START),
    lasts=(5.0, 9.0),
    takes={Resource.BROKER, Resource.STATE_WRITES},
)
class TooFewInSync(Outage):
    """All three replicas are demanded while one of them is shut down: nothing can be stored."""

    def __init__(self, world: World, subject: int) -> None:
        role = Role(name="bystander", title="a follower of the state topic", who=_bystander)
        super().__init__(world, subject, role)

    def take_down(self) -> None:
        self.broker.stop()

    async def inject(self) -> str:
        await self._demand(len(self.world.nodes))
        await super().inject()
        return f"{STATE} demands {len(self.world.nodes)} replicas, broker {self.node} is down"

    async def hit(self) -> str:
        demanded = await self._demanded()
        parts = (await self.world.topic(STATE)).partitions
        most = max(len(part.isr_nodes) for part in parts)
        if most >= demanded:
            return ""
        return f"{STATE} demands {demanded} replicas in sync and has {most}"

    async def heal(self) -> None:
        try:
            await self._demand(len(self.world.nodes) - 1)
        finally:
            await super().heal()

    async def healed(self) -> str:
        enough = await self._demanded() < len(self.world.nodes)
        return await super().healed() if enough else ""

    async def _demanded(self) -> int:
        return int((await self.world.admin.configs(TOPIC_RESOURCE, STATE))[_MIN_ISR])

    async def _demand(self, in_sync: int) -> None:
        await configure_topic(self.world.cluster, STATE, {_MIN_ISR: str(in_sync)})


@fault(
    "pause-consumers",
    "Pause (SIGSTOP) a load process for longer than a lock lasts, and resume it.",
    Capability.LOAD_PROCESS,
    lasts=(6.5, 9.0),
    takes={Resource.PROCESS},
)
class PauseConsumers(Injection):
    """One process of the load is stopped, with all its producers and consumers.

    Responses lie unread meanwhile. Its consumers see themselves that a response came late, and say
    what may have been acquired unseen.
    """

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        workers = [one for one in world.course.pool.workers if isinstance(one, LocalWorker)]
        self.worker = workers[subject % len(workers)]

    async def inject(self) -> str:
        self.worker.process.send_signal(signal.SIGSTOP)
        names = ", ".join(member.name for member in self.worker.work.members)
        return f"process {self.worker.work.process} with {names}"

    async def hit(self) -> str:
        stopped = self._status() == psutil.STATUS_STOPPED
        return f"process {self.worker.work.process} is stopped" if stopped else ""

    async def heal(self) -> None:
        if self.worker.alive:
            self.worker.process.send_signal(signal.SIGCONT)

    async def healed(self) -> str:
        going = self.worker.alive and self._status() != psutil.STATUS_STOPPED
        return f"process {self.worker.work.process} goes on" if going else ""

    def _status(self) -> str:
        return (
            str(psutil.Process(self.worker.process.pid).status()) if self.worker.alive else "gone"
        )
