"""Committed offsets are not for share groups: no request of the other protocols gets one in."""

from suites.broker.kit import *


@check("ADM-39", fast=True)
@pytest.mark.parametrize("empty", [False, True], ids=["with-a-member", "empty"])
async def test_no_committed_offsets(env: Env, judge: Judge, *, empty: bool) -> None:
    queue, member = await env.with_member()
    if empty:
        await good_beat(member, member_epoch=-1)
    before = (await described(env, [queue.group]))[queue.group].to_dict()

    errors = {"OffsetCommit": await commit_offset(env, queue, queue.group)}
    async with TransactionalProducer.open(env.cluster) as producer:
        errors["TxnOffsetCommit"] = await producer.commit_offset(queue.group, queue.topic, 1)
        if not errors["TxnOffsetCommit"]:
            await producer.commit()
    topics = [{"name": queue.topic.name, "partitions": [{"partition_index": 0}]}]
    response = await ask_coordinator(
        env, queue.group, "OffsetDelete", group_id=queue.group, topics=topics
    )
    errors["OffsetDelete"] = next(filter(None, codes_in(response)), 0)

    if not empty:  # who is silent for longer is removed
        in_time(member.beaten, env.bounds.sessions.default)
    for api, error in errors.items():
        judge.holds(error not in SILENT, f"{api} on a share group got {error_name(error)}")
    judge.equal({}, await committed_offsets(env, queue.group), "committed offsets afterwards")
    after = (await described(env, [queue.group]))[queue.group].to_dict()
    judge.equal(before, after, "the group's description")
    state = "Empty" if empty else "Stable"
    mine = await listed(env, [queue.group])
    judge.equal({queue.group: ("share", state)}, mine, "the group in ListGroups")
