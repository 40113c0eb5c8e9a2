"""Groups on the raw wire: what an administrator asks about them, of every kind, and members.

The requests name their errors instead of raising: here a refusal is often what the rule demands.
Only errors that pass by themselves are waited out.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fixtures.clients.cluster import (
    RETRIABLE,
    WITHIN,
    Topic,
    attempts,
    eventually,
    gather_all,
    require_ok,
)
from fixtures.clients.member import Member, accept, reject, release
from fixtures.wire.codec import Struct
from fixtures.wire.errors import ErrorCode, error_name
from spec.verdict import OutOfReach, Undecided
from suites.broker.env import BYSTANDING, Env, Queue, demand_bystander, poll
from suites.broker.state import PASSING, batches_of, read_state

NONE, NO_GROUP, NON_EMPTY = "NONE", "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"

RACED = {
    NONE: "order: the request may come before the join that it races",
    NON_EMPTY: "KIP-932 §Administration: offsets are changed of empty groups only",
}
"""Errors of a change of offsets that races a join, and what allows each."""
NO_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
UNSET = -1  # The start offset of a share-partition that has none.

Place = tuple[str, int]  # Topic name and partition index.

Answered = tuple[str, dict[Any, str]]
"""Name of the error of the whole request, and of each topic or partition."""


def codes_in(value: Any) -> Iterator[int]:
    if isinstance(value, Struct):
        yield from codes_in(value.to_dict())
    elif isinstance(value, dict):
        if "error_code" in value:
            yield int(value["error_code"])
        for inner in value.values():
            yield from codes_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from codes_in(inner)


def fields_of(
    api: str, group: str, *topics: str, member_id: str = "", start: int = 0
) -> dict[str, Any]:
    """Return the fields of a good request about a group and partition 0 of some topics."""
    described = [{"topic_name": name, "partitions": [0]} for name in topics]
    partition = {"partition_index": 0, "start_offset": start}
    altered = [{"topic_name": name, "partitions": [partition]} for name in topics]
    joining = {"member_epoch": 0, "subscribed_topic_names": list(topics)}
    fields: dict[str, dict[str, Any]] = {
        "ShareGroupHeartbeat": {"group_id": group, "member_id": member_id} | joining,
        "ShareGroupDescribe": {"group_ids": [group]},
        "ListGroups": {"states_filter": [], "types_filter": ["share"]},
        "DescribeShareGroupOffsets": {"groups": [{"group_id": group, "topics": described or None}]},
        "AlterShareGroupOffsets": {"group_id": group, "topics": altered},
        "DeleteShareGroupOffsets": {
            "group_id": group,
            "topics": [{"topic_name": name} for name in topics],
        },
        "DeleteGroups": {"groups_names": [group]},
    }
    return fields[api]


async def ask_coordinator(env: Env, group: str, api: str, **fields: Any) -> Struct:
    """Ask the coordinator of a group, again while any part of its response is a passing error.

    What is deleted already is not there the second time, so that is not asked for again.
    """

    async def ask() -> Struct | None:
        response = await env.cluster.at_coordinator(group, api, **fields)
        codes = set(codes_in(response))
        if RETRIABLE & codes and api.startswith("Delete") and codes - PASSING:
            raise Undecided(f"{api} of {group} is done in part, or may be: {response}")
        return None if RETRIABLE & codes else response

    return await eventually(f"a response to {api} of {group}", ask)


async def neighbours(env: Env, count: int) -> list[str]:
    """Return fresh group ids that one broker coordinates, so that one request may name them."""
    found: dict[int, list[str]] = {}
    while True:
        name = env.cluster.fresh_name("g")
        mates = found.setdefault(await env.cluster.coordinator(name), [])
        mates.append(name)
        if len(mates) == count:
            return mates


async def described(env: Env, groups: Sequence[str], **fields: Any) -> dict[str, Struct]:
    response = await ask_coordinator(
        env, groups[0], "ShareGroupDescribe", group_ids=list(groups), **fields
    )
    return {found.group_id: found for found in response.groups}


def is_gone(found: Struct) -> bool:
    """Tell whether a group is described as not there, by whichever error or as Dead."""
    return bool(found.error_code) or found.group_state == "Dead"


async def described_offsets(
    env: Env, wanted: Mapping[str, Mapping[str, Sequence[int]] | None]
) -> dict[str, Struct]:
    """Return what DescribeShareGroupOffsets answers for groups of one coordinator, by group id.

    Each group comes with the partitions wanted of each topic, or with ``None`` for all there are.
    """
    named = [
        {
            "group_id": group,
            "topics": None
            if topics is None
            else [{"topic_name": name, "partitions": list(p)} for name, p in topics.items()],
        }
        for group, topics in wanted.items()
    ]
    response = await ask_coordinator(
        env, next(iter(wanted)), "DescribeShareGroupOffsets", groups=named
    )
    return {found.group_id: found for found in response.groups}


def starts(group: Struct) -> dict[Place, int]:
    return {
        (topic.topic_name, part.partition_index): int(part.start_offset)
        for topic in group.topics
        for part in topic.partitions
    }


async def group_offsets(env: Env, group: str) -> dict[Place, int]:
    return starts((await described_offsets(env, {group: None}))[group])


async def shown_starts(env: Env, group: str) -> set[int]:
    """Return the start offsets that a group shows, where -1 is none."""
    return {*(await group_offsets(env, group)).values()} - {UNSET}


async def alter_offsets(
    env: Env, group: str, offsets: Mapping[Place, int], *, strangers: bool = False
) -> Answered:
    """Set start offsets of any number of partitions in one AlterShareGroupOffsets.

    A coordinator may not have heard of a new topic yet, so that an unknown one is tried again
    for a while; with ``strangers`` there are partitions that do not exist.
    """
    return await poll(
        lambda: _alter(env, group, offsets),
        lambda answered: strangers or NO_TOPIC not in answered[1].values(),
    )


async def altered(env: Env, group: str, offsets: Mapping[Place, int]) -> None:
    """Set start offsets, which has to succeed for the check to go on."""
    if refusals(told := await alter_offsets(env, group, offsets)) != {NONE}:
        raise Undecided(f"AlterShareGroupOffsets was answered {told}")


async def _alter(env: Env, group: str, offsets: Mapping[Place, int]) -> Answered:
    topics: dict[str, list[dict[str, int]]] = {}
    for (name, index), offset in offsets.items():
        topics.setdefault(name, []).append({"partition_index": index, "start_offset": offset})
    named = [{"topic_name": name, "partitions": parts} for name, parts in topics.items()]
    response = await ask_coordinator(
        env, group, "AlterShareGroupOffsets", group_id=group, topics=named
    )
    errors = {
        (topic.topic_name, part.partition_index): error_name(part.error_code)
        for topic in response.responses
        for part in topic.partitions
    }
    return error_name(response.error_code), errors


async def delete_offsets(env: Env, group: str, *topics: str) -> Answered:
    named = [{"topic_name": name} for name in topics]
    response = await ask_coordinator(
        env, group, "DeleteShareGroupOffsets", group_id=group, topics=named
    )
    errors = {topic.topic_name: error_name(topic.error_code) for topic in response.responses}
    return error_name(response.error_code), errors


async def delete_groups(env: Env, *groups: str) -> dict[str, str]:
    response = await ask_coordinator(env, groups[0], "DeleteGroups", groups_names=list(groups))
    return {found.group_id: error_name(found.error_code) for found in response.results}


UNANSWERED = "no response for any part"


def refusals(answered: Answered) -> set[str]:
    """Return the errors of a request's parts, or the one error of a request refused as a whole."""
    whole, parts = answered
    return {whole} if whole != NONE else set(parts.values()) or {UNANSWERED}


