"""How long an acquisition lock lasts: whose value counts, from when on, and who is told."""

from suites.broker.kit import *

GROUP_KEY = "share.record.lock.duration.ms"
BROKER_KEY = "group.share.{}record.lock.duration.ms"


@check("LCK-11", crossed=AMONG)
async def test_group_value_wins_over_the_broker(env: Env, judge: Judge) -> None:
    default = int((await env.admin.broker_configs()).get(BROKER_KEY.format("")) or 30_000)
    lock = env.bounds.short_lock
    if default <= lock:
        raise OutOfReach(f"the broker's lock of {default} ms is as short as a group's can be")
    _, holder, other = await env.with_pair(1, lock_ms=lock)
    sent = time.monotonic()
    await holder.acquire(1)

    seen = await watch(other, [0], min(default / 1000 * EARLY, lock / 1000 + SLACK))

    took = time.monotonic() - sent
    env.cluster.transcript.ends_expected = True
    if 0 not in seen and 0 not in await watch(other, [0], default / 1000 + SLACK - took):
        raise Undecided("the lock never ended, which LCK-01 demands")
    judge.holds(0 in seen, f"after {took:.1f} s the record is locked, under a lock of {lock} ms")


@check("LCK-11", timeout=150)
async def test_longer_value_wins_over_the_broker(env: Env, judge: Judge) -> None:
    default = int((await env.admin.broker_configs()).get(BROKER_KEY.format("")) or 30_000)
    lock = env.bounds.locks.high
    if lock < default * SURE:
        raise OutOfReach(f"a group's lock cannot be longer than the broker's of {default} ms")
    _, holder, other = await env.with_pair(1, lock_ms=lock)
    env.cluster.transcript.ends_expected = True
    sent = time.monotonic()
    await holder.acquire(1)

    seen = await watch(other, [0], default / 1000 + NOT_FOR)

    took = seen[0].at - sent if 0 in seen else lock / 1000
    if took < default / 1000 * EARLY:
        raise Undecided(f"the lock was over after {took:.3f} s, which LCK-02 forbids")
    judge.holds(took >= lock / 1000 * EARLY, f"a lock of {lock} ms was over when the broker's is")


async def _judge_locks(
    env: Env,
    judge: Judge,
    shortest: int,
    shorter: str,
    longer: str = "",
    *,
    holders: int = 1,
    renewed: bool = False,
) -> None:
    durations = apart(shortest, env.bounds.locks.high)
    measure = partial(locks_of, env, renewed=renewed, holders=holders)
    late, rules = partial(waits_end_late, env), {"shorter": shorter, "longer": longer or shorter}
    try:
        await judge_span(judge, "renewed " * renewed + "lock", durations, measure, late, **rules)
    except Violation:
        if not longer:  # a rule about what changes a lock
            await gather_all(plain_locks(env, int(each * 1000)) for each in durations)
        raise


@check("LCK-01", "LCK-02", timeout=240)
async def test_locks_last_as_configured(env: Env, judge: Judge) -> None:
    await _judge_locks(env, judge, env.bounds.short_lock, "LCK-02", "LCK-01")


@check("LCK-07", crossed=AMONG, timeout=240)
async def test_others_change_no_lock(env: Env, judge: Judge) -> None:
    await _judge_locks(env, judge, env.bounds.prompt_lock, "LCK-07", holders=3)


@check("LCK-24", feature="renew", crossed=AMONG, timeout=240)
async def test_renewed_locks_last_as_configured(env: Env, judge: Judge) -> None:
    await _judge_locks(env, judge, env.bounds.prompt_lock, "LCK-24", renewed=True)


@check("LCK-15", feature="renew", fast=True, crossed=AMONG)
async def test_acknowledge_tells_the_lock_duration(env: Env, judge: Judge) -> None:
    wanted = min(env.bounds.prompt_lock + env.rng.randint(1, 999), env.bounds.longest_lock)
    _, consumer = await env.with_holder(2, lock_ms=wanted)

    plain = await consumer.session.acknowledge({consumer.where: [accept(0)]})
    renewing = await consumer.session.acknowledge({consumer.where: [accept(1)]}, is_renew_ack=True)

    if (told := [plain.lock_ms, renewing.lock_ms]) != [wanted] * 2:
        await plain_locks(env, wanted)  # that a group's own is in force at all is LCK-11's
    judge.equal([wanted] * 2, told, "AcquisitionLockTimeoutMs without and with renewal")


@check("LCK-12", fast=True, crossed=AMONG)
async def test_bounds_of_the_broker_are_kept(env: Env, judge: Judge) -> None:
    configs = await env.admin.broker_configs()
    low = int(configs.get(BROKER_KEY.format("min.")) or 15_000)
    high = int(configs.get(BROKER_KEY.format("max.")) or 60_000)
    lock = env.bounds.lock(20_000)
    queue, consumer = await env.with_consumer(1, lock_ms=lock)
    before = (await consumer.fetch(max_records=0, max_wait_ms=0)).lock_ms

    for value in (low - 1, high + 1, 0):
        response = await env.admin.try_group_config(queue.group, {GROUP_KEY: str(value)})
        judge.equal(ErrorCode.INVALID_CONFIG, response.error_code, f"error of setting {value} ms")

    if before != lock:
        raise Undecided(f"the duration in force was {before} ms, not {lock}, which LCK-11 demands")
    caught = await consumer.acquire(1)
    judge.equal(lock, caught.responses[-1].lock_ms, "lock duration after the refusals")


@check("LCK-13", crossed=AMONG)
async def test_longer_duration_leaves_running_locks_alone(env: Env, judge: Judge) -> None:
    lock = env.bounds.prompt_lock
    queue, holder, other = await env.with_pair(2, lock_ms=lock)
    began = time.monotonic()
    await holder.acquire(2)
    await reconfigure(queue, holder, lock_ms=env.bounds.long_lock)
    in_time(began, lock)

    seen = await ending(env, other, [0, 1], lock)

    judge.equal([0, 1], sorted(seen), "offsets that came back after the old duration")


@check("LCK-13", crossed=AMONG)
async def test_shorter_duration_is_for_later_acquisitions(env: Env, judge: Judge) -> None:
    lock, long = env.bounds.short_lock, env.bounds.long_lock
    queue, holder, other = await env.with_pair(1, lock_ms=long)
    sent = time.monotonic()
    await holder.acquire(1)
    await reconfigure(queue, holder, lock_ms=lock)
    await queue.produce(1)
    await holder.acquire(1)

    seen = await ending(env, other, [1], lock)

    judge.equal(True, 1 in seen, "that the later record came back after the new duration")
    in_time(sent, long)
    judge.equal(False, 0 in seen, "that the earlier record came back with it")
