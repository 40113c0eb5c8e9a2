"""Topics change under their groups: one grows, and one is deleted and recreated."""

import asyncio
from functools import partial

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.clients.cluster import Topic, eventually
from fixtures.clients.member import Member, accept, member_id
from fixtures.interface.capability import Capability
from fixtures.wire.errors import ErrorCode
from fixtures.workload.plan import Place, Producing
from fixtures.workload.producer import Producer
from fixtures.workload.recorder import Recorder
from spec.verdict import Undecided

_ALL = (Resource.BROKER, Resource.BROKER_LINK, Resource.STATE_WRITES)
"""All brokers must know a topic, and a start offset in it must be stored."""
_PRODUCER = 1 << 21  # Numbers from here on are no producer's of the load, nor of another fault.


@fault(
    "add-partition",
    "Add a partition to the load's topic, and write to it at once.",
    Capability.SPARE_PARTITION,
    takes={Resource.TOPIC},
    relies_on=_ALL,
)
class Grow(Injection):
    """The load's topic gets one more partition, and records before anybody has noticed."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.index = -1
        self.enough = asyncio.Event()
        self.writing: asyncio.Task[None] | None = None

    async def inject(self) -> str:
        course = self.world.course
        topic = await self.world.cluster.topic(course.topic.name)
        index = len(topic.leaders)
        if index >= len(course.logs):
            raise Undecided(f"{topic.name} has grown as often as the history can tell")
        grown = await self.world.admin.create_partitions(topic, index + 1)
        self.index = index
        self.writing = asyncio.create_task(self._producer(grown).run(self.enough))
        return f"{topic.name} has {index + 1} partitions, the last of which is written to"

    def _producer(self, topic: Topic) -> Producer:
        course = self.world.course
        log = course.log_of(self.index)
        plan = Producing(
            number=_PRODUCER,
            logs=(log,),
            records=course.load.batch,
            rate=course.load.rate / len(course.logs),
            in_flight=1,
            keyed=course.load.keyed,
        )
        place = Place(log=log, topic=topic.name, partition=self.index)
        recorder = Recorder(course.journal, {})
        return Producer(plan, self.world.cluster, recorder, {log: (place, topic)})

    async def hit(self) -> str:
        if self.index < 0:
            return ""
        groups = self.world.course.groups
        if not await self._all_begun({self.index}):
            return ""
        return f"{self.index + 1} partitions; {len(groups)} groups have a start offset in it"

    async def _all_begun(self, partitions: set[int]) -> bool | None:
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        for group in self.world.course.groups:
            shown = await self.world.admin.share_offsets(group, topic)
            begun = {index for index, one in shown.items() if one.start >= 0}
            if not partitions <= begun:
                return None
        return True

    async def heal(self) -> None:
        """Write no more. The partition stays: none can be taken away."""
        self.enough.set()
        if self.writing is not None:
            await self.writing

    async def healed(self) -> str:
        if self.index < 0:
            return "nothing was added"
        part = await self.world.part(self.world.course.topic.name, self.index)
        whole = part.leader_id >= 0 and set(part.isr_nodes) == set(part.replica_nodes)
        return f"replicas {part.isr_nodes} in sync" if whole else ""


@fault(
    "add-partition-at-latest",
    "Add a partition while groups use reset policy latest, and write to it at once.",
    Capability.SPARE_PARTITION,
    takes={Resource.TOPIC, Resource.GROUP_CONFIG},
    relies_on=_ALL,
)
class GrowAtLatest(Grow):
    """The same while the groups would begin at the end of what they have never read.

    They subscribed before the partition was there, so they are owed all of it (KAFKA-20742).
    """

    async def inject(self) -> str:
        # Where a group has not begun yet, it would begin at the end of what is there already.
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        all_begun = partial(self._all_begun, set(topic.partitions))
        await eventually("a start offset of every group in every partition", all_begun, 30.0)
        await self._begin_at("latest")
        return await super().inject()

    async def heal(self) -> None:
        await super().heal()
        await self._begin_at("earliest")

    async def _begin_at(self, end: str) -> None:
        for group in self.world.course.groups:
            await self.world.admin.group_config(group, {"share.auto.offset.reset": end})


@fault(
    "recreate-topic",
    "Delete a topic that a group reads beside the load's, and recreate it.",
    relies_on=_ALL,
)
class Recreate(Injection):
    """A group of the load reads another topic, too, which is deleted and recreated.

    Its reader is a member of our own: what becomes of the topic is not what is judged here, but
    that the group, its coordinator and the load's members go on.
    """

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.group = world.group(subject)
        self.member = Member(world.cluster, self.group, member_id(world.cluster.rng))
        self.before: Topic | None = None
        self.after: Topic | None = None
        self.joined = False

    async def inject(self) -> str:
        admin = self.world.admin
        self.before = await admin.create_topic()
        await admin.produce(self.before, 20)
        self.joined = True
        await self.member.join(self.before)
        consumed = await self._consume(self.before)
        await admin.delete_topics(self.before.name)
        self.after = await self._made_anew(self.before.name)
        await admin.produce(self.after, 1)
        return f"{self.before.name}, of which {self.group} has consumed {consumed} records"

    async def _made_anew(self, name: str) -> Topic:
        """Create the topic; the name is taken until every broker has let go of it."""
        connection = await self.world.cluster.any()
        wanted = {"name": name, "num_partitions": 1, "replication_factor": 1}
        code = -1
        for _ in range(100):
            answer = await connection.call("CreateTopics", topics=[wanted], timeout_ms=15000)
            code = answer.topics[0].error_code
            if not code:
                return await self.world.cluster.topic(name, 1, answer.topics[0].topic_id)
            if code != ErrorCode.TOPIC_ALREADY_EXISTS:
                break
            await asyncio.sleep(0.05)
        raise Undecided(f"recreating {name} returned error {code}")

    async def _consume(self, topic: Topic) -> int:
        session = await self.member.new_session(topic.leaders[0])
        where = (topic, 0)
        try:
            for _ in range(50):
                part = (await session.fetch(*(() if session.epoch else (where,)))).only
                if part.offsets:
                    acks = {where: [accept(one.first, one.last) for one in part.ranges]}
                    await session.acknowledge(acks)
                    return len(part.offsets)
            return 0
        finally:
            await session.connection.close()

    async def hit(self) -> str:
        if self.before is None or self.after is None:
            return ""
        await self.member.heartbeat()
        assigned = {topic_id for topic_id, _ in self.member.assigned}
        if self.after.id not in assigned or self.before.id in assigned:
            return ""
        return f"its id is {self.after.id} instead of {self.before.id}, and it is assigned"

    async def heal(self) -> None:
        if self.joined:
            await self.member.leave()
            self.joined = False
        if self.before is not None:
            topic = await self.world.topic(self.before.name)
            if topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                await self.world.admin.delete_topics(self.before.name)

    async def healed(self) -> str:
        shown = await self.world.admin.describe_group(self.group)
        left = self.member.member_id not in {one.member_id for one in shown.members}
        return f"{len(shown.members)} members are left in {self.group}" if left else ""
