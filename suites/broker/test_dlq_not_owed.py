"""What is no dead letter though its group has a dead-letter topic: nothing was given up."""

from suites.broker.kit import *

pytestmark = pytest.mark.feature("dead-letters")

SIZE = 10


async def _strays(box: DeadLetterSetup, consumer: Consumer, *owed: int) -> list[int]:
    """Reject one more record and await its letter; return the offsets of letters not owed."""
    sentinel = await box.queue.produce(1)
    await consumer.drain(until=sentinel)
    await consumer.acked(reject(sentinel))
    letters = await box.due({sentinel, *owed})
    return [offset for offset in letter_offsets(letters) if offset not in {sentinel, *owed}]


@check("DLQ-23", crossed=AMONG)
async def test_aborted_records(env: Env, judge: Judge) -> None:
    box = await boxed(env, group_config=COMMITTED)
    outcomes = await jumble(box.queue)
    consumer = await box.queue.consumer()
    last, catch = await up_to_new(box.queue, consumer)
    rejected = sorted(outcomes.visible & catch.counts.keys())
    await consumer.acked(*(reject(offset) for offset in rejected), accept(last))
    # Holes that came along are left to the session's end, which gives them back as they are.
    await consumer.close()

    strays = await _strays(box, await box.queue.consumer(join=False), *rejected)
    aborted = sorted(outcomes.aborted & set(strays))
    judge.equal([], aborted, "aborted records that became letters")
    judge.saw(aborted=len(outcomes.aborted), letters=len(rejected))


@check("DLQ-24", fast=True, crossed=AMONG)
async def test_deleted_records(env: Env, judge: Judge) -> None:
    box = await boxed(env, SIZE, batches=SIZE, lock_ms=env.bounds.longest_lock)
    consumer, other = await box.queue.consumer(), await box.queue.consumer(join=False)
    await consumer.acquire(4, max_records=4)
    await consumer.acked(release(0, 1))  # 0 and 1 are available, 2 and 3 are held
    await env.admin.delete_records(box.queue.topic, SIZE)

    strays = await _strays(box, other)
    await consumer.close()  # which lets go of what the log's start has passed
    strays += await _strays(box, other, SIZE)
    judge.equal([], strays, "deleted records that became letters")
    judge.saw(deleted=SIZE)


@check("DLQ-24", fast=True, crossed=AMONG)
async def test_records_behind_an_altered_offset(env: Env, judge: Judge) -> None:
    box = await boxed(env, SIZE, batches=SIZE)
    consumer = await box.queue.holder(SIZE)
    await consumer.acked(reject(0, 1))
    await consumer.close()
    await consumer.depart()
    await altered(env, box.queue.group, {(box.queue.topic.name, 0): SIZE})

    strays = await _strays(box, await box.queue.consumer(), 0, 1)
    judge.equal([], strays, "skipped records that became letters")
    judge.saw(skipped=SIZE - 2)


@check("DLQ-25", crossed=AMONG, timeout=CLEANED_WITHIN + 60)
async def test_compacted_offsets(env: Env, judge: Judge) -> None:
    box = await boxed(env, topic_config=COMPACTED)
    gapped = Compacted(box.queue)
    await gapped.write(keys(*range(SIZE)))
    holes = sorted(env.rng.sample(range(1, SIZE - 1), k=env.rng.randint(2, 4)))
    await gapped.write(keys(*holes))
    await gapped.fresh()
    await gapped.until_gone(holes)
    await _judge_range(judge, box, set(holes))


@check("DLQ-25", fast=True, crossed=AMONG)
async def test_markers(env: Env, judge: Judge) -> None:
    box = await boxed(env)
    first = await committed(box.queue, 3)
    second = await committed(box.queue, 3)
    await box.queue.produce(3)
    await _judge_range(judge, box, {first[-1] + 1, second[-1] + 1})


async def _judge_range(judge: Judge, box: DeadLetterSetup, holes: set[int]) -> None:
    """Reject ranges just as they are acquired; demand letters for other offsets than the holes."""
    end = await box.queue.env.admin.log_offset(box.queue.topic)
    consumer = await box.queue.consumer()
    catch = await consumer.drain(until=max(set(range(end)) - holes))
    ranges = [acquired for response in catch.responses for acquired in response.only.ranges]
    await consumer.acked(*(reject(acquired.first, acquired.last) for acquired in ranges))

    data = {offset for offset in catch.offsets if offset not in holes}
    letters = await box.due(data)
    empty = sorted(holes & set(letter_offsets(letters)))
    judge.equal([], empty, "offsets without a record that became letters")
    judge.saw(letters=len(letters), holes_rejected=len(holes & set(catch.offsets)))
