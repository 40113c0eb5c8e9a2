"""Who may settle a record, and in which state it has to be."""

from suites.broker.kit import *

TYPES = (AckType.GAP, AckType.ACCEPT, AckType.RELEASE, AckType.REJECT)
FINAL = (AckType.GAP, AckType.ACCEPT, AckType.REJECT)
WRONG_STATE = "INVALID_RECORD_STATE"


async def judge_types_refused(judge: Judge, consumer: Consumer, first: int, last: int) -> None:
    """Demand that every type is refused for a range, at once and offset by offset."""
    for kind in TYPES:
        part = await consumer.ack(Ack(first, last, (kind,)))
        judge.equal(WRONG_STATE, result(part), f"{kind.name} of {first}..{last}")
        part = await consumer.ack(*singly(range(first, last + 1), kind))
        judge.equal(WRONG_STATE, result(part), f"{kind.name} of {first} to {last} one by one")


@check("ACK-29", fast=True, crossed=(BESIDE, BEHIND))
async def test_record_of_another_member(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10)
    intruder = await queue.consumer(join=env.rng.random() < 0.5)
    await intruder.fetch(max_wait_ms=0)
    first = env.rng.randint(1, 7)
    await judge_types_refused(judge, intruder, first, first + 2)
    await judge_held(judge, consumer, range(1, 10), "another member's attempts")


@check("ACK-30", fast=True, crossed=(BESIDE, BEHIND))
async def test_record_that_was_released(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10)
    first = env.rng.randint(1, 7)
    await consumer.acked(release(first, first + 2))
    await judge_types_refused(judge, consumer, first, first + 2)
    again = await next_catch(queue, consumer)
    judge.equal([*range(first, first + 3)], again.offsets, "the released records")


@check("ACK-31", fast=True, crossed=(BESIDE, RELOADED))
async def test_record_that_was_settled(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(12)
    for first, kind in zip((2, 5, 8), FINAL, strict=True):
        await consumer.acked(Ack(first, first + 1, (kind,)))
        await judge_types_refused(judge, consumer, first, first + 1)
    await judge_final(judge, queue, consumer, (2, 3, 5, 6, 8, 9))


@check("ACK-32", fast=True, crossed=(BESIDE, BEHIND), meets=ACROSS_END)
async def test_offsets_past_the_acquired(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10)
    await queue.produce(5)
    ranges = ((10, 14), (10, 10), (env.rng.randint(15, 1000), 1000))
    for first, last in ranges:
        for kind in TYPES:
            part = await consumer.ack(Ack(first, last, (kind,)))
            judge.equal("INVALID_REQUEST", result(part), f"{kind.name} {first}..{last}")
    part = await consumer.ack(accept(env.rng.randint(1, 9), 12))
    judge.equal("INVALID_REQUEST", result(part), "a range that begins in the acquired")
    later = await next_catch(queue, consumer)
    expected = dict.fromkeys(range(10, 15), 1)
    judge.delivered(expected, later.counts, "the records above, delivered for the first time")
    await judge_held(judge, consumer, range(1, 10), "acknowledging past them")


@check("ACK-34", fast=True, crossed=(BESIDE, RELOADED))
async def test_offsets_below_the_start(env: Env, judge: Judge) -> None:
    settled = env.rng.randint(4, 9)
    queue, consumer = await env.with_holder(settled + 3)
    await consumer.acked(accept(0, 1), reject(2), gap(3), accept(4, settled))
    stranger = await queue.consumer(join=False)
    await stranger.fetch(max_wait_ms=0)
    for who, name in ((consumer, "its former holder"), (stranger, "a stranger")):
        for kind in TYPES:
            judge_done(judge, await who.ack(Ack(0, settled, (kind,))), f"{kind.name} by {name}")
            judge_done(judge, await who.ack(*singly((1, 3, settled), kind)), f"{kind.name} singly")
    judge.equal({}, (await next_catch(queue, stranger)).counts, "records that came again")
    if (told := result(await stranger.ack(release(settled + 1)))) == "NONE":
        raise Undecided(f"a stranger's release at the start offset was answered {told}")
    await judge_held(judge, consumer, range(settled + 1, settled + 3), "acknowledging below")


@check("ACK-63", crossed=(BESIDE, RELOADED), meets=ACROSS_START)
async def test_batch_across_the_start(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(14)
    await consumer.acked(accept(0, 4))
    judge_done(judge, await consumer.ack(release(3, 6)), "one type across the start offset")
    judge.equal([5, 6], (await next_catch(queue, consumer)).offsets, "records that come again")
    judge_done(judge, await consumer.ack(each(2, (2, 2, 2, 1, 1, 2, 3))), "single types across it")
    judge.equal([7], (await next_catch(queue, consumer)).offsets, "records that come again")
    # 7 is acquired and the start offset, so that what is above is judged by its state.
    judge_refusal(judge, await consumer.ack(release(8)), "releasing the rejected record")
    await judge_held(judge, consumer, range(9, 14), "batches that end before it")


@check("ACK-35", fast=True, crossed=(BESIDE, BEHIND))
async def test_former_holder(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10)
    first = env.rng.randint(1, 6)
    await consumer.acked(release(first, first + 3))
    heir = await queue.consumer(join=False)
    taken = await heir.acquire(4)
    if taken.offsets != [*range(first, first + 4)]:
        raise Undecided(f"{taken.offsets} were acquired, and not what was released")
    await judge_types_refused(judge, consumer, first, first + 3)
    await judge_held(judge, heir, taken.offsets, "attempts of the former holder")
