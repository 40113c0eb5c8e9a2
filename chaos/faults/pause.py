"""A broker pauses: its connections stay open, nothing responds, and it resumes as a zombie."""

import asyncio
from collections.abc import Callable

from chaos.faults.outage import Outage
from chaos.faults.roles import for_each_role
from chaos.schedule import Resource
from chaos.world import in_thread
from fixtures.interface.capability import Capability
from fixtures.interface.handle import Handle


@for_each_role(
    "pause",
    "Pause (SIGSTOP) {} beyond its session timeout, and resume it.",
    *(Capability.SPARE_BROKER, Capability.PAUSE, Capability.RESUME),
    lasts=(8.0, 12.0),
    takes={Resource.BROKER},
)
class Pause(Outage):
    """SIGSTOP, and SIGCONT later on."""

    @property
    def late_broker(self) -> int:
        """That broker: requests wait in its connections."""
        return self.node

    def go(self, broker: Handle) -> Callable[[], None]:
        """Pause it."""
        return broker.pause

    async def hit(self) -> str:
        """See it stopped, and that it does not greet a new client."""
        if await asyncio.to_thread(lambda: self.broker.is_frozen) is False:
            return ""
        if await self.world.answers(self.node):
            return ""
        return f"broker {self.node} is stopped and responds to nobody"

    async def heal(self) -> None:
        """Resume it."""
        if self.node >= 0:
            await in_thread(self.broker.resume)
            self.world.cluster.away.discard(self.node)
