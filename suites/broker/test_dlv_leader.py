"""What a new leader knows of delivery counts: those that were stored."""

from suites.broker.kit import *


@check("DLV-31", fast=True)
async def test_counts_of_released_records_survive(env: Env, judge: Judge) -> None:
    total = env.rng.randint(2, 6)
    queue = await replicated(env, total)
    consumer = await queue.consumer()
    delivered = env.rng.randint(1, await delivery_limit(env) - 1)
    await hold_at(consumer, total, delivered)
    await consumer.acked(release(0, total - 1))

    other = await (await moved(queue)).consumer(join=False)
    seen = await comes_again(other, range(total))

    expected = dict.fromkeys(range(total), delivered + 1)
    judge.equal(expected, seen, f"counts under a new leader after {delivered}")
    judge.saw(leader_moves=1, redeliveries=total)


@check("DLV-32", crossed=AMONG)
async def test_counts_of_acquired_records_may_fall_back(env: Env, judge: Judge) -> None:
    queue = await replicated(env, 4)
    consumer = await queue.consumer()
    stored = env.rng.randint(0, min(2, await delivery_limit(env) - 2))
    if stored:
        await hold_at(consumer, 4, stored)
        await consumer.acked(release(0, 3))
    await hold_at(consumer, 4, stored + 1)

    other = await (await moved(queue)).consumer(join=False)
    for offset, count in (await comes_again(other, range(4))).items():
        allowed = {
            stored + 1: "KIP-932 §Managing durable share-partition state: Acquired is not stored",
            stored + 2: "KIP-932 §In-flight records: each delivery is counted",
        }
        what = f"count of offset {offset} with {stored} deliveries stored and one under way"
        judge.one_of(allowed, count, what)


@check("DLV-33", crossed=AMONG)
async def test_archived_records_stay_archived(env: Env, judge: Judge) -> None:
    total = env.rng.randint(2, 6)
    queue = await replicated(env, total)
    consumer = await held_at(queue, total, await delivery_limit(env))
    # The first record stays held, so that the start offset does not hide the others.
    await consumer.acked(release(1, total - 1))

    after = await moved(queue)
    other = await after.consumer(join=False)
    # The new leader may answer NOT_LEADER_OR_FOLLOWER for a moment, which a watch sits out.
    sentinel = await after.produce(1)

    seen = await watch(other, [sentinel], SLACK)
    last, later = await up_to_new(after, other)
    came = sorted({*seen, *later.offsets} - {0})
    judge.equal([sentinel, last], came, "offsets delivered by the new leader")
