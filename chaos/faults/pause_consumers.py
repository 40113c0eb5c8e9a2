"""Consumers pause for longer than their locks last, and go on as if nothing had happened."""

import signal

import psutil

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.interface.capability import Capability
from fixtures.workload.pool import LocalWorker


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
