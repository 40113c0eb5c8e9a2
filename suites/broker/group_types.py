"""Groups of every kind on the raw wire: share, consumer, classic, and streams groups.

A group id is of one kind. These are the requests that make, use and look at a group of a kind, just
as far as it takes to see whether the kinds keep out of each other's way.
"""

from __future__ import annotations

from fixtures.clients.cluster import RETRIABLE, eventually
from fixtures.wire.codec import Struct
from fixtures.wire.errors import ErrorCode, error_name
from spec.verdict import OutOfReach, Undecided
from suites.broker.share import Queue, Share

SILENT = (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
"""What is no refusal. Which error it is differs: KAFKA-20799 asks for a clearer one."""


async def coordinated(share: Share, group: str, api: str, **fields: object) -> Struct:
    """Send a request to the group's coordinator until it is there to answer it."""

    async def ask() -> Struct | None:
        response = await share.cluster.at_coordinator(group, api, **fields)
        return None if getattr(response, "error_code", 0) in RETRIABLE else response

    return await eventually(f"a response to {api} of {group}", ask)


async def consumer_beat(share: Share, group: str, member_id: str, topic: str, epoch: int) -> Struct:
    """Heartbeat as a member of a consumer group (KIP-848)."""
    return await coordinated(
        share,
        group,
        "ConsumerGroupHeartbeat",
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=30000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )


async def streams_beat(share: Share, group: str, member_id: str, topic: str, epoch: int) -> Struct:
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
    return await coordinated(
        share,
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


async def classic_join(share: Share, group: str) -> Struct:
    """Ask to join a classic group as a newcomer.

    Version 3 lets newcomers in without MEMBER_ID_REQUIRED, which would look like a refusal.
    """
    return await coordinated(
        share,
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


async def kind(share: Share, group: str) -> list[str]:
    """Return the type that ListGroups shows for a group: one, or none when it is not there."""
    response = await coordinated(share, group, "ListGroups", states_filter=[], types_filter=[])
    return [found.group_type.lower() for found in response.groups if found.group_id == group]


async def commit(share: Share, queue: Queue, group: str, offset: int = 1) -> int:
    """Commit an offset without being a member; return the partition's error."""
    partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    response = await share.cluster.at_coordinator(
        group,
        "OffsetCommit",
        version=8,
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[{"name": queue.topic.name, "partitions": [partition]}],
    )
    return int(response.topics[0].partitions[0].error_code)


async def committed(share: Share, queue: Queue, group: str, offset: int = 1) -> int:
    """Commit until the coordinator is there; return the partition's error."""

    async def ask() -> int | None:
        error = await commit(share, queue, group, offset)
        return None if error in RETRIABLE else error

    return await eventually(f"a response to OffsetCommit of {group}", ask)


async def committed_offsets(share: Share, group: str) -> dict[tuple[str, int], int]:
    """Return the offsets that are committed to a classic or consumer group."""
    response = await coordinated(
        share,
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


async def classic_group(share: Share, queue: Queue, group: str, offset: int = 1) -> None:
    """Make a classic group without members, by committing an offset to it."""
    if error := await committed(share, queue, group, offset):
        raise Undecided(f"committing an offset to a classic group: {error_name(error)}")


async def consumer_group(share: Share, queue: Queue, group: str) -> str:
    """Make a consumer group with one member; return the member's id."""
    member_id = share.member_id()
    joined = await consumer_beat(share, group, member_id, queue.topic.name, 0)
    if joined.error_code:
        raise Undecided(f"joining a consumer group: {error_name(joined.error_code)}")
    return member_id


async def streams_group(share: Share, queue: Queue, group: str) -> str:
    """Make a streams group with one member; return the member's id.

    Raises:
        OutOfReach: the cluster has no streams groups.
    """
    member_id = share.member_id()
    if not share.cluster.supports("StreamsGroupHeartbeat", 0):
        raise OutOfReach("the cluster does not serve streams groups")
    joined = await streams_beat(share, group, member_id, queue.topic.name, 0)
    if joined.error_code == ErrorCode.UNSUPPORTED_VERSION:
        raise OutOfReach("streams groups are switched off")
    if joined.error_code:
        raise Undecided(f"joining a streams group: {error_name(joined.error_code)}")
    return member_id


async def delete_group(share: Share, group: str) -> None:
    """Delete a group, which has to succeed for the check to go on."""

    async def ask() -> bool | None:
        response = await share.cluster.at_coordinator(group, "DeleteGroups", groups_names=[group])
        code = response.results[0].error_code
        if code and code not in RETRIABLE:
            raise Undecided(f"DeleteGroups: {error_name(code)}")
        return None if code else True

    await eventually(f"deleting group {group}", ask)
