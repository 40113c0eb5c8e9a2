"""What the simple assignor promises, whoever else is in the group.

KIP-932 leaves open who gets what. Promised is that every subscribed partition is read by somebody
and that every member has work, so assignments are judged once they have settled, by that alone.
"""

from suites.broker.kit import *

INTERVAL = 3.0  # Seconds of share.assignment.interval.ms where that is what is checked.


@check("MEM-16", fast=True)
async def test_lone_member_has_everything(env: Env, judge: Judge) -> None:
    topics = [await env.admin.create_topic(env.rng.randint(1, 4)) for _ in range(3)]
    member = await env.member(env.cluster.fresh_name("g"))

    await good_beat(member, subscribed_topic_names=[topic.name for topic in topics])
    await beating([member], lambda: member.assigned == every(*topics))
    await member.leave()

    judge.equal(every(*topics), member.assigned, "assignment of the only member")


@check("MEM-17")
async def test_more_members_than_partitions(env: Env, judge: Judge) -> None:
    await judge_served(env, judge, partitions=(1, 3), members=(4, 8))


@check("MEM-18")
async def test_fewer_members_than_partitions(env: Env, judge: Judge) -> None:
    await judge_served(env, judge, partitions=(5, 8), members=(2, 4))


async def judge_served(
    env: Env, judge: Judge, partitions: tuple[int, int], members: tuple[int, int]
) -> None:
    """Demand that each partition gets a member and each member a partition; numbers are drawn."""
    queue = await env.queue(partitions=env.rng.randint(*partitions))
    crew = await crowd(env, queue, env.rng.randint(*members))

    await beating(crew, lambda: served(crew, queue))

    judge.equal(every(queue.topic), covered(crew), "partitions that somebody has")
    idle = [member.member_id for member in crew if not member.assigned]
    judge.equal([], idle, "members without a partition")
    judge.saw(members=len(crew), partitions=len(queue.topic.partitions))


def served(members: list[Member], queue: Queue) -> bool:
    """Return whether every partition has a member and every member a partition."""
    return covered(members) == every(queue.topic) and all(member.assigned for member in members)


@check("MEM-19")
async def test_mixed_subscriptions(env: Env, judge: Judge) -> None:
    group = env.cluster.fresh_name("g")
    left, right = [await env.admin.create_topic(env.rng.randint(1, 4)) for _ in range(2)]
    wishes = [(left,), (right,), (left, right), (left, right)]
    members = [await env.member(group) for _ in wishes]

    wrong: list[object] = []
    async for _ in attempts():
        for member, topics in zip(members, wishes, strict=True):
            names = None if member.joined else [topic.name for topic in topics]
            await good_beat(member, subscribed_topic_names=names)
            wrong += member.assigned - every(*topics)
        if covered(members) == every(left, right) and all(each.assigned for each in members):
            break

    judge.equal([], wrong, "assigned partitions of topics not subscribed to")
    judge.equal(every(left, right), covered(members), "partitions that somebody has")


@check("MEM-20")
async def test_last_member_takes_over(env: Env, judge: Judge) -> None:
    queue = await env.queue(partitions=env.rng.randint(3, 6))
    members = await crowd(env, queue, env.rng.randint(3, 6))
    await beating(members, lambda: served(members, queue))
    last = members.pop(env.rng.randrange(len(members)))

    for member in members:
        await good_beat(member, member_epoch=-1)
    await beating([last], lambda: last.assigned == every(queue.topic))

    judge.equal(every(queue.topic), last.assigned, "assignment of the last member")


@check("MEM-21")
async def test_joins_are_assigned_together(env: Env, judge: Judge) -> None:
    config = {"share.assignment.interval.ms": str(int(INTERVAL * 1000))}
    queue = await env.queue(partitions=2, group_config=config)
    first = await env.member(queue.group)
    await good_beat(first, subscribed_topic_names=[queue.topic.name])

    looks = await watched(env, queue, [first])
    members = [first, *await crowd(env, queue, 3)]
    later = await watched(env, queue, members)

    judge.holds(served(members, queue), "the joins were never served by an assignment")
    # One may have been due in the midst of the joins, unless they took longer than the interval.
    made, took = {look[2] for look in later} - {looks[-1][2]}, later[0][1] - looks[-1][0]
    judge.holds(len(made) <= 2 or took > INTERVAL, f"assignments that served three joins: {made}")
    gaps = between_assignments(looks := looks + later)
    if not gaps:
        raise Undecided(f"too few assignments to measure: {looks}")
    short = [f"at most {gap:.3f} s" for gap in gaps if gap < INTERVAL]
    judge.equal([], short, f"times between assignments below {INTERVAL:g} s")
    judge.saw(intervals=len(gaps), looks=len(looks))


Look = tuple[float, float, int]
"""When ShareGroupDescribe was sent, when it was answered, and the assignment epoch it showed."""


async def watched(env: Env, queue: Queue, members: list[Member]) -> list[Look]:
    """Let members heartbeat until all are served; return looks at the group on the way."""
    looks = []
    async for _ in attempts(WITHIN):
        for member in members:
            await good_beat(member)
        sent = time.monotonic()
        epoch = int((await env.admin.describe_group(queue.group)).assignment_epoch)
        looks.append((sent, time.monotonic(), epoch))
        if served(members, queue):
            return looks
    await demand_bystander(env.cluster, queue.topic.leaders[0], "an assignment did not come")
    return looks


def between_assignments(looks: list[Look]) -> list[float]:
    """Return upper bounds of the times between neighbouring assignments.

    An assignment was made after the last look that showed the one before it was sent, and before
    the first look that shows itself was answered.
    """
    epochs = sorted({epoch for _, _, epoch in looks})
    made_after = {epoch: max(sent for sent, _, e in looks if e == epoch) for epoch in epochs}
    seen_by = {epoch: min(answered for _, answered, e in looks if e == epoch) for epoch in epochs}
    return [
        seen_by[later] - made_after[earlier]
        for earlier, later in zip(epochs, epochs[2:], strict=False)
    ]
