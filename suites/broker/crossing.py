"""Queues and state keys that look to a check as it asked, in another situation: see :mod:`.check`.

Offsets, partitions and whatever else travels with them are translated where a request leaves and
where its response arrives. The neighbours' records are acknowledged along with the check's own, one
in each request, and each has to be answered with NONE whatever becomes of the check's own.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from fixtures.clients.admin import LATEST, Admin, ShareOffset
from fixtures.clients.cluster import WITHIN, Cluster, Topic, attempts
from fixtures.clients.member import CLOSE, OPEN, Ack, Member, Part, Response, Session, Where, accept
from fixtures.wire.codec import Struct
from fixtures.wire.connection import Connection
from fixtures.wire.errors import error_name
from fixtures.wire.records import Compression, Record, encode_batch
from spec.verdict import OutOfReach, Undecided, Violation
from suites.broker.env import Consumer, Env, Queue, stopped
from suites.broker.state import StateKey, Store
from suites.broker.timing import EARLY

SPARE = 8
"""Records of each neighbour: one is acknowledged with each request, as long as there are any."""

CODECS = (Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)


class Below(StrEnum):
    DELETED = "deleted"
    HELD = "held"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a set-up adds."""

    # Topics before and behind the check's, and partitions before and behind its own, in the first
    # member's session and in every request of it that acknowledges; and another session before.
    beside: bool = False
    among: bool = False  # As `beside`, but topics alone: partitions and offsets are the check's.
    below: Below | None = None  # Records below the check's first one, and what became of them.
    compressed: bool = False  # Whether records are compressed.
    two_batches: bool = False  # Whether what is written as one batch becomes two.
    reloads: bool = (
        False  # Whether the state is loaded anew for the next member, if nobody holds any.
    )


class CrossedEnv(Env):
    """Makes queues that are translated."""

    def __init__(self, env: Env, setup: Setup) -> None:
        super().__init__(env.cluster, env.rng, env.bounds)
        self._members = env._members  # they are all sent away by the one that is left
        self.admin = self.crossed = CrossedAdmin(env.cluster)
        self.setup = setup
        self.met: set[str] = set()
        self.joined: set[str] = set()
        """Groups whose share-partitions are initialised: their first member has joined."""

    async def queue(
        self,
        records: int | Sequence[bytes] = 0,
        *,
        partitions: int = 1,
        batches: int = 1,
        lock_ms: int | None = None,
        **options: Any,
    ) -> Queue:
        others: tuple[Topic, ...] = ()
        if self.setup.beside:
            node = self.rng.choice(sorted(self.cluster.brokers))
            placed = options.pop("assignments", None) or [[node]] * partitions
            options["assignments"] = [[placed[0][0]], *placed, [placed[0][0]]]
            calls = (self.admin.create_topic(assignments=[[placed[0][0]]]) for _ in range(2))
            others = tuple(await asyncio.gather(*calls))
            partitions += 2
        plain = await super().queue(0, partitions=partitions, lock_ms=lock_ms, **options)
        if self.setup.among:
            placed = [[plain.topic.leaders[0]]]
            calls = (self.admin.create_topic(assignments=placed) for _ in range(2))
            others = tuple(await asyncio.gather(*calls))
        queue = CrossedQueue(
            env=self,
            topic=plain.topic,
            group=plain.group,
            others=others,
            brief=lock_ms is not None,
            earliest=options.get("reset", "earliest") == "earliest",
        )
        self.crossed.queues[queue.topic.id] = queue
        if others:
            await asyncio.gather(*(self.admin.produce(t, SPARE, i) for t, i in queue.supplied))
        if records:
            await queue.produce(records, batches=batches)
        return queue

    async def sibling(self, queue: Queue, **group_config: str) -> Queue:
        plain = await super().sibling(queue, **group_config)
        if not isinstance(queue, CrossedQueue):
            return plain
        return replace(queue, group=plain.group, others=(), consumers=[])


