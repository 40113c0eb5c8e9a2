"""Records that leave the log at its start: DeleteRecords and retention, under a group at work."""

from fixtures.clients.configs import configure_topic
from suites.broker.kit import *

Deleting = Callable[[Queue, int], Awaitable[None]]
"""Makes the records below an offset leave the log."""

EXPIRED_WITHIN = 30.0
"""Seconds; a broker with default settings looks for old segments every five minutes only."""


async def _by_request(queue: Queue, before: int) -> None:
    await queue.env.admin.delete_records(queue.topic, before)


async def _by_retention(queue: Queue, before: int) -> None:
    """Let the records below an offset grow too old, of a log that :func:`_dated` wrote."""
    configs = await queue.env.admin.broker_configs()
    if "log.retention.check.interval.ms" not in configs:
        raise OutOfReach("the broker does not say how often it looks for records that are too old")
    interval = configs["log.retention.check.interval.ms"]
    if int(interval) > EXPIRED_WITHIN * 1000 / 2:
        raise OutOfReach(f"the broker looks for old segments every {interval} ms only")
    age = (10 - before) * 3600 + 1800
    await configure_topic(queue.env.cluster, queue.topic.name, {"retention.ms": str(age * 1000)})
    async for _ in attempts(EXPIRED_WITHIN):
        if await queue.env.admin.log_offset(queue.topic, EARLIEST) == before:
            return
    raise Undecided(f"the broker did not delete old segments within {EXPIRED_WITHIN:g} s")


async def _dated(env: Env) -> Queue:
    """Return a queue of ten records, hours apart and each in a segment of its own.

    Segments roll by the records' timestamps; record n is 10 - n hours old.
    """
    old = {"segment.ms": "1000", "retention.ms": "-1"}
    queue = await env.queue(topic_config=old, lock_ms=env.bounds.longest_lock)
    now = int(time.time() * 1000)
    for hours in range(10, 0, -1):
        record = Record(timestamp=now - hours * 3_600_000, value=b"%d hours old" % hours)
        await env.admin.append(queue.topic, encode_batch([record]))
    return queue


@check("GAP-28", crossed=AMONG)
@pytest.mark.parametrize("delete", [_by_request, _by_retention], ids=["request", "retention"])
@pytest.mark.parametrize("held", [True, False], ids=["in-flight", "not-yet-fetched"])
async def test_goes_on_at_what_is_left(
    env: Env, judge: Judge, delete: Deleting, held: bool
) -> None:
    queue = await _dated(env)
    consumer = await queue.consumer()
    first = await consumer.acquire(10 if held else 1, max_records=500 if held else 1)
    before = env.rng.randint(3, 8)
    await delete(queue, before)
    if left := [release(offset) for offset in first.offsets if offset >= before]:
        await consumer.acked(*left)

    last, rest = await up_to_new(queue, consumer)
    expected = list(range(before, last + 1))
    judge.equal(expected, rest.offsets, "acquired after the deletion")
    judge.equal(set(expected), offered(rest.responses), "records delivered after it")


@check("GAP-29", crossed=AMONG)
@pytest.mark.parametrize("finish", [accept, release, reject], ids=["accept", "release", "reject"])
@pytest.mark.parametrize("all_gone", [True, False], ids=["all", "some"])
@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "unnoticed"])
async def test_late_acknowledgement(
    env: Env, judge: Judge, finish: Callable[[int, int], Ack], all_gone: bool, noticed: bool
) -> None:
    several = await spread(env, partitions=2, records=10)
    if noticed:
        await several.session.acknowledge({several.where[0]: [release(0)]})
    await env.admin.delete_records(several.queue.topic, 10 if all_gone else env.rng.randint(2, 9))
    if noticed:
        # A leader may learn of the log's new start only from a fetch below it.
        other = await several.queue.consumer(join=False)
        await other.drain(until=await several.queue.produce(1))
    first, second = await several.acknowledge([finish(int(noticed), 9)], [accept(1, 9)])

    allowed = {
        "NONE": "KIP-932 §In-flight records: all that is below the start offset is over",
        "INVALID_RECORD_STATE": "ShareAcknowledgeResponse ErrorCode: the records are not acquired",
    }
    judge.one_of(allowed, first, "result for deleted records")
    judge.equal("NONE", second, "result for the other partition")
    # The pin of the other partition is still held, so that its responses were about its records.
    again = (await several.session.acknowledge({several.where[1]: [accept(1)]})).parts
    if result(again[0]) == "NONE":
        raise Undecided("accepting one more time got NONE, so that the first proves nothing")


@check("OFF-22", fast=True, crossed=(BESIDE, RELOADED))
async def test_cut_through_a_held_batch(env: Env, judge: Judge) -> None:
    queue, holder = await env.with_holder(10, lock_ms=env.bounds.longest_lock)
    cut = env.rng.randint(1, 7)
    await env.admin.delete_records(queue.topic, cut)

    stranger = await queue.consumer(join=False)
    stolen = await next_catch(queue, stranger)
    judge.equal([], stolen.offsets, "held records that another member acquired")
    # The first record left stays open: below the start offset a response would prove nothing.
    judge_done(judge, await holder.ack(accept(cut + 1, 9)), "accepting what is left")
    if result(await holder.ack(accept(9))) == "NONE":
        raise Undecided("accepting one more time got NONE, so that the first proves nothing")
    judge_done(judge, await holder.ack(release(cut)), "releasing the first record left")
    back = await next_catch(queue, stranger)
    judge.delivered({cut: 2}, back.counts, "delivery counts of what came back")


@check("GAP-31", fast=True, crossed=AMONG)
async def test_all_deleted(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(12, batches=env.rng.choice([1, 3, 12]))
    # Held 0 to 2, finished 3 to 5, available 6 to 8, finished 9 to 11, and never fetched 12, 13.
    await consumer.acked(accept(3, 5), release(6, 8), reject(9, 11))
    await queue.produce(2)
    await env.admin.delete_records(queue.topic, 14)

    stranger = await queue.consumer(join=False)
    news = await queue.produce(env.rng.randint(1, 3))
    last, catch = await up_to_new(queue, stranger)
    expected = list(range(news, last + 1))
    judge.equal(expected, catch.offsets, "acquired after everything was deleted")
    judge.equal(set(expected), offered(catch.responses), "records delivered after it")
    await stranger.acked(accept(news, last))
    # What is locked may keep the start offset back though it is gone (KIP-932 §Log retention).
    await consumer.close()
    # The close is answered before its releases are done, and what they move shows with a write.
    start = -1
    async for _ in attempts():
        await rewritten(stranger, await queue.produce(1))
        start = (await queue.offsets()).start
        if start > last:
            break
    judge.holds(start > last, f"start offset afterwards: {start}, {last} is accepted")
