"""A broker's disk is full: no write to its log directory succeeds any more, and so it ends itself.

No disk is filled for it. The kernel is told to let the process's files grow no further, so every
append fails with an I/O error; Kafka treats all of those alike and takes the directory offline.
"""

from collections.abc import Callable

import psutil

from chaos.faults.outage import Outage
from chaos.faults.roles import for_each_role
from chaos.schedule import Resource
from fixtures.interface.capability import Capability
from fixtures.interface.handle import Handle
from fixtures.targets.broker import Broker
from spec.verdict import EnvironmentFault

_NOTHING = 1
"""Bytes that a file may have: enough for none."""


@for_each_role(
    "fill",
    "Make every disk write of {} fail, until it is restarted.",
    *(Capability.SPARE_BROKER, Capability.LOCAL_PROCESS),
    lasts=(7.0, 11.0),
    takes={Resource.BROKER},
)
class Fill(Outage):
    """All disk writes of a broker fail until it is restarted."""

    def go(self, broker: Handle) -> Callable[[], None]:
        """Let no file of the process grow."""

        def fill() -> None:
            _limit(broker, _NOTHING)

        return fill

    async def hit(self) -> str:
        """See that the broker ended by itself, as one does that has no log directory left."""
        code = self.broker.exit_code
        return f"broker {self.node} ended with exit code {code}, its disk full" if code else ""

    async def heal(self) -> None:
        """Make room, and start it."""
        if self.node >= 0 and self.broker.is_alive:
            _limit(self.broker, None)
        await super().heal()


def _limit(broker: Handle, size: int | None) -> None:
    """Let the files of a broker's process grow to a size, or as far as they may."""
    pid = broker.pid if isinstance(broker, Broker) else None
    if pid is None or not hasattr(psutil, "RLIMIT_FSIZE"):
        raise EnvironmentFault(f"broker {broker.node_id}: only Linux can limit a process's files")
    process = psutil.Process(pid)
    _, most = process.rlimit(psutil.RLIMIT_FSIZE)
    process.rlimit(psutil.RLIMIT_FSIZE, (most if size is None else size, most))
