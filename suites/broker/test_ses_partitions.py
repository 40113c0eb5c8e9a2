"""Partitions of a session: remembered, added, forgotten, unknown and gone."""

from suites.broker.kit import *

NOT_KNOWN = {
    ErrorCode.UNKNOWN_TOPIC_ID: "ShareFetchResponse ErrorCode: a topic id that is not known",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "ShareFetchResponse ErrorCode: no such partition",
}
"""Both say that the topic is not there; which one depends on how far the news has come."""

World = tuple[Queue, Consumer, Where, Where]


async def consumer_of_two(env: Env, records: int = 2) -> World:
    """Return a queue with two partitions on one broker, each with records, and a consumer."""
    queue = await env.queue(records, partitions=2, assignments=env.together(2))
    if records:
        await queue.produce(records, 1)
    return queue, await queue.consumer(), (queue.topic, 0), (queue.topic, 1)


@check("SES-21", fast=True, crossed=BEHIND)
async def test_partitions_are_remembered(env: Env, judge: Judge) -> None:
    queue, consumer, first, second = await consumer_of_two(env, records=0)
    await consumer.session.fetch(first, second, epoch=OPEN, max_wait_ms=0)
    await queue.produce(2, 0)
    await queue.produce(2, 1)

    held: dict[Where, list[int]] = {first: [], second: []}
    async for _ in attempts(WITHIN):
        response = consumer.sound(await consumer.session.fetch())
        for where in held:
            held[where] += offsets_in(response, where)
        if all(len(offsets) == 2 for offsets in held.values()):
            break
    else:
        raise await consumer.stopped(f"only {held} were acquired by fetches that name nothing")

    judge.equal({first: [0, 1], second: [0, 1]}, held, "records by partition")


@check("SES-22", crossed=RELOADED)
async def test_partition_added_later(env: Env, judge: Judge) -> None:
    queue, consumer, first, second = await consumer_of_two(env)
    before = await acquired(consumer.session, first, count=2)
    after = await acquired(consumer.session, second, count=2)
    await queue.produce(1, 0)
    await queue.produce(1, 1)
    again = await acquired(consumer.session, first, second, count=2, named=False)

    judge.equal({first: [0, 1]}, before, "records of the first partition")
    judge.equal({second: [0, 1]}, after, "records of the partition added")
    expected = {first: [2], second: [2]}
    judge.equal(expected, again, "records of both, later, by fetches that name neither")


@check("SES-24", crossed=RELOADED)
async def test_forgetting_releases_nothing(env: Env, judge: Judge) -> None:
    queue, consumer, first, _ = await consumer_of_two(env)
    await acquired(consumer.session, first, count=2)

    await consumer.session.fetch(forget=[first], max_wait_ms=0)
    other = await queue.consumer(join=False)
    early = await next_catch(queue, other)
    part = await consumer.ack(accept(0, 1))
    in_time(consumer.session.made, early.responses[-1].lock_ms)  # forgetting might end locks

    judge.equal([], early.offsets, "offsets that others got after the forgetting")
    judge.equal(0, lasting(part.ack_error), "error of their acknowledgement")


@check("SES-25", crossed=RELOADED)
async def test_forgetting_and_acknowledging(env: Env, judge: Judge) -> None:
    queue, consumer, first, _ = await consumer_of_two(env)
    await acquired(consumer.session, first, count=2)
    await queue.produce(2, 0)

    response = await consumer.session.fetch(acks={first: [accept(0, 1)]}, forget=[first])
    left = (await next_catch(queue, await queue.consumer(join=False))).counts
    part = response.part(first[0].id, first[1])

    judge.equal(ErrorCode.NONE, response.error, "error of the request")
    judge.holds(part is not None, "the acknowledged partition is not in the response")
    judge.equal(0, lasting(part.ack_error) if part else None, "error of the acknowledgement")
    judge.equal([], offsets_in(response, first), "offsets acquired by the forgetting")
    judge.equal([2, 3], sorted(left), "offsets for others, 0 and 1 being accepted")


@check("SES-26")
async def test_session_without_partitions(env: Env, judge: Judge) -> None:
    _, consumer, first, _ = await consumer_of_two(env)
    session = consumer.session

    opened = await session.fetch(epoch=OPEN, max_wait_ms=0)
    empty = await session.fetch(max_wait_ms=0)
    judge.equal(((), ()), (opened.errors, empty.errors), "errors of empty fetches")
    judge.equal(([], []), (opened.offsets, empty.offsets), "offsets of empty fetches")
    held = await acquired(session, first, count=2)
    emptied = await session.fetch(forget=[first], max_wait_ms=0)
    last = await session.fetch(max_wait_ms=0)

    judge.equal({first: [0, 1]}, held, "records once a partition was named")
    judge.equal(((), ()), (emptied.errors, last.errors), "errors once it was forgotten")
    judge.equal([], last.offsets, "offsets once it was forgotten")


