"""How many records one fetch acquires: MaxRecords, BatchSize, acquire modes, MaxBytes, fairness."""

from fixtures.wire.records import decode_batches
from suites.broker.kit import *

RECORD_LIMIT = 1  # ShareAcquireMode of a strict MaxRecords (KIP-1206).


async def _spread(env: Env, partitions: int, size: int, records: int = 1) -> Queue:
    queue = await env.queue(partitions=partitions, assignments=env.together(partitions))
    for index in queue.topic.partitions:
        # Random, so that compression leaves them as large.
        values = [env.rng.randbytes(size) for _ in range(records)]
        await queue.produce(values, index, batches=records)
    return queue


@check("ACQ-30", fast=True, crossed=(BESIDE, BEHIND))
async def test_max_records_is_soft(env: Env, judge: Judge) -> None:
    size = env.rng.randint(2, 9)
    _, consumer = await env.with_consumer(records=6 * size, batches=6)
    wanted = env.rng.randint(1, 3 * size)
    whole = -(-wanted // size) * size

    first = (await consumer.acquire(1, max_records=wanted)).offsets
    second = (await consumer.acquire(1, max_records=1)).offsets

    # It may bring fewer batches than it may, but whole ones.
    came = min(whole, -(-len(first) // size) * size)
    judge.equal(list(range(came)), first, f"{wanted} of batches of {size}")
    judge.equal(list(range(came, came + size)), second, f"1 of batches of {size}")


@check("ACQ-31", fast=True, crossed=(BESIDE, BEHIND))
async def test_batches_stay_whole(env: Env, judge: Judge) -> None:
    size = env.rng.randint(3, 12)
    queue = await env.queue(records=6 * size, batches=6)
    members = [await queue.consumer(), await queue.consumer(join=False)]
    ranges = []
    async for _ in attempts():
        for member in members:
            response = member.sound(await member.fetch(max_records=size))
            ranges += [acquired for part in response.parts for acquired in part.ranges]
        if len({offset for r in ranges for offset in r.offsets}) >= 6 * size:
            break
    else:
        raise await members[0].stopped(f"only {ranges} of {6 * size} records were acquired")

    for start in range(0, 6 * size, size):
        whole = any(r.first <= start and start + size - 1 <= r.last for r in ranges)
        judge.holds(whole, f"batch {start} was torn apart", witness=tuple(ranges[:3]))


@check("ACQ-32", crossed=(BESIDE, BEHIND))
async def test_batch_size_splits_ranges(env: Env, judge: Judge) -> None:
    size = env.rng.randint(2, 6)
    queue = await env.queue(records=8 * size, batches=8)
    limit = env.rng.randint(1, 4 * size)
    consumer = await queue.consumer()

    catch = await consumer.acquire(8 * size, batch_size=limit)

    ranges = [part.ranges for a in catch.responses for part in a.parts]
    for at, acquired in (each for some in ranges for each in enumerate(some)):
        begun = len(acquired.offsets) - size
        judge.holds(begun < limit, f"{acquired} went on beyond BatchSize {limit}")
        # Whether a batch stays whole where a response begins or ends is ACQ-31's.
        cut = at == 0 or acquired.first % size == 0
        judge.holds(cut, f"{acquired} is not cut along batches of {size}")
    judge.saw(ranges=sum(map(len, ranges)))


@check("ACQ-33", "ACQ-34", feature="record-limit", fast=True, crossed=(BESIDE, BEHIND))
async def test_record_limit_is_strict(env: Env, judge: Judge) -> None:
    total = 40
    _, consumer = await env.with_consumer(records=total, batches=env.rng.choice([1, 2, 5]))
    seen: Counter[int] = Counter()

    async for _ in attempts():
        limit = env.rng.randint(1, 9)
        response = await consumer.fetch(max_records=limit, share_acquire_mode=RECORD_LIMIT)
        taken = consumer.sound(response).offsets
        judge["ACQ-33"].holds(len(taken) <= limit, f"MaxRecords {limit}, acquired {taken}")
        seen.update(taken)
        if len(seen) >= total:
            break
    else:
        raise await consumer.stopped(f"only {len(seen)} of {total} records were acquired")

    judge["ACQ-34"].equal(Counter(range(total)), seen, "how often each offset was acquired")


@check("ACQ-33", feature="record-limit")
async def test_record_limit_cuts_what_was_released(env: Env, judge: Judge) -> None:
    total = env.rng.randint(8, 20)
    _, consumer = await env.with_holder(total)
    await consumer.acked(release(0, total - 1))
    limit = env.rng.randint(2, total - 1)

    again = await consumer.acquire(1, max_records=limit, share_acquire_mode=RECORD_LIMIT)

    most = max(len(response.offsets) for response in again.responses)
    judge.holds(most <= limit, f"{most} of {total} released records, MaxRecords being {limit}")


@check("ACQ-35", feature="record-limit", crossed=RELOADED)
async def test_record_limit_over_partitions(env: Env, judge: Judge) -> None:
    queue = await env.queue(partitions=3, assignments=env.together(3))
    for index in queue.topic.partitions:
        await queue.produce(10, index)
    consumer = await queue.consumer()
    named = [(queue.topic, index) for index in queue.topic.partitions]
    total = 0

    async for _ in attempts():
        limit = env.rng.randint(2, 12)
        response = await consumer.session.fetch(
            *named, max_records=limit, share_acquire_mode=RECORD_LIMIT
        )
        named = []
        count = len(consumer.sound(response).offsets)
        judge.holds(count <= limit, f"MaxRecords {limit}, acquired {count} in all")
        total += count
        if total >= 30:
            break
    else:
        raise await consumer.stopped(f"only {total} of 30 records were acquired")


@check("ACQ-36", feature="record-limit", crossed=(BESIDE, BEHIND))
async def test_modes_mix_in_a_group(env: Env, judge: Judge) -> None:
    _, strict, soft = await env.with_pair(records=20, batches=2)
    limit = env.rng.randint(1, 9)

    first = await strict.acquire(limit, max_records=limit, share_acquire_mode=RECORD_LIMIT)
    second = await soft.acquire(10 - limit, max_records=10 - limit)
    third = await strict.acquire(1, max_records=1, share_acquire_mode=RECORD_LIMIT)

    judge.equal(list(range(limit)), first.offsets, "offsets of the strict member")
    judge.equal(list(range(limit, 10)), second.offsets, "offsets of the other member")
    judge.equal([10], third.offsets, "offsets of the strict member afterwards")


@check("ACQ-37", crossed=AMONG)
async def test_first_record_may_exceed_max_bytes(env: Env, judge: Judge) -> None:
    large = [env.rng.randbytes(env.rng.randint(50_000, 300_000)) for _ in range(2)]
    _, consumer = await env.with_consumer(records=large, batches=2)
    found: list[bytes | None] = []
    async for _ in attempts():
        response = consumer.sound(await consumer.fetch(max_bytes=env.rng.randint(1, 4000)))
        found += [r.value for part in response.parts for r in part.acquired_records()]
        if len(found) >= 2:
            break
    else:
        sentence = f"of two large records {len(found)} came"
        raise await consumer.stopped(sentence, max_bytes=1)

    judge.holds(found == large, f"{len(found)} records came, not the two large ones")


@check("ACQ-38", crossed=AMONG)
async def test_small_max_bytes_makes_progress(env: Env, judge: Judge) -> None:
    queue = await _spread(env, partitions=4, size=20, records=2)
    for limit in (*range(1, 6), env.rng.randint(6, 400)):
        group = await env.sibling(queue)
        consumer = await group.consumer()
        named = [(queue.topic, index) for index in queue.topic.partitions]
        seen: set[tuple[int, int]] = set()
        async for _ in attempts():
            response = await consumer.session.fetch(*named, max_bytes=limit, max_wait_ms=300)
            named = []
            seen |= {(p.partition, o) for p in consumer.sound(response).parts for o in p.offsets}
            if len(seen) == 8:
                break
        else:
            raise await consumer.stopped(
                f"with MaxBytes {limit} only {seen} were served", max_bytes=limit
            )
        judge.saw(records=len(seen))


@check("ACQ-44", crossed=AMONG)
async def test_max_bytes_is_for_all_partitions(env: Env, judge: Judge) -> None:
    queue = await _spread(env, partitions=3, size=1000, records=8)
    for limit in env.rng.sample(range(1, 9000), 3):
        consumer = await (await env.sibling(queue)).consumer()
        named = [(queue.topic, index) for index in queue.topic.partitions]
        left = 24
        async for _ in attempts():
            response = await consumer.session.fetch(*named, max_bytes=limit, max_wait_ms=300)
            named, parts = [], [one for one in consumer.sound(response).parts if one.offsets]
            sent = [len(one.records or b"") for one in parts]
            first = max((decode_batches(one.records)[0].size for one in parts), default=0)
            judge.holds(sum(sent) <= max(limit, first), f"bytes sent of MaxBytes {limit}: {sent}")
            judge.saw(bytes=sum(sent))
            if (left := left - len(response.offsets)) <= 0:
                break
        else:
            raise await consumer.stopped(f"{left} of 24 did not come with MaxBytes {limit}")


async def _ask_for_nothing(env: Env, judge: Judge, **nothing: int) -> None:
    _, consumer = await env.with_consumer(records=4)
    await consumer.fetch(max_records=0)
    sent = time.monotonic()
    response = await consumer.fetch(max_wait_ms=40_000, timeout=60, **nothing)
    took = time.monotonic() - sent
    if took >= WITHIN and not await goes_on(env.cluster, consumer.where[0].leaders[0]):
        raise Undecided(f"a response took {took:.1f} s, and a bystander's record did not come")

    judge.equal(((), []), (response.errors, response.offsets), "errors and offsets")
    judge.holds(took < WITHIN, f"the response took {took:.1f} s")
    judge.delivered(
        dict.fromkeys(range(4), 1), (await consumer.acquire(4)).counts, "counts afterwards"
    )


@check("ACQ-39", fast=True, crossed=(BESIDE, BEHIND))
async def test_no_records_wanted(env: Env, judge: Judge) -> None:
    await _ask_for_nothing(env, judge, max_records=0)


@check("ACQ-40", fast=True, crossed=(BESIDE, BEHIND))
async def test_no_bytes_wanted(env: Env, judge: Judge) -> None:
    await _ask_for_nothing(env, judge, max_bytes=0)


@check("ACQ-41", fast=True, crossed=(BESIDE, BEHIND))
async def test_earliest_available_first(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_consumer(records=20, batches=20)
    taken = 0
    while taken < 10:
        taken += len((await consumer.acquire(1, max_records=10 - taken)).counts)
    back = sorted(env.rng.sample(range(10), k=3))
    for offset in env.rng.sample(back, k=3):
        await consumer.acked(release(offset))

    # One by one, or all at once: the released ones share an in-flight batch, and in the
    # batch-optimized mode a batch that was begun may come whole (KIP-1206).
    order: list[int] = []
    while len(order) < 4:
        order += (await consumer.acquire(1, max_records=1)).offsets

    judge.equal([*back, 10], order[:4], "order in which offsets were acquired")
    judge.saw(released=len(back))


@check("ACQ-42", crossed=AMONG)
async def test_no_partition_starves(env: Env, judge: Judge) -> None:
    partitions, size = 4, 500
    queue = await _spread(env, partitions, size, records=40)
    by: dict[str, Any] = env.rng.choice([{"max_records": 1}, {"max_bytes": size}])
    consumer = await queue.consumer()
    named = [(queue.topic, index) for index in queue.topic.partitions]
    turns: Counter[int] = Counter()
    fetches = 0
    async for _ in attempts():
        response = consumer.sound(await consumer.session.fetch(*named, **by))
        named = []
        for part in response.parts:
            turns[part.partition] += bool(part.offsets)
            if part.offsets:
                acks = {(queue.topic, part.partition): [accept(offset) for offset in part.offsets]}
                await consumer.session.acknowledge(acks)
        fetches += bool(response.offsets)
        if fetches == 5 * partitions:
            break
    else:
        raise await consumer.stopped(f"only {fetches} fetches brought records", **by)

    starved = [index for index in queue.topic.partitions if not turns[index]]
    judge.equal([], starved, f"partitions never served in {fetches} fetches by {by}")
    judge.saw(fetches=fetches)


@check("ACQ-43", feature="record-limit", crossed=(BESIDE, BEHIND))
async def test_unknown_mode_is_refused(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(records=3)
    mode = env.rng.choice([2, 9, 127, -1])

    response = await consumer.fetch(share_acquire_mode=mode)
    judge.holds(response.error != 0, f"acquire mode {mode} was answered without error")
    judge.equal([], response.offsets, "offsets acquired")

    fresh = await queue.consumer(join=False)
    held = await fresh.acquire(3)
    judge.delivered(dict.fromkeys(range(3), 1), held.counts, "counts for another member")
