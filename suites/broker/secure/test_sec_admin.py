"""Who may look at a share group's offsets, change them, and delete them or the group."""

from fixtures.clients.acls import Operation, Resource
from suites.broker.kit import *
from suites.broker.secure.matrix import INTERVAL, NO_GROUP, NO_TOPIC
from suites.broker.secure.realm import Realm, User

GROUP, TOPIC = Resource.GROUP, Resource.TOPIC
DESCRIBE, MAY_READ, MAY_DELETE = Operation.DESCRIBE, Operation.READ, Operation.DELETE

USED = 7  # The start offset that use leaves behind.
ALTERED = 3


async def _used(realm: Realm, topics: int = 1) -> list[Queue]:
    """Return queues whose topics the first one's group has used; the group is empty again."""
    queues = await realm.queues(topics)
    for queue in queues:
        await use(queues[0], queue.topic)
    return queues


async def _start(env: Env, group: str, topic: Topic, expected: int) -> int:
    """Return the start offset of a topic: ``expected``, or what it still is in the end."""
    return await Queue(env=env, topic=topic, group=group).spso(expected)


async def _call(user: User, api: str, group: str, *topics: Topic) -> Struct:
    names = [topic.name for topic in topics]
    return await user.call(api, **fields_of(api, group, *names, start=ALTERED))


async def _offsets(user: User, group: str, *topics: Topic) -> Struct:
    found: Struct = (await _call(user, "DescribeShareGroupOffsets", group, *topics)).groups[0]
    return found


def _starts(group: Struct) -> dict[str, tuple[str, int]]:
    return {
        topic.topic_name: (error_name(part.error_code), part.start_offset)
        for topic in group.topics
        for part in topic.partitions
    }


@check("SEC-15")
async def test_looking_at_offsets_needs_describe_on_the_group(realm: Realm, judge: Judge) -> None:
    (seen,), (unseen,), user = await _used(realm), await _used(realm), await realm.user()
    await user.allow(DESCRIBE, TOPIC, seen.topic.name, unseen.topic.name)
    await user.allow(DESCRIBE, GROUP, seen.group)

    groups = [
        {"group_id": q.group, "topics": [{"topic_name": q.topic.name, "partitions": [0]}]}
        for q in (unseen, seen)
    ]
    response = await user.call("DescribeShareGroupOffsets", groups=groups)
    found = {group.group_id: group for group in response.groups}
    refused, served = found[unseen.group], found[seen.group]
    judge.equal(NO_GROUP, error_name(refused.error_code), "the forbidden group")
    shown = [name for name, (_, start) in _starts(refused).items() if start == USED]
    judge.equal([], shown, "topics of the forbidden group with its start offset")
    judge.equal("NONE", error_name(served.error_code), "the permitted group")
    expected = {seen.topic.name: ("NONE", USED)}
    judge.equal(expected, _starts(served), "offsets of the permitted group")


@check("SEC-16")
async def test_offsets_of_forbidden_topics_are_not_shown(realm: Realm, judge: Judge) -> None:
    (seen, unseen), user = await _used(realm, 2), await realm.user()
    await user.allow(DESCRIBE, GROUP, seen.group)
    await user.allow(DESCRIBE, TOPIC, seen.topic.name)

    found = await _offsets(user, seen.group, unseen.topic, seen.topic)
    judge.equal("NONE", error_name(found.error_code), "the group, asked by name")
    errors = {name: error for name, (error, _) in _starts(found).items()}
    judge.equal({seen.topic.name: "NONE", unseen.topic.name: NO_TOPIC}, errors, "results by name")
    shown = _starts(found)[unseen.topic.name][1]
    judge.holds(shown != USED, f"the start offset {shown} of a forbidden topic is shown")

    found = await _offsets(user, seen.group)
    judge.equal("NONE", error_name(found.error_code), "the group, asked for all topics")
    judge.equal({seen.topic.name: ("NONE", USED)}, _starts(found), "results for all topics")
    told = str(found.to_dict())
    for secret in (unseen.topic.name, str(unseen.topic.id)):
        judge.holds(secret not in told, f"the response for all topics shows {secret}")


@check("SEC-17")
async def test_altering_offsets_needs_read(realm: Realm, judge: Judge) -> None:
    (one, two), user = await _used(realm, 2), await realm.user()
    group = one.group
    await user.allow(MAY_READ, TOPIC, one.topic.name)
    await user.allow(DESCRIBE, TOPIC, two.topic.name)
    await user.allow(MAY_DELETE, GROUP, group)
    response = await _call(user, "AlterShareGroupOffsets", group, one.topic, two.topic)
    judge.equal(NO_GROUP, error_name(response.error_code), "altering without READ on the group")
    start = await _start(realm.env, group, one.topic, USED)
    judge.equal(USED, start, "start offset after a refused request")

    await user.allow(MAY_READ, GROUP, group)
    response = await _call(user, "AlterShareGroupOffsets", group, two.topic, one.topic)
    judge.equal("NONE", error_name(response.error_code), "the request as a whole")
    expected = {one.topic.name: "NONE", two.topic.name: NO_TOPIC}
    altered = {
        topic.topic_name: error_name(part.error_code)
        for topic in response.responses
        for part in topic.partitions
    }
    judge.equal(expected, altered, "results by topic")
    begin = [await _start(realm.env, group, q.topic, n) for q, n in ((one, ALTERED), (two, USED))]
    judge.equal([ALTERED, USED], begin, "start offsets of the permitted and the forbidden topic")


