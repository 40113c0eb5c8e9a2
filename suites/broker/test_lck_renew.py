"""RENEW (KIP-1222): keeping a record beyond its acquisition lock."""

from suites.broker.kit import *

pytestmark = pytest.mark.feature("renew")


async def _renewed(consumer: Consumer, since: float, *acks: Ack, lock_ms: int) -> float:
    """Renew inside a lock taken after ``since``; return when the request was sent."""
    sent = time.monotonic()
    part = await consumer.ack(*acks, is_renew_ack=True)
    in_time(since, lock_ms)
    if part.ack_error:
        raise Undecided(f"renewing answered {error_name(part.ack_error)}")
    return sent


@check("LCK-21", "LCK-24", fast=True, crossed=AMONG)
@pytest.mark.parametrize("fetch", [False, True], ids=["acknowledge", "fetch"])
async def test_renewed_record_outlives_its_first_lock(env: Env, judge: Judge, fetch: bool) -> None:
    lock, count = env.bounds.prompt_lock, env.rng.randint(1, 10)
    _, holder, other = await env.with_pair(count, lock_ms=lock)
    began = time.monotonic()
    held = await holder.acquire(count)
    await linger(other, lock / 1000 * 0.5)

    sent = time.monotonic()
    own = holder.session
    call: Any = own.fetch if fetch else own.acknowledge
    options = RENEW_ONLY if fetch else {}
    renewal = {holder.where: [renew(0, count - 1)]}
    response = await call(acks=renewal, is_renew_ack=True, **options)
    in_time(began, lock)
    judge["LCK-21"].equal((), response.errors, "errors of a RENEW in time")
    seen = await ending(env, other, held.offsets, lock)

    judge["LCK-24"].equal(held.offsets, sorted(seen), "offsets that came back after the new lock")
    after = min(sighting.at for sighting in seen.values()) - sent
    if is_early := after < lock / 1000 * EARLY:
        await plain_locks(env, lock)
    told = f"a record came back {after:.3f} s after its renewal, the lock is {lock} ms"
    judge["LCK-21"].holds(not is_early, told)


@check("LCK-22", crossed=(BESIDE, BEHIND))
async def test_renewal_is_no_delivery(env: Env, judge: Judge) -> None:
    _, holder = await env.with_holder(2, batches=2, lock_ms=env.bounds.longest_lock)
    times = env.rng.randint(6, 12)
    for _ in range(times):
        await holder.acked(renew(0), is_renew_ack=True)
    await holder.acked(release(0, 1))

    again = await holder.acquire(2)

    judge.equal(again.counts[1], again.counts[0], f"count of what was renewed {times} times")
    judge.saw(renewals=times)


@check("LCK-23", fast=True, crossed=(BESIDE, BEHIND))
async def test_renewed_record_can_be_settled(env: Env, judge: Judge) -> None:
    queue, holder = await env.with_holder(3)
    await holder.acked(renew(0, 2), is_renew_ack=True)

    part = await holder.ack(accept(0), release(1), reject(2))
    sentinel, after = await up_to_new(queue, holder)

    judge.equal(0, lasting(part.ack_error), "error of settling renewed records")
    judge.equal([1, sentinel], after.offsets, "what is delivered afterwards")


