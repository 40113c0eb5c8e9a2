"""RENEW where there is nothing to renew, or where it may not be used."""

from suites.broker.kit import *

REFUSED = int(ErrorCode.INVALID_RECORD_STATE)


@check("LCK-29", feature="renew", crossed=(BESIDE, RELOADED))
async def test_expired_lock_cannot_be_renewed(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    queue = await two_partitions(env, 2, lock_ms=lock)
    holder, other = await queue.consumer(), await queue.consumer(join=False)
    await holder.acquire(2)
    await outlast(queue, lock_ms=lock)
    # Were the records taken again, they would not come in time.
    await reconfigure(queue, holder, lock_ms=env.bounds.long_lock)

    part = await holder.ack(renew(0, 1), is_renew_ack=True)
    seen = await watch(other, [0, 1], SLACK)

    judge.equal(REFUSED, part.ack_error, "error of a late RENEW")
    judge.equal([0, 1], sorted(seen), "offsets of the next delivery")


@check("LCK-30", feature="renew", crossed=(BESIDE, RELOADED))
async def test_others_cannot_renew(env: Env, judge: Judge) -> None:
    lock = env.bounds.prompt_lock
    queue, holder, other = await env.with_pair(1, lock_ms=lock)
    began = time.monotonic()
    await holder.acquire(1)
    await reconfigure(queue, other, lock_ms=env.bounds.long_lock)

    part = await other.ack(renew(0), is_renew_ack=True)
    in_time(began, lock)

    judge.equal(REFUSED, part.ack_error, "error of another member's RENEW")
    await judge_end(env, judge, other, [0], since=began, lock_ms=lock)


@check("LCK-31", feature="renew", fast=True, crossed=(BESIDE, BEHIND))
async def test_settled_record_cannot_be_renewed(env: Env, judge: Judge) -> None:
    lock = env.bounds.longest_lock
    queue, holder = await env.with_consumer(4, lock_ms=lock)
    began = time.monotonic()
    await holder.acquire(4)
    # Offset 0 stays locked, so that the start offset stays below the others.
    await holder.acked(accept(1), release(2), reject(3))

    parts = [await holder.ack(renew(offset), is_renew_ack=True) for offset in (1, 2, 3)]
    sentinel, after = await up_to_new(queue, holder)

    in_time(began, lock)
    errors = [part.ack_error for part in parts]
    judge.equal([REFUSED] * 3, errors, "errors of RENEW after ACCEPT, RELEASE, REJECT")
    judge.delivered({2: 2, sentinel: 1}, after.counts, "what is delivered afterwards")


@check("LCK-36", feature=("renew", "renew-switch"), crossed=(BESIDE, RELOADED))
async def test_renewal_that_is_turned_off(env: Env, judge: Judge) -> None:
    lock = env.bounds.prompt_lock
    queue, holder, other = await env.with_pair(
        2, lock_ms=lock, group_config={"share.renew.acknowledge.enable": "false"}
    )
    began = time.monotonic()
    await holder.acquire(2)
    await reconfigure(queue, holder, lock_ms=env.bounds.long_lock)

    part = await holder.ack(renew(0, 1), is_renew_ack=True)
    in_time(began, lock)

    judge.equal(REFUSED, part.ack_error, "error of RENEW while turned off")
    await judge_end(env, judge, other, [0, 1], since=began, lock_ms=lock)


@check("LCK-37", feature=("renew", "renew-switch"), fast=True, crossed=(BESIDE, BEHIND))
async def test_renewal_is_switched_on_a_live_group(env: Env, judge: Judge) -> None:
    long = env.bounds.long_lock
    queue, holder = await env.with_holder(4, lock_ms=long)
    errors = [(await holder.ack(renew(0), is_renew_ack=True)).ack_error]
    await reconfigure(queue, holder, long - 1000, share_renew_acknowledge_enable="false")
    errors.append((await holder.ack(renew(0), is_renew_ack=True)).ack_error)
    others = [(await holder.ack(how)).ack_error for how in (accept(1), release(2), reject(3))]
    await reconfigure(queue, holder, long - 2000, share_renew_acknowledge_enable="true")
    errors.append((await holder.ack(renew(0), is_renew_ack=True)).ack_error)

    judge.equal([0, REFUSED, 0], errors, "errors of RENEW while on, off and on again")
    judge.equal([0, 0, 0], others, "errors of ACCEPT, RELEASE and REJECT while off")