@check("SEC-18")
async def test_deleting_offsets_needs_delete_on_the_group(realm: Realm, judge: Judge) -> None:
    ((queue,), (reader, deleter)) = await _used(realm), await realm.users(2)
    for user, operation in ((reader, MAY_READ), (deleter, MAY_DELETE)):
        await user.allow(MAY_READ, TOPIC, queue.topic.name)
        await user.allow(operation, GROUP, queue.group)

    response = await _call(reader, "DeleteShareGroupOffsets", queue.group, queue.topic)
    judge.equal(NO_GROUP, error_name(response.error_code), "deleting with READ")
    start = await _start(realm.env, queue.group, queue.topic, USED)
    judge.equal(USED, start, "start offset after the refusal")
    response = await _call(deleter, "DeleteShareGroupOffsets", queue.group, queue.topic)
    judge.equal("NONE", error_name(response.error_code), "deleting with DELETE")
    start = await _start(realm.env, queue.group, queue.topic, -1)
    judge.equal(-1, start, "start offset after deleting")


@check("SEC-19")
async def test_deleting_offsets_needs_read_on_each_topic(realm: Realm, judge: Judge) -> None:
    (one, *others), user = await _used(realm, 3), await realm.user()
    await user.allow(MAY_DELETE, GROUP, one.group)
    await user.allow(MAY_READ, TOPIC, one.topic.name)
    seen, unseen = [other.topic for other in others]
    await user.allow(DESCRIBE, TOPIC, seen.name)

    for topics in ((seen, unseen), (seen, one.topic, unseen)):
        response = await _call(user, "DeleteShareGroupOffsets", one.group, *topics)
        judge.equal("NONE", error_name(response.error_code), "the request as a whole")
        found = {topic.topic_name: error_name(topic.error_code) for topic in response.responses}
        expected = {t.name: "NONE" if t == one.topic else NO_TOPIC for t in topics}
        judge.equal(expected, found, "results by topic")
    wanted = {one.topic: -1, seen: USED, unseen: USED}
    starts = [await _start(realm.env, one.group, *each) for each in wanted.items()]
    judge.equal([*wanted.values()], starts, "start offsets of the three topics")


@check("SEC-20")
async def test_deleting_a_group_needs_delete(realm: Realm, judge: Judge) -> None:
    ((queue,), (reader, deleter)) = await _used(realm), await realm.users(2)
    await reader.allow(MAY_READ, GROUP, queue.group)
    await reader.allow(Operation.ALL, TOPIC, queue.topic.name)
    await deleter.allow(MAY_DELETE, GROUP, queue.group)

    response = await reader.call("DeleteGroups", groups_names=[queue.group])
    judge.equal(NO_GROUP, error_name(response.results[0].error_code), "deleting a group with READ")
    found = await realm.env.admin.describe_group(queue.group)
    judge.equal("NONE", error_name(found.error_code), "the group after the refusal")
    start = await _start(realm.env, queue.group, queue.topic, USED)
    judge.equal(USED, start, "start offset after the refusal")
    response = await deleter.call("DeleteGroups", groups_names=[queue.group])
    judge.equal("NONE", error_name(response.results[0].error_code), "deleting a group with DELETE")
    found = await realm.env.admin.describe_group(queue.group)
    judge.holds(is_gone(found), f"the group is {found.group_state} after its deletion")


async def _show_config(user: User, group: str) -> tuple[str, Any]:
    asked = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configuration_keys": None}
    result = (await user.call("DescribeConfigs", resources=[asked])).results[0]
    values = {config.name: config.value for config in result.configs}
    return error_name(result.error_code), values.get(INTERVAL)


async def _set_config(user: User, group: str, value: str) -> str:
    entry = {"name": INTERVAL, "config_operation": 0, "value": value}
    asked = {"resource_type": GROUP_RESOURCE, "resource_name": group, "configs": [entry]}
    response = await user.call("IncrementalAlterConfigs", resources=[asked])
    return error_name(response.responses[0].error_code)


@check("SEC-21")
async def test_group_configuration_has_permissions_of_its_own(realm: Realm, judge: Judge) -> None:
    group = realm.env.cluster.fresh_name("g")
    await realm.env.admin.group_config(group, {INTERVAL: "700"})
    reader, seer, setter = await realm.users(3)
    await reader.allow(MAY_READ, GROUP, group)
    await reader.allow(MAY_DELETE, GROUP, group)
    await seer.allow(Operation.DESCRIBE_CONFIGS, GROUP, group)
    await setter.allow(Operation.ALTER_CONFIGS, GROUP, group)

    judge.equal((NO_GROUP, None), await _show_config(reader, group), "looking with READ and DELETE")
    judge.equal(("NONE", "700"), await _show_config(seer, group), "looking")
    for user, rights in ((reader, "READ and DELETE"), (seer, "DESCRIBE_CONFIGS")):
        judge.equal(NO_GROUP, await _set_config(user, group, "800"), f"setting with {rights}")
    judge.equal(("NONE", "700"), await _show_config(seer, group), "the value after refusals")
    judge.equal("NONE", await _set_config(setter, group, "900"), "setting with ALTER_CONFIGS")
    seen = await poll(lambda: _show_config(seer, group), lambda seen: seen[1] == "900")
    judge.equal(("NONE", "900"), seen, "the value that was set")
