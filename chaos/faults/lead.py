"""Leadership moves while all brokers run: by election, or by reassignment."""

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import OFFSETS, STATE, World
from fixtures.clients.cluster import SHARE
from fixtures.interface.capability import Capability
from fixtures.wire.state_records import partition_of, share_key
from spec.verdict import Undecided


@fault(
    "elect-leader",
    "Elect another leader for a partition.",
    Capability.REPLICAS,
    lasts=(0.5, 1.0),
    relies_on={Resource.REPLICAS},
)
class Elect(Injection):
    """Another replica becomes the preferred one and is elected, which takes a tenth of a second."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.name, self.index, self.before, self.after = "", 0, -1, -1

    async def whose(self) -> tuple[str, int]:
        return self.world.course.topic.name, self.world.partition(self.subject)

    async def inject(self) -> str:
        self.name, self.index = await self.whose()
        part = await self.world.part(self.name, self.index)
        self.before = part.leader_id
        others = sorted(
            n for n in part.isr_nodes if n not in {self.before, *self.world.cluster.away}
        )
        if not others:
            raise Undecided(f"{self.name}-{self.index} has no other replica in sync")
        self.after = others[self.subject % len(others)]
        topic = await self.world.cluster.topic(self.name)
        await self.world.admin.move_leader(topic, self.after, self.index)
        return f"{self.name}-{self.index}, from broker {self.before} to {self.after}"

    async def hit(self) -> str:
        now = await self.world.leader(self.name, self.index)
        return f"broker {now} leads, {self.before} did" if now not in {-1, self.before} else ""

    async def heal(self) -> None:
        """Nothing to heal: any replica may lead."""

    async def healed(self) -> str:
        now = await self.world.leader(self.name, self.index)
        return f"broker {now} leads" if now >= 0 else ""


@fault(
    "fence-state-writes",
    "Read the state with the next leader epoch, which fences the leader, until another one leads.",
    Capability.REPLICAS,
    relies_on={Resource.REPLICAS},
)
class Fence(Elect):
    """Whoever reads the state fences those with lower leader epochs (KIP-932 §Share coordinator).

    The proxies could answer a write so, too, and the leader would load anew. But a coordinator that
    fences one write fences all that were begun with that epoch; the proxies let those pass.
    """

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.epoch, self.proof = 0, ""

    async def inject(self) -> str:
        self.name, self.index = await self.whose()
        cluster, group = self.world.cluster, self.world.group(self.subject)
        topic = self.world.course.topic
        part = await self.world.part(self.name, self.index)
        self.before, self.epoch = part.leader_id, part.leader_epoch + 1
        node = await cluster.coordinator(share_key(group, topic.id, self.index), SHARE)
        wanted = {"partition": self.index, "leader_epoch": self.epoch}
        answer = await (await cluster.to(node)).call(
            "ReadShareGroupState",
            group_id=group,
            topics=[{"topic_id": topic.id, "partitions": [wanted]}],
        )
        (found,) = (one for each in answer.results for one in each.partitions)
        if found.error_code:
            raise Undecided(f"reading the state of {self.name}-{self.index}: {found.error_code}")
        self.proof = f"share coordinator {node} has seen leader epoch {self.epoch}"
        return f"{self.name}-{self.index} of {group}, led by broker {self.before}"

    async def hit(self) -> str:
        return self.proof

    async def heal(self) -> None:
        # A read whose response was lost, or refused, may have taken effect.
        if self.epoch and not await self.healed():
            await super().inject()

    async def healed(self) -> str:
        part = await self.world.part(self.name, self.index)
        led = part.leader_id >= 0 and part.leader_epoch >= self.epoch
        return f"broker {part.leader_id} leads with epoch {part.leader_epoch}" if led else ""


@fault(
    "elect-share-coordinator",
    "Move the share coordinator of a share-partition to another broker.",
    Capability.REPLICAS,
    lasts=(0.5, 1.0),
)
class ElectShareCoordinator(Elect):
    """The same with the partition of the state topic that holds a share-partition."""

    async def whose(self) -> tuple[str, int]:
        world = self.world
        topic, partition = world.course.topic, world.partition(self.subject)
        key = share_key(world.group(self.subject), topic.id, partition)
        return STATE, partition_of(key, len((await world.topic(STATE)).partitions))


@fault(
    "elect-group-coordinator",
    "Move the group coordinator of a group to another broker.",
    Capability.REPLICAS,
    lasts=(0.5, 1.0),
)
class ElectGroupCoordinator(Elect):
    """The same with the partition of the offsets topic that holds a group."""

    async def whose(self) -> tuple[str, int]:
        group = self.world.group(self.subject)
        return OFFSETS, partition_of(group, len((await self.world.topic(OFFSETS)).partitions))


@fault(
    "reassign-leader",
    "Reassign a partition away from its leader, and back.",
    Capability.REPLICAS,
    takes={Resource.REPLICAS},
    relies_on={Resource.BROKER},
)
class Reassign(Elect):
    """The leader's replica is taken away, and given back later on."""

    async def inject(self) -> str:
        self.name, self.index = await self.whose()
        part = await self.world.part(self.name, self.index)
        self.before = part.leader_id
        rest = [node for node in part.replica_nodes if node != self.before]
        if not rest or self.world.cluster.away.intersection(rest):
            raise Undecided(f"{self.name}-{self.index} has no other replica at hand")
        await self._assign(rest)
        return f"{self.name}-{self.index}, from broker {self.before} to {rest}"

    async def hit(self) -> str:
        part = await self.world.part(self.name, self.index)
        if self.before in part.replica_nodes or part.leader_id in {-1, self.before}:
            return ""
        return f"broker {part.leader_id} leads, {self.before} has no replica any more"

    async def heal(self) -> None:
        if self.name:
            part = await self.world.part(self.name, self.index)
            if self.before not in part.replica_nodes:
                await self._assign([*part.replica_nodes, self.before])

    async def healed(self) -> str:
        part = await self.world.part(self.name, self.index)
        return f"replicas {part.isr_nodes} in sync" if self.before in part.isr_nodes else ""

    async def _assign(self, replicas: list[int]) -> None:
        wanted = {"partition_index": self.index, "replicas": replicas}
        answer = await (await self.world.cluster.any()).call(
            "AlterPartitionReassignments", topics=[{"name": self.name, "partitions": [wanted]}]
        )
        codes = [p.error_code for topic in answer.responses for p in topic.partitions]
        if answer.error_code or any(codes):
            raise Undecided(f"reassigning {self.name}-{self.index}: {answer.error_code} {codes}")
