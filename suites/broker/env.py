"""The world of a check: a topic and a share group of its own, and consumers on the raw wire.

Every check makes its own topic and group, so that checks can run side by side on one cluster and an
outcome never depends on who ran before. Nothing here judges; a set-up that does not come about is
:class:`spec.verdict.Undecided`, because it says nothing about the rule under test.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from fixtures.clients.access import RESET, Access, access_of
from fixtures.clients.admin import Admin, ShareOffset
from fixtures.clients.bounds import Bounds, bounds_of
from fixtures.clients.cluster import WITHIN, Cluster, Topic, attempts, eventually, gather_all
from fixtures.clients.member import CLOSE, Ack, Member, Part, Response, Session, Where, member_id
from fixtures.interface.info import ClusterInfo
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.verdict import OutOfReach, Stalled, Undecided

NOT_FOR = 1.0  # Seconds for which something that must not happen is watched.
BYSTANDING = 5.0
"""Seconds in which a record of a bystander comes, if the broker and this machine are well."""

_LAST = 2**31 - 1  # A session epoch that no session here ever reaches.


T = TypeVar("T")


async def poll(
    look: Callable[[], Awaitable[T]],
    good: Callable[[T], object],
    within: float = WITHIN,
    pause: float = 0.02,
) -> T:
    """Look until what is seen is good, or time is up; return what was seen last."""
    async for _ in attempts(within, pause):
        if good(seen := await look()):
            return seen
    return await look()


@dataclass(slots=True)
class Catch:
    """What a consumer acquired over one or more fetches: the delivery count of each offset."""

    counts: dict[int, int] = field(default_factory=dict)
    responses: list[Response] = field(default_factory=list)

    @property
    def offsets(self) -> list[int]:
        return sorted(self.counts)

    def has(self, wanted: int | Collection[int]) -> bool:
        """Tell whether there are so many offsets, or all of certain ones."""
        if isinstance(wanted, int):
            return len(self.counts) >= wanted
        return self.counts.keys() >= set(wanted)

    def add(self, response: Response) -> None:
        self.responses.append(response)
        for part in response.parts:
            self.counts.update(part.counts)


class Consumer:
    """A member with a session on the leader of one partition: all that most checks need."""

    def __init__(self, member: Member, session: Session, where: Where) -> None:
        self.member, self.session, self.where = member, session, where

    def __repr__(self) -> str:
        return f"consumer {self.member_id}"

    @property
    def member_id(self) -> str:
        return self.member.member_id

    async def fetch(self, *acks: Ack, **options: Any) -> Response:
        """Fetch once, acknowledging on the way; the partition is named when the session opens."""
        opening = options.get("epoch", self.session.epoch) == 0
        named = (self.where,) if opening else ()
        return await self.session.fetch(
            *named, acks={self.where: acks} if acks else None, **options
        )

    async def take(
        self, wanted: int | Collection[int], within: float = WITHIN, **options: Any
    ) -> Catch:
        """Fetch until so many or certain offsets are acquired, or time is up; return all that came.

        What is missing then is the check's to judge, if a bystander is served. Unless told
        otherwise it gives up well before a lock of default duration ends.
        """
        catch = await self._take(wanted, within, **options)
        node = self.where[0].leaders[self.where[1]]
        patient = within >= BYSTANDING and not catch.has(wanted)
        if patient and not await goes_on(self.member.cluster, node):
            raise Undecided(f"more than {catch.offsets} did not come, nor did that of a bystander")
        return catch

    async def _take(
        self, wanted: int | Collection[int], within: float = WITHIN, **options: Any
    ) -> Catch:
        catch = Catch()
        exact = options.get("max_records") == wanted
        async for _ in attempts(within):
            if exact:  # a broker may give fewer at a time, and no more than are missing are wanted
                options["max_records"] = int(wanted) - len(catch.counts)  # type: ignore[arg-type]
            catch.add(self.sound(await self.fetch(**options)))
            if catch.has(wanted):
                break
        return catch

    async def acquire(self, count: int, within: float = WITHIN, **options: Any) -> Catch:
        catch = await self._take(count, within, **options)
        if catch.has(count):
            return catch
        sentence = f"{self.member_id} acquired {catch.offsets}, not {count} records"
        raise await self.stopped(sentence, **options)

    async def drain(self, until: int, within: float = WITHIN, **options: Any) -> Catch:
        """Fetch until offset ``until`` is acquired; return all that came up to then.

        A fresh record produced last is the sentinel that makes "nothing else is delivered" quick
        and certain: a record that were available below it would have come first.
        """
        catch = await self._take([until], within, **options)
        if until in catch.counts:
            return catch
        raise await self.stopped(f"offset {until} never came, only {catch.offsets}", **options)

    async def stopped(self, sentence: str, **options: Any) -> Undecided:
        """Return what to raise when records that are due do not come; see :func:`stopped`."""
        node = self.where[0].leaders[self.where[1]]
        return await stopped(self.member.cluster, node, sentence, lambda: self.fetch(**options))

    @staticmethod
    def sound(response: Response) -> Response:
        """Return a fetch's answer if it has no error but those that pass by themselves."""
        if response.error or any(part.error or part.ack_error for part in response.parts):
            raise Undecided(f"a fetch that should succeed answered errors {response.errors}")
        return response

    async def ack(self, *acks: Ack, **options: Any) -> Part:
        """Send a ShareAcknowledge; return the partition's part, with a top-level error in it."""
        response = await self.session.acknowledge({self.where: acks}, **options)
        if response.error:
            topic, partition = self.where
            return Part(
                topic_id=topic.id,
                partition=partition,
                error=response.error,
                ack_error=response.error,
                ack_message=response.message,
            )
        return response.only

    async def acked(self, *acks: Ack, **options: Any) -> Part:
        """Send a ShareAcknowledge that has to succeed for the check to go on."""
        part = await self.ack(*acks, **options)
        if part.ack_error:
            raise Undecided(f"acknowledging {acks} answered error {part.ack_error}")
        return part

    async def close(self, *acks: Ack) -> Response:
        return await self.session.acknowledge({self.where: acks} if acks else {}, epoch=CLOSE)

    async def depart(self) -> None:
        """Leave the group and close the connection, until the broker has forgotten the session.

        A broker may keep the share-partition in memory as long as a connection of the group is
        there. What is to be read back from the stored state needs the connection gone, too.
        """
        await self.member.leave()
        await self.session.connection.close()
        cluster, (topic, partition) = self.member.cluster, self.where
        connection = await cluster.dial(topic.leaders[partition])
        probe = Session(connection, self.session.group, self.member_id)

        async def ask() -> bool | None:
            response = await probe.acknowledge({}, epoch=_LAST)
            return True if response.error == ErrorCode.SHARE_SESSION_NOT_FOUND else None

        await eventually(f"forgetting the session of {self.member_id}", ask)

    async def open_twice(self) -> None:
        """Open the session over two connections at the same moment, and close it over both."""
        node = self.where[0].leaders[self.where[1]]
        pair = [await self.member.new_session(node) for _ in range(2)]
        for epoch in (0, CLOSE):
            await gather_all(one.fetch(epoch=epoch, max_wait_ms=0) for one in pair)
        await gather_all(one.connection.close() for one in pair)

    async def reconnect(self) -> None:
        """Take a new connection and a session not yet opened; the old connection is left alone."""
        node = self.where[0].leaders[self.where[1]]
        connection = await self.member.cluster.dial(node, self.member_id)
        self.session = self.member.sessions[node] = self.session.again(connection)


