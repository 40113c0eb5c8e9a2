"""The durable state of share-partitions: keys that belong to a check alone, and their topic.

The state RPCs of KIP-932 §Managing durable share-partition state pass between brokers, and a share
coordinator serves them to whoever may do CLUSTER_ACTION. It knows topics and not groups: the state
of a made-up group on a topic of ours is nobody's but ours. That of a group with consumers is best
left alone, as reading with a leader epoch above the leader's fences the leader.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any
from uuid import UUID

from fixtures.clients.admin import TOPIC_RESOURCE
from fixtures.clients.cluster import SHARE, Topic, eventually, require_ok
from fixtures.clients.configs import configure_topic
from fixtures.machine.maven import coordinator_jar
from fixtures.wire.codec import Struct
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode, error_name
from fixtures.wire.schema import Schemas
from fixtures.wire.state_records import (
    SNAPSHOT,
    StateRecord,
    decode_state,
    partition_of,
    share_key,
    wire_batches,
)
from spec.model import durable
from spec.model.durable import UNKNOWN_COUNT, Durable, StateBatch, combine, replay
from spec.model.release import Release, release_of
from spec.verdict import OutOfReach, Undecided
from suites.broker.env import Env, Queue
from suites.broker.logs import read_log

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
"""Delivery states as they are stored; acquired is not a stored state."""

Batch = tuple[int, int, int, int]  # First offset, last offset, delivery state, delivery count.


async def read_state(queue: Queue, partition: int = 0) -> Struct:
    return await _ask(queue, partition, "ReadShareGroupState", {})


async def settled_below(queue: Queue) -> int:
    """Return the first offset that is not finished in the stored state.

    What a response of NONE has promised is stored already. The start offset that administrators are
    shown follows with the next write only.
    """
    state = await read_state(queue)
    end = int(state.start_offset)
    for batch in sorted(state.state_batches, key=lambda each: int(each.first_offset)):
        if batch.first_offset > end or batch.delivery_state not in {ACKNOWLEDGED, ARCHIVED}:
            break
        end = int(batch.last_offset) + 1
    return end


STATE_TOPIC = "__share_group_state"


async def without_topic(env: Env, name: str = STATE_TOPIC) -> None:
    """Delete a topic: that of states where nobody else uses the cluster; the next use makes it."""
    await env.admin.delete_topics(name)

    async def ask() -> bool | None:
        found = (await (await env.cluster.any()).call("Metadata", topics=None)).topics
        return None if any(topic.name == name for topic in found) else True

    await eventually(f"{name} being gone", ask)


async def limit_state(env: Env, size: str | None, topic: str = STATE_TOPIC) -> None:
    """Let the state topic refuse records above a size, or None of them; wait until it does."""
    name, before = "max.message.bytes", await env.admin.configs(TOPIC_RESOURCE, topic)
    await configure_topic(env.cluster, topic, {name: size})

    async def ask() -> bool | None:
        seen = (await env.admin.configs(TOPIC_RESOURCE, topic))[name]
        return True if (seen == size if size else seen != before[name]) else None

    await eventually(f"{name} {size} of {topic} in force", ask)
    await env.admin.in_force()


async def write_state(
    queue: Queue, start: int, batches: Sequence[Batch] = (), **options: Any
) -> None:
    """Write a start offset and state batches, true or not, over the stored state."""
    epoch = (await read_state(queue)).state_epoch
    fields = {"state_epoch": epoch, "start_offset": start, "state_batches": wire_batches(batches)}
    await _ask(queue, 0, "WriteShareGroupState", fields | options)


async def _ask(queue: Queue, partition: int, api: str, fields: dict[str, Any]) -> Struct:
    key = StateKey(queue.env, queue.group, queue.topic.id, partition)
    node = await key.node()
    # Named is the epoch that the leader has, so that the leader is not fenced.
    connection = await queue.env.cluster.any()
    topics = (await connection.call("Metadata", topics=[{"name": queue.topic.name}])).topics
    epochs = {p.partition_index: int(p.leader_epoch) for p in topics[0].partitions}
    result = await key.ask(api, node=node, leader_epoch=epochs[partition], **fields)
    require_ok(api, result.error_code)
    return result


INITIALIZE, READ, WRITE = "InitializeShareGroupState", "ReadShareGroupState", "WriteShareGroupState"
SUMMARY, DELETE = "ReadShareGroupStateSummary", "DeleteShareGroupState"
STATE_RPCS = (INITIALIZE, READ, WRITE, SUMMARY, DELETE)
STATE_FIELDS: Mapping[str, dict[str, Any]] = {
    INITIALIZE: {"state_epoch": 0, "start_offset": 3},
    READ: {"leader_epoch": 0},
    WRITE: {"state_epoch": 0, "leader_epoch": 0, "start_offset": 3},
    SUMMARY: {"leader_epoch": 0},
    DELETE: {},
}
"""What each RPC says of a partition, in a request that is right."""

ACQUIRED, ARCHIVING = 1, 3  # A delivery state that is never stored, and one that is since KIP-1191.

PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def batches_of(part: Struct) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count)
        for b in part.state_batches
    )


def joined(batches: Struct | Sequence[StateBatch]) -> tuple[StateBatch, ...]:
    """Return batches, or those of a response, with those neighbours joined that say the same.

    Whether a broker joins them itself is PER-18's business, and up to 4.3 it does not always.
    """
    return combine((), batches_of(batches) if isinstance(batches, Struct) else batches, 0)


def read_result(part: Struct) -> tuple[str, int, int, tuple[StateBatch, ...]]:
    """Return what Read answered: error, state epoch, start offset, state batches joined."""
    return error_name(part.error_code), part.state_epoch, part.start_offset, joined(part)


class StateKey:
    """A share-partition as a share coordinator knows it: group, topic id and partition."""

    def __init__(self, env: Env, group: str, topic_id: UUID, partition: int = 0) -> None:
        self.env, self.group = env, group
        self.topic_id, self.partition = topic_id, partition

    @property
    def text(self) -> str:
        """The key of FindCoordinator."""
        return share_key(self.group, self.topic_id, self.partition)

    async def node(self) -> int:
        return await self.env.cluster.coordinator(self.text, SHARE)

    async def home(self) -> tuple[Topic, int]:
        """Return the state topic and the partition of it that the key hashes to."""
        topic = await self.env.cluster.topic(STATE_TOPIC)
        return topic, partition_of(self.text, len(topic.leaders))

    async def ask(
        self, api: str, *, node: int | None = None, version: int | None = None, **fields: Any
    ) -> Struct:
        """Send an RPC about this key; return the partition's result, error or not."""
        topics = self.wanted(fields)

        async def once() -> Struct | None:
            there = await self.node() if node is None else node
            response = await (await self.env.cluster.to(there)).call(
                api, version=version, group_id=self.group, topics=topics
            )
            if not response.results:
                raise Undecided(f"{api} was answered without a result")
            result = self.own(response)
            return None if result.error_code in PASSING else result

        return await eventually(f"{api} answered by a coordinator that is ready", once)

    def wanted(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"topic_id": self.topic_id, "partitions": [{"partition": self.partition} | fields]}]

    def own(self, response: Struct) -> Struct:
        result: Struct = response.results[0].partitions[0]
        return result

    async def initialize(self, state_epoch: int = 0, start: int = 0) -> str:
        part = await self.ask(INITIALIZE, state_epoch=state_epoch, start_offset=start)
        return error_name(part.error_code)

    async def begun(self, state_epoch: int = 0, start: int = 0) -> None:
        """Send an Initialize that has to succeed for the check to go on."""
        if (error := await self.initialize(state_epoch, start)) != "NONE":
            raise Undecided(f"an Initialize that should succeed answered {error}")

    async def read(self, leader_epoch: int = 0) -> Struct:
        return await self.ask(READ, leader_epoch=leader_epoch)

    async def write(
        self,
        *batches: StateBatch,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start: int = -1,
        complete: int | None = None,
    ) -> str:
        """Send WriteShareGroupState, of version 1 if it has a complete count; return the error."""
        if complete is not None and not self.env.cluster.supports(WRITE, 1):
            raise OutOfReach(f"the target does not offer {WRITE} with a complete count")
        counted = {} if complete is None else {"delivery_complete_count": complete}
        part = await self.ask(
            WRITE,
            version=0 if complete is None else None,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            state_batches=wire_batches(batches),
            **counted,
        )
        return error_name(part.error_code)

    async def summary(self, leader_epoch: int = 0) -> Struct:
        return await self.ask(SUMMARY, leader_epoch=leader_epoch)

    async def delete(self) -> str:
        return error_name((await self.ask(DELETE)).error_code)

    async def written(self, *batches: StateBatch, **fields: Any) -> None:
        """Write what has to be stored for the check to go on."""
        error = await self.write(*batches, **fields)
        if error != "NONE":
            raise Undecided(f"a Write that should succeed answered {error}")

    async def trail(self) -> Trail:
        """Return the key's part of the state topic from now on."""
        topic, partition = await self.home()
        end = await self.env.admin.log_offset(topic, partition=partition)
        return Trail(self, topic, partition, end)


