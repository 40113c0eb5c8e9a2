"""What becomes of a record on its last permitted delivery."""

from suites.broker.kit import *


@check("DLV-10", fast=True, crossed=(BESIDE, RELOADED))
async def test_released_at_the_limit_is_archived(env: Env, judge: Judge) -> None:
    limit = await delivery_limit(env)
    total = env.rng.randint(1, 6)
    queue = await env.queue(total)
    consumer = await held_at(queue, total, limit)

    part = await consumer.ack(release(0, total - 1))
    new, came = await up_to_new(queue, await queue.consumer(join=False))

    judge.equal(0, lasting(part.ack_error), "error of the last RELEASE")
    judge.equal([new], came.offsets, f"offsets delivered after {limit} releases")
    judge.saw(archived=total)


async def _hold_last(env: Env, lock_ms: int, ahead: int = 0) -> tuple[Queue, Consumer, float]:
    """Return a queue, who holds its last record on its last delivery, and since when.

    The records ahead of it are held under the longest lock, and keep the start offset.
    """
    limit = await delivery_limit(env)
    queue = await two_partitions(env, ahead + 1, lock_ms=env.bounds.longest_lock)
    consumer = await held_at(queue, ahead + 1, limit - 1)
    # The change counts from the next acquisition on.
    await reconfigure(queue, consumer, lock_ms=lock_ms)
    await consumer.acked(release(ahead))
    since = time.monotonic()
    await hold_at(consumer, 1, limit)
    return queue, consumer, since


@check("DLV-11", crossed=(BESIDE, RELOADED))
async def test_expired_at_the_limit_is_archived(env: Env, judge: Judge) -> None:
    queue, _, _ = await _hold_last(env, env.bounds.short_lock)
    await outlast(queue, lock_ms=env.bounds.short_lock)

    new, came = await up_to_new(queue, await queue.consumer(join=False))

    judge.equal([new], came.offsets, "offsets delivered after the last lock")


@check("LCK-39", feature="renew", crossed=(BESIDE, RELOADED))
async def test_last_delivery_can_be_renewed(env: Env, judge: Judge) -> None:
    lock = env.bounds.prompt_lock
    env.bounds.outlasting(lock)  # or the record ahead is let go
    began = time.monotonic()
    queue, consumer, since = await _hold_last(env, lock, 1)
    held = time.monotonic()
    other = await queue.consumer(join=False)
    await linger(other, lock / 1000 * 0.5)
    sent = time.monotonic()
    part = await consumer.ack(renew(1), is_renew_ack=True)
    in_time(since, lock)
    if part.ack_error:
        await plain_locks(env, lock)
    judge.equal(0, lasting(part.ack_error), "error of RENEW on the last delivery")

    # The first lock has ended by then. What is archived could not be renewed again.
    await linger(other, held + lock / 1000 * 1.2 - time.monotonic())
    again = await consumer.ack(renew(1), is_renew_ack=True)
    in_time(sent, lock)
    judge.equal(0, lasting(again.ack_error), "error of RENEW within the renewed lock")
    await outlast(queue, lock_ms=lock)
    new, came = await up_to_new(queue, other)
    in_time(began, env.bounds.longest_lock)

    judge.equal([new], came.offsets, "offsets delivered after the renewed lock")
    await reconfigure(queue, consumer, lock_ms=env.bounds.longest_lock)
    await consumer.acked(accept(0))
    await judge_beyond(judge, queue, consumer, 2)


@check("DLV-12", crossed=(BESIDE, RELOADED))
async def test_closed_at_the_limit_is_archived(env: Env, judge: Judge) -> None:
    total = env.rng.randint(1, 4)
    queue, consumer, bystander = await env.with_pair(total)
    await hold_at(consumer, total, await delivery_limit(env))
    fresh = await queue.produce(1)
    await consumer.acquire(1)
    await bystander.fetch(max_wait_ms=0)
    await consumer.close()

    # The close is answered before its releases are done: they are when this one is back.
    back = await watch(bystander, [fresh], SLACK)
    if fresh not in back:
        raise Undecided("nothing shows that the close let go of anything")
    new, came = await up_to_new(queue, bystander)

    after = sorted({*back, *came.offsets})
    judge.equal([fresh, new], after, "offsets delivered after the last close")
    judge.saw(archived=total)


