"""Locks do not outlive the leader that gave them."""

from suites.broker.kit import *


@check("LCK-19", fast=True, crossed=AMONG)
async def test_new_leader_knows_no_locks(env: Env, judge: Judge) -> None:
    count = env.rng.randint(2, 20)
    queue = await replicated(env, count)
    holder = await queue.consumer()
    began = time.monotonic()
    held = await holder.acquire(count)

    after = await moved(queue)
    other = await after.consumer(join=False)
    seen = await watch(other, held.offsets, SLACK)

    in_time(began, env.bounds.longest_lock)
    judge.equal(held.offsets, sorted(seen), "offsets the new leader delivered at once")
    judge.saw(leader_moves=1, relocked=len(seen))


@check("LCK-20", crossed=AMONG)
async def test_old_lock_is_worth_nothing_at_the_new_leader(env: Env, judge: Judge) -> None:
    queue = await replicated(env, 3)
    holder = await queue.holder(3)

    after = await moved(queue)
    other = await after.consumer(join=False)
    taken = await watch(other, [0, 1, 2], SLACK)
    # The old holder follows its partition: a session at the new leader, and nothing acquired there.
    session = await holder.member.session(after.topic.leaders[0])
    Consumer.sound(await session.fetch((after.topic, 0), epoch=OPEN, max_records=0, max_wait_ms=0))
    response = await session.acknowledge({(after.topic, 0): [accept(0, 2)]})
    part = await other.ack(accept(0, 2))

    error = response.error or response.only.ack_error
    lasting(error, part.ack_error)
    what = "error of an ACCEPT by the holder of an old lock"
    judge.holds(error not in SILENT, f"{what}: {error_name(error)}")
    if len(taken) == 3:
        judge.equal(0, lasting(part.ack_error), "error of the ACCEPT by the holder of the new lock")
