"""Heartbeats that break the protocol's own rules, and the limits of the group."""

import string

from suites.broker.kit import *

INVALID = ErrorCode.INVALID_REQUEST


async def refused(env: Env, judge: Judge, what: str, **fields: object) -> None:
    """Judge that a heartbeat, good but for some fields, is answered with INVALID_REQUEST."""
    topic = await env.admin.create_topic()
    body: dict[str, object] = {"member_epoch": 0, "subscribed_topic_names": [topic.name]}
    member = await env.member(env.cluster.fresh_name("g"))
    response = await beat(member, **(body | fields))
    judge.equal(INVALID, response.error_code, f"error of a heartbeat with {what}")


@check("MEM-29", fast=True)
async def test_empty_member_id(env: Env, judge: Judge) -> None:
    await refused(env, judge, "an empty member id", member_id="")


@check("MEM-30")
async def test_long_member_id(env: Env, judge: Judge) -> None:
    for length in (37, env.rng.randint(38, 5000)):
        await refused(env, judge, f"an id of {length} letters", member_id="m" * length)


@check("MEM-31")
@pytest.mark.parametrize("length", [1, 10, 36])
async def test_any_member_id_will_do(env: Env, judge: Judge, length: int) -> None:
    queue = await env.queue(records=1)
    # Each group is the check's own, so that an id of one letter is taken by nobody else.
    alphabet = string.ascii_letters + string.digits + ".:/_-+=" + "äß" * (length < 36)
    letters = env.rng.choices(alphabet, k=length)
    member = Member(env.cluster, queue.group, "".join(letters))

    joined = await beat(member, member_epoch=0, subscribed_topic_names=[queue.topic.name])
    judge.equal(ErrorCode.NONE, joined.error_code, f"error of joining as {member.member_id!r}")
    await member.join(queue.topic)
    again = await beat(member)
    judge.equal(ErrorCode.NONE, again.error_code, f"error of a heartbeat as {member.member_id!r}")
    consumer = Consumer(member, await member.session(queue.topic.leaders[0]), (queue.topic, 0))
    fetched = await consumer.fetch(max_wait_ms=10000)
    errors = tuple(code for code in fetched.errors if code not in RETRIABLE)
    judge.equal((), errors, f"errors of a fetch as {member.member_id!r}")
    if not fetched.offsets:
        await consumer.acquire(1)
    acked = await consumer.ack(accept(0))
    await member.leave()

    judge.equal(0, lasting(acked.ack_error), "error of the acknowledgement")


@check("MEM-32", fast=True)
async def test_empty_group_id(env: Env, judge: Judge) -> None:
    await refused(env, judge, "an empty group id", group_id="")


@check("MEM-33", fast=True)
async def test_empty_rack(env: Env, judge: Judge) -> None:
    await refused(env, judge, "an empty rack id", rack_id="")


@check("MEM-34", fast=True)
async def test_epoch_below_minus_one(env: Env, judge: Judge) -> None:
    _, member = await env.with_member()  # of a stranger, or in no group, another error may be told
    for epoch in (-2, -(2**31), env.rng.randint(-(2**31), -3)):
        error = (await beat(member, member_epoch=epoch)).error_code
        judge.equal(INVALID, error, f"error of a heartbeat with epoch {epoch}")
    judge.equal(0, (await beat(member)).error_code, "error of the member's next heartbeat")


@check("MEM-35", fast=True)
@pytest.mark.parametrize("names", [None, []], ids=["null", "empty"])
async def test_join_without_topics(env: Env, judge: Judge, names: list[str] | None) -> None:
    await refused(env, judge, f"topics {names}", subscribed_topic_names=names)


@check("MEM-36", solo={"group.share.max.size": "2"})
async def test_full_group(solo_env: Env, judge: Judge) -> None:
    env = solo_env
    queue, first = await env.with_member()
    second, third = await env.member(queue.group, queue.topic), await env.member(queue.group)
    names = [queue.topic.name]

    refusal = await beat(third, member_epoch=0, subscribed_topic_names=names)
    listed = await member_ids(env, queue.group)
    inside = [(await beat(member)).error_code for member in (first, second)]
    again = await beat(first, member_epoch=0, subscribed_topic_names=names)
    await good_beat(second, member_epoch=-1)
    accepted = await beat(third, member_epoch=0, subscribed_topic_names=names)

    judge.equal(ErrorCode.GROUP_MAX_SIZE_REACHED, refusal.error_code, "error of the third join")
    judge.equal(sorted([first.member_id, second.member_id]), listed, "members after it")
    judge.equal([0, 0], inside, "errors of the members inside")
    refused = again.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    judge.holds(not refused, "a member of the full group that joined again was refused for that")
    judge.equal(0, accepted.error_code, "error of joining when one had left")
