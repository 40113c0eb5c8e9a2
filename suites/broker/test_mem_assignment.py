"""Assignments as heartbeats tell them, and what changes them."""

from suites.broker.kit import *


@check("MEM-09", fast=True)
async def test_quiet_heartbeat_has_no_assignment(env: Env, judge: Judge) -> None:
    _, member = await env.with_member(partitions=env.rng.randint(1, 3))

    repeated = []
    for _ in range(10):
        epoch, known = member.epoch, member.assigned
        told = assigned_in(await good_beat(member))
        if member.epoch == epoch:  # else something changed, if not for this member
            repeated.append(told == known)

    if not repeated:
        raise Undecided("every heartbeat told another epoch, so that it followed a change")
    judge.equal(0, sum(repeated), "known assignments that quiet heartbeats told again")


@check("MEM-10", fast=True)
async def test_subscribing_again_tells_the_assignment(env: Env, judge: Judge) -> None:
    queue, member = await env.with_member(partitions=env.rng.randint(1, 3))

    told = assigned_in(await good_beat(member, subscribed_topic_names=[queue.topic.name]))

    judge.equal(every(queue.topic), told, "assignment told with the same subscription")


@check("MEM-11")
async def test_changed_subscription(env: Env, judge: Judge) -> None:
    first = await env.admin.create_topic(env.rng.randint(1, 3))
    second = await env.admin.create_topic(env.rng.randint(1, 3))
    member = await env.member(env.cluster.fresh_name("g"), first)

    await good_beat(member, subscribed_topic_names=[first.name, second.name])
    await beating([member], lambda: member.assigned == every(first, second))
    judge.equal(every(first, second), member.assigned, "assignment with one topic more")

    await good_beat(member, subscribed_topic_names=[second.name])
    await beating([member], lambda: member.assigned == every(second))
    judge.equal(every(second), member.assigned, "assignment with one topic dropped")

    # Both topics are known by now, so that nothing has to come before the new assignment.
    responses = [await good_beat(member, subscribed_topic_names=[first.name])]
    responses += await beating([member], lambda: member.assigned == every(first))
    told = {one for response in responses if (one := assigned_in(response)) is not None}
    between = told - {every(first), every(second)}
    judge.equal(set(), between, "assignments other than that of the old topic and of the new one")
    judge.equal(every(first), member.assigned, "assignment in the end")


@check("MEM-12")
async def test_added_partitions_are_assigned(env: Env, judge: Judge) -> None:
    queue, member = await env.with_member()

    larger = await env.admin.create_partitions(queue.topic, env.rng.randint(2, 5))
    await beating([member], lambda: member.assigned == every(larger))

    judge.equal(every(larger), member.assigned, "assignment after adding partitions")


@check("MEM-13")
async def test_deleted_topic_is_not_assigned(env: Env, judge: Judge) -> None:
    stays = await env.admin.create_topic(env.rng.randint(1, 3))
    goes = await env.admin.create_topic(env.rng.randint(1, 3))
    member = await env.member(env.cluster.fresh_name("g"), stays, goes)

    await env.admin.delete_topics(goes.name)
    await beating([member], lambda: member.assigned == every(stays))

    judge.equal(every(stays), member.assigned, "assignment after deleting a topic")


@check("MEM-14")
async def test_assigned_partition_can_be_fetched(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_consumer(records=1)

    # Leaders and coordinators may still be on their way, which their own errors say; an
    # uninitialised state would be another error, or silence.
    errors: list[int] = []
    acquired: list[int] = []
    async for _ in attempts(WITHIN):
        response = await consumer.fetch()
        errors += [code for code in response.errors if code not in RETRIABLE]
        acquired += response.offsets
        if acquired or errors:
            break

    judge.equal([], errors, "errors of the first fetches")
    judge.equal([0], acquired, "acquired offsets")


@check("MEM-15")
async def test_heartbeat_interval_follows_the_group(env: Env, judge: Judge) -> None:
    before, after = (env.bounds.heartbeats.at_least(interval) for interval in (6000, 7000))
    if before == after:
        raise OutOfReach(f"the heartbeat interval is {before} ms here and nothing else")
    queue, member = await env.with_member(group_config={HEARTBEAT: str(before)})

    async def told(interval: int) -> int:
        seen = await poll(partial(good_beat, member), lambda r: r.heartbeat_interval_ms == interval)
        return int(seen.heartbeat_interval_ms)

    first = await told(before)
    await env.admin.group_config(queue.group, {HEARTBEAT: str(after)})
    seen = [first, await told(after)]
    if seen != [before, after]:
        await demand_bystander(env.cluster, min(env.cluster.brokers), f"intervals stay at {seen}")
    judge.equal([before, after], seen, "intervals before and after the change")
