"""Member epochs: which are accepted, which are fenced, and what a refusal leaves alone."""

from suites.broker.kit import *


async def aged(env: Env, queue: Queue, changes: int) -> tuple[Member, list[int]]:
    """Return a member that was told new epochs as others joined, and all epochs it was told."""
    member = await env.member(queue.group, queue.topic)
    await good_beat(member)
    told = [member.epoch]
    for _ in range(changes):
        floor = await group_epoch(env, queue.group)
        await env.member(queue.group, queue.topic)
        told += await risen(member, floor)
        if member.epoch <= floor:
            raise Undecided(f"a join did not raise the other member's epoch above {floor}")
    return member, sorted(set(told))


@check("MEM-23", fast=True)
async def test_epoch_above_is_fenced(env: Env, judge: Judge) -> None:
    _, member = await env.with_member()

    for epoch in (member.epoch + 1, member.epoch + env.rng.randint(2, 1000), 2**31 - 1):
        response = await beat(member, member_epoch=epoch)
        judge.equal(ErrorCode.FENCED_MEMBER_EPOCH, response.error_code, f"error of epoch {epoch}")


@check("MEM-24")
async def test_old_epoch_is_fenced(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    member, told = await aged(env, queue, 3)

    for epoch in (1, *told[:-2]):
        response = await beat(member, member_epoch=epoch)
        fenced = ErrorCode.FENCED_MEMBER_EPOCH
        judge.equal(fenced, response.error_code, f"error of epoch {epoch} of {told}")


@check("MEM-25", fast=True)
async def test_previous_epoch_is_accepted(env: Env, judge: Judge) -> None:
    queue, member = await env.with_member()
    await env.member(queue.group, queue.topic)
    previous, current = await stepped(env, member)

    again = await beat(member, member_epoch=previous)

    seen = (again.error_code, again.member_epoch)
    judge.equal((ErrorCode.NONE, current), seen, f"error and epoch for epoch {previous}")


async def stepped(env: Env, member: Member) -> tuple[int, int]:
    """Heartbeat until it raises the member's epoch; return the epochs before and after."""
    async for _ in attempts():
        before = await shown_epoch(env, member)
        await good_beat(member, member_epoch=before)
        after = await shown_epoch(env, member)
        if after > before:
            return before, after
    raise Undecided("another member's join did not raise the member's epoch")


@check("MEM-26")
async def test_refused_heartbeat_changes_nothing(env: Env, judge: Judge) -> None:
    queue, member = await env.with_member()
    await good_beat(member)
    before = await group_epoch(env, queue.group)

    for epoch in (member.epoch + 1, 2**31 - 1, -2):
        refused = await beat(member, member_epoch=epoch, subscribed_topic_names=[])
        if not refused.error_code:
            raise Undecided(f"a heartbeat with epoch {epoch} was accepted")
    right = await beat(member)

    judge.equal(ErrorCode.NONE, right.error_code, "error of the right epoch afterwards")
    judge.equal(before, await group_epoch(env, queue.group), "group epoch")
    described = await env.admin.describe_group(queue.group)
    kept = [member.subscribed_topic_names for member in described.members]
    judge.equal([[queue.topic.name]], kept, "subscriptions of the group afterwards")


@check("MEM-27", fast=True)
async def test_unknown_group(env: Env, judge: Judge) -> None:
    topic = await env.admin.create_topic()
    member = await env.member(env.cluster.fresh_name("g"))

    for epoch in (1, env.rng.randint(2, 2**31 - 1), -1):
        response = await beat(member, member_epoch=epoch, subscribed_topic_names=[topic.name])
        judge.equal(ErrorCode.GROUP_ID_NOT_FOUND, response.error_code, f"error of epoch {epoch}")
    described = await env.admin.describe_group(member.group)
    judge.equal(ErrorCode.GROUP_ID_NOT_FOUND, described.error_code, "describing it")


@check("MEM-28", fast=True)
async def test_unknown_member(env: Env, judge: Judge) -> None:
    queue, member = await env.with_member()
    stranger = await env.member(queue.group)

    for epoch in (member.epoch, 1, 2**31 - 1, -1):
        response = await beat(stranger, member_epoch=epoch)
        judge.equal(ErrorCode.UNKNOWN_MEMBER_ID, response.error_code, f"error of epoch {epoch}")
    judge.equal([member.member_id], await member_ids(env, queue.group), "members of the group")
