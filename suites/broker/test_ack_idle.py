"""Acknowledging where nothing is in flight: never anything, not any more, or not since a reload."""

from suites.broker.kit import *

TYPES = (AckType.GAP, AckType.ACCEPT, AckType.RELEASE, AckType.REJECT)
WRONG_STATE = "INVALID_RECORD_STATE"
REFUSED = {"INVALID_REQUEST", WRONG_STATE}
"""Where nothing is in flight a broker may miss the record before it looks where the end is."""


async def _results(consumer: Consumer, first: int, last: int) -> set[str]:
    """Acknowledge a range with every type, and with one type for each offset; return the errors."""
    ranges = [Ack(first, last, (kind,)) for kind in TYPES]
    ranges.append(each(first, [AckType.ACCEPT] * (last - first + 1)))
    return {result(await consumer.ack(batch)) for batch in ranges}


@check("ACK-32", meets=IDLE)
async def test_nothing_was_acquired_yet(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer()
    await consumer.fetch(max_wait_ms=0)
    await queue.produce(6, batches=env.rng.choice([1, 2]))
    for first, last in ((0, 0), (0, 5), (2, 3), (4, 9)):
        told = await _results(consumer, first, last)
        judge.holds(told <= REFUSED, f"results of {first}..{last}: {sorted(told)}")
    held = await consumer.acquire(6)
    judge.delivered(dict.fromkeys(range(6), 1), held.counts, "records delivered afterwards")


@check("ACK-32", "ACK-34", meets=IDLE)
async def test_everything_is_settled(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(6, batches=env.rng.choice([1, 2]))
    await consumer.acked(accept(0, 5))
    for first, last in ((0, 0), (0, 5), (2, 3)):
        told = await _results(consumer, first, last)
        judge["ACK-34"].equal({"NONE"}, told, f"results of {first}..{last}, below the start")
    for first, last in ((6, 6), (6, 20), (100, 101)):
        told = await _results(consumer, first, last)
        judge["ACK-32"].holds(told <= REFUSED, f"results of {first}..{last}: {sorted(told)}")
    judge["ACK-34"].equal({}, (await next_catch(queue, consumer)).counts, "records that came again")


@check("ACK-65", fast=True, crossed=(BESIDE, RELOADED), meets=(IDLE, ACROSS_START))
async def test_range_across_the_start(env: Env, judge: Judge) -> None:
    settled = env.rng.randint(2, 8)
    queue, consumer = await env.with_holder(settled, batches=env.rng.choice([1, 2]))
    await consumer.acked(accept(0, settled - 1))
    await queue.produce(5)
    below = env.rng.randint(0, settled - 2)
    for first, last in ((below, settled), (0, settled + 4), (settled - 1, settled + 1000)):
        told = await _results(consumer, first, last)
        judge.holds(told <= REFUSED, f"results of {first}..{last}: {sorted(told)}")
    later = await next_catch(queue, consumer)
    expected = dict.fromkeys(range(settled, settled + 5), 1)
    judge.delivered(expected, later.counts, "the records above, delivered for the first time")


@check("ACK-38", meets=(IDLE, ACROSS_START))
async def test_partitions_beside_a_range_across_the_start(env: Env, judge: Judge) -> None:
    several = await spread(env, 5, records=6)
    bad = env.rng.randrange(5)
    settled = [[accept(0, 5) if index == bad else accept(0)] for index in range(5)]
    if any(one != "NONE" for one in await several.acknowledge(*settled)):
        raise Undecided("what was acquired could not be accepted")
    good = [accept(1, 2), release(3)]
    results = await several.acknowledge(*([accept(3, 8)] if i == bad else good for i in range(5)))
    del results[bad]
    judge.equal(["NONE"] * 4, results, f"results beside partition {bad}, which refuses 3..8")
    for i in set(range(5)) - {bad}:
        judge.delivered({3: 2}, await several.left(i), f"records of partition {i} that come again")


@check("ACK-30", "ACK-31", meets=(IDLE, "reload"))
async def test_nothing_since_the_state_was_read(env: Env, judge: Judge) -> None:
    queue, former = await env.with_holder(10)
    # 0 is a record to load the state with; then nothing is acquired above it.
    await former.acked(each(0, (2, 1, 2, 1, 1, 3, 3, 1, 2, 1)))
    await former.depart()
    consumer = await queue.consumer(join=False)
    held = await consumer.acquire(1, max_records=1, batch_size=1)
    if held.offsets != [0]:
        raise Undecided(f"{held.offsets} were acquired to have the state loaded, not 0 alone")
    for rule, offset in (("ACK-30", 2), ("ACK-30", 8), ("ACK-31", 4), ("ACK-31", 6)):
        told = await _results(consumer, offset, offset)
        judge[rule].equal({WRONG_STATE}, told, f"results of offset {offset}, as it was stored")
    left = (await next_catch(queue, consumer)).counts.keys()
    judge["ACK-30"].equal([2, 8], sorted({2, 8} & left), "the released records")
    settled = sorted({4, 6} & left)
    judge["ACK-31"].equal([], settled, "settled records that came again")
