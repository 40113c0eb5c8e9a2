"""DeleteGroups on share groups: only empty ones, each on its own, and nothing of them is left."""

from suites.broker.kit import *


async def _summary(queue: Queue, partition: int) -> int:
    """Return the start offset that the share coordinator has of a share-partition, -1 for none."""
    key = StateKey(queue.share, queue.group, queue.topic.id, partition)
    return int((await key.summary()).start_offset)


@check("ADM-32", "ADM-34", fast=True, crossed=AMONG)
@pytest.mark.parametrize("reset", ["earliest", "latest"])
async def test_a_group_is_gone(share: Share, judge: Judge, reset: str) -> None:
    queue = await share.queue(partitions=2)
    beside = Queue(share=share, topic=await share.admin.create_topic(), group=queue.group)
    await use(queue)
    await use(queue, partition=1)
    await use(beside, beside.topic)

    answered = await delete_groups(share, queue.group)

    judge["ADM-32"].equal({queue.group: NONE}, answered, "error of the deletion")
    found = (await described(share, [queue.group]))[queue.group]
    judge["ADM-32"].equal(NO_GROUP, error_name(found.error_code), "error of describing it then")
    judge["ADM-32"].equal({}, await listed(share, [queue.group]), "ListGroups afterwards")
    stored = [await _summary(queue, 0), await _summary(queue, 1), await _summary(beside, 0)]
    judge["ADM-32"].equal([UNSET] * 3, stored, "start offsets stored afterwards")

    await share.admin.group_config(queue.group, {RESET: reset})
    if reset == "earliest":
        counts = await given_anew(queue)
        judge["ADM-34"].equal(dict.fromkeys(range(11), 1), counts, "delivered to the second group")
        return
    counts = await begun_by_latest(queue)
    afresh = min(counts, default=-1) >= 10 and {*counts.values()} == {1}
    judge["ADM-34"].holds(afresh, f"delivered by latest: {counts}, the end was at 10")


@check("ADM-33", fast=True, crossed=AMONG)
async def test_not_with_members(share: Share, judge: Judge) -> None:
    queue, consumer = await share.with_holder(10)

    answered = await delete_groups(share, queue.group)

    judge.equal({queue.group: NON_EMPTY}, answered, "error of the deletion")
    judge.equal(0, (await consumer.ack(accept(0, 9))).ack_error, "error of settling what was held")
    judge.equal(0, (await beat(consumer.member)).error_code, "error of the member's heartbeat")
    sentinel, rest = await up_to_new(queue, consumer)
    judge.equal({sentinel: 1}, rest.counts, "delivered afterwards")


@check("ADM-36", "ADM-51", fast=True)
async def test_each_group_on_its_own(share: Share, judge: Judge) -> None:
    # One of the share groups has used a topic that is no longer there.
    empty, live, classic, consumer, unknown = await neighbours(share, 5)
    queue = await share.queue()
    lost = Queue(share=share, topic=await share.admin.create_topic(), group=empty)
    await share.admin.group_config(empty, {"share.auto.offset.reset": "earliest"})
    await use(lost, lost.topic)
    await use(Queue(share=share, topic=queue.topic, group=empty), queue.topic)
    await share.admin.delete_topics(lost.topic.name)
    # A coordinator that has not heard asks those that have again and again for half a minute.
    await known_everywhere(lost, f"{lost.topic.name} being forgotten", lambda t: t.error_code)
    await share.member(live, queue.topic)
    await classic_group(share, queue, classic)
    insider = await consumer_group(share, queue, consumer)
    names = [live, classic, consumer, unknown]
    share.rng.shuffle(names)

    answered = await delete_groups(share, empty, *names)

    left = await listed(share, [empty, *names])
    await consumer_beat(share, consumer, insider, queue.topic.name, -1)
    expected = {empty: NONE, live: NON_EMPTY, classic: NONE, consumer: NON_EMPTY, unknown: NO_GROUP}
    judge["ADM-51"].equal(NONE, answered[empty], "error of the group that used a deleted topic")
    judge["ADM-36"].equal(expected, answered, "errors")
    judge["ADM-36"].equal({live, consumer}, set(left), "groups that are left")


@check("ADM-38", fast=True)
@pytest.mark.parametrize("kind", ["classic", "consumer", "streams"])
async def test_an_id_is_free_again(share: Share, judge: Judge, kind: str) -> None:
    queue, newcomer = await share.queue(), share.member_id()
    group, topic = queue.group, queue.topic.name
    if kind == "streams":
        other = share.cluster.fresh_name("g")
        insider = await streams_group(share, queue, other)
        await streams_beat(share, other, insider, topic, -1)
    member = await share.member(group, queue.topic)
    await good_beat(member, member_epoch=-1)

    async def join() -> int:
        if kind == "classic":
            return await commit_offset(share, queue, group)
        beat = consumer_beat if kind == "consumer" else streams_beat
        return int((await beat(share, group, newcomer, topic, 0)).error_code)

    early = await join()
    refused = early not in SILENT
    judge.holds(refused, f"a {kind} member of an empty share group: {error_name(early)}")
    judge.equal(["share"], await kind_of(share, group), "kind before the deletion")
    await delete_group(share, group)
    judge.equal(NONE, error_name(await join()), f"error of a {kind} member after the deletion")
    judge.equal([kind], await kind_of(share, group), "kind after the deletion")
    if kind == "consumer":
        await consumer_beat(share, group, newcomer, topic, -1)
    elif kind == "streams":
        await streams_beat(share, group, newcomer, topic, -1)


@check("ADM-40", fast=True, meets=IDLE)
async def test_a_deleted_topic_is_forgotten(share: Share, judge: Judge) -> None:
    queue, kept = await share.queue(partitions=2), await share.admin.create_topic()
    member = await share.member(queue.group, queue.topic, kept)
    consumer = await queue.consumer(join=False)
    await queue.produce(3)
    await consumer.acquire(3)
    await consumer.acked(accept(0, 2))
    await share.admin.delete_topics(queue.topic.name)

    assigned = shown = None
    async for _ in attempts():
        await good_beat(member)
        assigned = {topic for topic, _ in member.assigned}
        found = (await described(share, [queue.group]))[queue.group]
        shown = {t.topic_name for m in found.members for t in m.assignment.topic_partitions}
        if assigned == {kept.id} and shown == {kept.name}:
            break

    judge.equal({kept.id}, assigned, "topics that the member is assigned")
    judge.equal({kept.name}, shown, "topics that the group's description shows assigned")
    offsets = await poll(
        lambda: group_offsets(share, queue.group),
        lambda offsets: {name for name, _ in offsets} == {kept.name},
    )
    names = {name for name, _ in offsets}
    judge.equal({kept.name}, names, "topics that the group shows offsets of")
