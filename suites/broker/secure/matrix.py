"""Which share API needs which permission, as a table, and a walk through all of it by one user.

A row says what a request needs on the group and on each topic, sends it, and says what came back
for the whole and for each topic. The same walk is judged in three ways: what a single permission is
good for, what denies and patterns do, and whether every listener says the same. What else a refused
request must not do is judged request by request in the checks beside this file.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from fixtures.clients.acls import Operation, Resource
from fixtures.clients.admin import GROUP_RESOURCE
from fixtures.clients.cluster import Topic
from fixtures.clients.member import Member, Session, accept
from fixtures.wire.codec import Struct
from fixtures.wire.errors import ErrorCode, error_name
from suites.broker.env import Env
from suites.broker.groups import codes_in, fields_of
from suites.broker.secure.realm import User

INTERVAL = "share.heartbeat.interval.ms"
LET_IN = "let in"
NOT_SHOWN = "not shown"
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED.name
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED.name

Seen = tuple[str, ...]
"""The outcome for the whole request, or one for each topic where topics are judged singly."""

# Having the right to change something includes the right to look at it.
IMPLIED: dict[Operation, frozenset[Operation]] = {
    Operation.ALL: frozenset(Operation),
    Operation.READ: frozenset({Operation.READ, Operation.DESCRIBE}),
    Operation.WRITE: frozenset({Operation.WRITE, Operation.DESCRIBE}),
    Operation.DELETE: frozenset({Operation.DELETE, Operation.DESCRIBE}),
    Operation.ALTER: frozenset({Operation.ALTER, Operation.DESCRIBE}),
    Operation.ALTER_CONFIGS: frozenset({Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS}),
}


def permitted(granted: Operation | None, needed: Operation | None) -> bool:
    if needed is None:
        return True
    return granted is not None and needed in IMPLIED.get(granted, frozenset({granted}))


@dataclass(slots=True, kw_only=True)
class Permissions:
    """A group that uses some topics, with one record in each, and a user who comes to it."""

    env: Env
    group: str
    topics: tuple[Topic, ...]
    host: Member
    user: User
    session: Session

    async def ask(self, api: str, **fields: object) -> Struct:
        """Send a good request by the user."""
        if not fields:
            names = [topic.name for topic in self.topics]
            fields = fields_of(api, self.group, *names, member_id=self.session.member_id)
        return await self.user.call(api, **fields)


@dataclass(frozen=True, slots=True)
class Row:
    """One API: what it needs on the group and on each topic, and how it is asked.

    ``topic`` is None where topics do not matter, ``whole`` says that one forbidden topic fails the
    whole request, and ``refusal`` is how a forbidden group shows.
    """

    api: str
    group: Operation
    topic: Operation | None
    ask: Callable[[Permissions], Awaitable[Seen]]
    whole: bool = False
    refusal: str = NO_GROUP

    def expected(self, group: bool, topics: Collection[bool]) -> Seen:
        if not group:
            return (self.refusal,)
        if self.topic is None or (self.whole and all(topics)):
            return (LET_IN,)
        if self.whole:
            return (NO_TOPIC,)
        return tuple(LET_IN if allowed else NO_TOPIC for allowed in topics)


def shown(code: int) -> str:
    refused = code in {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
    return error_name(code) if refused else LET_IN


def _by_topic(scene: Permissions, code: int, errors: dict[object, int]) -> Seen:
    """Return what was seen: of the whole if that was refused, else of each topic by id or name."""
    if shown(code) != LET_IN:
        return (shown(code),)
    found = (errors.get(topic.id, errors.get(topic.name)) for topic in scene.topics)
    return tuple(shown(each or 0) for each in found)


def _whole(api: str, **config: object) -> Callable[[Permissions], Awaitable[Seen]]:
    """Return how an API is asked, about a group or its ``config``, that answers for the whole."""

    async def ask(scene: Permissions) -> Seen:
        resource = {"resource_type": GROUP_RESOURCE, "resource_name": scene.group} | config
        response = await scene.ask(api, **({"resources": [resource]} if config else {}))
        return (shown(next(codes_in(response))),)

    return ask


async def _fetch(scene: Permissions) -> Seen:
    response = await scene.session.fetch(*((topic, 0) for topic in scene.topics), max_wait_ms=0)
    return _by_topic(scene, response.error, {part.topic_id: part.error for part in response.parts})


async def _acknowledge(scene: Permissions) -> Seen:
    acks = {(topic, 0): (accept(0),) for topic in scene.topics}
    response = await scene.session.acknowledge(acks, epoch=1)
    return _by_topic(scene, response.error, {part.topic_id: part.error for part in response.parts})


async def _list(scene: Permissions) -> Seen:
    response = await scene.ask("ListGroups")
    listed = scene.group in {group.group_id for group in response.groups}
    return (LET_IN if listed else NOT_SHOWN,)


async def _describe_offsets(scene: Permissions) -> Seen:
    group = (await scene.ask("DescribeShareGroupOffsets")).groups[0]
    errors = {topic.topic_name: topic.partitions[0].error_code for topic in group.topics}
    return _by_topic(scene, group.error_code, errors)


async def _alter_offsets(scene: Permissions) -> Seen:
    # It needs an empty group: every member leaves, the user's own included.
    for member_id in (scene.host.member_id, scene.session.member_id):
        leaving = {"group_id": scene.group, "member_id": member_id, "member_epoch": -1}
        await scene.env.cluster.at_coordinator(scene.group, "ShareGroupHeartbeat", **leaving)
    response = await scene.ask("AlterShareGroupOffsets")
    errors = {t.topic_name: t.partitions[0].error_code for t in response.responses if t.partitions}
    return _by_topic(scene, response.error_code, errors)


async def _delete_offsets(scene: Permissions) -> Seen:
    response = await scene.ask("DeleteShareGroupOffsets")
    errors = {topic.topic_name: topic.error_code for topic in response.responses}
    return _by_topic(scene, response.error_code, errors)


READ, DELETE = Operation.READ, Operation.DELETE
DESCRIBE, CONFIGS = Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS
_SHOWN = _whole("DescribeConfigs", configuration_keys=None)
_ENTRY = {"name": INTERVAL, "config_operation": 0, "value": "600"}
_ALTERED = _whole("IncrementalAlterConfigs", configs=[_ENTRY])

# The order is that of a life: what needs members first, what needs an empty group last.
ROWS = (
    Row(
        "ShareGroupHeartbeat",
        group=READ,
        topic=DESCRIBE,
        ask=_whole("ShareGroupHeartbeat"),
        whole=True,
    ),
    Row("ShareFetch", group=READ, topic=READ, ask=_fetch),
    Row("ShareAcknowledge", group=READ, topic=READ, ask=_acknowledge),
    Row(
        "ShareGroupDescribe",
        group=DESCRIBE,
        topic=DESCRIBE,
        ask=_whole("ShareGroupDescribe"),
        whole=True,
    ),
    Row("ListGroups", group=DESCRIBE, topic=None, ask=_list, refusal=NOT_SHOWN),
    Row("DescribeShareGroupOffsets", group=DESCRIBE, topic=DESCRIBE, ask=_describe_offsets),
    Row("DescribeConfigs", group=CONFIGS, topic=None, ask=_SHOWN),
    Row("IncrementalAlterConfigs", group=Operation.ALTER_CONFIGS, topic=None, ask=_ALTERED),
    Row("AlterShareGroupOffsets", group=READ, topic=READ, ask=_alter_offsets),
    Row("DeleteShareGroupOffsets", group=DELETE, topic=READ, ask=_delete_offsets),
    Row("DeleteGroups", group=DELETE, topic=None, ask=_whole("DeleteGroups")),
)


async def scene(
    env: Env, user: User, *, names: Collection[str] = ("", ""), group: str = "", allowed: int = 0
) -> Permissions:
    """Return a group with a member, and topics with a record; the user may use ``allowed`` ones."""
    admin, cluster = env.admin, env.cluster
    made = (admin.create_topic(name=name or None) for name in names)
    topics = tuple(await asyncio.gather(*made))
    group = group or cluster.fresh_name("g")
    user.realm.look_at(group)
    await admin.group_config(group, {"share.auto.offset.reset": "earliest"})
    host = Member(cluster, group, env.member_id())
    await host.join(*topics)
    await asyncio.gather(*(admin.produce(topic, 1) for topic in topics))
    if allowed:
        await user.allow(Operation.ALL, Resource.GROUP, group)
        await user.allow(Operation.ALL, Resource.TOPIC, *(t.name for t in topics[:allowed]))
    return Permissions(
        env=env,
        group=group,
        topics=topics,
        host=host,
        user=user,
        session=await user.session(group),
    )


async def walk(scene: Permissions, rows: Collection[Row] = ROWS) -> dict[str, Seen]:
    return {row.api: await row.ask(scene) for row in rows}


def expected_results(
    group: Operation | None, topics: Collection[Operation | None]
) -> dict[str, Seen]:
    """Return what a walk has to see, given what the user has on the group and on each topic."""
    return {
        row.api: row.expected(
            permitted(group, row.group), [permitted(each, row.topic) for each in topics]
        )
        for row in ROWS
    }
