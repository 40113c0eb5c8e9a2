"""A broker goes and comes back: what dying, leaving in order and freezing have in common."""

from __future__ import annotations

from collections.abc import Callable

from chaos.faults.fault import Fault, Kind
from chaos.faults.roles import ROLES, Role
from chaos.hooks import UNDONE_BY
from chaos.world import World, in_thread
from fixtures.targets.handle import Handle
from fixtures.wire.connection import CallFailed
from spec.verdict import Undecided


class Going(Fault):
    """A broker that plays a part goes away; healed when it is in sync everywhere again."""

    def __init__(self, world: World, subject: int, role: Role) -> None:
        super().__init__(world, subject)
        self.role = role
        self.node = -1

    @property
    def broker(self) -> Handle:
        """Whom it befalls."""
        return self.world.broker(self.node)

    async def inject(self) -> str:
        """Have whoever plays the part go."""
        self.node = await self.role.who(self.world, self.subject)
        broker = self.world.broker(self.node)
        self.world.cluster.away.add(self.node)
        await in_thread(self.go(broker))
        return f"broker {self.node}, {self.role.title}"

    def go(self, broker: Handle) -> Callable[[], None]:
        """Return how it goes."""
        raise NotImplementedError

    async def heal(self) -> None:
        """Have it come back."""
        if self.node < 0:
            return
        await in_thread(self.broker.start)
        self.world.cluster.away.discard(self.node)

    async def healed(self) -> str:
        """See all replicas in sync again."""
        try:
            whole = await self.world.in_sync()
        except (CallFailed, Undecided):
            return ""
        return f"broker {self.node} serves, all replicas in sync" if whole else ""


def kinds(
    verb: str, does: str, make: Callable[[World, int, Role], Fault], lasts: tuple[float, float]
) -> tuple[Kind, ...]:
    """Return the kinds of a way to go, one for each part that a broker plays."""
    return tuple(
        Kind(
            name=f"{verb}-{role.name}",
            sentence=does.format(role.title),
            make=_of(make, role),
            lasts=lasts,
            brokers=3,
            lonely=True,
            hooks=(verb, UNDONE_BY[verb]),
        )
        for role in ROLES
    )


def _of(make: Callable[[World, int, Role], Fault], role: Role) -> Callable[[World, int], Fault]:
    return lambda world, subject: make(world, subject, role)
