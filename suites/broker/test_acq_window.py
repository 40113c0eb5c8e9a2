"""The in-flight window: where it ends, what fills it, what moves it, and that nothing gets lost."""

from suites.broker.kit import *

LIMIT = 100
"""In-flight limit of the groups here: the lowest that a broker allows by default (KIP-1240)."""

LOCKS = "share.partition.max.record.locks"


async def _full(env: Env, records: int) -> tuple[Queue, Consumer]:
    """Return a group whose first ``LIMIT`` single-record batches are all held by one member."""
    long, limit = env.bounds.longest_lock, {LOCKS: str(LIMIT)}
    queue = await env.queue(records, batches=records, lock_ms=long, group_config=limit)
    return queue, await queue.holder(LIMIT)


async def _nothing_more(consumer: Consumer, holder: Consumer | None = None) -> list[int]:
    """Return what a fetch acquires that has to come back with nothing while the locks run."""
    response = consumer.sound(await consumer.fetch(max_wait_ms=int(NOT_FOR * 1000)))
    if response.offsets:
        in_time((holder or consumer).session.made, response.lock_ms)
    return response.offsets


@check("ACQ-50", feature="group-lock-limit", fast=True, crossed=(BESIDE, RELOADED))
async def test_window_ends_at_the_limit(env: Env, judge: Judge) -> None:
    size = env.rng.choice([1, 3, 10])
    records = (LIMIT // size + 5) * size
    queue = await env.queue(records, batches=records // size, group_config={LOCKS: str(LIMIT)})
    members = [await queue.consumer(), await queue.consumer(join=False)]
    # A batch that begins inside the window may come whole (KIP-1206).
    whole = -(-LIMIT // size) * size
    seen: set[int] = set()  # what comes twice is ACQ-21's, or its lock is over
    async for _ in attempts():
        for member in members:
            seen |= {*member.sound(await member.fetch(max_records=env.rng.randint(1, 60))).offsets}
        if len(seen) >= LIMIT:
            break
    else:
        raise await members[0].stopped(f"only {len(seen)} of {LIMIT} records were acquired")

    expected = list(range(min(len(seen), whole)))
    judge.equal(expected, sorted(seen), f"acquired, batches of {size}")
    beyond = [offset for offset in await _nothing_more(members[0]) if offset >= whole]
    judge.equal([], beyond, "acquired beyond the window")


@check("ACQ-51", feature="group-lock-limit", crossed=(BESIDE, RELOADED))
async def test_finished_records_take_up_room(env: Env, judge: Judge) -> None:
    _, holder = await _full(env, LIMIT + 20)
    await holder.acked(accept(1, LIMIT - 1))

    judge.equal([], await _nothing_more(holder), "acquired with offset 0 unfinished")

    await holder.acked(accept(0))
    catch = await holder.acquire(20)
    judge.equal(list(range(LIMIT, LIMIT + 20)), catch.offsets, "acquired afterwards")


@check("ACQ-52", feature="group-lock-limit", crossed=(BESIDE, RELOADED))
async def test_window_moves_by_what_was_finished(env: Env, judge: Judge) -> None:
    _, holder = await _full(env, LIMIT + 60)
    moved = env.rng.randint(1, 40)
    await holder.acked(accept(0, moved - 1))

    catch = await holder.acquire(moved)

    expected = list(range(LIMIT, LIMIT + moved))
    judge.equal(expected, catch.offsets, f"acquired after {moved} were finished")
    judge.equal([], await _nothing_more(holder), "acquired beyond that")


@check("ACQ-53", feature="group-lock-limit", fast=True, crossed=(BESIDE, RELOADED))
async def test_released_inside_full_window(env: Env, judge: Judge) -> None:
    queue, holder = await _full(env, LIMIT + 20)
    other = await queue.consumer(join=False)
    some = sorted(env.rng.sample(range(LIMIT - 1), k=env.rng.randint(1, 10)))
    for back in (some, [LIMIT - 1]):  # the last one alone, too: nothing lies behind it
        await holder.acked(*(release(offset) for offset in back))
        catch = await other.take(len(back))
        judge.delivered(dict.fromkeys(back, 2), catch.counts, "acquired inside the window")
    judge.equal([], await _nothing_more(other, holder), "acquired beyond that")


async def _fill(consumer: Consumer, limit: int) -> list[int]:
    """Acquire until the window has ``limit`` records; return the offsets."""
    seen: set[int] = set()
    async for _ in attempts():
        seen |= {*consumer.sound(await consumer.fetch()).offsets}
        if len(seen) >= limit:
            return sorted(seen)
    raise await consumer.stopped(f"only {len(seen)} of {limit} records were acquired")


@check("ACQ-55", crossed=AMONG)
async def test_default_limit_is_the_brokers(env: Env, judge: Judge) -> None:
    limit = await window(env)
    size = env.rng.randint(70, 130)
    total = (limit // size + 3) * size
    _, consumer = await env.with_consumer(records=total, batches=total // size)

    seen = await _fill(consumer, limit)
    more = await _nothing_more(consumer)

    fits = limit <= len(seen) < limit + size
    judge.holds(fits, f"the limit is {limit}, {len(seen)} records were acquired")
    judge.equal([], more, "acquired beyond the window")


@check("ACQ-54", crossed=AMONG)
async def test_nothing_vanishes_at_the_limit(env: Env, judge: Judge) -> None:
    limit, size = await window(env), env.rng.randint(70, 130)
    total = (limit // size + 4) * size
    _, holder, other = await env.with_pair(records=total, batches=total // size)
    held = await _fill(holder, limit)
    middle, end = held[len(held) // 2], held[-1]
    width = env.rng.randint(2, 30)
    tail = env.rng.randint(1, 40)
    freed = [range(3, 6), range(middle, middle + width), range(end - tail, end + 1)]
    await holder.acked(*(release(part[0], part[-1]) for part in freed))
    back = {offset for part in freed for offset in part}

    accepted = await _accept_all(other, until=len(back))
    kept = set(held) - back  # accepted with a batch for each run of offsets
    starts = sorted(offset for offset in kept if offset - 1 not in kept)
    ends = sorted(offset for offset in kept if offset + 1 not in kept)
    await holder.acked(*map(accept, starts, ends))
    accepted |= kept
    accepted |= await _accept_all(other, until=total - len(accepted))

    missing = sorted(set(range(total)) - accepted)
    judge.equal([], missing, "offsets that were never delivered to the second member")
    judge.saw(records=total, held=len(held))


async def _accept_all(consumer: Consumer, until: int, within: float = WITHIN) -> set[int]:
    """Accept what comes, until ``until`` records were accepted or time is over."""
    accepted: set[int] = set()
    async for _ in attempts(within):
        response = consumer.sound(await consumer.fetch(max_wait_ms=1000))
        if response.offsets:
            await consumer.acked(*(accept(r.first, r.last) for r in response.only.ranges))
            accepted |= set(response.offsets)
        if len(accepted) >= until:
            return accepted
    if await goes_on(consumer.member.cluster, consumer.where[0].leaders[0]):
        return accepted
    raise Undecided(f"only {len(accepted)} of {until} records came, and none of a bystander")


@check("ACQ-54", crossed=AMONG)
async def test_nothing_vanishes_when_locks_expire(env: Env, judge: Judge) -> None:
    limit, size = await window(env), env.rng.randint(70, 130)
    total = (limit // size + 2) * size
    queue = await env.queue(records=total, batches=total // size)
    # The short lock is for the member that sits on its records, the long one for the other.
    lock = env.bounds.prompt_lock
    await env.admin.group_config(queue.group, {LOCK: str(lock)})
    holder, other = await queue.consumer(), await queue.consumer(join=False)
    held = await _fill(holder, limit)
    await env.admin.group_config(queue.group, {LOCK: str(env.bounds.longest_lock)})

    accepted = await _accept_all(other, until=total, within=lock / 1000 + WITHIN)

    judge.equal([], sorted(set(range(total)) - accepted), "offsets never delivered")
    judge.saw(expired_locks=len(held))


@check("ACQ-56", feature="group-lock-limit", crossed=AMONG)
async def test_limit_changes_at_run_time(env: Env, judge: Judge) -> None:
    queue, holder = await _full(env, LIMIT + 80)
    if more := await _nothing_more(holder):
        raise Undecided(f"{more} were acquired beyond the group's limit")
    raised = LIMIT + env.rng.randint(10, 60)

    await env.admin.group_config(queue.group, {LOCKS: str(raised)})
    catch = await holder.acquire(raised - LIMIT)

    judge.equal(list(range(LIMIT, raised)), catch.offsets, "acquired after the change")
    judge.equal([], await _nothing_more(holder), "acquired beyond the new limit")


@check("ACQ-58", feature="group-lock-limit", crossed=AMONG)
async def test_limit_below_what_is_in_flight(env: Env, judge: Judge) -> None:
    size, done = 2 * LIMIT, env.rng.randint(1, 20)
    limits, long = {LOCKS: str(size)}, env.bounds.longest_lock
    queue = await env.queue(size + 20, batches=size + 20, lock_ms=long, group_config=limits)
    holder = await queue.holder(size)
    await env.admin.group_config(queue.group, {LOCKS: str(LIMIT)})
    await holder.acked(accept(0, done - 1))  # the former limit would let as many in
    judge.equal([], await _nothing_more(holder), "acquired with more in flight than the limit")
    released = range(LIMIT + env.rng.randint(0, 20), size - 20)
    await holder.acked(release(released[0], released[-1]), accept(size - 20, size - 1))

    other = await queue.consumer(join=False)
    came = (await other.take(released)).counts
    judge.delivered(
        dict.fromkeys(released, 2), came, "released beyond the lowered limit, and given"
    )
    judge.equal([], await _nothing_more(other, holder), "acquired beyond the lowered limit")
    await env.admin.group_config(queue.group, {LOCKS: str(size + 20)})
    later = await other.take(20)
    judge.equal(list(range(size, size + 20)), later.offsets, "acquired once the limit is raised")
