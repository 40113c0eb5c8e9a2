"""DeleteGroups on share groups: only empty ones, each on its own, and nothing of them is left."""

from suites.broker.kit import *


async def _summary(queue: Queue, partition: int) -> int:
    """Return the start offset that the share coordinator has of a share-partition, -1 for none."""
    key = StateKey(queue.env, queue.group, queue.topic.id, partition)
    return int((await key.summary()).start_offset)


@check("ADM-32", "ADM-34", fast=True, crossed=AMONG)
@pytest.mark.parametrize("reset", ["earliest", "latest"])
async def test_a_group_is_gone(env: Env, judge: Judge, reset: str) -> None:
    queue = await env.queue(partitions=2)
    beside = Queue(env=env, topic=await env.admin.create_topic(), group=queue.group)
    await use(queue)
    await use(queue, partition=1)
    await use(beside, beside.topic)

    answered = await delete_groups(env, queue.group)

    judge["ADM-32"].equal({queue.group: NONE}, answered, "error of the deletion")
    found = (await described(env, [queue.group]))[queue.group]
    judge["ADM-32"].holds(is_gone(found), f"described as {found.group_state} then")
    judge["ADM-32"].equal({}, await listed(env, [queue.group]), "ListGroups afterwards")
    stored = [await _summary(queue, 0), await _summary(queue, 1), await _summary(beside, 0)]
    judge["ADM-32"].equal([UNSET] * 3, stored, "start offsets stored afterwards")

    await env.admin.group_config(queue.group, {RESET: reset})
    for used, index in ((queue, 0), (queue, 1), (beside, 0)):
        if reset == "earliest":
            counts = await given_anew(used, index, join=not index)
            judge["ADM-34"].equal(dict.fromkeys(range(11), 1), counts, "given to the second group")
        else:
            counts = await begun_by_latest(used, index, join=not index)
            afresh = min(counts) >= 10 and {*counts.values()} == {1}
            judge["ADM-34"].holds(afresh, f"delivered by latest: {counts}, the end was at 10")


@check("ADM-33", fast=True, crossed=AMONG)
async def test_not_with_members(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10)

    answered = await delete_groups(env, queue.group)

    judge.equal({queue.group: NON_EMPTY}, answered, "error of the deletion")
    judge_done(judge, await consumer.ack(accept(0, 9)), "settling what was held")
    judge.equal(0, (await beat(consumer.member)).error_code, "error of the member's heartbeat")
    sentinel, rest = await up_to_new(queue, consumer)
    judge.delivered({sentinel: 1}, rest.counts, "delivered afterwards")


@check("ADM-36", "ADM-51", fast=True)
async def test_each_group_on_its_own(env: Env, judge: Judge) -> None:
    # One of the share groups has used a topic that is no longer there.
    empty, live, classic, consumer, unknown = await neighbours(env, 5)
    queue = await env.queue()
    lost = Queue(env=env, topic=await env.admin.create_topic(), group=empty)
    await env.admin.group_config(empty, {"share.auto.offset.reset": "earliest"})
    await use(lost, lost.topic)
    await use(Queue(env=env, topic=queue.topic, group=empty), queue.topic)
    await env.admin.delete_topics(lost.topic.name)
    # A coordinator that has not heard asks those that have again and again for half a minute.
    await known_everywhere(lost, f"{lost.topic.name} being forgotten", lambda t: t.error_code)
    staying = await env.member(live, queue.topic)
    await classic_group(env, queue, classic)
    insider = await consumer_group(env, queue, consumer)
    names = [live, classic, consumer, unknown]
    env.rng.shuffle(names)

    answered = await delete_groups(env, empty, *names)

    left = await listed(env, [empty, *names])
    await consumer_beat(env, consumer, insider, queue.topic.name, -1)
    expected = {empty: NONE, live: NON_EMPTY, classic: NONE, consumer: NON_EMPTY, unknown: NO_GROUP}
    judge["ADM-51"].equal(NONE, answered.get(empty), "error of the group that used a deleted topic")
    in_time(staying.beaten, env.bounds.sessions.default)  # who is silent for longer is removed
    judge["ADM-36"].equal(expected, answered, "errors")
    judge["ADM-36"].equal({live, consumer}, set(left), "groups that are left")


@check("ADM-38", fast=True)
@pytest.mark.parametrize("kind", ["classic", "consumer", "streams"])
async def test_an_id_is_free_again(env: Env, judge: Judge, kind: str) -> None:
    queue, newcomer = await env.queue(), env.member_id()
    group, topic, other = queue.group, queue.topic.name, env.cluster.fresh_name("g")
    beat, joined = consumer_beat, consumer_group
    if kind == "streams":
        beat, joined = streams_beat, streams_group
    if kind != "classic":
        await beat(env, other, await joined(env, queue, other), topic, -1)
    member = await env.member(group, queue.topic)
    await good_beat(member, member_epoch=-1)

    async def join() -> int:
        if kind == "classic":
            return await commit_offset(env, queue, group)
        return int((await beat(env, group, newcomer, topic, 0)).error_code)

    early = [await join()]
    if kind == "classic":
        early.append(int((await classic_join(env, group)).error_code))
    what = f"a {kind} member of an empty share group"
    judge.holds(all(early), f"{what}: {', '.join(map(error_name, early))}")
    judge.equal(["share"], await kind_of(env, group), "kind before the deletion")
    await delete_group(env, group)
    judge.equal(NONE, error_name(await join()), f"error of a {kind} member after the deletion")
    judge.equal([kind], await kind_of(env, group), "kind after the deletion")
    if kind != "classic":
        await beat(env, group, newcomer, topic, -1)


@check("ADM-40", fast=True, meets=IDLE)
async def test_a_deleted_topic_is_forgotten(env: Env, judge: Judge) -> None:
    queue, kept = await env.queue(partitions=2), await env.admin.create_topic()
    empty, node = await env.sibling(queue), queue.topic.leaders[0]
    await use(empty)
    member = await env.member(queue.group, queue.topic, kept)
    consumer = await queue.consumer(join=False)
    await consumer.acquire(3)
    await consumer.acked(accept(0, 2))
    await env.admin.delete_topics(queue.topic.name)

    assigned = shown = None
    async for _ in attempts():
        await good_beat(member)
        assigned = {topic for topic, _ in member.assigned}
        found = (await described(env, [queue.group]))[queue.group]
        shown = {t.topic_name for m in found.members for t in m.assignment.topic_partitions}
        if assigned == {kept.id} and shown == {kept.name}:
            break
    else:
        await demand_bystander(env.cluster, node, "the deleted topic was not forgotten")

    judge.equal({kept.id}, assigned, "topics that the member is assigned")
    judge.equal({kept.name}, shown, "topics that the group's description shows assigned")
    for group in (queue.group, empty.group):
        offsets = await poll(
            partial(group_offsets, env, group),
            lambda offsets: queue.topic.name not in {name for name, _ in offsets},
        )
        if queue.topic.name in (names := {name for name, _ in offsets}):
            await demand_bystander(env.cluster, node, "the deleted topic's offsets stayed")
        judge.holds(queue.topic.name not in names, f"topics that {group} shows offsets of: {names}")
