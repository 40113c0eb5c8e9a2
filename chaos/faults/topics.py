"""Topics change under their groups: one grows, one is deleted and recreated, one loses records.

Records are deleted, expire or are compacted before any group has finished them. A configuration of
a group changes while it works, too.
"""

import asyncio
import time
from functools import partial

from chaos.faults.fault import Injection, fault
from chaos.schedule import Resource
from chaos.world import World
from fixtures.clients.admin import EARLIEST, GROUP_RESOURCE, LATEST
from fixtures.clients.cluster import Topic, eventually
from fixtures.clients.configs import configure_topic
from fixtures.clients.member import Member, accept, member_id
from fixtures.interface.capability import Capability
from fixtures.wire.errors import ErrorCode
from fixtures.wire.records import Record, encode_batch
from fixtures.workload.clients import Producer
from fixtures.workload.payload import stranger
from fixtures.workload.plan import Place, Producing
from fixtures.workload.recorder import Recorder, unanswered
from spec.history import Deletion, Outcome
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


_KEYS = 15
_BATCHES = 6
_WRITER = 1 << 20  # Numbers from here on are no producer's of the load.


@fault(
    "delete-records",
    "Delete all records of a partition (DeleteRecords).",
    lasts=(0.5, 1.0),
    takes={Resource.LOG},
)
class DeleteRecords(Injection):
    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.index, self.before = world.partition(subject), -1

    async def inject(self) -> str:
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        self.before = await self._start()
        end = await self.world.admin.log_offset(topic, LATEST, self.index)
        sent = time.monotonic_ns()
        await self.world.admin.delete_records(topic, end, self.index)
        course = self.world.course
        log, received = course.log_of(self.index), time.monotonic_ns()
        course.journal.add(Deletion(log, end, sent, received, int(Outcome.OK)))
        return f"{topic.name}-{self.index}, offsets {self.before} to {end - 1}"

    async def hit(self) -> str:
        now = await self._start()
        return f"the log starts at {now}, not at {self.before}" if now > self.before else ""

    async def heal(self) -> None:
        """Nothing to heal: the records are gone."""

    async def healed(self) -> str:
        return f"the log starts at {await self._start()}"

    async def _start(self) -> int:
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        return await self.world.admin.log_offset(topic, EARLIEST, self.index)


@fault(
    "expire-records",
    "Set retention.ms of a topic to a second.",
    lasts=(4.0, 7.0),
    takes={Resource.LOG},
    relies_on={Resource.CLOCK},
)
class Expire(DeleteRecords):
    """The topic keeps records for a second only, for as long as the fault lasts."""

    _SETTINGS = ("retention.ms", "segment.ms")

    async def inject(self) -> str:
        self.before = await self._start()
        await self._set("1000")
        return f"{self.world.course.topic.name} keeps records for a second"

    async def heal(self) -> None:
        await self._set(None)

    async def _set(self, value: str | None) -> None:
        name = self.world.course.topic.name
        wanted = dict.fromkeys(self._SETTINGS, value)
        await configure_topic(self.world.cluster, name, wanted)


@fault(
    "compact", "Compact the log of a keyed topic.", Capability.COMPACTED_TOPIC, takes={Resource.LOG}
)
class Compact(Injection):
    """Write some keys again and again, and wait until the older records are gone."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.index = world.partition(subject)
        self.producer = _WRITER + time.monotonic_ns() // 1_000_000 % _WRITER
        self.bases: list[int] = []

    async def inject(self) -> str:
        topic = self.world.course.topic
        for number in range(_BATCHES):
            self.bases.append(await self._write(number))
            await asyncio.sleep(0.3)
        return f"{topic.name}-{self.index}, {_KEYS} keys from offset {self.bases[0]} on"

    async def _write(self, number: int) -> int:
        course = self.world.course
        log = course.log_of(self.index)
        first = number * _KEYS
        records = [
            Record(key=b"again-%d" % key, value=stranger(self.producer, log, first + key))
            for key in range(_KEYS)
        ]
        # They may vanish and they may come, so where they went is nobody's to know.
        course.journal.add(unanswered(log, _KEYS, self.producer, first))
        topic = await self.world.cluster.topic(course.topic.name)
        return await self.world.admin.append(topic, encode_batch(records), self.index)

    async def hit(self) -> str:
        first, last = self.bases[0], self.bases[-2] + _KEYS
        left = await self.world.offsets(self.world.course.topic.name, self.index, first, last)
        written = {base + key for base in self.bases[:-1] for key in range(_KEYS)}
        gone = written - left
        return f"{len(gone)} offsets from {min(gone)} on hold nothing any more" if gone else ""

    async def heal(self) -> None:
        """Nothing to heal: the records are gone."""

    async def healed(self) -> str:
        topic = await self.world.cluster.topic(self.world.course.topic.name)
        end = await self.world.admin.log_offset(topic, partition=self.index)
        return f"the log goes on to {end}"


_LOCK = "share.record.lock.duration.ms"


@fault(
    "change-lock-duration",
    "Change the lock duration of a group while locks are held.",
    takes={Resource.GROUP_CONFIG},
    relies_on={Resource.BROKER},
)
class OtherLocks(Injection):
    """Locks last half as long for a while."""

    def __init__(self, world: World, subject: int) -> None:
        super().__init__(world, subject)
        self.group = world.group(subject)
        self.usual = world.course.load.lock_ms

    async def inject(self) -> str:
        await self.world.admin.group_config(self.group, {_LOCK: str(self._half)})
        return f"{self.group}, locks of {self._half} ms instead of {self.usual}"

    @property
    def locks(self) -> tuple[str, int]:
        """A response that is made after a lock began says what holds by then."""
        return self.group, self._half

    @property
    def _half(self) -> int:
        return max(1000, self.usual // 2)

    async def hit(self) -> str:
        return await self._seen(self._half)

    async def heal(self) -> None:
        await self.world.admin.group_config(self.group, {_LOCK: str(self.usual)})

    async def healed(self) -> str:
        return await self._seen(self.usual)

    async def _seen(self, lock_ms: int) -> str:
        for node in self.world.nodes:
            shown = await self.world.admin.configs(GROUP_RESOURCE, self.group, node=node)
            if shown.get(_LOCK) != str(lock_ms):
                return ""
        return f"{_LOCK}={lock_ms} on every broker"
