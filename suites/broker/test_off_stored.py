"""A share-partition begins with its stored state: once, and only if that state can be true."""

from suites.broker.kit import *


@check("OFF-43", meets="stored start", solo={})
@pytest.mark.parametrize("lie", ["ends before it begins", "unknown delivery state"])
async def test_impossible_state_is_not_served(solo_env: Env, judge: Judge, lie: str) -> None:
    # On a cluster of its own: such a batch has stopped a share coordinator for good.
    queue, consumer = await solo_env.with_consumer(records=10, batches=10)
    backwards, unknown = (5, 3, ACKNOWLEDGED, 1), (5, 5, 77, 1)
    try:
        await write_state(queue, 0, [backwards if lie.startswith("ends") else unknown])
    except Undecided as refusal:  # Then there is nothing that could be served.
        if "INVALID_REQUEST" not in str(refusal):
            raise
        judge.saw(refusals=1)
        return

    async for _ in attempts():
        told = await consumer.fetch()
        judge.equal([], told.offsets, "acquired from a state with a lie")
        if told.only.error:
            break
    judge.holds(told.only.error, "the fetches say nothing of the state that cannot be loaded")

    # A start offset beyond the batch takes it out of the state (KIP-932 §Share coordinator).
    await write_state(queue, 6)
    seen: list[int] = []
    async for _ in attempts():
        seen += (await consumer.fetch()).offsets
        if len(seen) >= 4:
            break
    judge.equal([6, 7, 8, 9], seen, "acquired once the state was put right")


@check("OFF-44", fast=True)
@pytest.mark.parametrize("batches", [1, 3, 12])
async def test_stored_state_is_taken_over(env: Env, judge: Judge, batches: int) -> None:
    queue, consumer = await env.with_consumer(records=12, batches=batches)
    states = [(3, 4, ACKNOWLEDGED, 1), (5, 5, AVAILABLE, 1), (8, 9, ARCHIVED, 2)]
    await write_state(queue, 2, states)

    sentinel, seen = await up_to_new(queue, consumer)
    expected = {2: 1, 5: 2, 6: 1, 7: 1, 10: 1, 11: 1, sentinel: 1}
    judge.equal(expected, seen.counts, "delivery counts by the stored state")


@check("OFF-10")
async def test_start_moves_past_what_was_stored(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(records=10, batches=10)
    await write_state(queue, 0, [(3, 4, ACKNOWLEDGED, 1), (8, 9, ACKNOWLEDGED, 1)])
    await consumer.acquire(6)
    await consumer.acked(accept(0, 2))
    # The admin's view is that of the next write.
    await consumer.acked(release(7))

    shown = await queue.spso(5)
    judge.equal(5, shown, "start offset with 3 and 4 stored, and 0 to 2 accepted")


RETENTION = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}


@check("OFF-48", meets="reload", solo=RETENTION, timeout=240)
async def test_empty_group_outlives_retention(solo_env: Env, judge: Judge) -> None:
    env = solo_env
    queue = await env.queue()
    await use(queue)
    other = env.cluster.fresh_name("g")
    await classic_group(env, queue, other)

    async def expired() -> bool | None:
        return None if await committed_offsets(env, other) else True

    await eventually("the end of a classic group's committed offsets", expired, 150.0)
    # Each partition of __consumer_offsets looks for what has expired by a clock of its own.
    found = await poll(lambda: listed(env, [queue.group]), lambda seen: not seen, 3 * NOT_FOR)
    judge.equal([queue.group], [*found], "whether the empty share group is listed")
    left = await given_anew(queue)
    what = "what is left once other offsets have expired"
    await judge_counted(env, judge, {7: 2, 8: 2, 9: 2, 10: 1}, left, what)


@check("COO-08", meets=IDLE, solo={"group.share.initialize.retry.interval.ms": "2000"})
async def test_beginning_while_no_state_is_taken(solo_env: Env, judge: Judge) -> None:
    env, queue = solo_env, await solo_env.queue(6)
    await use(await env.queue())  # makes the state topic
    await limit_state(env, "1")
    member = await env.member(queue.group)
    await good_beat(member, subscribed_topic_names=[queue.topic.name])
    await beating([member], lambda: bool(member.assigned), NOT_FOR)
    if member.assigned:
        raise Undecided("what is assigned needs no state that is stored")
    await limit_state(env, None)

    await beating([member], lambda: member.assigned == every(queue.topic))
    judge.equal(every(queue.topic), member.assigned, "assigned once state is taken again")
    came = (await (await queue.consumer(join=False)).take(6)).offsets
    judge.equal(list(range(6)), came, "delivered after a late beginning")
