"""Which offsets a batch reaches: parts and spans of what was acquired, types one by one."""

from suites.broker.kit import *

FINAL = (AckType.GAP, AckType.ACCEPT, AckType.REJECT)
LONG = 500
HUNDREDS = 1900  # Records in flight at once in one partition, if that is allowed.


@check("ACK-24", fast=True, crossed=(BESIDE, BEHIND))
async def test_one_type_for_a_range(env: Env, judge: Judge) -> None:
    count = env.rng.randint(20, 60)
    queue, consumer = await env.with_holder(count)
    middle = env.rng.randint(5, count - 6)
    final = env.rng.choice([accept, reject])(1, middle)
    judge_done(judge, await consumer.ack(final, release(middle + 1, count - 2)), "two ranges")
    again = await next_catch(queue, consumer)
    judge.equal([*range(middle + 1, count - 1)], again.offsets, "records that come again")
    await judge_held(judge, consumer, [count - 1], "ranges that ended before it")
    await judge_final(judge, queue, consumer, range(1, middle + 1))


@check("ACK-25", fast=True, crossed=(BESIDE, RELOADED))
async def test_types_alternate_over_a_long_range(env: Env, judge: Judge) -> None:
    count = await in_window(env, LONG)
    queue, consumer = await env.with_holder(count)
    kinds, regular = [*FINAL, AckType.RELEASE], env.rng.random() < 0.5
    types = [kinds[i % 4] if regular else env.rng.choice(kinds) for i in range(count - 1)]
    response = await consumer.ack(each(1, types))
    judge_done(judge, response, f"result of {len(types)} types in one batch")

    await consumer.close()
    stranger = await queue.consumer(join=False)
    again = await next_catch(queue, stranger)
    released = [offset for offset, kind in enumerate(types, 1) if kind == AckType.RELEASE]
    again.counts.pop(0, None)  # the pin, released by the closing session, which is another rule's
    judge.equal(released, again.offsets, "records that come again")
    judge.saw(redeliveries=len(released), settled=len(types) - len(released))


@check("ACK-25", crossed=(BESIDE, BEHIND))
async def test_types_of_single_offsets_inside_a_fetch(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(9)
    types = [*FINAL, AckType.RELEASE, AckType.RELEASE, *FINAL]
    env.rng.shuffle(types)
    response = await consumer.fetch(each(1, types), max_wait_ms=0)
    judge_done(judge, result_in(response, consumer), f"result of {types}")
    caught = response.only.counts | (await next_catch(queue, consumer)).counts
    expected = [1 + i for i, kind in enumerate(types) if kind == AckType.RELEASE]
    judge.equal(expected, sorted(caught), "records that come again")


@check("ACK-26", crossed=AMONG)
async def test_thousands_of_batches(env: Env, judge: Judge) -> None:
    count = await in_window(env, HUNDREDS)
    _, consumer = await env.with_consumer(count, batches=env.rng.choice([1, 4, 19]))
    await consumer.acquire(count, max_records=count)
    odd = list(range(1, count, 2))
    even = list(range(2, count, 2))
    mixed = [Ack(o, o, (AckType.RELEASE if o % 2 else AckType.ACCEPT,)) for o in range(1, count)]
    judge_done(judge, await consumer.ack(*mixed), f"result of {len(mixed)} batches")
    again = await consumer.acquire(len(odd), max_records=count)
    judge.equal(odd, again.offsets, "records that come again")
    judge_refusal(judge, await consumer.ack(accept(even[0])), "accepting one again")
    await judge_held(judge, consumer, [0, *odd], "acknowledging every second one")


@check("ACK-27", fast=True, crossed=(BESIDE, BEHIND), meets=ACROSS_BATCHES)
async def test_batch_spans_acquired_ranges(env: Env, judge: Judge) -> None:
    batches = env.rng.randint(3, 6)
    queue, consumer = await env.with_holder(30, batches=batches)
    # Released and acquired again one has another delivery count, so it is a range of its own.
    await consumer.acked(release(12, 14))
    await consumer.acquire(3)
    judge_done(judge, await consumer.ack(accept(3, 25)), f"a batch over {batches} record batches")
    stray = await next_catch(queue, consumer)
    judge.equal({}, stray.counts, "records of the spanned ranges that came again")
    judge_refusal(judge, await consumer.ack(accept(14)), "accepting one of them again")
    await judge_held(judge, consumer, [1, 2, *range(26, 30)], "the batch between them")


@check("ACK-28")
async def test_partitions_in_any_order(env: Env, judge: Judge) -> None:
    matrix = await grid(env)
    await matrix.produce(4)
    await matrix.acquire(matrix.session, 4)
    order = [
        (topic, index)
        for topic in env.rng.sample(matrix.topics, len(matrix.topics))
        for index in env.rng.sample(topic.partitions, len(topic.partitions))
    ]
    bad = env.rng.choice(order)
    # Offset 0 stays held. Which record is released differs, so that none can stand for another.
    acks = {where: [accept(1), release(2 + number % 2)] for number, where in enumerate(order)}
    acks[bad] = [release(2), Ack(3, 3, (77,))]
    response = await matrix.session.acknowledge(acks)
    told = {where: result(response.part(where[0].id, where[1])) for where in order}
    refused = [where for where, error in told.items() if error != "NONE"]
    if not refused:
        raise Undecided("type 77 is accepted, which ACK-11 and ACK-12 forbid")
    judge.equal([bad], refused, "partitions that are refused")
    heir = await matrix.queue(matrix.topics[0]).consumer(join=False)
    expected = {where: [2 + number % 2] for number, where in enumerate(order) if where != bad}
    free = await acquired(heir.session, *expected, count=len(expected))
    judge.equal(expected, free, "records that come again")
