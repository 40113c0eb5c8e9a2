"""Throttled delivery: ever smaller pieces as records near the limit (KAFKA-17541, since 4.2).

A consumer that dies of one record takes with it whatever came along. Handing out less and less, and
the last time one record alone, is what saves the neighbours.
"""

from suites.broker.kit import *

LIMIT = "share.delivery.count.limit"
MANY_FETCHES = 1000
"""More than any ladder needs for the records of these checks, even one at a time."""


@check("DLV-21", fast=True, crossed=(BESIDE, RELOADED))
async def test_ladder_of_the_default_limit(env: Env, judge: Judge) -> None:
    limit = await delivery_limit(env)
    queue = await env.queue(100)
    sizes = await descend(await queue.consumer(), limit)

    expected = [100, 100, 100, 50, 1] if limit == 5 else ladder(limit, 100)
    judge.equal(expected, sizes, f"records per delivery under a limit of {limit}")


@check("DLV-22", feature="group-delivery-limit", crossed=AMONG)
async def test_ladder_of_any_limit(env: Env, judge: Judge) -> None:
    limit = env.rng.randint(3, 10)
    total = env.rng.choice((16, 64, 100))
    queue = await env.queue(total, group_config={LIMIT: str(limit)})
    sizes = await descend(await queue.consumer(), limit)

    judge.equal(ladder(limit, total), sizes, f"records per delivery under a limit of {limit}")


@check("DLV-22", feature="group-delivery-limit", crossed=AMONG)
async def test_ladder_of_limit_ten(env: Env, judge: Judge) -> None:
    queue = await env.queue(512, group_config={LIMIT: "10"})
    sizes = await descend(await queue.consumer(), 10)

    expected = [512, 512, 512, 512, 512, 256, 128, 64, 32, 1]
    judge.equal(expected, sizes, "records per delivery under a limit of 10")


@check("DLV-24", feature="group-delivery-limit", fast=True, crossed=(BESIDE, RELOADED))
async def test_limit_of_two_is_not_throttled(env: Env, judge: Judge) -> None:
    total = env.rng.randint(20, 60)
    queue = await env.queue(total, group_config={LIMIT: "2"})
    consumer = await queue.consumer()
    sizes = await descend(consumer, 2)

    judge.equal([total, total], sizes, "records per delivery under a limit of 2")
    if (more := await next_catch(queue, consumer)).counts:
        raise Undecided(f"the limit of 2 is not in force: {more.counts} came besides")


@check("DLV-23", crossed=(BESIDE, RELOADED))
async def test_last_delivery_comes_alone(env: Env, judge: Judge) -> None:
    limit = await limit_above_two(env)
    total = env.rng.randint(3, 6)
    queue = await env.queue(total)
    consumer = await held_at(queue, total, limit - 1)
    await consumer.acked(release(0, total - 1))
    await queue.produce(1)

    for offset in range(total):
        judge.equal({offset: limit}, (await consumer.acquire(1)).counts, "what one fetch brought")
    judge.saw(last_deliveries=total)


async def _work_off(queue: Queue, poison: int, limit: int, *, crash: bool) -> dict[int, int]:
    """Accept all but the poison until that came ``limit`` times; return each one's delivery."""
    consumer = await queue.consumer()
    accepted: dict[int, int] = {}
    times = 0
    for _ in range(MANY_FETCHES):
        ranges = consumer.sound(await consumer.fetch()).only.ranges
        counts = {offset: r.count for r in ranges for offset in r.offsets}
        if poison not in counts:
            if ranges:
                await consumer.acked(*(accept(r.first, r.last) for r in ranges))
            accepted |= counts
            continue
        times += 1
        if crash:
            await consumer.close()
            consumer = await queue.consumer(join=False)
        else:
            await consumer.acked(*releases(ranges))
        if times == limit:
            return accepted
    raise Undecided(f"the poison came {times} times in {MANY_FETCHES} fetches, not {limit} times")


@check("DLV-25", crossed=AMONG)
@pytest.mark.parametrize("crash", [False, True], ids=["release", "close"])
async def test_poison_takes_no_neighbours_along(env: Env, judge: Judge, crash: bool) -> None:
    limit = await limit_above_two(env)
    total = env.rng.randint(30, 80)
    poison = env.rng.randrange(total)
    queue = await env.queue(total)

    accepted = await _work_off(queue, poison, limit, crash=crash)
    _, rest = await up_to_new(queue, await queue.consumer(join=False))

    came = sorted({*accepted, *rest.offsets})
    expected = [offset for offset in range(total + 1) if offset != poison]
    judge.equal(expected, came, f"offsets that came without the poison {poison}")
    judge.saw(accepted=len(accepted), deliveries_of_the_poison=limit)
