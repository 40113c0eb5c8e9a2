"""The lag of KIP-1226: the log's end minus the start offset minus what is finished above that.

The admin's view is that of the last state write. So every expectation is read behind a write, and
the record that caused it (``rewritten``: acquired, then released) is part of the lag.
"""

from suites.broker.kit import *

pytestmark = pytest.mark.feature("lag")

OF_TWO = pytest.param(
    {"share.delivery.count.limit": "2"},
    marks=pytest.mark.feature("group-delivery-limit"),
    id="of-two",
)


@check("LAG-01", fast=True, crossed=(BESIDE, RELOADED))
async def test_mixed_states(env: Env, judge: Judge) -> None:
    count = env.rng.randint(20, 60)
    queue, consumer = await env.with_holder(count, batches=env.rng.choice([1, 4]))
    fates = {o: env.rng.choice([accept, reject, release, None]) for o in range(1, count)}
    await consumer.acked(*(fate(offset) for offset, fate in fates.items() if fate))
    await queue.produce(env.rng.randint(1, 9))
    end = await env.admin.log_offset(queue.topic)
    finished = sum(fate in (accept, reject) for fate in fates.values())

    expected = end - 0 - finished
    judge.equal(expected, await queue.lag(expected), f"lag with {finished} finished")
    judge.saw(finished=finished)
    await consumer.acked(accept(0))
    last = await queue.produce(1)
    await rewritten(consumer, last)
    start = next(o for o in range(1, count + 1) if fates.get(o) in (None, release))
    expected = last + 1 - start - sum(fates[o] in (accept, reject) for o in range(start, count))
    judge.equal(expected, await queue.lag(expected), f"lag from {start} to {last + 1}")


@check("LAG-02", fast=True, crossed=(BESIDE, RELOADED))
async def test_drained(env: Env, judge: Judge) -> None:
    count = env.rng.randint(30, 80)
    queue = await env.queue(count, batches=env.rng.choice([1, 5, count]))
    members = [await queue.consumer(join=number == 0) for number in range(3)]
    done = 0

    async def work(number: int) -> None:
        nonlocal done
        async for _ in attempts():
            got = await members[number].fetch(max_records=7, max_wait_ms=100)
            if got.offsets:
                finish = env.rng.choice([accept, reject])
                await members[number].acked(*(finish(r.first, r.last) for r in got.only.ranges))
                done += len(got.offsets)
            if done >= count:
                return

    await asyncio.gather(*map(work, range(3)))
    if done < count:
        raise await members[0].stopped(f"only {done} of {count} records were finished")
    judge.equal(0, await queue.lag(0), f"lag with all {count} records finished")


@check("LAG-14", crossed=(BESIDE, RELOADED))
async def test_view_may_stay_behind(env: Env, judge: Judge) -> None:
    count = env.rng.randint(5, 20)
    queue, consumer = await env.with_holder(count)
    await consumer.acked(accept(0, count - 1))

    judge.equal(0, await queue.lag(0), f"lag with all {count} records accepted")
    start = (await queue.offsets()).start
    judge.holds(0 <= start <= count, f"the view's start offset is {start} of {count}")
    judge.saw(behind=count - start)