async def stopped(
    cluster: Cluster, node: int, sentence: str, again: Callable[[], Awaitable[Response]]
) -> Undecided:
    """Return what to raise when records that are due do not come from a broker.

    A broker or machine that is slow with everything proves nothing. So a bystander, a new topic
    and group on the same broker, has to get its record, and then we still have to get nothing when
    we fetch again.
    """
    if not await goes_on(cluster, node):
        return Undecided(sentence)
    for _ in range(2):  # any one fetch may be empty, whatever there is
        if Consumer.sound(await again()).offsets:
            return Undecided(f"{sentence} in time")
    return Stalled(f"{sentence}, and a new topic and group on the same broker went on")


async def goes_on(cluster: Cluster, node: int) -> bool:
    """Tell whether a broker delivers a record of a new topic to a new group, as it has to."""
    try:
        return await bystand(cluster, node)
    except (CallFailed, Undecided):
        return False


async def demand_bystander(cluster: Cluster, node: int, sentence: str) -> None:
    """Raise Undecided, with what did not come, where a bystander of the broker gets nothing."""
    if not await goes_on(cluster, node):
        raise Undecided(f"{sentence}, nor did the record of a bystander")


async def bystand(cluster: Cluster, node: int, within: float = BYSTANDING) -> bool:
    """Tell whether a record of a new topic on a broker comes to a new group in time."""
    admin, member = Admin(cluster), Member(cluster, cluster.fresh_name("g"), member_id(cluster.rng))
    topic = await admin.create_topic(assignments=[[node]])
    await admin.group_config(member.group, {"share.auto.offset.reset": "earliest"})
    await member.join(topic)
    consumer = Consumer(member, await member.session(node), (topic, 0))
    async for _ in attempts(within):
        await admin.produce(topic, 1)  # each time: where a group begins is not what is asked here
        if consumer.sound(await consumer.fetch()).offsets:
            await member.leave()
            return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A topic consumed by a share group: what a check calls its queue."""

    env: Env
    topic: Topic
    group: str

    async def produce(
        self, values: int | Sequence[bytes], partition: int = 0, **options: Any
    ) -> int:
        return await self.env.admin.produce(self.topic, values, partition, **options)

    async def consumer(self, partition: int = 0, *, join: bool = True) -> Consumer:
        """Return a new member of the group with a session object for a partition's leader.

        Only the first member of a group has to join for its share-partitions to be initialised;
        ``join=False`` saves the heartbeats of a second one (KIP-932 §Heartbeat and session:
        fetching does not depend on membership).
        """
        member = await self.env.member(self.group, *([self.topic] if join else []))
        session = await member.session(self.topic.leaders[partition])
        return Consumer(member, session, (self.topic, partition))

    async def holder(self, count: int, partition: int = 0, *, join: bool = True) -> Consumer:
        consumer = await self.consumer(partition, join=join)
        await consumer.acquire(count)
        return consumer

    async def offsets(self, partition: int = 0) -> ShareOffset:
        return (await self.env.admin.share_offsets(self.group, self.topic))[partition]

    async def spso(self, expected: int, partition: int = 0, within: float = WITHIN) -> int:
        """Return the admin's SPSO: ``expected``, or what it still is after ``within`` seconds.

        The view is written with the next state write, so it may lag the leader for a moment.
        """
        look = functools.partial(self.offsets, partition)
        return (await poll(look, lambda seen: seen.start == expected, within)).start

    async def lag(self, expected: int, partition: int = 0, within: float = WITHIN) -> int:
        """Return the admin's lag as :meth:`spso` does; it is that of the last state write, too."""
        look = functools.partial(self.offsets, partition)
        return (await poll(look, lambda seen: seen.lag == expected, within)).lag


