"""The group's own delivery limit (KIP-1240), and what changing it means for records under way."""

from suites.broker.kit import *

pytestmark = pytest.mark.feature("group-delivery-limit")

LIMIT = "share.delivery.count.limit"


async def _deliveries(queue: Queue, consumer: Consumer) -> dict[int, list[int]]:
    """Have everything delivered and released until nothing comes; return the counts by offset.

    Should the limit not be kept, it ends after more deliveries than any limit here permits.
    """
    counts: dict[int, list[int]] = {}
    for _ in range(15):
        new, came = await up_to_new(queue, consumer)
        records = {o: count for o, count in came.counts.items() if o != new}
        if not records:
            break
        for offset, count in records.items():
            counts.setdefault(offset, []).append(count)
        await consumer.acked(*(release(o) for o in sorted(records)), accept(new))
    return counts


@check("DLV-26", fast=True, crossed=AMONG)
async def test_group_limit_wins_over_the_broker(env: Env, judge: Judge) -> None:
    default = await delivery_limit(env)
    for some in (range(2, default), range(default + 1, default + 3)):
        limit = env.rng.choice([*some] or [default + 1])
        queue = await env.queue(3, group_config={LIMIT: str(limit)})
        consumer = await held_at(queue, 3, limit)
        await consumer.acked(release(0, 2))

        new, came = await up_to_new(queue, consumer)

        judge.equal([new], came.offsets, f"offsets delivered after {limit} deliveries")
        judge.saw(deliveries=3 * limit)


@check("DLV-28", crossed=AMONG)
async def test_lowered_limit_grants_one_more_delivery(env: Env, judge: Judge) -> None:
    before = env.rng.randint(3, 5)
    after = env.rng.randint(2, before)
    total = env.rng.randint(2, 5)
    queue = await env.queue(total, group_config={LIMIT: "10"})
    consumer = await held_at(queue, total, before)
    await consumer.acked(release(0, total - 1))
    await reconfigure(queue, consumer, 29_000, share_delivery_count_limit=str(after))

    counts = await _deliveries(queue, consumer)

    # KIP-1240 permits that final delivery without demanding it.
    more = {offset: seen for offset, seen in counts.items() if len(seen) > 1}
    judge.equal({}, more, f"more than one delivery after {before}, limit {after} now")
    await judge_beyond(judge, queue, consumer, total, f"{total} at the limit")
    judge.saw(final_deliveries=len(counts))


@check("DLV-29", fast=True, crossed=AMONG)
async def test_lowered_limit_archives_what_is_released(env: Env, judge: Judge) -> None:
    held = env.rng.randint(3, 5)
    total = env.rng.randint(1, 5)
    queue = await env.queue(total, group_config={LIMIT: "10"})
    consumer = await held_at(queue, total, held)
    lowered = env.rng.randint(2, held)
    await reconfigure(queue, consumer, 29_000, share_delivery_count_limit=str(lowered))
    await consumer.acked(release(0, total - 1))

    new, came = await up_to_new(queue, consumer)

    what = f"offsets delivered after a release on delivery {held} with the limit at {lowered}"
    judge.equal([new], came.offsets, what)


@check("DLV-30", crossed=AMONG)
async def test_raised_limit_gives_more_deliveries(env: Env, judge: Judge) -> None:
    old = env.rng.randint(2, 3)
    new = old + env.rng.randint(1, 3)
    queue = await env.queue(3, group_config={LIMIT: str(old)})
    consumer = await held_at(queue, 3, old)
    await reconfigure(queue, consumer, 29_000, share_delivery_count_limit=str(new))
    await consumer.acked(release(0, 2))

    counts = await _deliveries(queue, consumer)

    expected = {offset: list(range(old + 1, new + 1)) for offset in range(3)}
    judge.equal(expected, counts, f"counts of later deliveries, limit {old} to {new}")


@check("DLV-11", "LAG-04", crossed=AMONG)
async def test_whole_batch_expires_at_the_limit(env: Env, judge: Judge) -> None:
    lock_ms = env.bounds.short_lock
    queue = await two_partitions(env, 5, lock_ms=lock_ms, **{LIMIT: "2"})
    consumer = await queue.holder(5)
    back = await watch(consumer, range(5), lock_ms / 1000 + SLACK)
    if len(back) < 5:
        raise Undecided(f"only {sorted(back)} came a second time")
    await outlast(queue, lock_ms=lock_ms)

    new, came = await up_to_new(queue, await queue.consumer(join=False))
    judge["DLV-11"].equal([new], came.offsets, "offsets delivered after the last lock")
    judge["LAG-04"].equal(1, await queue.lag(1), "lag with a new record held alone")
