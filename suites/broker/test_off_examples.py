"""The examples of KIP-932 itself, step by step: its table of operations and its figure.

The table begins at offset 100, so that a hundred records lie before it. It shows the start offset
that the leader has; the admin's view is at most one state write behind, which is why a step here
allows the value of the step before it as well, and never any other.
"""

from suites.broker.kit import *


@check("OFF-40", crossed=AMONG)
async def test_operations_table(env: Env, judge: Judge) -> None:
    # Of the records that expire in the table, and of all others.
    long = env.bounds.outlasting(short := env.bounds.lock(5000))
    # The share-partition begins at 100, the log's end.
    queue = await env.queue(records=100, lock_ms=long)
    response = await env.admin.alter_offset(queue.group, queue.topic, 100)
    if response.error_code or not response.responses:
        # 4.1 takes no alteration: the hundred records are consumed instead.
        one = await queue.holder(100)
        await one.acked(accept(0, 99))
    else:
        one = await queue.consumer()
    two = await queue.consumer(join=False)

    # Fetch records 100-109, acknowledge 100-109.
    await _fetch(judge, queue, one, dict.fromkeys(range(100, 110), 1), produce=10)
    await one.acked(accept(100, 109))

    # Fetch records 110-119: 110 to 112 with a lock that runs out in the course of the table.
    await env.admin.group_config(queue.group, {LOCK: str(short)})
    sent = time.monotonic()
    await _fetch(judge, queue, one, dict.fromkeys(range(110, 113), 1), produce=3)
    expires = time.monotonic() + short / 1000
    await env.admin.group_config(queue.group, {LOCK: str(long)})
    await _fetch(judge, queue, one, dict.fromkeys(range(113, 120), 1), produce=7)

    # Release 110, acknowledge 119, fetch records 110 and 120.
    await one.acked(release(110))
    await _view(judge, queue, 110, 110)
    await one.acked(accept(119))
    await _view(judge, queue, 110, 110)
    await queue.produce(1)
    seen = await two.take(2)
    in_time(sent, short)  # a lock may not run out before its line of the table
    judge.equal({110: 2, 120: 1}, seen.counts, "delivery counts of the records fetched")

    # Lock timeout elapsed 111, 112; nothing moves meanwhile.
    async for _ in attempts(short / 1000 + WITHIN):
        await _view(judge, queue, 110, 110)
        if time.monotonic() > expires:
            break

    # Acknowledge 113-118, fetch records 111, 112.
    await one.acked(accept(113, 118))
    await _view(judge, queue, 110, 110)
    back = await ending(env, two, [111, 112], short)
    judge.equal([2, 2], [back[n].count for n in (111, 112) if n in back], "counts after that end")

    # Acknowledge 110, then 111 and 112: the start offset is 111, then 120. 120 is still held.
    await two.acked(accept(110))
    await _view(judge, queue, 110, 111)
    await two.acked(accept(111, 112))
    await _view(judge, queue, 111, 120)
    await two.acked(release(120))
    judge.equal(120, await queue.spso(120), "start offset in the end")
    await _fetch(judge, queue, two, {120: 2})


async def _view(judge: Judge, queue: Queue, *allowed: int) -> None:
    """Judge the admin's start offset: what the table says, or what it said one write before."""
    sources = dict.fromkeys(
        allowed, "KIP-932 §Managing durable share-partition state: the view is what was stored last"
    )
    judge.one_of(sources, (await queue.offsets()).start, "start offset that is shown")


async def _fetch(
    judge: Judge, queue: Queue, consumer: Consumer, expected: dict[int, int], produce: int = 0
) -> None:
    """Judge that a fetch brings exactly these offsets with these counts."""
    if produce:
        await queue.produce(produce)
    seen = await consumer.take(len(expected))
    judge.equal(expected, seen.counts, "delivery counts of the records fetched")


async def _figure(env: Env) -> tuple[Queue, Consumer]:
    """Bring about the states of the figure: offsets 0 to 8, with 2 and 4 held by one member."""
    queue = await env.queue(
        records=9, batches=env.rng.choice([1, 3, 9]), lock_ms=env.bounds.longest_lock
    )
    consumer = await queue.holder(9)
    await consumer.acked(accept(0), reject(1))
    await consumer.acked(release(3))
    again = await consumer.acquire(1)
    if again.counts != {3: 2}:
        raise Undecided(f"record 3 should have come a second time, {again.counts} came")
    await consumer.acked(accept(5), reject(6))
    await consumer.acked(release(3), release(7, 8))
    return queue, consumer


@check("OFF-41", fast=True, crossed=(BESIDE, RELOADED))
async def test_in_flight_example(env: Env, judge: Judge) -> None:
    queue, holder = await _figure(env)
    judge.equal(2, await queue.spso(2), "start offset")

    counts = await given_anew(queue, join=False)

    # 3 was acquired twice, 7 and 8 once, 9 never: the next delivery is one more. The others are
    # archived (0, 1, 6), acknowledged (5) or held (2, 4).
    expected = {3: 3, 7: 2, 8: 2, 9: 1}
    judge.equal(expected, counts, "what another member is given, with its counts")
    judge_done(judge, await holder.ack(accept(2), accept(4)), "settling 2 and 4, which are held")


@check("OFF-42", crossed=AMONG)
async def test_in_flight_example_is_durable(env: Env, judge: Judge) -> None:
    queue, _ = await _figure(env)
    judge.equal(2, await queue.spso(2), "start offset that the admin sees")

    stored = await read_state(queue)

    states = {
        offset: (batch.delivery_state, batch.delivery_count)
        for batch in stored.state_batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    judge.equal(2, stored.start_offset, "start offset in the durable state")
    judge.equal((AVAILABLE, 2), states.get(3), "record 3: available, delivered twice")
    judge.equal(ACKNOWLEDGED, states.get(5, (None,))[0], "record 5: acknowledged")
    judge.equal(ARCHIVED, states.get(6, (None,))[0], "record 6: archived")
    # Acquired is not a durable state (KIP-932 §Durable state).
    judge.equal(set(), {2, 4} & states.keys(), "held records with a durable state")