class Env:
    """Makes queues, members and names for one check; ``bounds`` has the durations it may use."""

    def __init__(
        self, cluster: Cluster, rng: Random, bounds: Bounds, access: Access | None = None
    ) -> None:
        self.cluster, self.rng, self.bounds = cluster, rng, bounds
        self.access = access or Access()
        self.makeshift = ""
        """Why a group was brought to its start instead of being configured; or nothing."""
        self.admin = Admin(cluster)
        self._members: list[Member] = []

    async def member(self, group: str, *topics: Topic) -> Member:
        """Return a new member, joined to its group if there are topics to subscribe to."""
        member = Member(self.cluster, group, self.member_id())
        self._members.append(member)
        if topics:
            await member.join(*topics)
        return member

    async def disband(self) -> None:
        """Let the members leave, so that a group left behind can be deleted at once."""
        for member in self._members:
            with contextlib.suppress(CallFailed, Undecided):
                await member.leave()

    def together(self, partitions: int) -> list[list[int]]:
        """Return an assignment that puts partitions on one broker."""
        return [[self.rng.choice(sorted(self.cluster.brokers))]] * partitions

    def member_id(self) -> str:
        """Return a member id of the form that every release can read."""
        return member_id(self.rng)

    async def queue(
        self,
        records: int | Sequence[bytes] = 0,
        *,
        partitions: int = 1,
        batches: int = 1,
        reset: str | None = "earliest",
        lock_ms: int | None = None,
        group_config: Mapping[str, str] | None = None,
        topic_config: Mapping[str, str] | None = None,
        untouched: bool = False,
        **topic_options: Any,
    ) -> Queue:
        """Return a new topic with records in partition 0, and a new group configured for it.

        ``records`` is how many, or their values, written in as many ``batches``. ``reset`` and
        ``lock_ms`` are left to the cluster where they are None. ``untouched``: nothing may have
        been done to the group's offsets beforehand, or a topic is to come that the group is to read
        from the start. ``topic_options`` are those of :meth:`Admin.create_topic`.
        """
        topic = await self.admin.create_topic(partitions, configs=topic_config, **topic_options)
        queue = Queue(env=self, topic=topic, group=self.cluster.fresh_name("g"))
        wanted = dict(group_config or {})
        if reset is not None:
            wanted["share.auto.offset.reset"] = reset
        if lock_ms is not None:
            wanted["share.record.lock.duration.ms"] = str(lock_ms)
        if wanted:
            await self._configure(queue, wanted, untouched=untouched)
        if records:
            await queue.produce(records, batches=batches)
        return queue

    async def with_member(self, *records: int, **options: Any) -> tuple[Queue, Member]:
        """Return a new :meth:`queue` and the first member of its group, assigned its topic."""
        queue = await self.queue(*records, **options)
        return queue, await self.member(queue.group, queue.topic)

    async def with_consumer(self, *records: int, **options: Any) -> tuple[Queue, Consumer]:
        queue = await self.queue(*records, **options)
        return queue, await queue.consumer()

    async def with_holder(self, records: int, **options: Any) -> tuple[Queue, Consumer]:
        """Return a new :meth:`queue` and a consumer that has acquired all of it."""
        queue = await self.queue(records, **options)
        return queue, await queue.holder(records)

    async def with_pair(self, *records: int, **options: Any) -> tuple[Queue, Consumer, Consumer]:
        """Return a new :meth:`queue` and two members, the second of which never joins."""
        queue, first = await self.with_consumer(*records, **options)
        return queue, first, await queue.consumer(join=False)

    async def sibling(self, queue: Queue, **group_config: str) -> Queue:
        """Return another group on the same topic, reading from the earliest offset."""
        group = self.cluster.fresh_name("g")
        config = {"share.auto.offset.reset": "earliest"} | group_config
        sibling = Queue(env=self, topic=queue.topic, group=group)
        await self._configure(sibling, config)
        return sibling

    async def _configure(
        self, queue: Queue, wanted: Mapping[str, str], *, untouched: bool = False
    ) -> None:
        """Configure a group, or bring it to the same point where the cluster refuses that."""
        if not (why := self.access.no_group_configs):
            await self.admin.group_config(queue.group, wanted)
            return
        usual = self.access.group_configs
        unusual = sorted(name for name, value in wanted.items() if usual.get(name) != value)
        if unusual not in ([], [RESET]):
            name = next(name for name in unusual if name != RESET)
            raise OutOfReach(f"needs a group with its own {name}, and {why}")
        self.makeshift = f"needs a group with its own {RESET}, and {why}"
        if unusual and wanted[RESET] == "earliest" and not untouched:
            # An administrator may do the same (KIP-932 §Managing the SPSO). It takes a group that
            # exists and is empty, so a member comes and goes.
            member = await self.member(queue.group, queue.topic)
            await member.leave()
            for partition in queue.topic.partitions:
                await self._at_zero(queue, partition)
        elif unusual:
            raise OutOfReach(self.makeshift)

    async def _at_zero(self, queue: Queue, partition: int) -> None:
        async def ask() -> bool | None:
            response = await self.admin.alter_offset(queue.group, queue.topic, 0, partition)
            parts = [part for topic in response.responses for part in topic.partitions]
            return None if response.error_code or any(p.error_code for p in parts) else True

        await eventually(f"offset 0 of {queue.group} for partition {partition}", ask)


@contextlib.asynccontextmanager
async def open_env(
    info: ClusterInfo,
    rng: Random,
    transcripts: list[Transcript],
    schemas: Schemas | None = None,
    kind: type[Cluster] = Cluster,
) -> AsyncIterator[Env]:
    """Connect one check to a cluster; its frames go to ``transcripts`` in case the check fails."""
    transcript = Transcript()
    transcripts.append(transcript)
    async with kind(info, schemas=schemas, transcript=transcript, rng=rng) as cluster:
        await cluster.any()
        yield Env(cluster, rng, await bounds_of(cluster), await access_of(cluster))
