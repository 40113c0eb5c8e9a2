"""Which offsets a batch reaches: parts and spans of what was acquired, types one by one."""

from suites.broker.kit import *

FINAL = (AckType.GAP, AckType.ACCEPT, AckType.REJECT)
LONG = 500
HUNDREDS = 1900  # Records in flight at once in one partition: below the default limit of 2000.


@check("ACK-24", fast=True, crossed=(BESIDE, BEHIND))
async def test_one_type_for_a_range(env: Env, judge: Judge) -> None:
    count = env.rng.randint(20, 60)
    queue, consumer = await env.with_holder(count)
    middle = env.rng.randint(5, count - 6)
    part = await consumer.ack(accept(1, middle), release(middle + 1, count - 2))
    judge.equal("NONE", result(part), "result of two ranges")
    again = await next_catch(queue, consumer)
    expected = dict.fromkeys(range(middle + 1, count - 1), 2)
    judge.equal(expected, again.counts, "records that come again")
    await judge_held(judge, consumer, [count - 1], "ranges that ended before it")


@check("ACK-25", fast=True, crossed=(BESIDE, RELOADED))
async def test_types_alternate_over_a_long_range(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(LONG)
    rng = env.rng
    regular = rng.random() < 0.5
    types = [
        AckType(index % 4) if regular else rng.choice([*FINAL, AckType.RELEASE])
        for index, _ in enumerate(range(1, LONG))
    ]
    response = await consumer.ack(each(1, types))
    judge.equal("NONE", result(response), f"result of {len(types)} types in one batch")

    await consumer.close()
    stranger = await queue.consumer(join=False)
    again = await next_catch(queue, stranger)
    released = [o for o, kind in zip(range(1, LONG), types, strict=True) if kind == AckType.RELEASE]
    again.counts.pop(0, None)  # the pin, released by the closing session, which is another rule's
    judge.equal(dict.fromkeys(released, 2), again.counts, "records that come again")
    judge.saw(redeliveries=len(released), settled=len(types) - len(released))


@check("ACK-25", crossed=(BESIDE, BEHIND))
async def test_types_of_single_offsets_inside_a_fetch(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(9)
    types = [*FINAL, AckType.RELEASE, AckType.RELEASE, *FINAL]
    env.rng.shuffle(types)
    response = await consumer.fetch(each(1, types), max_wait_ms=0)
    judge.equal("NONE", result_in(response, consumer), f"result of {types}")
    caught = response.only.counts | (await next_catch(queue, consumer)).counts
    expected = {1 + i: 2 for i, kind in enumerate(types) if kind == AckType.RELEASE}
    judge.equal(expected, caught, "records that come again")


@check("ACK-26", crossed=AMONG)
async def test_thousands_of_batches(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_consumer(HUNDREDS, batches=env.rng.choice([1, 4, 19]))
    await consumer.acquire(HUNDREDS, max_records=HUNDREDS)
    odd = list(range(1, HUNDREDS, 2))
    even = list(range(2, HUNDREDS, 2))
    mixed = [Ack(o, o, (AckType.RELEASE if o % 2 else AckType.ACCEPT,)) for o in range(1, HUNDREDS)]
    judge.equal("NONE", result(await consumer.ack(*mixed)), f"result of {len(mixed)} batches")
    again = await consumer.acquire(len(odd), max_records=HUNDREDS)
    judge.equal(dict.fromkeys(odd, 2), again.counts, "records that come again")
    part = await consumer.ack(accept(even[0]))
    judge.equal("INVALID_RECORD_STATE", result(part), "accepting an accepted one again")
    await judge_held(judge, consumer, [0, *odd], "acknowledging every second one")


@check("ACK-27", fast=True, crossed=(BESIDE, BEHIND), meets=ACROSS_BATCHES)
async def test_batch_spans_acquired_ranges(env: Env, judge: Judge) -> None:
    batches = env.rng.randint(3, 6)
    queue, consumer = await env.with_holder(30, batches=batches)
    # Released and acquired again one has another delivery count, so it is a range of its own.
    await consumer.acked(release(12, 14))
    again = await consumer.acquire(3)
    judge.equal({12: 2, 13: 2, 14: 2}, again.counts, "the ranges acquired again")
    part = await consumer.ack(accept(3, 25))
    judge.equal("NONE", result(part), f"a batch over {batches} record batches")
    stray = await next_catch(queue, consumer)
    judge.equal({}, stray.counts, "records of the spanned ranges that came again")
    part = await consumer.ack(accept(14))
    judge.equal("INVALID_RECORD_STATE", result(part), "accepting one of them again")
    await judge_held(judge, consumer, [1, 2, *range(26, 30)], "the batch between them")


@check("ACK-28", crossed=BEHIND)
async def test_partitions_in_any_order(env: Env, judge: Judge) -> None:
    count = 5
    several = await spread(env, count, records=4)
    order = env.rng.sample(range(count), count)
    bad = env.rng.randrange(count)
    body = [
        {
            "topic_id": several.queue.topic.id,
            "partitions": [
                {
                    "partition_index": index,
                    "acknowledgement_batches": [
                        accept(0, 1).wire(),
                        release(2, 20 if index == bad else 2 + index % 2).wire(),
                    ],
                }
            ],
        }
        for index in order
    ]
    response = await several.session.acknowledge({}, topics=body)
    refused = [index for index, one in enumerate(several.results(response)) if one != "NONE"]
    judge.equal([bad], refused, f"partitions that are refused, asked in order {order}")
    for index in range(count):
        expected = {} if index == bad else dict.fromkeys(range(2, 3 + index % 2), 2)
        left = await several.left(index)
        judge.equal(expected, left, f"records of partition {index} that come again")