class Trail:
    """What the state topic has of one key, from an offset on."""

    def __init__(self, key: StateKey, topic: Topic, partition: int, since: int) -> None:
        self.key, self.topic = key, topic
        self.partition, self.since = partition, since

    async def records(self) -> list[StateRecord]:
        """Return the key's records since then; whatever else is in the partition is left out."""
        env = self.key.env
        schemas = state_schemas(env.cluster.info.schema_jar)
        batches = await read_log(env, self.topic, self.partition, since=self.since)
        ours = (self.key.group, self.key.topic_id, self.key.partition)
        decoded = [
            decode_state(record, schemas)
            for batch in batches
            if not batch.control
            for record in batch.records
            if record.offset >= self.since
        ]
        return [r for r in decoded if (r.group, r.topic_id, r.partition) == ours]


@functools.cache
def state_schemas(schema_jar: str) -> Schemas:
    """Return the definitions of the state topic's records, of the release that a jar is of."""
    return Schemas.from_jar(coordinator_jar(schema_jar))


def as_model(record: StateRecord) -> durable.Record:
    """Return a record that is no tombstone as the model has it."""
    value = record.value
    if value is None:
        raise ValueError("a tombstone has no state")
    return durable.Record(
        snapshot_epoch=value.snapshot_epoch,
        leader_epoch=value.leader_epoch,
        start=value.start_offset,
        batches=batches_of(value),
        state_epoch=value.state_epoch if record.kind == SNAPSHOT else None,
        complete=getattr(value, "delivery_complete_count", UNKNOWN_COUNT),
    )


