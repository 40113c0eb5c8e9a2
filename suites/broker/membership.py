"""What the membership checks share: heartbeats that were answered, and waiting by heartbeating."""

import time
from collections.abc import Callable, Collection, Iterable

from fixtures.clients.cluster import RETRIABLE, WITHIN, Topic, attempts, eventually, gather_all
from fixtures.clients.member import Member
from fixtures.wire.codec import Struct
from fixtures.wire.errors import ErrorCode, error_name
from spec.verdict import Undecided
from suites.broker.share import Queue, Share

Assigned = frozenset[tuple[object, int]]
"""Topic ids and partition indexes."""


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
    members: Iterable[Member], until: Callable[[], bool], within: float = WITHIN
) -> list[Struct]:
    """Let members heartbeat in turn until a condition holds or time is up; return all responses."""
    responses: list[Struct] = []
    async for _ in attempts(within):
        if until():
            break
        responses += [await good_beat(member) for member in members]
    return responses


async def crowd(share: Share, queue: Queue, count: int) -> list[Member]:
    """Return members that were let in but not yet waited for: any of them may have nothing yet."""
    members = [await share.member(queue.group) for _ in range(count)]
    names = [queue.topic.name]
    await gather_all(good_beat(member, subscribed_topic_names=names) for member in members)
    return members


async def risen(member: Member, floor: int) -> list[int]:
    """Heartbeat until the member's epoch is above ``floor`` or time is up; return the epochs."""
    responses = await beating([member], lambda: member.epoch > floor)
    return [response.member_epoch for response in responses]


async def member_ids(share: Share, group: str) -> list[str]:
    return sorted(member.member_id for member in (await share.admin.describe_group(group)).members)


async def shown_epoch(share: Share, member: Member) -> int:
    """Return a member's epoch as ShareGroupDescribe shows it, 0 if it is not listed."""
    listed = (await share.admin.describe_group(member.group)).members
    return next((int(m.member_epoch) for m in listed if m.member_id == member.member_id), 0)


async def group_epoch(share: Share, group: str) -> int:
    return int((await share.admin.describe_group(group)).group_epoch)


def every(*topics: Topic) -> Assigned:
    """Return all partitions of some topics, as a member's ``assigned`` has them."""
    return frozenset((topic.id, index) for topic in topics for index in topic.partitions)


def covered(members: Collection[Member]) -> Assigned:
    return frozenset(partition for member in members for partition in member.assigned)


def assigned_in(response: Struct) -> Assigned | None:
    """Return the assignment in a heartbeat's answer, ``None`` where it has none."""
    if response.assignment is None:
        return None
    return frozenset(
        (topic.topic_id, index)
        for topic in response.assignment.topic_partitions
        for index in topic.partitions
    )
