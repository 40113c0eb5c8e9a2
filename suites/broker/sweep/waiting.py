"""A fetch that waits while something happens to its session, member, topic or connection."""

import asyncio
from typing import Any

from fixtures.clients.admin import GROUP_RESOURCE, Admin
from fixtures.clients.cluster import Cluster, Topic, attempts
from fixtures.clients.configs import alter
from fixtures.clients.member import CLOSE, OPEN, Member, Response, Session, member_id
from fixtures.wire.connection import CallTimeout, ConnectionLost
from fixtures.wire.errors import ErrorCode
from spec.verdict import OutOfReach, Violation
from suites.broker.sweep.cases import NOTHING_LEFT, SERVED, WAITING, Case

_WAIT = 6.0  # Seconds for which the fetch may wait.
_LATER = 0.3  # Seconds after which it is taken to wait.
_PROMPT = 8.0  # Seconds in which a record comes to somebody; a lock lasts 30 s.
_ENDING = ("session-", "connection-")
"""How events begin that end the session of the fetch: it can acquire nothing from then on."""


async def _happen(event: str, admin: Admin, topic: Topic, member: Member, first: Session) -> None:
    """Let an event happen to a member's session, by another connection where it takes one."""
    second = await member.new_session(topic.leaders[0])
    match event.removesuffix("-and-connection"):
        case "session-closed":
            await second.acknowledge({}, epoch=CLOSE)
        case "session-closed-by-fetch":
            await second.close(by_fetch=True)
        case "session-replaced":
            await second.fetch((topic, 0), epoch=OPEN, max_records=0, max_wait_ms=0)
        case "member-leaves":
            await member.leave()
        case "unsubscribed":
            await member.heartbeat(subscribed_topic_names=[])
        case "forgotten":
            await second.fetch(forget=[(topic, 0)], epoch=first.epoch, max_wait_ms=0)
        case other:
            await _change(other, admin, topic, member.group)
    if "connection" in event:
        first.connection.abort()


async def _change(event: str, admin: Admin, topic: Topic, group: str) -> None:
    match event:
        case "topic-deleted":
            await admin.delete_topics(topic.name)
        case "config-changed":
            values = {"share.isolation.level": "read_committed"}
            await alter(admin.cluster, GROUP_RESOURCE, group, values)
        case "partitions-added":
            await admin.create_partitions(topic, 2)
        case "leader-moved":
            await admin.move_leader(
                topic, next(n for n in topic.replicas[0] if n != topic.leaders[0])
            )


async def wait_through(cluster: Cluster, group: str, case: Case) -> None:
    """Let a fetch wait through an event; then a record has to come to somebody who can use it."""
    admin, nodes = Admin(cluster), sorted(cluster.brokers)
    if case.event == "leader-moved" and len(nodes) == 1:
        raise OutOfReach("there is one broker")
    topic = await admin.create_topic(assignments=[nodes])
    member = Member(cluster, group, member_id(cluster.rng))
    await member.join(topic)
    session = await member.new_session(topic.leaders[0])
    await session.fetch((topic, 0), max_wait_ms=0)
    sent: dict[str, Any] = {"max_wait_ms": int(_WAIT * 1000), **case.options}
    task = asyncio.create_task(session.fetch(timeout=_WAIT + _PROMPT, version=case.version, **sent))
    await asyncio.wait({task}, timeout=_LATER)
    await _happen(case.event, admin, topic, member, session)
    if case.event != "topic-deleted":
        topic = await cluster.topic(topic.name)
        await admin.produce(topic, 1)
        await _delivered(case, cluster, topic, group, task)
        await admin.delete_topics(topic.name)
    try:
        _check(await task)
    except ConnectionLost:
        if "connection" not in case.event:
            raise
    except CallTimeout:
        late = f"the fetch has no response {_PROMPT:g} s after its MaxWaitMs"
        raise Violation(WAITING, late) from None
    await member.leave()
    deleted = await cluster.at_coordinator(group, "DeleteGroups", groups_names=[group])
    if code := deleted.results[0].error_code:
        raise Violation(NOTHING_LEFT, f"DeleteGroups afterwards: error {code}")


async def _delivered(
    case: Case, cluster: Cluster, topic: Topic, group: str, fetch: asyncio.Task[Response]
) -> None:
    """Have another member wait for the record, unless it came to the fetch that may have it."""
    reader = Member(cluster, group, member_id(cluster.rng))
    await reader.heartbeat(member_epoch=0, subscribed_topic_names=[topic.name])
    session = await reader.new_session(topic.leaders[0])
    async for _ in attempts(_PROMPT):
        response = await session.fetch(*([] if session.epoch else [(topic, 0)]), max_wait_ms=100)
        _check(response)
        got = fetch.done() and not fetch.exception() and bool(fetch.result().offsets)
        if response.offsets or (got and not case.event.startswith(_ENDING)):
            await reader.leave()
            return
    took = "; the fetch that waited got it" if got else ""
    raise Violation(WAITING, f"a record came to nobody in {_PROMPT:g} s{took}")


def _check(response: Response) -> None:
    if ErrorCode.UNKNOWN_SERVER_ERROR in response.errors:
        raise Violation(SERVED, "a fetch gets UNKNOWN_SERVER_ERROR")
