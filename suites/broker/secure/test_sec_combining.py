"""How permissions combine: what one is good for, what denials undo, how far patterns reach."""

from fixtures.clients.acls import EVERY, Operation, Resource
from suites.broker.kit import *
from suites.broker.secure.matrix import NO_GROUP, ROWS, Seen, expected_results, scene, walk
from suites.broker.secure.realm import Realm

GROUP, TOPIC = Resource.GROUP, Resource.TOPIC
ALL = Operation.ALL
ON_GROUPS = ("ALL", "READ", "DESCRIBE", "DELETE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
ON_TOPICS = ("ALL", "READ", "DESCRIBE", "WRITE")
DENIED: dict[str, Seen] = {row.api: (row.refusal,) for row in ROWS}


@check("SEC-24")
@pytest.mark.parametrize("name", ON_GROUPS)
async def test_one_permission_on_a_group(realm: Realm, judge: Judge, name: str) -> None:
    user, granted = await realm.user(), Operation[name]
    place = await scene(realm.env, user)
    await user.allow(ALL, TOPIC, *(topic.name for topic in place.topics))
    await user.allow(granted, GROUP, place.group)

    expected = expected_results(granted, [ALL] * len(place.topics))
    judge.equal(expected, await walk(place), f"what {name} on a group is good for")


@check("SEC-24")
@pytest.mark.parametrize("name", ON_TOPICS)
async def test_one_permission_on_topics(realm: Realm, judge: Judge, name: str) -> None:
    user, granted = await realm.user(), Operation[name]
    place = await scene(realm.env, user)
    await user.allow(ALL, GROUP, place.group)
    await user.allow(ALL, TOPIC, place.topics[0].name)
    await user.allow(granted, TOPIC, place.topics[1].name)

    expected = expected_results(ALL, [ALL, granted])
    judge.equal(expected, await walk(place), f"what {name} on a topic is good for")


@check("SEC-25", timeout=120)
async def test_denial_of_a_topic(realm: Realm, judge: Judge) -> None:
    user, prefix = await realm.user(), realm.env.cluster.fresh_name("d")
    place = await scene(realm.env, user, names=(f"{prefix}-a", f"{prefix}-b"))
    without = await scene(realm.env, user, allowed=1)
    await user.grant(
        user.entry(ALL, GROUP, place.group),
        user.entry(ALL, TOPIC, prefix, prefixed=True),
        user.entry(ALL, TOPIC, place.topics[1].name),
        user.entry(ALL, TOPIC, place.topics[1].name, deny=True),
    )

    judge.equal(await walk(without), await walk(place), "with the second topic denied")


@check("SEC-25")
async def test_denial_of_a_group(realm: Realm, judge: Judge) -> None:
    user = await realm.user()
    place = await scene(realm.env, user)
    await user.allow(ALL, TOPIC, EVERY)
    await user.grant(
        user.entry(ALL, GROUP, EVERY),
        user.entry(ALL, GROUP, place.group),
        user.entry(ALL, GROUP, place.group[:-1], prefixed=True, deny=True),
    )

    judge.equal(DENIED, await walk(place), "with the group denied")


@check("SEC-26")
async def test_prefixes(realm: Realm, judge: Judge) -> None:
    user, head = await realm.user(), realm.env.cluster.fresh_name("p")
    inside = await scene(realm.env, user, names=(f"{head}-a", f"{head}-b"), group=f"{head}-g")
    half = await scene(realm.env, user, names=(f"{head}-c", ""), group=f"{head}-h")
    outside = await scene(realm.env, user, group=f"x{head}")
    by_name = [await scene(realm.env, user, allowed=topics) for topics in (2, 1)]
    for resource in (GROUP, TOPIC):
        await user.grant(user.entry(ALL, resource, head, prefixed=True))

    judge.equal(await walk(by_name[0]), await walk(inside), "inside the prefix")
    judge.equal(await walk(by_name[1]), await walk(half), "with a topic outside it")
    judge.equal(DENIED, await walk(outside), "with the group outside it")


@check("SEC-26")
async def test_wildcards(realm: Realm, judge: Judge) -> None:
    user, other = await realm.users(2)
    place, by_name = await scene(realm.env, user), await scene(realm.env, other, allowed=2)
    for resource in (GROUP, TOPIC):
        await user.allow(ALL, resource, EVERY)
    # An asterisk stands for all names only alone: a prefix with one is a prefix like any other.
    await other.grant(other.entry(ALL, GROUP, f"{place.group[:3]}*"))

    response = await other.call("ShareGroupDescribe", group_ids=[place.group])
    error = error_name(response.groups[0].error_code)
    judge.equal(NO_GROUP, error, "with an entry about a name that ends in an asterisk")
    judge.equal(await walk(by_name), await walk(place), "with wildcards")