async def listed(env: Env, names: Iterable[str], **filters: Any) -> dict[str, tuple[str, str]]:
    """Return type and state of those of the groups that ListGroups shows, by any broker."""
    wanted = set(names)
    body = {"states_filter": [], "types_filter": []} | filters

    async def of(node: int) -> list[Struct]:
        async def ask() -> list[Struct] | None:
            response = await (await env.cluster.to(node)).call("ListGroups", **body)
            if response.error_code in RETRIABLE:
                return None
            require_ok("ListGroups", response.error_code)
            groups: list[Struct] = response.groups
            return groups

        return await eventually(f"ListGroups of broker {node}", ask)

    responses = await asyncio.gather(*map(of, env.cluster.brokers))
    return {
        found.group_id: (found.group_type.lower(), found.group_state)
        for groups in responses
        for found in groups
        if found.group_id in wanted
    }


async def use(queue: Queue, topic: Topic | None = None, partition: int = 0) -> None:
    """Give a share-partition a history: ten records, 0 to 4 accepted, 5 and 6 rejected.

    The others are released, and the member that did it is gone. The start offset that is stored is
    7, because the write of each acknowledgement carries what the one before it has moved.
    """
    used = queue if topic is None else Queue(env=queue.env, topic=topic, group=queue.group)
    await used.produce(10, partition, batches=5)
    consumer = await used.holder(10, partition)
    for ack in (accept(0, 4), reject(5, 6), release(7, 9)):
        await consumer.acked(ack)
    await consumer.depart()


