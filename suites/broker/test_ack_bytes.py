"""Acknowledge types as bytes: all 256 of them, and what IsRenewAck allows."""

from suites.broker.kit import *

BYTES = range(-128, 128)
WITHOUT_RENEW = range(4)
WITH_RENEW = range(5)


def bearing(env: Env, byte: int) -> Ack:
    """Return a batch over offsets 1 to 3 with the byte alone or at any place among ACCEPTs."""
    alone = Ack(1, 3, (byte,))
    places = ((byte, 1, 1), (1, byte, 1), (1, 1, byte))
    return env.rng.choice([alone, *(each(1, types) for types in places)])


async def judge_bytes(env: Env, judge: Judge, *, version: int, valid: Iterable[int]) -> None:
    """Send every byte by ShareAcknowledge: valid ones settle a record each, others nothing."""
    since = time.monotonic()
    # Hundreds of requests may take longer than the usual lock.
    queue, consumer = await env.with_holder(12, lock_ms=env.bounds.longest_lock)
    for byte in sorted(set(BYTES) - set(valid)):
        response = await consumer.ack(bearing(env, byte), version=version)
        judge.equal("INVALID_REQUEST", result(response), f"result of type byte {byte}")
    judge.saw(refused=256 - len(set(valid)))
    for byte in valid:
        in_time(since, env.bounds.longest_lock)
        flag = {"is_renew_ack": True} if byte == AckType.RENEW else {}
        offset = 4 + byte
        response = await consumer.ack(Ack(offset, offset, (byte,)), version=version, **flag)
        judge_done(judge, response, f"result of type byte {byte}")
    again = await next_catch(queue, consumer)
    in_time(since, env.bounds.longest_lock)
    expected = {4 + AckType.RELEASE: 2}
    judge.delivered(expected, again.counts, "records that came again after one of each type")
    await judge_held(judge, consumer, range(1, 4), "all invalid bytes")


@check("ACK-11", fast=True, crossed=(BESIDE, BEHIND))
async def test_bytes_of_version_1(env: Env, judge: Judge) -> None:
    await judge_bytes(env, judge, version=1, valid=WITHOUT_RENEW)


@check("ACK-12", feature="renew", crossed=AMONG)
async def test_bytes_of_version_2(env: Env, judge: Judge) -> None:
    await judge_bytes(env, judge, version=2, valid=WITH_RENEW)


@check("ACK-13", crossed=AMONG)
async def test_bytes_inside_a_fetch(env: Env, judge: Judge) -> None:
    since = time.monotonic()
    _, consumer = await env.with_holder(20, lock_ms=env.bounds.longest_lock)
    for version in range(1, consumer.session.connection.newest("ShareFetch") + 1):
        valid = WITHOUT_RENEW if version == 1 else WITH_RENEW
        for byte in sorted(set(BYTES) - set(valid)):
            response = await consumer.fetch(bearing(env, byte), version=version, max_wait_ms=0)
            seen = result_in(response, consumer)
            judge.equal("INVALID_REQUEST", seen, f"type byte {byte}, version {version}")
            judge.equal(0, response.error, f"error of the whole fetch, byte {byte}")
        for offset, byte in enumerate(valid, 5 * version):
            in_time(since, env.bounds.longest_lock)
            how = RENEW_ONLY | {"is_renew_ack": True} if byte == 4 else {"max_wait_ms": 0}
            response = await consumer.fetch(Ack(offset, offset, (byte,)), version=version, **how)
            seen = result_in(response, consumer)
            judge_done(judge, seen, f"type byte {byte}, version {version}")
    await judge_held(judge, consumer, range(1, 4), "all invalid bytes")


@check("ACK-14", feature="renew", crossed=(BESIDE, BEHIND))
async def test_renew_needs_the_flag(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(8, lock_ms=env.bounds.longest_lock)
    mixed = (accept(1, 2), renew(3), release(4))
    part = await consumer.ack(*mixed)
    judge.equal("INVALID_REQUEST", result(part), "RENEW in a ShareAcknowledge")
    part = await consumer.ack(each(1, (1, 4, 2)))
    judge.equal("INVALID_REQUEST", result(part), "RENEW among the types of a batch")
    response = await consumer.fetch(*mixed, max_wait_ms=0)
    judge.equal("INVALID_REQUEST", result_in(response, consumer), "RENEW in a ShareFetch")
    await judge_held(judge, consumer, range(1, 8), "renewing without the flag")


@check("ACK-15", feature="renew", crossed=AMONG)
async def test_renewing_fetch_may_ask_for_nothing(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(6)
    mixed = (renew(1, 2), accept(3), release(4))
    for field in RENEW_ONLY:
        asked = RENEW_ONLY | {"batch_size": 0, field: env.rng.randint(1, 1000)}
        seen = error_name((await consumer.fetch(*mixed, is_renew_ack=True, **asked)).error)
        judge.equal("INVALID_REQUEST", seen, f"top-level error with {field} set")
    response = await consumer.fetch(renew(1, 2), is_renew_ack=True, **RENEW_ONLY)
    if (told := result_in(response, consumer)) != "NONE":
        raise Undecided(f"a renewing fetch for nothing is refused, too: {told}")
    await judge_held(judge, consumer, range(1, 6), "the refused fetches")


@check("ACK-16", feature="renew", crossed=(BESIDE, BEHIND))
async def test_renewing_request_may_settle_too(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10)
    judge_done(judge, await consumer.ack(each(1, (4, 1, 2, 3)), is_renew_ack=True), "beside others")
    response = await consumer.fetch(each(5, (4, 2, 1, 4)), is_renew_ack=True, **RENEW_ONLY)
    judge_done(judge, result_in(response, consumer), "RENEW among others in a ShareFetch")
    again = await next_catch(queue, consumer)
    judge.delivered({3: 2, 6: 2}, again.counts, "the released records, and no other")
    judge_refusal(judge, await consumer.ack(accept(2)), "accepting the accepted again")
    await judge_held(judge, consumer, [1, 5, 8, 9], "renewing beside other types")
