"""Sessions and connections: what is released when a client is cut off, and what is not.

Locks last 60 s here, or as long as they may, and what comes back is looked at in that time only: it
was released, it did not expire.
"""

from fixtures.wire.connection import ConnectionLost
from suites.broker.kit import *


@check("SES-36", fast=True, crossed=(BESIDE, BEHIND))
async def test_reset_connection_releases(env: Env, judge: Judge) -> None:
    count = env.rng.randint(2, 8)
    _, consumer, other = await holder_and_heir(env, count)

    consumer.session.connection.abort()
    await judge_freed(judge, consumer, other, range(count), "offsets released by the reset")


@check("SES-37", fast=True, crossed=(BESIDE, BEHIND))
async def test_closed_connection_releases(env: Env, judge: Judge) -> None:
    count = env.rng.randint(2, 8)
    _, consumer, other = await holder_and_heir(env, count)
    await consumer.acked(accept(0))

    await consumer.session.connection.close()
    await judge_freed(judge, consumer, other, range(1, count), "offsets released by the close")


@check("SES-37", crossed=(BESIDE, BEHIND))
async def test_connection_closed_in_a_fetch(env: Env, judge: Judge) -> None:
    queue, consumer, other = await holder_and_heir(env, 2)
    await other.fetch(max_wait_ms=0)

    # Sent, and nobody waits for the response. A broker may look at the connection again only when
    # the fetch has had its MaxWaitMs, and what is produced meanwhile may be acquired for nobody.
    connection = consumer.session.connection
    fetching = asyncio.create_task(consumer.fetch(max_wait_ms=2000))
    async for _ in attempts(pause=0):
        if connection.unanswered:
            break
    await connection.close()
    with contextlib.suppress(ConnectionLost):
        await fetching
    late = await queue.produce(1)
    await judge_freed(judge, consumer, other, [0, 1, late], "offsets to be had after the close")


@check("SES-38", crossed=AMONG)
async def test_session_ends_with_its_connection(env: Env, judge: Judge) -> None:
    _, consumer, other = await holder_and_heir(env, 2)
    following = consumer.session.epoch
    consumer.session.connection.abort()
    # The broker has noticed when the records are back.
    if not (catch := await other.take([0, 1])).has(2):
        raise Undecided("the broker did not notice the end of the connection")
    in_time(consumer.session.made, catch.responses[-1].lock_ms)

    await consumer.reconnect()
    stale = await consumer.session.fetch(epoch=following)
    opened = await consumer.fetch(epoch=OPEN, max_wait_ms=0)
    following_it = await consumer.fetch(epoch=1, max_wait_ms=0)

    gone = ErrorCode.SHARE_SESSION_NOT_FOUND
    judge.equal(gone, stale.error, f"error of epoch {following} on a new connection")
    judge.equal(ErrorCode.NONE, opened.error, "error of epoch 0 on a new connection")
    judge.equal((), following_it.errors, "errors of epoch 1 behind it")


@check("SES-39", crossed=(BESIDE, RELOADED))
async def test_end_of_an_old_connection(env: Env, judge: Judge) -> None:
    queue, consumer, _ = await holder_and_heir(env, 1)
    old = consumer.session.connection
    await consumer.reconnect()
    opened = await consumer.fetch(epoch=OPEN, max_wait_ms=0)
    judge.equal(ErrorCode.NONE, opened.error, "error of opening on a new connection")

    # Nothing says when the broker notices; on loopback it takes milliseconds.
    old.abort()
    fetches = 0
    async for _ in attempts(NOT_FOR):
        response = await consumer.fetch(max_wait_ms=0)
        error = f"error of epoch {fetches + 1} after the end of the old connection"
        judge.equal(ErrorCode.NONE, response.error, error)
        fetches += 1
    fresh = await queue.produce(1)
    await consumer.drain(until=fresh)
    judge_done(judge, await consumer.ack(accept(fresh)), "an ack in the new session")
    judge.saw(fetches=fetches)


@check("SES-41", crossed=BEHIND)
async def test_end_of_another_connection(env: Env, judge: Judge) -> None:
    queue, consumer, other = await holder_and_heir(env, 2)
    spare = await env.cluster.dial(queue.topic.leaders[0], consumer.member_id)
    await spare.call("ShareGroupDescribe", group_ids=[queue.group])
    await spare.call("Metadata", topics=[{"name": queue.topic.name}])

    spare.abort()
    seen: dict[int, int] = {}
    async for _ in attempts(NOT_FOR):
        seen |= (await next_catch(queue, other)).counts
    part = await consumer.ack(accept(0, 1))

    taken_away = sorted({0, 1} & seen.keys())
    judge.equal([], taken_away, "offsets released by the end of a spare connection")
    judge.equal(0, lasting(part.ack_error), "error of the ack in the session")


@check("SES-46", crossed=AMONG)
async def test_end_of_a_shared_connection(env: Env, judge: Judge) -> None:
    queue = await env.queue(4, batches=4, lock_ms=env.bounds.longest_lock)
    first, other = await queue.consumer(), await queue.consumer()
    session = Session(first.session.connection, queue.group, env.member_id())
    second = Consumer(first.member, session, first.where)
    await first.acquire(2, max_records=2)
    await second.acquire(2, max_records=2)

    session.connection.abort()
    await judge_freed(judge, first, other, range(4), "offsets of both members, released")
