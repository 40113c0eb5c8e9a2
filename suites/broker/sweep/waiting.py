"""A fetch that waits while something happens to its session, member, topic or connection."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fixtures.clients.admin import GROUP_RESOURCE, Admin
from fixtures.clients.cluster import Cluster, Topic, attempts
from fixtures.clients.configs import alter
from fixtures.clients.member import CLOSE, OPEN, Member, Session, member_id
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode
from spec.verdict import OutOfReach, Violation
from suites.broker.sweep.cases import NOTHING_LEFT, SERVED, WAITING, Case

_WAIT = 6.0  # Seconds for which the fetch may wait.
_LATER = 0.3  # Seconds after which it is taken to wait.
_PROMPT = 8.0  # Seconds in which a record comes to somebody; a lock lasts 30 s.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    admin: Admin
    topic: Topic
    member: Member
    session: Session
    second: Session  # The same member's over another connection.

    @property
    def group(self) -> str:
        return self.member.group


Event = Callable[[_Wait], Awaitable[object]]


async def _both(wait: _Wait, event: Event) -> None:
    await event(wait)
    wait.session.connection.abort()


async def _abort(wait: _Wait) -> None:
    wait.session.connection.abort()


async def _moved(wait: _Wait) -> None:
    to = next(n for n in wait.topic.replicas[0] if n != wait.topic.leaders[0])
    await wait.admin.move_leader(wait.topic, to)


def _closed(wait: _Wait) -> Awaitable[object]:
    return wait.second.acknowledge({}, epoch=CLOSE)


def _replaced(wait: _Wait) -> Awaitable[object]:
    return wait.second.fetch((wait.topic, 0), epoch=OPEN, max_records=0, max_wait_ms=0)


def _configured(wait: _Wait) -> Awaitable[object]:
    values = {"share.isolation.level": "read_committed"}
    return alter(wait.admin.cluster, GROUP_RESOURCE, wait.group, values)


ENDS: Mapping[str, Event] = MappingProxyType(
    {
        "session-closed": _closed,
        "session-closed-by-fetch": lambda wait: wait.second.close(by_fetch=True),
        "session-replaced": _replaced,
        "connection-closed": _abort,
        "session-closed-and-connection": lambda wait: _both(wait, _closed),
        "session-replaced-and-connection": lambda wait: _both(wait, _replaced),
    }
)
"""What ends the session of the fetch, which can acquire nothing from then on."""

OTHERS: Mapping[str, Event] = MappingProxyType(
    {
        "nothing": lambda _: asyncio.sleep(0),
        "member-leaves": lambda wait: wait.member.leave(),
        "unsubscribed": lambda wait: wait.member.heartbeat(subscribed_topic_names=[]),
        "forgotten": lambda wait: wait.second.fetch(
            forget=[(wait.topic, 0)], epoch=wait.session.epoch, max_wait_ms=0
        ),
        "topic-deleted": lambda wait: wait.admin.delete_topics(wait.topic.name),
        "config-changed": _configured,
        "partitions-added": lambda wait: wait.admin.create_partitions(wait.topic, 2),
        "leader-moved": _moved,
    }
)


async def wait_through(cluster: Cluster, group: str, case: Case) -> None:
    """Let a fetch wait through an event; then a record has to come to somebody who can use it."""
    admin, nodes = Admin(cluster), sorted(cluster.brokers)
    if case.event == "leader-moved" and len(nodes) == 1:
        raise OutOfReach("there is one broker")
    topic = await admin.create_topic(assignments=[nodes])
    member = Member(cluster, group, member_id(cluster.rng))
    await member.join(topic)
    node = topic.leaders[0]
    session, second = await member.new_session(node), await member.new_session(node)
    await session.fetch((topic, 0), max_wait_ms=0)
    wait = _Wait(admin=admin, topic=topic, member=member, session=session, second=second)
    sent = {"max_wait_ms": int(_WAIT * 1000), "version": case.version, **case.options}
    fetch = asyncio.create_task(session.fetch(timeout=_WAIT + _PROMPT, **sent))  # type: ignore[arg-type]
    await asyncio.wait({fetch}, timeout=_LATER)
    await (ENDS | OTHERS)[case.event](wait)  # type: ignore[operator]
    reader = None
    if case.event != "topic-deleted":
        topic = await cluster.topic(topic.name)
        await admin.produce(topic, 1)
        reader = await _delivered(case, wait, topic, fetch)
    with contextlib.suppress(CallFailed):
        response = await fetch
        if ErrorCode.UNKNOWN_SERVER_ERROR in response.errors:
            raise Violation(SERVED, "the fetch that waited gets UNKNOWN_SERVER_ERROR")
    if session.connection.usable and not fetch.done():
        raise Violation(WAITING, f"the fetch is not over {_PROMPT:g} s after its MaxWaitMs")
    for one in (member, reader):
        if one:
            with contextlib.suppress(CallFailed):
                await one.leave()
    deleted = await cluster.at_coordinator(group, "DeleteGroups", groups_names=[group])
    if deleted.results[0].error_code:
        raise Violation(NOTHING_LEFT, f"DeleteGroups: error {deleted.results[0].error_code}")
    if reader:
        await admin.delete_topics(topic.name)


async def _delivered(case: Case, wait: _Wait, topic: Topic, fetch: asyncio.Task[object]) -> Member:
    """Have another member wait for the record, unless it came to the fetch that may have it."""
    cluster = wait.admin.cluster
    reader = Member(cluster, wait.group, member_id(cluster.rng))
    await reader.heartbeat(member_epoch=0, subscribed_topic_names=[topic.name])
    session = await reader.new_session(topic.leaders[0])
    async for _ in attempts(_PROMPT):
        response = await session.fetch(*([] if session.epoch else [(topic, 0)]), max_wait_ms=100)
        if ErrorCode.UNKNOWN_SERVER_ERROR in response.errors:
            raise Violation(SERVED, "a fetch of another member gets UNKNOWN_SERVER_ERROR")
        if response.offsets:
            return reader
        if case.event in OTHERS and _got(fetch):
            return reader
    took = "; the fetch that waited got it" if _got(fetch) else ""
    raise Violation(WAITING, f"a record came to nobody in {_PROMPT:g} s{took}")


def _got(fetch: asyncio.Task[object]) -> bool:
    ended = fetch.done() and not fetch.cancelled() and fetch.exception() is None
    return ended and bool(getattr(fetch.result(), "offsets", ()))
