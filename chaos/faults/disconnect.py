"""A broker is disconnected from the network while it runs, in both directions.

Only brokers in containers can be: their engine takes the plug out. Connections between brokers end
in silence, not in a reset, as they do when a switch dies.
"""

import asyncio
from collections.abc import Callable

from chaos.faults.outage import Outage
from chaos.faults.roles import for_each_role
from chaos.schedule import Resource
from chaos.world import in_thread
from fixtures.interface.capability import Capability
from fixtures.interface.handle import Handle, Plugged
from spec.verdict import Undecided


@for_each_role(
    "disconnect",
    "Disconnect {} from the container network, and reconnect it.",
    *(Capability.SPARE_BROKER, Capability.CONTAINER),
    lasts=(7.0, 11.0),
    takes={Resource.BROKER},
)
class Disconnect(Outage):
    """The plug is taken out, and put back later on."""

    @property
    def late_broker(self) -> int:
        """That broker: requests wait in its connections."""
        return self.node

    def go(self, broker: Handle) -> Callable[[], None]:
        """Take it off the network."""
        return _plug(broker).disconnect

    async def hit(self) -> str:
        """See it without a network, alive, and answering nobody."""
        if await self._connected() or not self.broker.is_alive:
            return ""
        if await self.world.answers(self.node):
            return ""
        return f"broker {self.node} runs on no network and answers nobody"

    async def heal(self) -> None:
        """Put it back."""
        if self.node >= 0:
            await in_thread(_plug(self.broker).connect)
            self.world.cluster.away.discard(self.node)

    async def healed(self) -> str:
        """See it on the network, and all replicas in sync again."""
        return await super().healed() if await self._connected() else ""

    async def _connected(self) -> bool:
        return await asyncio.to_thread(lambda: _plug(self.broker).is_connected)


def _plug(broker: Handle) -> Plugged:
    if not isinstance(broker, Plugged):
        raise Undecided(f"broker {broker.node_id} runs in no container")
    return broker
