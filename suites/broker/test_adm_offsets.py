"""DescribeShareGroupOffsets: what a group shows of its share-partitions, and of all others."""

from suites.broker.kit import *


@check("ADM-09", "ADM-10", fast=True, meets=IDLE)
async def test_all_and_named(env: Env, judge: Judge) -> None:
    queue = await env.queue(partitions=2)
    left, unused = await env.admin.create_topic(), await env.admin.create_topic(2)
    await use(queue, left)
    for index in (0, 1):
        await use(queue, partition=index)
    name = queue.topic.name

    everything = await group_offsets(env, queue.group)
    wanted = {name: [1], left.name: [0], unused.name: [1]}
    some = (await described_offsets(env, {queue.group: wanted}))[queue.group]

    expected = {(name, 0): 7, (name, 1): 7, (left.name, 0): 7}
    judge["ADM-09"].equal(expected, everything, "all that the group has to show")
    expected = {(name, 1): 7, (left.name, 0): 7, (unused.name, 1): UNSET}
    judge["ADM-10"].equal(expected, starts(some), "what was asked for by name")
    errors = [part.error_code for topic in some.topics for part in topic.partitions]
    judge["ADM-10"].equal([0, 0, 0], errors, "errors of what was asked for by name")
    ids = {topic.topic_name: topic.topic_id for topic in some.topics}
    expected_ids = {topic.name: topic.id for topic in (queue.topic, left, unused)}
    judge["ADM-10"].equal(expected_ids, ids, "topic ids of what was asked for by name")


@check("ADM-11", fast=True, crossed=AMONG)
async def test_topics_that_are_not_there(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    await use(queue)
    nowhere = env.cluster.fresh_name("t")

    wanted = {nowhere: [0, 3], queue.topic.name: [0]}
    found = (await described_offsets(env, {queue.group: wanted}))[queue.group]

    expected = {(nowhere, 0): UNSET, (nowhere, 3): UNSET, (queue.topic.name, 0): 7}
    judge.equal(expected, starts(found), "offsets that are shown")
    errors = [part.error_code for topic in found.topics for part in topic.partitions]
    judge.equal([0, 0, 0, 0], [found.error_code, *errors], "errors")