@check("DLV-13", crossed=RELOADED, timeout=150)
async def test_crashing_member_cannot_keep_a_record_alive(env: Env, judge: Judge) -> None:
    limit = await delivery_limit(env)
    lock_ms = env.bounds.lock(10_000)
    queue = await env.queue(1, lock_ms=lock_ms)
    # Without a session left, a broker may load the share-partition anew, which may cost a count.
    bystander = await queue.consumer(join=False)
    for crash in range(1, limit + 1):
        member = await queue.consumer(join=crash == 1)
        await comes_again(member, [0], lock_ms)
        if crash == 1:
            await bystander.fetch(max_wait_ms=0)
        if crash == limit:
            # When this one is back, the last crash has been noticed.
            await queue.produce(1)
            await member.acquire(1)
        member.session.connection.abort()

    other = await queue.consumer(join=False)
    after = await watch(other, [1], lock_ms / 1000 + SLACK)
    if 1 not in after:
        raise Undecided("nothing shows that the last crash was noticed")
    new, came = await up_to_new(queue, other)

    judge.equal([1, new], sorted({*after, *came.offsets}), "offsets after the crashes")
    judge.saw(crashes=limit)


@check("DLV-14", crossed=(BESIDE, RELOADED))
async def test_archived_records_let_the_start_move(env: Env, judge: Judge) -> None:
    total = env.rng.randint(1, 5)
    queue = await env.queue(total)
    consumer = await held_at(queue, total, await delivery_limit(env))
    await consumer.acked(release(0, total - 1))

    await judge_beyond(judge, queue, consumer, total)


@check("DLV-14", crossed=(BESIDE, RELOADED))
async def test_expired_records_let_the_start_move(env: Env, judge: Judge) -> None:
    queue, consumer, _ = await _hold_last(env, env.bounds.short_lock)
    await outlast(queue, lock_ms=env.bounds.short_lock)
    await reconfigure(queue, consumer, lock_ms=env.bounds.longest_lock)

    await judge_beyond(judge, queue, consumer, 1)


@check("DLV-15", fast=True, crossed=(BESIDE, RELOADED))
async def test_last_delivery_can_be_accepted(env: Env, judge: Judge) -> None:
    total = env.rng.randint(1, 4)
    queue = await env.queue(total)
    consumer = await held_at(queue, total, await delivery_limit(env))

    part = await consumer.ack(accept(0, total - 1))
    new, came = await up_to_new(queue, consumer)

    judge.equal(0, lasting(part.ack_error), "error of an ACCEPT on the last delivery")
    judge.equal([new], came.offsets, "offsets delivered after it")


@check("DLV-16", fast=True, crossed=(BESIDE, RELOADED))
async def test_limit_applies_to_each_record(env: Env, judge: Judge) -> None:
    total = env.rng.randint(4, 12)
    unlucky = sorted(env.rng.sample(range(total), env.rng.randint(1, 3)))
    queue, patient, hasty = await env.with_pair(total, lock_ms=env.bounds.longest_lock)
    await patient.acquire(total)
    await patient.acked(*(release(offset) for offset in unlucky))
    await hold_at(hasty, len(unlucky), await delivery_limit(env))
    await hasty.acked(*(release(offset) for offset in unlucky))

    others = [offset for offset in range(total) if offset not in unlucky]
    await patient.acked(*(release(offset) for offset in others))
    new, came = await up_to_new(queue, await queue.consumer(join=False))

    expected = dict.fromkeys(others, 2) | {new: 1}
    judge.equal(expected, came.counts, f"what comes after {unlucky} were archived")


@check("DLV-17", fast=True, crossed=(BESIDE, RELOADED))
async def test_reject_archives_at_any_count(env: Env, judge: Judge) -> None:
    delivery = env.rng.randint(1, await delivery_limit(env))
    queue = await env.queue(3)
    consumer = await held_at(queue, 3, delivery)

    judge_done(judge, await consumer.ack(reject(0, 2)), f"a REJECT on delivery {delivery}")
    await judge_final(judge, queue, consumer, range(3))
