"""What happens when an acquisition lock runs out, and what does not prolong it."""

from suites.broker.kit import *

RECORD_LIMIT = {"share_acquire_mode": 1}
"""Of a batch the first records are held then, and the rest is nobody's."""
LIMITED = pytest.mark.feature("record-limit")


@check("LCK-01", "LCK-02", fast=True, crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize(
    "mode", [{}, pytest.param(RECORD_LIMIT, marks=LIMITED)], ids=["whole", "part"]
)
async def test_expired_lock_frees_the_records(env: Env, judge: Judge, mode: dict[str, int]) -> None:
    lock, count = env.bounds.short_lock, env.rng.randint(2, 8)
    _, holder, other = await env.with_pair(count + 4 * len(mode), lock_ms=lock)
    sent = time.monotonic()
    held = await holder.acquire(count, max_records=count, **mode)
    in_time(sent, lock)

    came = await watch(other, held.offsets, lock / 1000 + SLACK)
    seen = {offset: came[offset] for offset in held.offsets if offset in came}

    judge["LCK-01"].equal(held.offsets, sorted(seen), "offsets that came back after the lock")
    early = {o: s.at - sent for o, s in seen.items() if s.at - sent < lock / 1000 * EARLY}
    judge["LCK-02"].equal({}, early, f"offsets that came back within a lock of {lock} ms, and when")
    judge["LCK-01"].saw(expiries=len(seen))


@check("LCK-01", crossed=(BESIDE, RELOADED))
async def test_expired_records_come_back_to_their_own_member(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    _, consumer = await env.with_consumer(3, lock_ms=lock)
    held = await consumer.acquire(3)
    for number in (1, 2)[: await delivery_limit(env) - 1]:
        seen = await watch(consumer, held.offsets, lock / 1000 + SLACK)
        judge.equal(held.offsets, sorted(seen), f"offsets that came back, time {number}")


@check("LCK-03", "LCK-04", fast=True, crossed=(BESIDE, RELOADED))
async def test_late_acknowledgement_is_refused(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    queue = await two_partitions(env, 3, lock_ms=lock)
    holder, other = await queue.consumer(), await queue.consumer(join=False)
    await holder.acquire(3)
    await outlast(queue, lock_ms=lock)

    late = [await holder.ack(how) for how in (accept(0), reject(1), release(2))]
    seen = await watch(other, [0, 1, 2], SLACK)

    refused = int(ErrorCode.INVALID_RECORD_STATE)
    errors = [part.ack_error for part in late]
    judge["LCK-03"].equal([refused] * 3, errors, "errors of late ACCEPT, REJECT and RELEASE")
    judge["LCK-04"].equal([0, 1, 2], sorted(seen), "offsets of the next delivery")


@check("LCK-03", "LCK-04", crossed=(BESIDE, RELOADED))
async def test_late_acknowledgement_spares_the_next_holder(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    queue, late, holder = await env.with_pair(3, lock_ms=lock)
    await late.acquire(3)
    # The next holder shall have time enough, however slow we are.
    await reconfigure(queue, late, lock_ms=env.bounds.longest_lock)
    await ending(env, holder, range(3), lock)

    refused = [(await late.ack(how)).ack_error for how in (accept(0), reject(1), release(2))]
    part = await holder.ack(accept(0, 2))

    told = "errors of late ACCEPT, REJECT and RELEASE"
    judge["LCK-03"].equal([ErrorCode.INVALID_RECORD_STATE] * 3, refused, told)
    judge["LCK-04"].equal(0, lasting(part.ack_error), "error of the new holder's ACCEPT")


@check("LCK-05", fast=True, crossed=AMONG)
async def test_part_of_an_acquisition_expires(env: Env, judge: Judge) -> None:
    count = env.rng.randint(6, 20)
    lock = env.bounds.prompt_lock
    queue, holder, other = await env.with_pair(count, lock_ms=lock)
    sent = time.monotonic()
    await holder.acquire(count)
    done = sorted(env.rng.sample(range(count), count // 2))
    await holder.acked(*(env.rng.choice((accept, reject))(offset) for offset in done))
    in_time(sent, lock)

    rest = [offset for offset in range(count) if offset not in done]
    seen = await ending(env, other, rest, lock)
    sentinel = await queue.produce(1)
    seen |= await watch(other, [sentinel], SLACK)

    judge.equal([*rest, sentinel], sorted(seen), "offsets delivered after the lock")


@check("LCK-06", crossed=AMONG)
@pytest.mark.parametrize("again", [0, 1, 3, None], ids=["none", "part", "all", "close"])
async def test_each_acquisition_has_its_own_lock(env: Env, judge: Judge, again: int | None) -> None:
    if again != 0:
        await _judge_held_again(env, judge, again)
        return
    lock = env.bounds.prompt_lock
    queue, holder, other = await env.with_pair(1, lock_ms=lock)
    sent = {0: time.monotonic()}
    await holder.acquire(1)
    await linger(other, lock / 1000 * 0.4)
    await queue.produce(1)
    sent[1] = time.monotonic()
    await holder.drain(until=1)  # behind the first one, if the lock of that is over by now

    seen = await watch(other, [0, 1], 2 * lock / 1000 + SLACK)

    if 1 not in seen:
        raise Undecided("the later record did not come back, which LCK-01 demands")
    _judge_apart(judge, lock, {n: seen[n].at - at for n, at in sent.items() if n in seen})


async def _judge_held_again(env: Env, judge: Judge, given: int | None) -> None:
    lock = env.bounds.prompt_lock
    await limit_above_two(env)
    queue, former, other = await env.with_pair(3, lock_ms=lock)
    holder = await queue.consumer(join=False)
    began = time.monotonic()
    await former.acquire(3)
    await linger(other, lock / 1000 * 0.5)
    await (former.acked(release(0, given - 1)) if given else former.close())
    sent = time.monotonic()
    held = await holder.acquire(given or 3)
    in_time(began, lock)

    await judge_end(env, judge, other, held.offsets, since=sent, lock_ms=lock)


def _judge_apart(judge: Judge, lock: int, lasted: Mapping[Any, float]) -> None:
    early = {which: seconds for which, seconds in lasted.items() if seconds < lock / 1000 * EARLY}
    if len(early) > 1:
        raise Undecided(f"all locks of {lock} ms ended early, which LCK-02 forbids: {early}")
    judge.equal({}, early, f"seconds that locks of {lock} ms lasted, and no longer")


@check("LCK-07", crossed=AMONG)
async def test_locks_of_two_members_are_independent(env: Env, judge: Judge) -> None:
    lock = env.bounds.prompt_lock
    queue = await env.queue(5, lock_ms=lock)
    first, second, other = [await queue.consumer(join=number == 0) for number in range(3)]
    sent = {first: time.monotonic()}
    held = {first: (await first.acquire(5)).offsets}
    await linger(other, lock / 1000 * 0.4)
    await queue.produce(5)
    sent[second] = time.monotonic()
    held[second] = (await second.acquire(5)).offsets

    seen = await ending(env, other, range(10), 2 * lock)

    judge.equal(list(range(10)), sorted(seen), "offsets that came back")
    ends = {who: min(seen[offset].at for offset in held[who]) for who in held}
    _judge_apart(judge, lock, {who: end - sent[who] for who, end in ends.items()})


@check("LCK-09", crossed=(BESIDE, BEHIND))
async def test_heartbeats_do_not_prolong_a_lock(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    _, holder, other = await env.with_pair(2, lock_ms=lock)
    held = await holder.acquire(2)

    beats, missing = 0, set(held.offsets)
    async for _ in attempts(lock / 1000 + SLACK, pause=0.001):
        await good_beat(holder.member)
        beats += 1
        missing -= {*other.sound(await other.fetch(max_wait_ms=50)).offsets}
        if not missing:
            break
    else:
        await plain_locks(env, lock)

    judge.holds(not missing, f"{missing} stayed locked under {beats} heartbeats")
    judge.saw(heartbeats=beats)


@check("LCK-10", crossed=(BESIDE, BEHIND))
async def test_fetching_does_not_prolong_a_lock(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    queue, consumer = await env.with_consumer(80, lock_ms=lock)
    await consumer.acquire(1)  # and what comes along

    fetches, back = 0, None
    async for _ in attempts(lock / 1000 + SLACK):
        await queue.produce(1)
        response = consumer.sound(await consumer.fetch(max_wait_ms=50))
        fetches += 1
        back = response.only.counts.get(0)
        if back:
            break
        await consumer.acked(*(accept(offset) for offset in response.offsets))
        # The others of its batch count, too; they may be free by now.
        await consumer.ack(env.rng.choice((accept, reject, release))(fetches))
    else:
        await plain_locks(env, lock)

    judge.holds(back, f"the first record did not come again in {fetches} fetches, lock {lock} ms")
    judge.saw(fetches=fetches)
