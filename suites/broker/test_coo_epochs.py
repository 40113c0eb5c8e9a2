"""The epochs of a share group at rest."""

from suites.broker.kit import *


@check("COO-06", fast=True)
async def test_empty_group_has_one_epoch(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    members = [await env.member(queue.group, queue.topic) for _ in range(env.rng.randint(1, 3))]
    for member in members:
        await member.leave()

    found = await poll(
        lambda: env.admin.describe_group(queue.group),
        lambda found: found.group_epoch == found.assignment_epoch,
    )
    if found.group_epoch != found.assignment_epoch:
        await demand_bystander(env.cluster, queue.topic.leaders[0], "the epochs did not meet")
    judge.equal(found.group_epoch, found.assignment_epoch, "assignment epoch of the empty group")
    judge.saw(left=len(members))


@check("COO-07", fast=True)
async def test_group_at_rest_keeps_its_epoch(env: Env, judge: Judge) -> None:
    queue, seen = await env.queue(partitions=env.rng.randint(1, 4)), list[int]()
    # Where there is an interval, assignments wait for it, and heartbeats arrive meanwhile.
    await env.admin.try_group_config(queue.group, {"share.assignment.interval.ms": "1000"})
    members = await crowd(env, queue, env.rng.randint(1, 4))

    async def ask() -> int | None:
        await gather_all(map(good_beat, members))
        group = await env.admin.describe_group(queue.group)
        seen.append(int(group.group_epoch))
        if covered(members) != every(queue.topic):
            return None
        epochs = {group.group_epoch, group.assignment_epoch, *(m.epoch for m in members)}
        return int(epochs.pop()) if len(epochs) == 1 else None

    before = await poll(ask, lambda epoch: epoch is not None)
    # The coordinator may hear of the topic late, and initialise its partitions one by one.
    rise, most = seen[-1] - seen[0], 1 + len(queue.topic.partitions)
    judge.holds(rise <= most, f"the epoch rose by {rise} in {len(seen)} rounds of heartbeats")
    if before is None:
        raise Undecided("group, assignment and members did not come to have one epoch")
    for _ in range(10):
        names = env.rng.choice([None, [queue.topic.name]])  # said again, as by a full heartbeat
        responses = [await good_beat(member, subscribed_topic_names=names) for member in members]
        judge.equal({before}, {a.member_epoch for a in responses}, "member epochs")
    found = await env.admin.describe_group(queue.group)
    judge.equal(before, found.group_epoch, "group epoch after many heartbeats")
    judge.equal(before, found.assignment_epoch, "assignment epoch after many heartbeats")