async def _beside(
    env: Env, judge: Judge, session: Session, bad: Where, good: Where
) -> tuple[set[int], list[int]]:
    """Fetch two records of a good partition; return all errors until then, and the records."""
    errors, offsets, named = set[int](), list[int](), [bad, good]
    async for _ in attempts():
        response = await session.fetch(*named, max_wait_ms=1000)
        named = []
        judge.equal(0, response.error, "top-level error")
        errors |= {*response.errors} - RETRIABLE
        offsets += offsets_in(response, good)
        if len(offsets) >= 2 and errors:
            break
    else:
        if not await goes_on(env.cluster, good[0].leaders[good[1]]):
            raise Undecided(f"only {offsets} and {errors} came, and no record of a bystander")
    return errors, offsets


@check("ACQ-12", crossed=RELOADED)
async def test_unknown_topic_id(env: Env, judge: Judge) -> None:
    _, consumer, first, _ = await consumer_of_two(env)
    unknown = (nowhere(env, first[0]), 0)

    errors, offsets = await _beside(env, judge, consumer.session, unknown, first)

    unknown_id = {ErrorCode.UNKNOWN_TOPIC_ID}
    judge.equal(unknown_id, errors, "error of the unknown partition, and no other")
    judge.equal([0, 1], offsets, "offsets of the known topic")


@check("SES-28", crossed=AMONG)
async def test_partition_that_comes_later(env: Env, judge: Judge) -> None:
    node = env.rng.choice(sorted(env.cluster.brokers))
    queue, consumer = await env.with_consumer(2, assignments=[[node]])
    first, second = (queue.topic, 0), (queue.topic, 1)

    errors, offsets = await _beside(env, judge, consumer.session, second, first)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    judge.equal({missing}, errors, "errors, one partition being missing")
    judge.equal([0, 1], offsets, "offsets of the partition there is")

    # New partitions get their leader from the cluster, so only one on this broker can heal here.
    larger = await env.admin.create_partitions(queue.topic, 2, assignments=[[node]])
    await beating([consumer.member], lambda: consumer.member.assigned >= every(larger))
    if not consumer.member.assigned >= every(larger):
        raise Undecided("the new partition was not assigned")
    await env.admin.produce(larger, 1, 1)
    healed = await acquired(consumer.session, (larger, 1), count=1, named=False)
    judge.equal({(larger, 1): [0]}, healed, "records once the partition exists, not named again")


@check("SES-29", crossed=AMONG)
async def test_deleted_topic(env: Env, judge: Judge) -> None:
    node = env.rng.choice(sorted(env.cluster.brokers))
    queue = await env.queue(1, assignments=[[node]])
    stays = await env.admin.create_topic(assignments=[[node]])
    consumer = await queue.holder(1)
    member, names = consumer.member, [queue.topic.name, stays.name]
    await good_beat(member, subscribed_topic_names=names)
    await beating([member], lambda: member.assigned == every(queue.topic, stays))
    await consumer.session.fetch((stays, 0), max_wait_ms=0)

    await env.admin.delete_topics(queue.topic.name)
    top, error = await first_error(consumer)
    judge.equal(ErrorCode.NONE, top, "error of the whole fetch after the deletion")
    judge.one_of(NOT_KNOWN, error, "error of the deleted topic's partition")
    await env.admin.produce(stays, 1)
    served = await acquired(consumer.session, (stays, 0), count=1)
    judge.equal({(stays, 0): [0]}, served, "records of the other topic")


@check("SES-47", crossed=AMONG)
async def test_topic_created_again(env: Env, judge: Judge) -> None:
    consumer, again = await created_again(env)

    # The order of partitions rotates, so each fetch may meet the old id first, or not at all.
    served = []
    for offset in range(4):
        served += (await acquired(consumer.session, (again, 0), count=1))[again, 0]
        if served != list(range(offset + 1)):
            break
        await env.admin.produce(again, 1)

    judge.equal([0, 1, 2, 3], served, "records of the topic created again")


@check("SES-48", crossed=AMONG)
async def test_old_id_of_a_topic_created_again(env: Env, judge: Judge) -> None:
    consumer, _ = await created_again(env)

    told = await first_error(consumer)

    allowed = {(ErrorCode.NONE, gone): source for gone, source in NOT_KNOWN.items()}
    judge.one_of(allowed, told, "errors of the fetch and of the old topic id")


async def first_error(consumer: Consumer) -> tuple[int, int | None]:
    """Fetch until something is wrong; return the whole fetch's error and the partition's."""
    seen: tuple[int, int | None] = (0, None)
    async for _ in attempts(WITHIN):
        response = await consumer.session.fetch(max_wait_ms=100)
        part = response.part(consumer.where[0].id, consumer.where[1])
        seen = (response.error, part.error if part else None)
        if any(seen) and not {*seen} & RETRIABLE:
            break
    else:
        node = consumer.where[0].leaders[consumer.where[1]]
        await demand_bystander(consumer.member.cluster, node, "an error did not come")
    return seen


async def created_again(env: Env) -> tuple[Consumer, Topic]:
    """Return a consumer whose session remembers a deleted topic, and one of the same name."""
    node = env.rng.choice(sorted(env.cluster.brokers))
    queue, consumer = await env.with_holder(1, untouched=True, assignments=[[node]])

    await env.admin.delete_topics(queue.topic.name)
    again = await env.admin.create_topic(name=queue.topic.name, assignments=[[node]])
    member = consumer.member
    await beating([member], lambda: member.assigned >= every(again))
    await env.admin.produce(again, 1)
    return consumer, again