@check("LAG-03", fast=True, crossed=(BESIDE, RELOADED))
async def test_unfinished_count(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(12)
    await consumer.acked(release(1, 4))
    judge.equal(12, await queue.lag(12), "lag with eight held and four released")
    more = env.rng.randint(1, 9)
    await queue.produce(more)
    judge.equal(12 + more, await queue.lag(12 + more), "lag with records never fetched")


@check("LAG-04", crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize("finish", [accept, reject, None], ids=["accept", "reject", "given-up"])
async def test_finished_do_not_count(
    env: Env, judge: Judge, finish: Callable[[int, int], Ack] | None
) -> None:
    queue, consumer = await env.with_holder(5, lock_ms=env.bounds.longest_lock)
    if finish:
        await consumer.acked(finish(1, 4))
    else:
        helper = await queue.consumer(join=False)
        await consumer.acked(release(1, 4))
        await hold_at(helper, 4, await delivery_limit(env))
        await helper.acked(*(release(offset) for offset in range(1, 5)))
    judge.equal(1, await queue.lag(1), "lag with the first record held, four finished")


@check("LAG-04", crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize("way", ["closed", "expired"])
@pytest.mark.parametrize("own", [pytest.param({}, id="shipped"), OF_TWO])
async def test_let_go_at_the_limit(env: Env, judge: Judge, way: str, own: dict[str, str]) -> None:
    """What was held for the last time is finished when it is let go, of a batch in parts or whole.

    Above a limit of 2 batches may come in parts (KAFKA-17541). The pin is of a fetch of its own.
    """
    limit, longest = 2 if own else await delivery_limit(env), env.bounds.longest_lock
    queue, consumer = await env.with_holder(1, lock_ms=longest, group_config=own)
    await queue.produce(4)
    await consumer.acquire(4)
    helper = await queue.consumer(join=False)
    await consumer.acked(release(1, 4))
    if way == "expired":
        await reconfigure(queue, helper, lock_ms=env.bounds.prompt_lock)
    await hold_at(helper, 4, limit)
    fresh = await queue.produce(1)
    await helper.acquire(1)
    if not own:
        await helper.acked(accept(2))
    if way == "closed":
        await helper.close()
    lock = env.bounds.prompt_lock / 1000
    if (came := [*await watch(consumer, [fresh], lock + SLACK)]) != [fresh]:
        raise Undecided(f"{came} came when records were let go that were held for the last time")
    judge.equal(2, await queue.lag(2), "lag with 0 and the last held, four finished")


@check("LAG-09", crossed=(BESIDE, RELOADED))
async def test_expired_locks(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    queue, consumer = await env.with_holder(10, lock_ms=lock)
    await consumer.acked(accept(5, 6))
    if await queue.lag(8) != 8:
        raise Undecided("the lag is not 8 with eight held, which is LAG-03's")
    other = await queue.consumer(join=False)
    await reconfigure(queue, other, lock_ms=env.bounds.longest_lock)  # the next end may be final
    back = await watch(other, [0], lock / 1000 + SLACK)
    if 0 not in back:
        raise Undecided("the lock of offset 0 never ran out")
    judge.equal(8, await queue.lag(8), "lag after the locks ran out")
    await rewritten(other, await queue.produce(1))
    judge.equal(9, await queue.lag(9), "lag after one more record")


@check("LAG-11", crossed=AMONG)
async def test_markers_passed(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    outcomes = await jumble(queue)
    consumer = await queue.consumer()
    catch = await consumer.drain(until=max(outcomes.plain))
    await consumer.acked(*acknowledge(catch, offered(catch.responses)))

    judge.equal(0, await queue.lag(0), "lag with records and markers acknowledged")
    judge.saw(markers=len(outcomes.markers))


@check("LAG-12", crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize("noticed_by", ["released", "beyond"])
async def test_deleted_leave_the_lag(env: Env, judge: Judge, noticed_by: str) -> None:
    queue, consumer = await env.with_holder(20, lock_ms=env.bounds.longest_lock)
    await consumer.acked(accept(4, 7), release(8, 11))
    # Batches of one record: a cut through a batch is another story (OFF-26).
    await queue.produce(10, batches=10)
    # 0 to 3 held, 4 to 7 finished, 8 to 11 available, 12 to 19 held, 20 to 29 never fetched.
    before = env.rng.randint(9, 18) if noticed_by == "released" else env.rng.randint(22, 29)
    await env.admin.delete_records(queue.topic, before)
    stranger = await queue.consumer(join=False)
    last = await queue.produce(1)
    await stranger.drain(until=last)
    await consumer.close()
    await rewritten(stranger, await queue.produce(1))

    left = last + 2 - before
    judge.equal(left, await queue.lag(left), f"lag with {left} records left")
