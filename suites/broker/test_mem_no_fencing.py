"""There is no fencing: who is not in the group any more keeps its share session and its locks."""

from suites.broker.kit import *

ENDS = pytest.mark.parametrize("end", ["left", "expired"])
"""The two ways out of a group that a member can take by itself."""


async def fleeting(env: Env, records: int, end: str) -> Queue:
    """Return a queue whose group removes silent members soon, if that is the end to come."""
    limits = env.bounds
    if end == "expired" and limits.short_session > limits.longest_lock * EARLY:
        raise OutOfReach("no lock here outlasts a session timeout")
    timing = {SESSION: str(limits.short_session), HEARTBEAT: str(limits.short_heartbeat)}
    return await env.queue(
        records, lock_ms=limits.longest_lock, group_config=timing if end == "expired" else None
    )


async def out(env: Env, member: Member, end: str) -> None:
    """Let a member leave, or wait until it is removed for its silence."""
    if end == "left":
        await good_beat(member, member_epoch=-1)
    async for _ in attempts(env.bounds.short_session / 1000 + WITHIN):
        if member.member_id not in await member_ids(env, member.group):
            return
    raise Undecided(f"the member that {end} is still in the group")


@check("MEM-42")
@ENDS
async def test_outsider_goes_on(env: Env, judge: Judge, end: str) -> None:
    queue = await fleeting(env, 3, end)
    since = time.monotonic()
    consumer = await queue.holder(3)
    await out(env, consumer.member, end)

    part = await consumer.ack(accept(0, 2))
    in_time(since, env.bounds.longest_lock)
    judge.equal(0, lasting(part.ack_error), f"error of an ack by who {end}")
    more = await queue.produce(2)
    fetched = await consumer.fetch(max_wait_ms=10000)
    judge.equal((), fetched.errors, f"errors of a fetch by who {end}")
    if more not in fetched.offsets:
        await consumer.drain(until=more)


@check("MEM-43")
@ENDS
async def test_locks_outlive_membership(env: Env, judge: Judge, end: str) -> None:
    count = env.rng.randint(2, 6)
    queue = await fleeting(env, count, end)
    since = time.monotonic()
    consumer = await queue.holder(count)
    await out(env, consumer.member, end)

    other = await queue.consumer()
    _, caught = await up_to_new(queue, other)

    part = await consumer.ack(accept(0, count - 1))
    in_time(since, env.bounds.longest_lock)
    taken = sorted(set(range(count)) & caught.counts.keys())
    judge.equal([], taken, f"records of the member that {end}, delivered to another")
    judge.equal(0, lasting(part.ack_error), f"error of their ack by who {end}")