@check("LCK-25", crossed=AMONG)
async def test_renewal_of_a_part(env: Env, judge: Judge) -> None:
    count = env.rng.randint(4, 12)
    kept = sorted(env.rng.sample(range(1, count), count // 2))
    freed = [offset for offset in range(1, count) if offset not in kept]
    lock, long = env.bounds.prompt_lock, env.bounds.long_lock
    queue, holder, other = await env.with_pair(1, lock_ms=lock)
    began = time.monotonic()
    await other.acquire(1)  # for comparison: offset 0 has a lock that nothing is done with
    await queue.produce(count - 1)
    await holder.acquire(count - 1)
    # The renewed lock is so much longer that the two ends cannot be mistaken for each other.
    await reconfigure(queue, holder, lock_ms=long)
    sent = await _renewed(holder, began, *(renew(offset) for offset in kept), lock_ms=lock)

    seen = await watch(other, [0, *freed], lock / 1000 + SLACK)

    if 0 not in seen:
        raise Undecided("a lock that was left alone did not end, either; see LCK-01 and LCK-13")
    judge.equal(freed, sorted(seen.keys() & set(freed)), "offsets that were not renewed and freed")
    in_time(sent, long)
    early = [seen[offset].at - sent for offset in kept if offset in seen]
    if early and min(early) > lock / 1000 - TICK:
        raise Undecided("renewed locks may have been as long as the first ones, see LCK-28")
    judge.equal([], sorted(seen.keys() & set(kept)), "renewed offsets freed with them")


@check("LCK-27", crossed=AMONG)
async def test_renewals_have_no_bound(env: Env, judge: Judge) -> None:
    lock = env.bounds.prompt_lock
    _, holder, other = await env.with_pair(1, lock_ms=lock)
    began = sent = time.monotonic()
    await holder.acquire(1)
    times = 8 if lock <= 2000 else 3  # beyond two locks, and not for minutes
    for number in range(times):
        lost = sorted(await watch(other, [0], lock / 1000 * 0.4))
        before, sent = sent, time.monotonic()
        part = await holder.ack(renew(0), is_renew_ack=True)
        in_time(before, lock)
        if lost and not number:
            raise Undecided("the first lock was over early, which LCK-02 forbids")
        judge.equal([], lost, f"what another member got before renewal {number + 1}")
        judge.equal(0, lasting(part.ack_error), f"error of renewal {number + 1}")

    part = await holder.ack(accept(0))
    in_time(sent, lock)
    held = time.monotonic() - began
    judge.equal(0, lasting(part.ack_error), f"error of an ACCEPT after {held:.1f} s of renewals")
    judge.saw(renewals=times)


@check("LCK-28", crossed=(BESIDE, BEHIND))
async def test_renewed_lock_lasts_as_configured_then(env: Env, judge: Judge) -> None:
    lock, long = env.bounds.short_lock, env.bounds.long_lock
    queue, holder, other = await env.with_pair(2, lock_ms=long)
    began = time.monotonic()
    await holder.acquire(2)
    await reconfigure(queue, holder, lock_ms=lock)
    sent = await _renewed(holder, began, renew(0), lock_ms=long)

    await judge_end(env, judge, other, [0], since=sent, lock_ms=lock)
    in_time(began, long)


@check("LCK-34", fast=True, crossed=(BESIDE, BEHIND))
async def test_fetch_that_renews_brings_no_records(env: Env, judge: Judge) -> None:
    queue, holder, other = await env.with_pair(3, lock_ms=env.bounds.longest_lock)
    await holder.acquire(3)
    await queue.produce(2)

    response = await holder.fetch(renew(0), release(1), is_renew_ack=True, **RENEW_ONLY)
    late = (await other.take([1, 3, 4])).counts
    judge.equal((), response.errors, "errors of a fetch that renews")
    judge.equal([], response.offsets, "offsets it acquired")
    free = sorted(late.keys() & {1, 3, 4})
    judge.equal([1, 3, 4], free, "what was there for others, 1 being released")


@check("LCK-38", crossed=(BESIDE, BEHIND))
async def test_log_start_passes_a_renewed_record(env: Env, judge: Judge) -> None:
    cut = env.rng.randint(1, 7)
    queue, holder = await env.with_holder(8, lock_ms=env.bounds.longest_lock)
    await holder.acked(renew(0, 7), is_renew_ack=True)
    await env.admin.delete_records(queue.topic, cut)
    await queue.produce(1)
    await holder.acquire(1)
    part = await holder.ack(release(cut, 7))
    sentinel, after = await up_to_new(queue, holder)

    judge.equal(0, lasting(part.ack_error), "error of releasing the records that are left")
    expected = dict.fromkeys(range(cut, 8), 2) | {sentinel: 1}
    judge.delivered(expected, after.counts, f"what comes after the log began at {cut}")
