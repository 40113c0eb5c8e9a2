"""What a ShareFetch answer looks like: ranges, records, counts, the lock, partitions, errors."""

from fixtures.wire.codec import WireError
from fixtures.wire.records import Compression, decode_batches
from suites.broker.kit import *


@check("ACQ-05", "ACQ-07", fast=True, crossed=(BESIDE, BEHIND))
async def test_ranges_in_order_with_counts(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(30, batches=env.rng.choice([1, 3, 6]))
    freed = sorted(env.rng.sample(range(30), k=10))
    await consumer.acked(*(release(offset) for offset in freed))
    await queue.produce(5)

    expected = dict.fromkeys(freed, 2) | dict.fromkeys(range(30, 35), 1)
    catch = await consumer.take(expected)

    for response in catch.responses:
        for part in response.parts:
            borders = [border for r in part.ranges for border in (r.first, r.last + 1)]
            ordered = all(r.first <= r.last for r in part.ranges) and borders == sorted(borders)
            judge["ACQ-05"].holds(ordered, f"ranges out of order: {part.ranges}")
    came = {offset: catch.counts.get(offset) for offset in expected}
    judge["ACQ-07"].equal(expected, came, "counts of released and of new records")


@check("ACQ-06", crossed=AMONG)
@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name.lower())
async def test_records_come_as_produced(env: Env, judge: Judge, codec: Compression) -> None:
    queue = await env.queue()
    produced = [
        Record(
            offset=index,
            key=None if index % 3 == 0 else b"k%d" % index,
            value=None if index % 5 == 0 else env.rng.randbytes(env.rng.randint(0, 200)),
            headers=(("h", b"%d" % index), ("none", None)),
        )
        for index in range(12)
    ]
    await env.admin.append(queue.topic, encode_batch(produced, compression=codec))
    consumer = await queue.consumer()

    _judge_records(judge, produced, await consumer.acquire(12))

    # Out of the middle of the batch, and not in one piece.
    again = sorted(env.rng.sample(range(1, 11), 5))
    await consumer.acked(*(release(offset) for offset in again))
    _judge_records(judge, produced, await consumer.acquire(5))


def _judge_records(judge: Judge, produced: Sequence[Record], catch: Catch) -> None:
    """Judge that there is a record for each acquired offset, as it was produced."""
    parts = [part for response in catch.responses for part in response.parts]
    got = [record for part in parts for record in part.acquired_records()]
    offsets = [offset for part in parts for offset in part.offsets]
    judge.equal(offsets, [r.offset for r in got], "offsets of the records")
    for theirs in got:
        ours = produced[theirs.offset]
        judge.equal(
            (ours.key, ours.value, ours.headers),
            (theirs.key, theirs.value, theirs.headers),
            f"record {ours.offset}",
        )


@check("ACQ-08", crossed=(BESIDE, BEHIND))
async def test_records_never_null(env: Env, judge: Judge) -> None:
    queue = await env.queue(partitions=2, records=3, assignments=env.together(2))
    consumer = await queue.consumer()
    named = [(queue.topic, 0), (queue.topic, 1), (queue.topic, 5)]

    # The field cannot be null from version 1 on, so that null records are an unreadable answer.
    unreadable, parts = "", []
    try:
        responses = [await consumer.session.fetch(*named)]
        responses += [await consumer.fetch(accept(0), max_wait_ms=100)]  # with a result alone
        responses += [await consumer.session.fetch(max_wait_ms=100) for _ in range(3)]
        parts = [part for response in responses for part in response.parts]
    except WireError as error:
        unreadable = str(error)

    judge.equal("", unreadable, "what is wrong with the bytes of a response")
    if all(part.ranges for part in parts):
        raise Undecided("no partition came without records, not even one that does not exist")


@check("ACQ-09", fast=True, crossed=(BESIDE, BEHIND))
async def test_lock_timeout_is_the_groups(env: Env, judge: Judge) -> None:
    usual = env.bounds.locks.default
    own = min(env.bounds.prompt_lock + env.rng.randint(1, 999), env.bounds.longest_lock)

    for queue, expected in (
        (await env.queue(records=1, lock_ms=own), own),
        (await env.queue(records=1), usual),
    ):
        told = (await (await queue.consumer()).acquire(1)).responses[-1].lock_ms
        if told == usual != expected:
            await plain_locks(env, own)  # that a group's own is in force at all is LCK-11's
        judge.equal(expected, told, "AcquisitionLockTimeoutMs")


@check("ACQ-10", fast=True)
async def test_several_partitions_in_one_fetch(env: Env, judge: Judge) -> None:
    matrix = await grid(env)
    values = {
        (topic.id, index): b"%s %d" % (topic.id.bytes, index) for topic, index in matrix.places
    }
    for topic, index in matrix.places:
        some = [values[topic.id, index]] * env.rng.randint(1, 9)
        await env.admin.produce(topic, some, index)

    for response in await matrix.acquire(matrix.session, 1):
        for part in response.parts:
            came = {record.value for record in part.acquired_records()}
            expected = {values.get((part.topic_id, part.partition))} if part.ranges else set()
            judge.equal(expected, came, "values of what was acquired of a partition")


@check("ACQ-11", crossed=BESIDE)
async def test_more_records_than_acquired(env: Env, judge: Judge) -> None:
    _, first, second = await env.with_pair(records=10)
    await first.acquire(10)
    await first.acked(release(2), release(7))

    catch = await second.acquire(2)

    if catch.offsets != [2, 7]:
        raise Undecided(f"{catch.offsets} were acquired, and not what was released")
    batches = [b for a in catch.responses for p in a.parts for b in decode_batches(p.records)]
    sent = {record.offset for batch in batches for record in batch.records}
    # Whatever else came along is not held: its holder can still settle it.
    others = [accept(offset) for offset in range(10) if offset not in (2, 7)]
    judge_done(judge, await first.ack(*others), "the first member's acknowledgement")
    judge.saw(records_not_acquired=len(sent - {2, 7}))
