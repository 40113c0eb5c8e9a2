"""Acknowledge types: what ACCEPT, RELEASE, REJECT and GAP do to a record."""

from suites.broker.kit import *


@check("ACK-01", fast=True, crossed=(BESIDE, RELOADED))
async def test_accepted_record_never_comes_back(env: Env, judge: Judge) -> None:
    await judge_final_type(env, judge, AckType.ACCEPT)


@check("ACK-03", fast=True, crossed=(BESIDE, RELOADED))
async def test_gap_is_final(env: Env, judge: Judge) -> None:
    await judge_final_type(env, judge, AckType.GAP)


@check("ACK-07", fast=True, crossed=(BESIDE, RELOADED))
async def test_reject_is_final(env: Env, judge: Judge) -> None:
    await judge_final_type(env, judge, AckType.REJECT)


@check("ACK-02", fast=True, crossed=(BESIDE, BEHIND))
async def test_released_record_comes_again_counted_once_more(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10)
    same, other = sorted(env.rng.sample(range(1, 10), 2))

    judge_done(judge, await consumer.ack(release(same)), "result of the release")
    again = await next_catch(queue, consumer)
    in_time(consumer.session.made, again.responses[-1].lock_ms)  # so it is the release alone
    judge.equal({same: 2}, again.counts, "delivered again to the same member")

    judge_done(judge, await consumer.ack(release(same), release(other)), "the second release")
    stranger = await queue.consumer(join=False)
    taken = await next_catch(queue, stranger)
    in_time(consumer.session.made, taken.responses[-1].lock_ms)
    judge.equal({same: 3, other: 2}, taken.counts, "delivered again to another member")
    judge.saw(redeliveries=3)


@check("ACK-08", fast=True, crossed=(BESIDE, BEHIND))
async def test_part_of_a_batch_leaves_the_rest_acquired(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(12)
    first = env.rng.randint(2, 6)
    settled = range(first, first + 3)
    rest = [offset for offset in range(1, 12) if offset not in settled]

    judge_done(judge, await consumer.ack(accept(settled[0], settled[-1])), "a part of the batch")
    stranger = await queue.consumer(join=False)
    free = await next_catch(queue, stranger)
    judge.equal({}, free.counts, "records of the batch that another member could get")
    judge_done(judge, await consumer.ack(*singly(rest[1:], AckType.RELEASE)), "the rest later")
    freed = await next_catch(queue, stranger)
    expected = dict.fromkeys(rest[1:], 2)
    judge.delivered(expected, freed.counts, "the released rest with its delivery counts")
    await judge_held(judge, consumer, rest[:1], "the others were settled")


@check("ACK-10", crossed=BESIDE)
async def test_groups_do_not_share_acknowledgements(env: Env, judge: Judge) -> None:
    queue = await env.queue(8)
    sibling, early = await env.sibling(queue), await env.sibling(queue)
    ours, theirs, holder = [await one.consumer() for one in (queue, sibling, early)]
    await holder.acquire(8)
    await ours.acquire(8)
    await ours.acked(accept(1, 2), release(3, 4), reject(5, 6))  # 0 holds the start offset

    seen = await next_catch(sibling, theirs)
    if not seen.has({0, 7}):  # which nobody acknowledged
        raise Undecided(f"of eight records another group was given {seen.offsets}")
    judge.equal([*range(8)], seen.offsets, "records of the other group")
    judge_done(judge, await theirs.ack(release(0, 7)), "result of the other group's release")
    judge_done(judge, await holder.ack(release(0, 7)), "releasing what was held meanwhile")
    mine = await next_catch(queue, ours)
    if not mine.has({3, 4}):
        raise Undecided(f"of two released records {mine.offsets} came again")
    mine.counts.pop(8, None)  # the other group's sentinel is a record like any other here
    judge.equal([3, 4], mine.offsets, "records that come again in the first group")