Stored = tuple[int, int, list[tuple[int, ...]]]
"""State epoch, start offset and state batches."""


async def stored(queue: Queue, partition: int = 0) -> Stored:
    state = await read_state(queue, partition)
    batches = sorted(map(tuple, batches_of(state)))
    return int(state.state_epoch), int(state.start_offset), batches


async def vacant(env: Env, group: str) -> None:
    async def ask() -> bool | None:
        found = (await described(env, [group]))[group]
        return True if not found.error_code and not found.members else None

    await eventually(f"group {group} becoming empty", ask)


# A group id is of one kind. These are the requests that make, use and look at a group of a kind,
# just as far as it takes to see whether the kinds keep out of each other's way.
SILENT = (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
"""What is no refusal. Which error it is differs: KAFKA-20799 asks for a clearer one."""


async def consumer_beat(env: Env, group: str, member_id: str, topic: str, epoch: int) -> Struct:
    return await ask_coordinator(
        env,
        group,
        "ConsumerGroupHeartbeat",
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=30000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )


async def streams_beat(env: Env, group: str, member_id: str, topic: str, epoch: int) -> Struct:
    """Heartbeat as a member of a streams group (KIP-1071), with one stateless subtopology."""
    joining = epoch == 0
    subtopology = {
        "subtopology_id": "0",
        "source_topics": [topic],
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
    }
    return await ask_coordinator(
        env,
        group,
        "StreamsGroupHeartbeat",
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        endpoint_information_epoch=0,
        rebalance_timeout_ms=30000,
        topology={"epoch": 0, "subtopologies": [subtopology]} if joining else None,
        active_tasks=[] if joining else None,
        standby_tasks=[] if joining else None,
        warmup_tasks=[] if joining else None,
        process_id=member_id if joining else None,
        client_tags=[] if joining else None,
    )


async def classic_join(env: Env, group: str) -> Struct:
    """Ask to join a classic group as a newcomer.

    Version 3 lets newcomers in without MEMBER_ID_REQUIRED, which would look like a refusal.
    """
    return await ask_coordinator(
        env,
        group,
        "JoinGroup",
        version=3,
        group_id=group,
        member_id="",
        session_timeout_ms=30000,
        rebalance_timeout_ms=30000,
        protocol_type="consumer",
        protocols=[{"name": "range", "metadata": b""}],
    )


async def kind_of(env: Env, group: str) -> list[str]:
    """Return the type that ListGroups shows for a group: one, or none when it is not there."""
    response = await ask_coordinator(env, group, "ListGroups", states_filter=[], types_filter=[])
    return [found.group_type.lower() for found in response.groups if found.group_id == group]


async def commit(env: Env, queue: Queue, group: str, offset: int = 1) -> int:
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    response = await env.cluster.at_coordinator(
        group,
        "OffsetCommit",
        version=8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": queue.topic.name, "partitions": [partition]}],
    )
    return int(response.topics[0].partitions[0].error_code)


async def commit_offset(env: Env, queue: Queue, group: str, offset: int = 1) -> int:
    async def ask() -> int | None:
        error = await commit(env, queue, group, offset)
        return None if error in RETRIABLE else error

    return await eventually(f"a response to OffsetCommit of {group}", ask)


async def committed_offsets(env: Env, group: str) -> dict[tuple[str, int], int]:
    response = await ask_coordinator(
        env,
        group,
        "OffsetFetch",
        version=8,
        groups=[{"group_id": group, "topics": None}],
        require_stable=False,
    )
    return {
        (topic.name, part.partition_index): part.committed_offset
        for found in response.groups
        for topic in found.topics
        for part in topic.partitions
    }


async def classic_group(env: Env, queue: Queue, group: str, offset: int = 1) -> None:
    """Make a classic group without members, by committing an offset to it."""
    if error := await commit_offset(env, queue, group, offset):
        raise Undecided(f"committing an offset to a classic group: {error_name(error)}")


async def consumer_group(env: Env, queue: Queue, group: str) -> str:
    member_id = env.member_id()
    joined = await consumer_beat(env, group, member_id, queue.topic.name, 0)
    if joined.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise OutOfReach("consumer groups are switched off")
    require_ok("joining a consumer group", joined.error_code)
    return member_id


async def streams_group(env: Env, queue: Queue, group: str) -> str:
    member_id = env.member_id()
    if not env.cluster.supports("StreamsGroupHeartbeat", 0):
        raise OutOfReach("the cluster does not serve streams groups")
    joined = await streams_beat(env, group, member_id, queue.topic.name, 0)
    if joined.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise OutOfReach("streams groups are switched off")
    require_ok("joining a streams group", joined.error_code)
    return member_id


async def delete_group(env: Env, group: str) -> None:
    async def ask() -> bool | None:
        response = await env.cluster.at_coordinator(group, "DeleteGroups", groups_names=[group])
        code = response.results[0].error_code
        if code and code not in RETRIABLE:
            raise Undecided(f"DeleteGroups: {error_name(code)}")
        return None if code else True

    await eventually(f"deleting group {group}", ask)


# Members: heartbeats that were answered, and waiting by heartbeating.
Assigned = frozenset[tuple[object, int]]  # Topic ids and partition indexes.


async def beat(member: Member, **fields: object) -> Struct:
    """Send a heartbeat, again for as long as the coordinator itself is not there to answer."""

    async def ask() -> Struct | None:
        response = await member.heartbeat(**fields)
        return None if response.error_code in RETRIABLE else response

    return await eventually(f"a response to {member.member_id}'s heartbeat", ask)


def in_session(member: Member, response: Struct, session_ms: int) -> Struct:
    """Return the response to a live member's heartbeat."""
    silent = time.monotonic() - member.beaten
    if response.error_code == ErrorCode.UNKNOWN_MEMBER_ID and silent > session_ms / 1000:
        raise Undecided(
            f"the harness sent no heartbeat for {silent:.0f} s; sessions end in {session_ms} ms"
        )
    return response


async def good_beat(member: Member, **fields: object) -> Struct:
    """Send a heartbeat that has to succeed for the check to go on."""
    response = await beat(member, **fields)
    if response.error_code:
        raise Undecided(f"a heartbeat that should succeed got {error_name(response.error_code)}")
    return response


async def beating(
    members: Sequence[Member], until: Callable[[], bool], within: float = WITHIN
) -> list[Struct]:
    responses: list[Struct] = []
    async for _ in attempts(within):
        if until():
            return responses
        responses += [await good_beat(member) for member in members]
    if within >= BYSTANDING and not until():  # a bystander is assigned its topic, too
        cluster = members[0].cluster
        node = min(cluster.brokers.keys() - cluster.away)
        await demand_bystander(cluster, node, "what members wait for did not come")
    return responses


async def crowd(env: Env, queue: Queue, count: int) -> list[Member]:
    """Return members that were let in but not yet waited for: any of them may have nothing yet."""
    members = [await env.member(queue.group) for _ in range(count)]
    names = [queue.topic.name]
    await gather_all(good_beat(member, subscribed_topic_names=names) for member in members)
    return members


async def risen(member: Member, floor: int) -> list[int]:
    """Heartbeat until the member's epoch is above ``floor`` or time is up; return the epochs."""
    return [one.member_epoch for one in await beating([member], lambda: member.epoch > floor)]


async def member_ids(env: Env, group: str) -> list[str]:
    return sorted(member.member_id for member in (await env.admin.describe_group(group)).members)


async def shown_epoch(env: Env, member: Member) -> int:
    listed = (await env.admin.describe_group(member.group)).members
    return next((int(m.member_epoch) for m in listed if m.member_id == member.member_id), 0)


async def group_epoch(env: Env, group: str) -> int:
    return int((await env.admin.describe_group(group)).group_epoch)


def every(*topics: Topic) -> Assigned:
    return frozenset((topic.id, index) for topic in topics for index in topic.partitions)


def covered(members: Collection[Member]) -> Assigned:
    return frozenset(partition for member in members for partition in member.assigned)


def assigned_in(response: Struct) -> Assigned | None:
    if response.assignment is None:
        return None
    return frozenset(
        (topic.topic_id, index)
        for topic in response.assignment.topic_partitions
        for index in topic.partitions
    )