def replayed(records: Sequence[StateRecord], release: Release) -> Durable | None:
    """Return the state that a key's records add up to, None behind a tombstone."""
    ends = [index for index, record in enumerate(records) if record.tombstone]
    living = records[ends[-1] + 1 :] if ends else records
    return replay(map(as_model, living), release)


def per_offset(batches: Iterable[StateBatch]) -> dict[int, tuple[int, int]]:
    """Return delivery state and count of each offset that some batch covers."""
    return {
        offset: (batch.state, batch.deliveries)
        for batch in batches
        for offset in range(batch.first, batch.last + 1)
    }


def some_batches(rng: Random, start: int) -> list[StateBatch]:
    """Return a few batches around a start offset, overlapping as they like."""
    firsts = [max(0, start + rng.randint(-6, 30)) for _ in range(rng.randint(0, 6))]
    return [
        StateBatch(
            first,
            first + rng.choice([0, 0, 1, 4, 12]),
            rng.choice([AVAILABLE, ACKNOWLEDGED, ARCHIVED]),
            rng.randint(1, 4),
        )
        for first in firsts
    ]


def rising_batches(rng: Random, start: int, count: int) -> list[StateBatch]:
    """Return a few batches around a start offset, apart from each other, of one delivery count.

    With a count that rises from write to write, and none that is finished, every way to combine
    them keeps the last one.
    """
    ends = sorted({max(0, start + rng.randint(-6, 30)) for _ in range(2 * rng.randint(0, 4))})
    pairs = zip(ends[::2], ends[1::2], strict=False)
    return [StateBatch(first, last, AVAILABLE, count) for first, last in pairs]


class Store:
    """Makes keys for one check and forgets their state at the end."""

    def __init__(self, env: Env) -> None:
        self.env = env
        self._keys: list[StateKey] = []

    @property
    def release(self) -> Release:
        return release_of(self.env.cluster.info.version)

    async def keys(self, partitions: int, group: str | None = None) -> list[StateKey]:
        """Return the keys of a new topic that were never initialised.

        Every one's coordinator has heard of the topic.
        """
        topic = await self.env.admin.create_topic(partitions)
        return await self.on(topic, group)

    async def on(self, topic: Topic, group: str | None = None) -> list[StateKey]:
        """Return the keys of a topic's partitions for one group, new unless given."""
        group = group or self.env.cluster.fresh_name("g")
        keys = [StateKey(self.env, group, topic.id, index) for index in topic.partitions]
        for key in keys:
            await self._heard_of(key)
        self._keys += keys
        return keys

    async def key(self) -> StateKey:
        """Return a key on a topic of its own that was never initialised."""
        return (await self.keys(1))[0]

    async def initialized(self, state_epoch: int = 0, start: int = 0) -> StateKey:
        key = await self.key()
        await key.begun(state_epoch, start)
        return key

    def of(self, queue: Queue, partition: int = 0) -> StateKey:
        """Return the key of a share-partition that a group serves; to be read with care."""
        return StateKey(self.env, queue.group, queue.topic.id, partition)

    async def clear(self) -> None:
        """Delete the state of every key made here, so that a shared cluster is left as it was."""
        with contextlib.suppress(CallFailed, Undecided):
            for key in self._keys:
                await key.delete()

    async def _heard_of(self, key: StateKey) -> None:
        async def ask() -> bool | None:
            part = await key.summary()
            return None if part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else True

        await eventually(f"the coordinator of {key.text} hearing of the topic", ask)
