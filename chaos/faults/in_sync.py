"""The state topic demands more replicas in sync than there are, so that nothing can be stored."""

from chaos.faults.fault import fault
from chaos.faults.outage import Outage
from chaos.faults.roles import Role
from chaos.schedule import Resource
from chaos.world import STATE, World, in_thread
from fixtures.clients.admin import TOPIC_RESOURCE
from fixtures.clients.configs import alter
from fixtures.interface.capability import Capability
from fixtures.wire.errors import error_name
from spec.verdict import Undecided

_SETTING = "min.insync.replicas"


async def _bystander(world: World, subject: int) -> int:
    """Return a broker that keeps no state of the share-partition and does not lead it."""
    busy = {
        await world.state_keeper(subject),
        await world.leader(world.course.topic.name, world.partition(subject)),
    }
    return next(node for node in world.nodes if node not in busy)


_BYSTANDER = Role(name="bystander", title="a follower of the state topic", who=_bystander)


@fault(
    "state-below-min-isr",
    "Set min.insync.replicas of the state topic above the number of replicas.",
    *(Capability.SPARE_BROKER, Capability.STOP, Capability.START),
    lasts=(5.0, 9.0),
    takes={Resource.BROKER, Resource.STATE_WRITES},
)
class TooFewInSync(Outage):
    """All three replicas are demanded while one of them is shut down."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject, _BYSTANDER)

    async def inject(self) -> str:
        """Demand three, then shut one down."""
        await self._demand(str(len(self.world.nodes)))
        self.node = await self.role.who(self.world, self.subject)
        self.world.cluster.away.add(self.node)
        await in_thread(self.broker.stop)
        return f"{STATE} demands {len(self.world.nodes)} replicas, broker {self.node} is down"

    async def hit(self) -> str:
        """See fewer in sync than demanded, everywhere."""
        configs = await self.world.admin.configs(TOPIC_RESOURCE, STATE)
        parts = (await self.world.topic(STATE)).partitions
        most = max(len(part.isr_nodes) for part in parts)
        if most >= int(configs[_SETTING]):
            return ""
        return f"{STATE} demands {configs[_SETTING]} replicas in sync and has {most}"

    async def heal(self) -> None:
        """Demand what was demanded before, and start the broker."""
        try:
            await self._demand(None)
        finally:
            await super().heal()

    async def healed(self) -> str:
        """See enough in sync again."""
        configs = await self.world.admin.configs(TOPIC_RESOURCE, STATE)
        if int(configs[_SETTING]) >= len(self.world.nodes):
            return ""
        return await super().healed()

    async def _demand(self, in_sync: str | None) -> None:
        wanted = {_SETTING: in_sync or str(len(self.world.nodes) - 1)}
        answer = await alter(self.world.cluster, TOPIC_RESOURCE, STATE, wanted)
        if answer.error_code:
            raise Undecided(f"altering {STATE}: {error_name(answer.error_code)}")
