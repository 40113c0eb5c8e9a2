"""The number of share sessions that a broker keeps (group.share.max.share.sessions)."""

from suites.broker.kit import *

LIMIT = 2
TWO_SESSIONS = {"group.share.max.share.sessions": LIMIT, "group.share.max.size": LIMIT}
FULL = ErrorCode.SHARE_SESSION_LIMIT_REACHED


async def crowded(env: Env) -> tuple[Queue, list[Consumer], Consumer]:
    """Return a queue, as many consumers with a session as there may be, and one without."""
    queue = await env.queue()
    inside = [await queue.consumer(join=number == 0) for number in range(LIMIT)]
    for consumer in inside:
        consumer.sound(await consumer.fetch(epoch=OPEN, max_wait_ms=0))
    # A member of another group: a broker may serve members only, and this group is full.
    return queue, inside, await (await env.sibling(queue)).consumer()


@check("SES-42", solo=TWO_SESSIONS)
async def test_one_session_too_many(solo_env: Env, judge: Judge) -> None:
    _, _, outside = await crowded(solo_env)
    wait_ms = solo_env.rng.randint(500, 2000)

    start = time.monotonic()
    refused = await outside.fetch(epoch=OPEN, max_wait_ms=wait_ms)
    waited = 1000 * (time.monotonic() - start)
    judge.equal(FULL, refused.error, "error of one session too many")
    judge.holds(waited >= wait_ms - 1000 * TICK, f"refused after {waited:.0f} ms, not {wait_ms} ms")


@check("SES-44", solo=TWO_SESSIONS)
async def test_open_sessions_go_on(solo_env: Env, judge: Judge) -> None:
    queue, inside, outside = await crowded(solo_env)
    await outside.fetch(epoch=OPEN, max_wait_ms=100)

    fresh = await queue.produce(1)
    await inside[0].acquire(1)
    judge_done(judge, await inside[0].ack(accept(fresh)), "an open session's ack")
    replaced = await inside[1].fetch(epoch=OPEN, max_wait_ms=0)
    judge.equal(ErrorCode.NONE, replaced.error, "error of replacing an open session")


async def _make_room(env: Env, judge: Judge, *, by_epoch: bool) -> None:
    """Judge that another session can be opened in the place of each that ends."""
    queue, inside, outside = await crowded(env)
    for turn in range(3 * LIMIT):
        leaver, error = inside.pop(0), -1
        if by_epoch:
            await leaver.close()
        else:
            leaver.session.connection.abort()
        async for _ in attempts():
            error = (await outside.fetch(epoch=OPEN, max_wait_ms=100)).error
            if error != FULL:
                break
        judge.equal(ErrorCode.NONE, error, f"error of opening in place of session {turn}")
        inside.append(outside)
        outside = await (await env.sibling(queue)).consumer()


@check("SES-43", solo=TWO_SESSIONS)
async def test_closed_sessions_make_room(solo_env: Env, judge: Judge) -> None:
    await _make_room(solo_env, judge, by_epoch=True)


@check("SES-38", solo=TWO_SESSIONS)
async def test_lost_sessions_make_room(solo_env: Env, judge: Judge) -> None:
    await _make_room(solo_env, judge, by_epoch=False)
