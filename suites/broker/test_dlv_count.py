"""What counts as a delivery, and what the count belongs to."""

from suites.broker.kit import *


@check("DLV-01", fast=True, crossed=(BESIDE, RELOADED))
async def test_first_delivery_counts_one(env: Env, judge: Judge) -> None:
    total = env.rng.randint(3, 40)
    queue = await env.queue(total, batches=env.rng.randint(1, 3))
    caught = await (await queue.consumer()).acquire(total)

    judge.equal(dict.fromkeys(range(total), 1), caught.counts, "counts at first")


@check("DLV-02", fast=True, crossed=(BESIDE, RELOADED))
async def test_releases_count_over_all_members(env: Env, judge: Judge) -> None:
    limit = await delivery_limit(env)
    queue = await env.queue(1)
    members = [await queue.consumer(), await queue.consumer(join=False)]

    counts = []
    for number in range(limit):
        member = members[number // 2 % 2]  # to the same one, and to the other
        counts.append((await comes_again(member, [0]))[0])
        await member.acked(release(0))

    judge.equal(list(range(1, limit + 1)), counts, "counts of delivery after delivery")
    judge.saw(redeliveries=limit - 1)


@check("DLV-02", crossed=RELOADED)
async def test_looked_at_again_and_again(env: Env, judge: Judge) -> None:
    """Who looks into a queue by joining, releasing and leaving uses up a delivery each time."""
    limit, total = await delivery_limit(env), env.rng.randint(1, 4)
    queue = await env.queue(total)
    for look in range(1, limit + 1):
        viewer = await queue.consumer()
        counts = await comes_again(viewer, range(total))
        judge.equal(dict.fromkeys(range(total), look), counts, f"counts of look {look} of {limit}")
        await viewer.acked(release(0, total - 1))
        await viewer.depart()
    judge.saw(looks=limit)


@check("DLV-03", fast=True, crossed=AMONG)
async def test_expired_delivery_counts(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    # Of several records one lock may be over while the next record is waited for.
    _, *members = await env.with_pair(1, lock_ms=lock)
    await members[0].acquire(1)

    for count in range(2, min(3, await delivery_limit(env)) + 1):
        seen = await comes_again(members[(count + 1) % 2], [0], lock)
        judge.equal({0: count}, seen, "counts after an expiry")
        judge.saw(expiries=1)


async def _counts_of(env: Env, judge: Judge, *, drop: bool) -> None:
    """Judge the counts of three deliveries, each to a member that vanishes with its records.

    A bystander's open session keeps the share-partition in memory. Without any session left, a
    broker may load it anew, and a count that is not stored yet is then lost, as DLV-32 allows.
    """
    lock_ms = env.bounds.lock(10_000)
    queue = await env.queue(4, lock_ms=lock_ms)
    members = [await queue.consumer(join=not n) for n in range(min(4, await delivery_limit(env)))]
    bystander = await queue.consumer(join=False)
    for count, member in enumerate(members, start=1):
        caught = await comes_again(member, range(4), lock_ms)
        judge.equal(dict.fromkeys(range(4), count), caught, f"counts of delivery {count}")
        if count == 1:
            await bystander.fetch(max_wait_ms=0)
        if drop:
            member.session.connection.abort()
        else:
            await member.close()
    judge.saw(vanished=len(members) - 1)


@check("DLV-04", crossed=AMONG, timeout=150)
async def test_delivery_ended_by_close_counts(env: Env, judge: Judge) -> None:
    await _counts_of(env, judge, drop=False)


@check("DLV-05", crossed=AMONG, timeout=150)
async def test_delivery_ended_by_disconnect_counts(env: Env, judge: Judge) -> None:
    await _counts_of(env, judge, drop=True)


@check("DLV-06", "DLV-07", fast=True, crossed=(BESIDE, RELOADED))
async def test_records_of_a_batch_count_apart(env: Env, judge: Judge) -> None:
    total = env.rng.randint(8, 30)
    _, first, second = await env.with_pair(total)
    await first.acquire(total)
    counts = dict.fromkeys(range(total), 1)
    # At most two deliveries each, so that no broker throttles the third one.
    held = set(range(total))
    part = sorted(env.rng.sample(sorted(held), env.rng.randint(1, len(held))))
    await first.acked(*(release(offset) for offset in part))
    await first.acquire(len(part))
    counts.update({offset: counts[offset] + 1 for offset in part})
    await first.acked(*(release(offset) for offset in range(total)))

    caught = await second.acquire(total)

    if {*caught.counts.values()} == {1}:
        raise Undecided("nobody's releases are counted, which DLV-02 demands")
    expected = {offset: count + 1 for offset, count in counts.items()}
    judge["DLV-06"].equal(expected, caught.counts, "counts after partial releases")
    for response in caught.responses:
        ranges = response.only.ranges
        borders = [border for r in ranges for border in (r.first, r.last + 1)]
        judge["DLV-07"].equal(sorted(borders), borders, f"borders of the ranges {ranges}")
        mixed = [r for r in ranges if {expected[o] for o in r.offsets} != {r.count}]
        judge["DLV-07"].equal([], mixed, "ranges with records of another count")
    judge["DLV-07"].saw(ranges=sum(len(response.only.ranges) for response in caught.responses))


@check("DLV-08", crossed=BESIDE)
async def test_counts_belong_to_a_group(env: Env, judge: Judge) -> None:
    queue, last = await env.queue(3), await delivery_limit(env)
    sibling, early = await env.sibling(queue), await env.sibling(queue)
    busy, calm, first = [await one.consumer() for one in (queue, sibling, early)]
    await hold_at(first, 3, delivery=1)
    await first.acked(release(0, 2))
    await hold_at(busy, 3, delivery=last - 1)

    caught = await calm.acquire(3)

    judged = partial(judge_counted, env, judge)
    await judged(dict.fromkeys(range(3), 1), caught.counts, "counts in the other group")
    again = (await first.acquire(3)).counts
    await judged(dict.fromkeys(range(3), 2), again, "counts in a group that had released before")
    await calm.acked(*releases(caught.responses[-1].only.ranges))
    await busy.acked(release(0, 2))
    await judged({0: last}, {0: (await busy.acquire(1)).counts[0]}, "count in the first group")
