"""Who may join a share group, look at it, and find it in a list."""

from fixtures.clients.acls import THE_CLUSTER, Operation, Resource
from fixtures.clients.admin import Admin
from suites.broker.kit import *
from suites.broker.secure.matrix import NO_GROUP, NO_TOPIC
from suites.broker.secure.realm import Realm, User

GROUP, TOPIC = Resource.GROUP, Resource.TOPIC


async def _join(user: User, group: str, *topics: str) -> str:
    member_id = user.realm.env.member_id()
    fields = fields_of("ShareGroupHeartbeat", group, *topics, member_id=member_id)
    return error_name((await user.call("ShareGroupHeartbeat", **fields)).error_code)


async def _members(env: Env, group: str) -> set[str]:
    described = await Admin(env.cluster).describe_group(group)
    if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return set()
    return {member.member_id for member in described.members}


@check("SEC-01")
async def test_joining_needs_read_on_the_group(realm: Realm, judge: Judge) -> None:
    (queue,), user = await realm.queues(1), await realm.user()
    await user.allow(Operation.ALL, TOPIC, queue.topic.name)
    for granted in (None, Operation.DESCRIBE, Operation.DELETE):
        if granted is not None:
            await user.allow(granted, GROUP, queue.group)
        error = await _join(user, queue.group, queue.topic.name)
        judge.equal(NO_GROUP, error, f"joining with {granted and granted.name}")
    judge.equal(set(), await _members(realm.env, queue.group), "members after refused heartbeats")

    host = await realm.env.member(queue.group, queue.topic)
    operations = (Operation.DESCRIBE, Operation.DELETE)
    await user.revoke(*(user.entry(operation, GROUP, queue.group) for operation in operations))
    error = await _join(user, queue.group, queue.topic.name)
    judge.equal(NO_GROUP, error, "joining a living group")
    for epoch, what in ((host.epoch, "a heartbeat"), (-1, "the last heartbeat")):
        in_its_name = {"member_id": host.member_id, "member_epoch": epoch}
        response = await user.call("ShareGroupHeartbeat", group_id=queue.group, **in_its_name)
        judge.equal(NO_GROUP, error_name(response.error_code), f"{what} in the name of a member")
    found = await _members(realm.env, queue.group)
    judge.equal({host.member_id}, found, "members of a living group")


@check("SEC-02")
async def test_joining_needs_describe_on_every_topic(realm: Realm, judge: Judge) -> None:
    (one, other), user = await realm.queues(2), await realm.user()
    await user.allow(Operation.READ, GROUP, one.group)
    await user.allow(Operation.DESCRIBE, TOPIC, one.topic.name)
    names = [one.topic.name, other.topic.name]
    for subscription in (names, names[::-1], names[1:]):
        error = await _join(user, one.group, *subscription)
        judge.equal(NO_TOPIC, error, f"joining with {len(subscription)} topics")
    judge.equal(set(), await _members(realm.env, one.group), "members after refused heartbeats")

    member = {"group_id": one.group, "member_id": realm.env.member_id()}
    named = {"member_epoch": 0, "subscribed_topic_names": names[:1]}
    joined = await user.call("ShareGroupHeartbeat", **member, **named)
    judge.equal("NONE", error_name(joined.error_code), "joining with the permitted topic alone")
    named = {"member_epoch": joined.member_epoch, "subscribed_topic_names": names}
    error = error_name((await user.call("ShareGroupHeartbeat", **member, **named)).error_code)
    judge.equal(NO_TOPIC, error, "adding a forbidden topic by a later heartbeat")


async def _described(user: User, *groups: str) -> dict[str, Any]:
    response = await user.call("ShareGroupDescribe", group_ids=list(groups))
    return {group["group_id"]: group for group in response.to_dict()["groups"]}


@check("SEC-03")
async def test_describing_needs_describe_on_the_group(realm: Realm, judge: Judge) -> None:
    queues, user = await realm.queues(2), await realm.user()
    hosts = [await realm.env.member(queue.group, queue.topic) for queue in queues]
    seen, unseen = (queue.group for queue in queues)
    await user.allow(Operation.DESCRIBE, TOPIC, *(queue.topic.name for queue in queues))
    await user.allow(Operation.DESCRIBE, GROUP, seen)

    found = await _described(user, unseen, seen)
    judge.equal(NO_GROUP, error_name(found[unseen]["error_code"]), "the forbidden group")
    judge.equal([], found[unseen]["members"], "members of the forbidden group")
    judge.equal("NONE", error_name(found[seen]["error_code"]), "the permitted group")
    members = [member["member_id"] for member in found[seen]["members"]]
    judge.equal([hosts[0].member_id], members, "members of the permitted group")


@check("SEC-04")
async def test_describing_hides_forbidden_topics(realm: Realm, judge: Judge) -> None:
    (one, other), user = await realm.queues(2), await realm.user()
    topics = (one.topic, other.topic, one.topic)
    hosts = {(await realm.env.member(one.group, topic)).member_id for topic in topics}
    await realm.env.member(other.group, one.topic)
    await user.allow(Operation.DESCRIBE, GROUP, one.group, other.group)
    await user.allow(Operation.DESCRIBE, TOPIC, one.topic.name)

    found = (both := await _described(user, one.group, other.group))[one.group]
    judge.equal(NO_TOPIC, error_name(found["error_code"]), "a group with a hidden topic")
    judge.equal("NONE", error_name(both[other.group]["error_code"]), "the group beside it")
    judge.equal([], found["members"], "members of a group with a hidden topic")
    for secret in (other.topic.name, str(other.topic.id)):
        judge.holds(secret not in str(found), f"the response shows {secret}: {found}")

    await user.allow(Operation.DESCRIBE, TOPIC, other.topic.name)
    found = (await _described(user, one.group))[one.group]
    members = {member["member_id"] for member in found["members"]}
    judge.equal(hosts, members, "members once both topics may be seen")


async def _listed(user: User, among: set[str]) -> set[str]:
    response = await user.call("ListGroups", states_filter=[], types_filter=["share"])
    return among & {group.group_id for group in response.groups}


@check("SEC-06")
async def test_listing_shows_what_may_be_described(realm: Realm, judge: Judge) -> None:
    everybody, somebody, nobody = await realm.users(3)
    queues = await realm.queues(2)
    groups = {queue.group for queue in queues}
    for queue in queues:
        await realm.env.member(queue.group, queue.topic)
    await everybody.allow(Operation.DESCRIBE, Resource.CLUSTER, THE_CLUSTER)
    await somebody.allow(Operation.DESCRIBE, GROUP, queues[0].group)

    # The list is made from what has been written to the log.
    seen = await poll(lambda: _listed(everybody, groups), lambda seen: seen == groups)
    judge.equal(groups, seen, "groups listed with DESCRIBE on the cluster")
    seen = await _listed(somebody, groups)
    judge.equal({queues[0].group}, seen, "groups listed with DESCRIBE on one")
    judge.equal(set(), await _listed(nobody, groups), "groups listed without any permission")
