"""Commit and abort markers: offsets of the log that hold nothing for an application."""

from fixtures.wire.records import decode_batches
from suites.broker.kit import *

LEVEL = pytest.mark.parametrize("level", [UNCOMMITTED, COMMITTED], ids=["uncommitted", "committed"])


@check("GAP-01", "GAP-05", feature="isolation-level", fast=True, crossed=AMONG)
@LEVEL
async def test_markers_are_no_records(env: Env, judge: Judge, level: dict[str, str]) -> None:
    queue = await env.queue(group_config=level)
    outcomes = await jumble(queue)
    catch = await (await queue.consumer()).drain(until=max(outcomes.plain))

    parts = (part for response in catch.responses for part in response.parts)
    shown = data_offsets(batch for part in parts for batch in decode_batches(part.records))
    markers = outcomes.markers & shown
    judge["GAP-01"].equal(set(), markers, "markers that came as data records")
    judge["GAP-01"].saw(markers=len(outcomes.markers))
    # Which holes are acquired is the broker's choice; that all of them are offsets of the log
    # and hold nothing is not.
    holes = set(catch.offsets) - outcomes.data
    judge["GAP-05"].holds(
        holes <= outcomes.markers, f"{sorted(holes - outcomes.markers)} do not exist"
    )
    judge["GAP-05"].saw(acquired_markers=len(holes))


@check("GAP-02", fast=True, crossed=AMONG)
async def test_marker_acknowledged_as_gap(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=1)
    done = await committed(queue, env.rng.randint(1, 3))
    last = await queue.produce(2) + 1
    consumer = await queue.consumer()
    catch = await consumer.drain(until=last)
    marker = done.stop
    if marker not in catch.counts:
        raise Undecided("the broker does not hand out markers, so that none can be acknowledged")

    # Offset 0 stays open: below the start offset a response would prove nothing.
    if env.rng.random() < 0.5:
        part = await consumer.ack(gap(marker))
    else:
        part = await consumer.ack(each(1, [1] * len(done) + [0, 1, 1]))
    judge_done(judge, part, "acknowledging the marker as a gap")
    if result(await consumer.ack(gap(marker))) == "NONE":
        raise Undecided("acknowledging it once more got NONE, so that the first proves nothing")
    await judge_final(judge, queue, consumer, [marker])


@check("GAP-03", feature="isolation-level", crossed=AMONG)
@LEVEL
async def test_nothing_but_markers(env: Env, judge: Judge, level: dict[str, str]) -> None:
    queue = await env.queue(group_config=level)
    count = env.rng.randint(1, 3)
    async with TransactionalProducer.open(queue.env.cluster) as producer:
        for _ in range(count):
            await producer.enlist(queue.topic)
            await (producer.commit if queue.env.rng.random() < 0.5 else producer.abort)()
    consumer = await queue.consumer()
    async for _ in attempts(NOT_FOR):
        empty = consumer.sound(await consumer.fetch())
        if empty.offsets:
            break
    if empty.offsets:
        first, last = min(empty.offsets), max(empty.offsets)
        judge_done(judge, await consumer.ack(each(first, [0] * (last - first + 1))), "markers")

    extra = await queue.produce(1)
    if extra != count:
        raise Undecided(f"{count} transactions without a record wrote {extra} markers")
    rest = await consumer.drain(until=extra)
    await consumer.acked(*acknowledge(rest, {extra}))
    await rewritten(consumer, await queue.produce(1))
    judge.equal(extra + 1, await queue.spso(extra + 1), "start offset")


@check("GAP-04", feature="isolation-level", crossed=AMONG)
@LEVEL
async def test_start_reaches_the_end(env: Env, judge: Judge, level: dict[str, str]) -> None:
    queue = await env.queue(group_config=level)
    outcomes = await jumble(queue)
    await committed(queue)
    last = await queue.produce(1)
    consumer = await queue.consumer()
    catch = await consumer.drain(until=last)
    await consumer.acked(*acknowledge(catch, offered(catch.responses)))

    await rewritten(consumer, await queue.produce(1))
    judge.equal(last + 1, await queue.spso(last + 1), "start offset")
    judge.saw(markers=len(outcomes.markers) + 1)