class CrossedAdmin(Admin):
    """An administrator who names partitions and offsets as the check does."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.queues: dict[uuid.UUID, CrossedQueue] = {}

    def _real(self, topic: Topic, partition: int) -> tuple[int, int]:
        queue = self.queues.get(topic.id)
        real = queue.real(partition) if queue else partition
        return real, queue.bases.get(real, 0) if queue else 0

    async def delete_records(self, topic: Topic, before: int, partition: int = 0) -> int:
        real, base = self._real(topic, partition)
        return await super().delete_records(topic, before + base, real) - base

    async def log_offset(self, topic: Topic, at: int = LATEST, partition: int = 0) -> int:
        real, base = self._real(topic, partition)
        return await super().log_offset(topic, at, real) - base

    async def alter_offset(
        self, group: str, topic: Topic, offset: int, partition: int = 0
    ) -> Struct:
        """Set the start offset of a share-partition; the response has its real index."""
        real, base = self._real(topic, partition)
        return await super().alter_offset(
            group, topic, offset + base if offset >= 0 else offset, real
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedQueue(Queue):
    """A queue whose partitions and offsets are others than the check believes."""

    env: CrossedEnv
    others: tuple[Topic, ...] = ()  # The topics before and behind.
    brief: bool = False  # The check set the lock's duration: nothing beside it is held for long.
    earliest: bool = True  # The group begins at the first record: the neighbours' can be acquired.
    # The offset that the check takes for 0, by real partition.
    bases: dict[int, int] = field(default_factory=dict)
    consumers: list[Consumer] = field(default_factory=list)  # Those made so far.

    @property
    def supplied(self) -> tuple[Where, ...]:
        """The neighbours that have records, in the order of requests; the check's is second."""
        before, behind = self.others
        last = ((self.topic, len(self.topic.leaders) - 1),) if self.env.setup.beside else ()
        return (before, 0), *last, (behind, 0)

    @property
    def empty(self) -> tuple[Where, ...]:
        """The neighbour that stays empty: the partition before the check's."""
        return ((self.topic, 0),) if self.env.setup.beside else ()

    @property
    def beside(self) -> tuple[Where, ...]:
        return (*self.empty, *self.supplied) if self.others else ()

    def real(self, partition: int) -> int:
        return partition + 1 if self.env.setup.beside else partition

    async def produce(
        self, values: int | Sequence[bytes], partition: int = 0, *, batches: int = 1, **_: Any
    ) -> int:
        """Append records; return what the check takes for the first one's offset."""
        real = self.real(partition)
        payload = [b"record %d" % n for n in range(values)] if isinstance(values, int) else values
        size = -(-len(payload) // batches)
        parts = [list(payload[at : at + size]) for at in range(0, len(payload), size)]
        if real not in self.bases:
            parts = await self._begin(real, parts)
        elif self.env.setup.two_batches and len(parts) == 1 < len(payload):
            parts = self._cut(parts[0])
        return (await self._append(real, parts)) - self.bases[real]

    async def _begin(self, real: int, parts: list[list[bytes]]) -> list[list[bytes]]:
        """Put records below the first ones; return what is left to write."""
        setup, count = self.env.setup, self.env.rng.randint(2, 6)
        below = [b"below %d" % n for n in range(count)]
        if self.consumers or setup.below is None:
            self.bases[real] = 0  # perhaps too late: somebody may have fetched
            return parts
        self.bases[real] = count
        if setup.below is Below.DELETED:
            await self._append(real, [[*below, *parts[0]]])
            await Admin(self.env.cluster).delete_records(self.topic, count, real)
            self._met("start inside a batch", len(parts[0]) > 0)
            return parts[1:] or [[]]
        await self._append(real, [below])
        await self._predecessor(real, count)
        return self._cut(parts[0]) if setup.two_batches and len(parts) == 1 else parts

    def _cut(self, part: list[bytes]) -> list[list[bytes]]:
        if len(part) < 2:
            return [part]
        at = self.env.rng.randint(1, len(part) - 1)
        self._met("two batches", True)
        return [part[:at], part[at:]]

    async def _append(self, real: int, parts: Iterable[list[bytes]]) -> int:
        codec = Compression.NONE
        if self.env.setup.compressed:
            codec = self.env.rng.choice(CODECS)
            self._met("compressed batches", True)
        offsets = []
        for part in filter(None, parts):
            now = int(time.time() * 1000)
            records = [Record(offset=i, timestamp=now, value=v) for i, v in enumerate(part)]
            batch = encode_batch(records, compression=codec)
            offsets.append(await self.env.admin.append(self.topic, batch, real))
        return offsets[0] if offsets else self.bases[real]

    async def _predecessor(self, real: int, count: int) -> None:
        """Have another member take the records below; it holds them, or settles them and goes.

        With the check's own short locks they would come again in its midst: it settles them, and
        stays.
        """
        member = await self.env.member(self.group, self.topic)
        session = await member.session(self.topic.leaders[real])
        holder = Consumer(member, session, (self.topic, real))
        self.env.joined.add(self.group)
        await holder.acquire(count, max_records=count)
        held = self.env.setup.below is Below.HELD
        if held and not self.brief:
            self._met("second member", True)
            return
        await holder.acked(accept(0, count - 1))
        if not held:
            await holder.depart()
            self._met("stored start", True)

    def _met(self, name: str, condition: bool) -> None:
        if condition:
            self.env.met.add(name)

    async def consumer(self, partition: int = 0, *, join: bool = True) -> Consumer:
        """Return a new member, whose session has the neighbours in it if it is the first one."""
        sessions = [former.session for former in self.consumers]
        gone = all(isinstance(each, CrossedSession) and each.closed for each in sessions)
        if self.env.setup.reloads and sessions and gone:
            for former in self.consumers:
                await former.depart()
            self.consumers.clear()
            self._met("reload", True)
        real = self.real(partition)
        topics = (self.topic, *self.others)
        alone = self.group not in self.env.joined
        member = await self.env.member(self.group, *(topics if join and alone else ()))
        if join and not alone:  # an assignor may spread partitions, and fetching asks for none
            await member.heartbeat(member_epoch=0, subscribed_topic_names=[t.name for t in topics])
        if join:
            self.env.joined.add(self.group)
        node = self.topic.leaders[real]
        connection = await self.env.cluster.dial(node, member.member_id)
        session = CrossedSession(connection, member, self, real)
        member.sessions[node] = session
        if self.others and self.group in self.env.joined and not self.consumers:
            await session.begin()
        consumer = Consumer(member, session, (self.topic, real))
        self.consumers.append(consumer)
        return consumer

    async def offsets(self, partition: int = 0) -> ShareOffset:
        real = self.real(partition)
        got = (await self.env.admin.share_offsets(self.group, self.topic))[real]
        return replace(got, start=got.start - self.bases.get(real, 0)) if got.start >= 0 else got


class CrossedSession(Session):
    """A session that translates, and acknowledges a record of each neighbour along the way."""

    def __init__(self, over: Connection, member: Member, queue: CrossedQueue, real: int) -> None:
        super().__init__(over, queue.group, member.member_id, member)
        self.queue, self.own = queue, (queue.topic, real)
        self.closed = False
        self._named = False
        self._spare: dict[Where, list[int]] = {}
        self._sure_until = 0.0

    def again(self, connection: Connection) -> Session:
        assert self.member
        return CrossedSession(connection, self.member, self.queue, self.own[1])

    async def begin(self) -> None:
        """Open and close a session, then open the one that acquires of the neighbours, too."""
        await super().fetch(epoch=OPEN, max_wait_ms=0)
        await super().acknowledge({}, epoch=CLOSE)
        supplied = self.queue.supplied if self.queue.earliest else ()
        spare: dict[Where, list[int]] = {where: [] for where in supplied}
        async for _ in attempts(WITHIN):
            since = time.monotonic()
            named = (*self.queue.supplied, *self.queue.empty) if self.epoch == OPEN else ()
            response = Consumer.sound(await super().fetch(*named, max_wait_ms=100))
            for topic, index in supplied:
                part = response.part(topic.id, index)
                # On a slow machine short locks end meanwhile, and a record comes again.
                spare[topic, index] = sorted(
                    {*spare[topic, index], *(part.offsets if part else ())}
                )
            self._sure_until = since + max(0, response.lock_ms) / 1000 * EARLY
            if all(len(offsets) == SPARE for offsets in spare.values()):
                break
        else:
            node = self.queue.topic.leaders[self.own[1]]
            sentence = f"of the neighbours' records only {spare} were acquired"
            raise await stopped(self.queue.env.cluster, node, sentence, super().fetch)
        self.queue.env.met |= {"second topic", "second session"}
        if self.queue.env.setup.beside:
            self.queue.env.met.add("second partition")
        if self.queue.brief and supplied:
            acks = {where: [accept(0, SPARE - 1)] for where in supplied}
            await super().acknowledge(acks)
        else:
            self._spare = spare

    async def fetch(
        self,
        *partitions: Where,
        acks: Mapping[Where, Sequence[Ack]] | None = None,
        epoch: int | None = None,
        **options: Any,
    ) -> Response:
        """Send a ShareFetch that names the check's partition once, whatever the epoch."""
        used = self.epoch if epoch is None else epoch
        self._named = self._named and used != OPEN
        if not partitions and not self._named and used not in (OPEN, CLOSE):
            partitions = (self.own,)
        self._named = self._named or self.own in partitions
        sent = self._sent(acks or {}, used)
        return self._seen(await super().fetch(*partitions, acks=sent, epoch=epoch, **options), sent)

    async def acknowledge(
        self, acks: Mapping[Where, Sequence[Ack]], *, epoch: int | None = None, **options: Any
    ) -> Response:
        sent = self._sent(acks, self.epoch if epoch is None else epoch)
        response = self._seen(await super().acknowledge(sent, epoch=epoch, **options), sent)
        self.closed = self.closed or (epoch == CLOSE and not response.error)
        return response

    def _base(self, where: Where) -> int:
        mine = where[0].id == self.queue.topic.id
        return self.queue.bases.get(where[1], 0) if mine else 0

    def _sent(self, acks: Mapping[Where, Sequence[Ack]], used: int) -> dict[Where, list[Ack]]:
        """Return acknowledgements as they are sent: the check's between the neighbours'."""
        own = {
            where: [replace(a, first=a.first + base, last=a.last + base) for a in some]
            for where, some in acks.items()
            for base in [self._base(where)]
        }
        if not any(own.values()) or used == OPEN:
            return own
        beside = {where: [accept(offsets[0])] for where, offsets in self._spare.items() if offsets}
        first = {where: beside.pop(where) for where in list(beside)[:1]}
        return first | own | beside

    def _seen(self, response: Response, sent: Mapping[Where, Sequence[Ack]]) -> Response:
        """Return a response as the check has to see it, the neighbours' part judged."""
        for where in self._spare:
            part = response.part(where[0].id, where[1])
            if response.error or where not in sent:
                continue
            if part is None or (part.ack_error and time.monotonic() < self._sure_until):
                told = error_name(part.ack_error) if part else "left out"
                raise Violation("ACK-38", f"a record acknowledged beside the check's own: {told}")
            self._spare[where].pop(0)
        beside = {(topic.id, index) for topic, index in self.queue.beside}
        parts = (part for part in response.parts if (part.topic_id, part.partition) not in beside)
        return replace(response, parts=tuple(map(self._part, parts)))

    def _part(self, part: Part) -> Part:
        base = self._base((self.queue.topic, part.partition))
        if part.topic_id != self.queue.topic.id or not base:
            return part
        ranges = tuple(replace(r, first=r.first - base, last=r.last - base) for r in part.ranges)
        return replace(part, ranges=ranges)


SHIFT = 1000  # By how much the offsets of the neighbours differ from the check's own.
NOT_THERE = 1000  # A partition that no topic has.
SPREAD = 12  # Partitions of a topic among which one is looked for that the same coordinator serves.


class CrossedKey(StateKey):
    """A key that stands in the middle of every list: of three topics, and of three partitions.

    The partition behind it does not exist, and the others have a state of their own.
    """

    def __init__(
        self, key: StateKey, *, before: StateKey, same: StateKey, behind: StateKey
    ) -> None:
        super().__init__(key.env, key.group, key.topic_id, key.partition)
        self.before, self.same, self.behind = before, same, behind

    def wanted(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        own = [
            {"partition": self.same.partition} | _shifted(fields),
            {"partition": self.partition} | fields,
            {"partition": NOT_THERE} | _shifted(fields),
        ]
        before, behind = (
            {
                "topic_id": key.topic_id,
                "partitions": [{"partition": key.partition} | _shifted(fields)],
            }
            for key in (self.before, self.behind)
        )
        return [before, {"topic_id": self.topic_id, "partitions": own}, behind]

    def own(self, response: Struct) -> Struct:
        for topic in response.results:
            for part in topic.partitions:
                if (topic.topic_id, part.partition) == (self.topic_id, self.partition):
                    result: Struct = part
                    return result
        raise Undecided(f"a response has no result for {self.text}")


def _shifted(fields: dict[str, Any]) -> dict[str, Any]:
    found = dict(fields)
    if found.get("start_offset", -1) >= 0:
        found["start_offset"] += SHIFT
    if "state_batches" in found:
        found["state_batches"] = [
            one | {name: one[name] + SHIFT for name in ("first_offset", "last_offset")}
            for one in found["state_batches"]
        ]
    return found


class CrossedStore(Store):
    def __init__(self, store: Store) -> None:
        super().__init__(store.env)
        self._keys = store._keys  # they are all forgotten in the end
        self.met: set[str] = set()

    async def keys(self, partitions: int, group: str | None = None) -> list[StateKey]:
        """Return keys that were never initialised, with neighbours that were."""
        create = self.env.admin.create_topic
        topic = await create(partitions + SPREAD)
        others = [await create(SPREAD) for _ in range(2)]
        group = group or self.env.cluster.fresh_name("g")
        found: list[StateKey] = []
        for index in range(partitions):
            key = StateKey(self.env, group, topic.id, index)
            before, behind = [await self._near(key, other.id, range(SPREAD)) for other in others]
            same = await self._near(key, topic.id, range(partitions, partitions + SPREAD))
            await self._heard_of(key)
            self._keys.append(key)
            found.append(CrossedKey(key, before=before, same=same, behind=behind))
        self.met |= {"second topic", "many in one request"}
        return found

    async def _near(self, key: StateKey, topic_id: UUID, partitions: range) -> StateKey:
        """Return a neighbour on a topic that the coordinator of a key serves, with a state."""
        home = await key.node()
        for index in partitions:
            found = StateKey(self.env, key.group, topic_id, index)
            if await found.node() == home:
                await self._heard_of(found)
                self._keys.append(found)
                await found.begun(start=SHIFT)
                return found
        raise OutOfReach(f"the coordinator of {key.text} serves no partition beside it")
