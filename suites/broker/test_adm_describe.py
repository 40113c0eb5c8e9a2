"""Describing share groups: what is shown of a group and its members, and of which groups."""

from fixtures.wire.connection import Connection
from suites.broker.groups import neighbours as neighbouring
from suites.broker.kit import *

NOT_ASKED = -(2**31)
MAY_READ, MAY_DESCRIBE = 1 << 3, 1 << 8  # Bits of AuthorizedOperations (KIP-430).


class Guest(Member):
    """A member that says everything over a connection of its own, under a client id of its own."""

    connection: Connection

    async def _send(self, body: dict[str, Any]) -> Struct:
        return await self.connection.call("ShareGroupHeartbeat", **body)


async def _guest(env: Env, group: str, client_id: str, rack: str, *topics: Topic) -> Guest:
    guest = Guest(env.cluster, group, env.member_id())
    guest.connection = await env.cluster.dial(await env.cluster.coordinator(group), client_id)
    names = [topic.name for topic in topics]
    await good_beat(guest, member_epoch=0, subscribed_topic_names=names, rack_id=rack)
    return guest


def _said(guest: Guest, rack: str, *topics: Topic) -> dict[str, object]:
    """Return what a member's description has to be, by what it sent and was answered."""
    return {
        "epoch": guest.epoch,
        "client id": guest.connection.client_id,
        "rack": rack,
        "topics": sorted(topic.name for topic in topics),
        "assigned": sorted((str(topic), index) for topic, index in guest.assigned),
    }


def _seen(member: Struct) -> dict[str, object]:
    assigned = [
        (str(t.topic_id), i) for t in member.assignment.topic_partitions for i in t.partitions
    ]
    return {
        "epoch": member.member_epoch,
        "client id": member.client_id,
        "rack": member.rack_id,
        "topics": sorted(member.subscribed_topic_names),
        "assigned": sorted(assigned),
    }


@check("ADM-01", fast=True)
async def test_everything_about_a_group(env: Env, judge: Judge) -> None:
    queue, other = await env.queue(partitions=3), await env.admin.create_topic(2)
    both = (queue.topic, other)
    one = await _guest(env, queue.group, "first-client", "rack-a", *both)
    two = await _guest(env, queue.group, "second-client", "rack-b", other)
    try:
        await beating([one, two], lambda: (one.assigned | two.assigned) >= every(*both))
        expected = actual = {}
        async for _ in attempts():
            await good_beat(one)
            await good_beat(two)
            found = (await described(env, [queue.group]))[queue.group]
            expected = {
                one.member_id: _said(one, "rack-a", *both),
                two.member_id: _said(two, "rack-b", other),
            }
            actual = {member.member_id: _seen(member) for member in found.members}
            epochs = {found.group_epoch, found.assignment_epoch, one.epoch, two.epoch}
            if expected == actual and len(epochs) == 1:
                break
        judge.equal(expected, actual, "members")
        judge.equal("Stable", found.group_state, "state of the group")
        of_group = (found.group_epoch, found.assignment_epoch)
        judge.equal((one.epoch, one.epoch), of_group, "group and assignment epoch")
        judge.holds(found.assignor_name, "the description names no assignor")
        hosts = [member.client_host for member in found.members]
        judge.holds(all(hosts), f"the hosts of the members are {hosts}")
    finally:
        for guest in (one, two):
            await guest.leave()


async def _three(env: Env) -> tuple[str, str, str, Topic]:
    """Return groups of one coordinator, with a member, without, and not there; and their topic."""
    live, empty, unknown = await neighbouring(env, 3)
    topic = await env.admin.create_topic(2)
    await env.member(live, topic)
    await (await env.member(empty, topic)).leave()
    return live, empty, unknown, topic


@check("ADM-02", "ADM-04", fast=True)
async def test_each_group_has_its_own_entry(env: Env, judge: Judge) -> None:
    live, empty, unknown, _ = await _three(env)
    rest = ["", live, empty]
    env.rng.shuffle(rest)

    found = await described(env, [unknown, *rest])  # the first has to name the coordinator

    entries = {g: (error_name(one.error_code), bool(one.members)) for g, one in found.items()}
    good = {live: (NONE, True), empty: (NONE, False)}
    judge["ADM-04"].equal(good, {g: entries.get(g) for g in good}, "groups that exist")
    judge["ADM-04"].equal({unknown, *rest}, set(entries), "groups that are answered")
    judge["ADM-02"].equal(NO_GROUP, entries[unknown][0], "error of the unknown group")


@check("ADM-04", fast=True)
async def test_offsets_of_each_group(env: Env, judge: Judge) -> None:
    live, empty, unknown, topic = await _three(env)
    wanted = {live: {topic.name: [1]}, unknown: None, empty: {topic.name: [0, 1]}}

    found = await described_offsets(env, wanted)

    zero, one = ((topic.name, index) for index in (0, 1))
    good = {live: (0, {one}), empty: (0, {zero, one})}
    seen = {g: (found[g].error_code, set(starts(found[g]))) for g in good if g in found}
    judge.equal(good, seen, "errors and partitions of the groups that exist")
    judge.equal(set(wanted), set(found), "groups that are answered")


