"""A rolling restart: every broker in turn is shut down and started, under load."""

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World, in_thread
from fixtures.clients.cluster import eventually
from fixtures.interface.capability import Capability

_WHOLE_WITHIN = 60.0


@fault(
    "rolling-restart",
    "Restart every broker in turn, each when the previous one is in sync again.",
    *(Capability.SPARE_BROKER, Capability.STOP, Capability.START),
    lasts=(10.0, 15.0),
    takes={Resource.BROKER},
)
class RollingRestart(Injection):
    """Restart one broker after the other, each when all replicas are in sync again."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.codes: dict[int, int | None] = {}

    async def inject(self) -> str:
        """Restart them all."""
        nodes = self.world.nodes
        first = self.subject % len(nodes)
        order = [*nodes[first:], *nodes[:first]]
        for node in order:
            self.world.cluster.away.add(node)
            try:
                await self._leave_and_come(node)
            finally:
                await in_thread(self.world.broker(node).start)
                self.world.cluster.away.discard(node)
            await eventually("replicas in sync", self._whole, _WHOLE_WITHIN)
        return f"brokers {', '.join(map(str, order))}"

    async def _leave_and_come(self, node: int) -> None:
        """Shut a broker down; who calls starts it."""
        broker = self.world.broker(node)
        await in_thread(broker.stop)
        self.codes[node] = broker.exit_code

    async def _whole(self) -> bool | None:
        return not await self.world.missing() or None

    async def hit(self) -> str:
        """See how each of them ended."""
        ended = [f"{node} with exit code {code}" for node, code in self.codes.items()]
        return f"ended: {', '.join(ended)}" if set(self.codes) == set(self.world.nodes) else ""

    async def heal(self) -> None:
        """Start the brokers that are down."""
        for node in self.world.nodes:
            await in_thread(self.world.broker(node).start)
            self.world.cluster.away.discard(node)

    async def healed(self) -> str:
        """See all replicas in sync."""
        return "all replicas in sync" if await self._whole() else ""
