"""Joining and leaving a share group."""

from suites.broker.kit import *


@check("MEM-01", fast=True)
async def test_first_heartbeat_makes_a_member(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    member = await env.member(queue.group)

    response = await beat(member, subscribed_topic_names=[queue.topic.name])
    listed = await member_ids(env, queue.group)
    await member.leave()

    judge.equal(ErrorCode.NONE, response.error_code, "error of the join")
    judge.equal(member.member_id, response.member_id, "member id in the response")
    judge.holds(response.member_epoch > 0, f"member epoch {response.member_epoch} is not > 0")
    judge.equal([member.member_id], listed, "members of the group")


@check("MEM-02")
async def test_topic_that_comes_later_is_assigned(env: Env, judge: Judge) -> None:
    name = env.cluster.fresh_name("t")
    member = await env.member(env.cluster.fresh_name("g"))

    joined = await beat(member, subscribed_topic_names=[name])
    judge.equal(ErrorCode.NONE, joined.error_code, "error of the join")
    judge.equal(frozenset(), member.assigned, "assignment without a topic")
    topic = await env.admin.create_topic(env.rng.randint(1, 4), name=name)
    await beating([member], lambda: member.assigned == every(topic))

    judge.equal(every(topic), member.assigned, "assignment once the topic exists")
    rises = member.epoch > joined.member_epoch
    judge.holds(rises, f"epoch {member.epoch}, and {joined.member_epoch} at the join")


@check("MEM-03", fast=True)
async def test_leaving(env: Env, judge: Judge) -> None:
    queue, stays = await env.with_member()
    goes = await env.member(queue.group, queue.topic)
    last = goes.epoch

    left = await beat(goes, member_epoch=-1)
    listed = await member_ids(env, queue.group)
    after = await beat(goes, member_epoch=last)

    judge.equal((0, -1), (left.error_code, left.member_epoch), "error and epoch")
    judge.equal([stays.member_id], listed, "members after one left")
    judge.equal(ErrorCode.UNKNOWN_MEMBER_ID, after.error_code, "error of a heartbeat after leaving")


@check("MEM-04", fast=True)
async def test_coming_back_after_leaving(env: Env, judge: Judge) -> None:
    queue, member = await env.with_member(partitions=env.rng.randint(1, 3))
    highest, whole = member.epoch, every(queue.topic)
    await good_beat(member, member_epoch=-1)
    member.assigned = frozenset()

    again = await beat(member, member_epoch=0, subscribed_topic_names=[queue.topic.name])
    judge.equal(ErrorCode.NONE, again.error_code, "error of joining again")
    await beating([member], lambda: member.assigned == whole and member.epoch > highest)

    judge.equal(whole, member.assigned, "assignment after coming back")
    judge.holds(member.epoch > highest, f"epoch {member.epoch} is not above the earlier {highest}")


@check("MEM-05")
async def test_joining_while_still_a_member(env: Env, judge: Judge) -> None:
    queue, member = await env.with_member()
    other = await env.member(queue.group, queue.topic)
    for ahead in (1000, 0):  # fenced, and as a client that came back
        before = await beat(member, member_epoch=member.epoch + ahead)
        member.assigned = frozenset()
        again = await beat(member, member_epoch=0, subscribed_topic_names=[queue.topic.name])
        listed = await member_ids(env, queue.group)

        told = (before.error_code, again.error_code)
        expected = (before.error_code, ErrorCode.NONE)
        judge.equal(expected, told, "errors of the fenced heartbeat and of the new join")
        judge.equal(sorted([member.member_id, other.member_id]), listed, "members, each once")
        await beating([member], lambda: member.assigned == every(queue.topic))
        judge.equal(every(queue.topic), member.assigned, "assignment after the new join")


@check("MEM-06", fast=True)
async def test_joins_and_leaves_raise_epochs(env: Env, judge: Judge) -> None:
    queue, stays = await env.with_member()
    comes = await env.member(queue.group)
    seen = [stays.epoch]

    for change in ("join", "leave", "join"):
        before, floor = await group_epoch(env, queue.group), stays.epoch
        if change == "join":
            await comes.join(queue.topic)
        else:
            await good_beat(comes, member_epoch=-1)
        seen += await risen(stays, before)  # before it is looked for: it may be put off (KIP-1263)
        after = await group_epoch(env, queue.group)
        judge.holds(after > before, f"{change}: group epoch {before}, then {after}")
        judge.holds(stays.epoch > floor, f"{change}: member epoch stayed at {floor}")
    await comes.leave()
    judge.equal(sorted(seen), seen, "epochs that the staying member was told")


@check("MEM-07")
async def test_same_member_id_in_two_groups(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    other = await env.sibling(queue)
    here = await env.member(queue.group, queue.topic)
    there = Member(env.cluster, other.group, here.member_id)
    joined = await beat(there, member_epoch=0, subscribed_topic_names=[queue.topic.name])
    judge.equal(ErrorCode.NONE, joined.error_code, "error of joining a second group")
    await beating([there], lambda: there.assigned == every(queue.topic))
    kept = await beat(here)
    before = (await env.admin.describe_group(other.group)).members
    await beat(here, member_epoch=-1)
    still = await beat(there)
    after = (await env.admin.describe_group(other.group)).members
    await there.leave()

    judge.equal((0, 0), (kept.error_code, still.error_code), "errors in the first, in the second")
    judge.equal(before, after, "members of the group it did not leave")


@check("MEM-08")
async def test_rack_and_subscription_are_remembered(env: Env, judge: Judge) -> None:
    member = await env.member(env.cluster.fresh_name("g"))
    one, other = [[(await env.admin.create_topic()).name] for _ in range(2)]
    beats: list[dict[str, Any]] = [
        {"member_epoch": 0, "rack_id": "first", "subscribed_topic_names": one},
        {},
        {"rack_id": "second"},
        {"subscribed_topic_names": other},
    ]
    seen = []
    for fields in beats:
        await good_beat(member, **fields)
        found = (await env.admin.describe_group(member.group)).members
        seen += [(each.rack_id, each.subscribed_topic_names) for each in found]
    expected = [("first", one), ("first", one), ("second", one), ("second", other)]
    judge.equal(expected, seen, "rack and subscription after each heartbeat")
