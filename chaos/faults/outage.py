"""A broker goes away and comes back: what killing, stopping and pausing one have in common."""

from collections.abc import Callable

from chaos.faults.fault import Injection
from chaos.faults.roles import Role
from chaos.world import World, in_thread
from fixtures.interface.handle import Handle


class Outage(Injection):
    """The broker in some role goes away; healed when all replicas are in sync again."""

    def __init__(self, world: World, subject: int, role: Role) -> None:
        super().__init__(world, subject)
        self.role = role
        self.node = -1

    @property
    def broker(self) -> Handle:
        """The broker that goes away."""
        return self.world.broker(self.node)

    async def inject(self) -> str:
        """Take down the broker that has the role now."""
        self.node = await self.role.who(self.world, self.subject)
        broker = self.world.broker(self.node)
        self.world.cluster.away.add(self.node)
        await in_thread(self.go(broker))
        return f"broker {self.node}, {self.role.title}"

    def go(self, broker: Handle) -> Callable[[], None]:
        """Return the call that takes it down."""
        raise NotImplementedError

    async def heal(self) -> None:
        """Start it again."""
        if self.node < 0:
            return
        await in_thread(self.broker.start)
        self.world.cluster.away.discard(self.node)

    async def healed(self) -> str:
        """See its own replicas in sync again; what others lack is not about this broker."""
        if self.node < 0:
            return "no broker went away"
        serves = await self.world.serves(self.node)
        return f"broker {self.node} serves, its replicas in sync" if serves else ""
