"""How a session ends, and what becomes of the records that its member holds.

Locks last 60 s here, or as long as they may, and what comes back is looked at in that time only: it
was released, it did not expire.
"""

from suites.broker.kit import *


@check("SES-13", fast=True, crossed=(BESIDE, BEHIND))
async def test_closing_by_acknowledge(env: Env, judge: Judge) -> None:
    fetches, count = env.rng.randint(1, 4), env.rng.randint(2, 4)
    queue, consumer, other = await holder_and_heir(env, count)
    for _ in range(1, fetches):
        await queue.produce(count)
        await consumer.acquire(count)
    kept = env.rng.randrange(count)

    closed = await consumer.close(accept(kept))
    rest = [offset for offset in range(fetches * count) if offset != kept]

    judge.equal(0, lasting(*closed.errors), "errors of the final ShareAcknowledge")
    what = f"offsets released of {fetches} acquisitions, {kept} having been accepted"
    await judge_freed(judge, consumer, other, rest, what)


@check("SES-15", crossed=(BESIDE, BEHIND))
async def test_closing_fetch_that_names_partitions(env: Env, judge: Judge) -> None:
    queue, consumer, other = await holder_and_heir(env, 2)
    more = await queue.produce(3)

    closed = await consumer.session.fetch(consumer.where, epoch=CLOSE, max_wait_ms=1000)
    allowed = {
        ErrorCode.NONE: "KIP-932 §Share sessions: a final request ends the session",
        ErrorCode.INVALID_REQUEST: "KIP-932 §Share sessions: so for topics to add in a final fetch",
    }
    judge.one_of(allowed, closed.error, "error of a final fetch with partitions")
    judge.equal([], closed.offsets, "offsets it acquired")
    back = (await other.take([more, more + 1, more + 2])).counts
    first = {offset: count for offset, count in back.items() if offset >= more}
    judge.delivered(dict.fromkeys(range(more, more + 3), 1), first, "the others")


@check("SES-16", fast=True, crossed=(BESIDE, BEHIND))
@pytest.mark.parametrize("by_fetch", [False, True], ids=["acknowledge", "fetch"])
async def test_closed_session_is_gone(env: Env, judge: Judge, *, by_fetch: bool) -> None:
    queue, consumer, _ = await holder_and_heir(env, 1)
    following = consumer.session.epoch
    await consumer.session.close({consumer.where: [accept(0)]}, by_fetch=by_fetch)

    for what in ("fetch", "acknowledge"):
        fetch, acknowledge = consumer.session.fetch, consumer.session.acknowledge
        send = fetch(epoch=following) if what == "fetch" else acknowledge({}, epoch=following)
        error = (await send).error
        gone = ErrorCode.SHARE_SESSION_NOT_FOUND
        judge.equal(gone, error, f"error of {what} with epoch {following} after the end")
    reopened = await consumer.fetch(epoch=OPEN, max_wait_ms=0)
    judge.equal((), reopened.errors, "errors of opening the next session")
    await consumer.drain(until=await queue.produce(1))


@check("SES-17", crossed=AMONG)
@pytest.mark.parametrize("by_fetch", [False, True], ids=["acknowledge", "fetch"])
async def test_closing_releases_every_partition(env: Env, judge: Judge, *, by_fetch: bool) -> None:
    lock = env.bounds.longest_lock
    queue = await env.queue(2, partitions=3, assignments=env.together(3), lock_ms=lock)
    for partition in (1, 2):
        await queue.produce(2, partition)
    consumer, bystander = await queue.consumer(), await queue.consumer(join=False)
    places = [(queue.topic, partition) for partition in queue.topic.partitions]
    held = await acquired(consumer.session, *places, count=2 * len(places))
    if any(sorted(offsets) != [0, 1] for offsets in held.values()):
        raise Undecided(f"only {held} could be acquired")
    foreign = await queue.produce(1)
    await bystander.acquire(1)

    await consumer.session.close(by_fetch=by_fetch)
    other = await bystander.member.new_session(queue.topic.leaders[0])
    other.member_id = env.member_id()
    back = await acquired(other, *places, count=2 * len(places))

    part = await bystander.ack(accept(foreign))
    in_time(consumer.session.made, lock)
    judge.equal([[0, 1]] * 3, [sorted(back[where]) for where in places], "records that came back")
    judge.equal(0, lasting(part.ack_error), "error of the bystander's ack")
    judge.saw(partitions=len(places))


@check("SES-45", crossed=AMONG)
async def test_closing_releases_forgotten_partitions(env: Env, judge: Judge) -> None:
    _, consumer, other = await holder_and_heir(env, 2)
    consumer.sound(await consumer.session.fetch(forget=[consumer.where], max_wait_ms=0))

    closed = await consumer.session.acknowledge({}, epoch=CLOSE)

    judge.equal(0, lasting(*closed.errors), "errors of the final epoch")
    what = "offsets released, their partition forgotten"
    await judge_freed(judge, consumer, other, [0, 1], what)


@check("SES-18", fast=True, crossed=(BESIDE, BEHIND))
async def test_opening_replaces(env: Env, judge: Judge) -> None:
    queue, consumer, _ = await holder_and_heir(env, 1)
    for _ in range(env.rng.randint(1, 3)):
        await consumer.fetch(max_wait_ms=0)
    old = consumer.session.epoch

    opened = await consumer.session.fetch(epoch=OPEN, max_wait_ms=0)
    judge.equal((), opened.errors, f"errors of epoch 0 in place of {old}")
    await queue.produce(1)
    stale = await consumer.session.fetch(epoch=old)
    bad = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    judge.equal(bad, stale.error, f"error of epoch {old} of the replaced session")
    following = await consumer.session.fetch(epoch=1, max_wait_ms=500)
    judge.equal((), following.errors, "errors of epoch 1 of the new session")
    judge.equal([], following.offsets, "offsets of a partition it was not told of")


@check("SES-19", crossed=AMONG)
async def test_opening_releases(env: Env, judge: Judge) -> None:
    count = env.rng.randint(2, 6)
    _, consumer, other = await holder_and_heir(env, count)

    await consumer.session.fetch(epoch=OPEN, max_wait_ms=0)
    await judge_freed(judge, consumer, other, range(count), "offsets released by epoch 0")


@check("SES-20", crossed=BEHIND)
async def test_last_session_of_a_group(env: Env, judge: Judge) -> None:
    count = env.rng.randint(5, 12)
    queue, consumer, _ = await holder_and_heir(env, count)
    settled = sorted(env.rng.sample(range(count), 2))

    await consumer.acked(*(accept(offset) for offset in settled))
    await consumer.close()
    rest = [offset for offset in range(count) if offset not in settled]
    later = await queue.consumer()
    back = (await later.take(rest)).counts
    back |= (more := await next_catch(queue, later)).counts
    in_time(consumer.session.made, more.responses[-1].lock_ms)

    judge.equal(rest, sorted(back), f"offsets after the pause, {settled} being accepted")
    judge.saw(accepted=len(settled), kept=len(rest))