@check("ADM-12", fast=True)
@pytest.mark.parametrize("wanted", ["named", "all"])
async def test_offsets_of_no_group(env: Env, judge: Judge, wanted: str) -> None:
    topic, group = await env.admin.create_topic(), env.cluster.fresh_name("g")
    topics = {topic.name: [0]} if wanted == "named" else None

    error = error_name((await described_offsets(env, {group: topics}))[group].error_code)
    judge.equal(NO_GROUP, error, f"error of the unknown group, {wanted} partitions")


DESCRIBERS = {
    "share": "ShareGroupDescribe",
    "consumer": "ConsumerGroupDescribe",
    "classic": "DescribeGroups",
}


@check("ADM-03", fast=True)
async def test_kinds_are_described_apart(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    names = {by: env.cluster.fresh_name("g") for by in DESCRIBERS}
    await env.member(names["share"], queue.topic)
    insider = await consumer_group(env, queue, names["consumer"])
    await classic_group(env, queue, names["classic"])

    # Error and number of members that each kind's own API shows of a group of any kind.
    seen: dict[tuple[str, str], tuple[str, int]] = {}
    for kind, group in names.items():
        for by, api in DESCRIBERS.items():
            asked = {"groups" if by == "classic" else "group_ids": [group]}
            found = (await ask_coordinator(env, group, api, **asked)).groups[0]
            seen[kind, by] = (error_name(found.error_code), len(found.members))
    await consumer_beat(env, names["consumer"], insider, queue.topic.name, -1)

    own = {kind: seen[kind, kind] for kind in names}
    alive = {"share": ("NONE", 1), "consumer": ("NONE", 1), "classic": ("NONE", 0)}
    judge.equal(alive, own, "error and members by the API of the kind")
    for kind, by in (("consumer", "share"), ("classic", "share"), ("share", "consumer")):
        error, members = seen[kind, by]
        refused = error not in ("NONE", "UNKNOWN_SERVER_ERROR") and not members
        judge.holds(refused, f"{DESCRIBERS[by]} of a {kind} group: {error}, {members} members")


@check("ADM-05", fast=True)
async def test_authorized_operations(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    await env.member(queue.group, queue.topic)

    silent = (await described(env, [queue.group]))[queue.group]
    fields = {"include_authorized_operations": True}
    telling = (await described(env, [queue.group], **fields))[queue.group]

    judge.equal(NOT_ASKED, silent.authorized_operations, "operations not asked for")
    told = telling.authorized_operations
    # This very check has read and described the group, so that it must be allowed to.
    may = told != NOT_ASKED and told & MAY_READ and told & MAY_DESCRIBE
    judge.holds(may, f"asked for, the operations are {told:#x}")


def _fields(kind: str, group: str, topic: Topic) -> tuple[str, dict[str, Any]]:
    api, _, of = kind.partition(" of ")
    return api, fields_of(api, group, *([] if of == "all" else [topic.name]))


def _error(response: Struct) -> str:
    for field in ("groups", "results"):
        if getattr(response, field, None):
            return error_name(getattr(response, field)[0].error_code)
    return error_name(getattr(response, "error_code", 0))


REQUESTS = (
    "ShareGroupDescribe",
    "DescribeShareGroupOffsets of all",
    "DescribeShareGroupOffsets of named",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
    "DeleteGroups",
)


@check("ADM-08", crossed=AMONG)
@pytest.mark.parametrize("request_kind", REQUESTS)
async def test_only_the_coordinator_answers(env: Env, judge: Judge, request_kind: str) -> None:
    queue, member = await env.with_member(1)
    await member.leave()
    api, fields = _fields(request_kind, queue.group, queue.topic)
    coordinator = await env.cluster.coordinator(queue.group)
    others = [node for node in env.cluster.brokers if node != coordinator]
    if not others:
        raise OutOfReach("with one broker there is none that is not the coordinator")

    responses = [await (await env.cluster.to(node)).call(api, **fields) for node in others]

    errors = [_error(response) for response in responses]
    judge.equal({"NOT_COORDINATOR"}, set(errors), f"errors of {request_kind}")


@check("ADM-50", fast=True)
@pytest.mark.parametrize("request_kind", [r for r in REQUESTS if r != "DeleteGroups"])
async def test_a_group_needs_an_id(env: Env, judge: Judge, request_kind: str) -> None:
    api, fields = _fields(request_kind, "", await env.admin.create_topic())

    errors = set()
    for node in env.cluster.brokers:
        connection = await env.cluster.to(node)
        errors.add(_error(await connection.call(api, **fields)))

    # Those that look for the coordinator of "" first may say that they are not the one.
    errors -= {*map(error_name, RETRIABLE)}
    if not errors:
        raise Undecided("no broker has more to say than that it does not, or cannot yet")
    invalid = {ErrorCode.INVALID_GROUP_ID.name}
    judge.equal(invalid, errors, f"errors of {request_kind} without a group id")
