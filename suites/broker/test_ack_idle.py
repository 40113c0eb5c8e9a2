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
async def test_nothing_was_acquired_yet(share: Share, judge: Judge) -> None:
    queue = await share.queue()
    consumer = await queue.consumer()
    await consumer.fetch(max_wait_ms=0)
    await queue.produce(6, batches=share.rng.choice([1, 2]))
    for first, last in ((0, 0), (0, 5), (2, 3), (4, 9)):
        told = await _results(consumer, first, last)
        judge.holds(told <= REFUSED, f"results of {first}..{last}: {sorted(told)}")
    held = await consumer.acquire(6)
    judge.equal(dict.fromkeys(range(6), 1), held.counts, "records delivered afterwards")


@check("ACK-32", "ACK-34", meets=IDLE)
async def test_everything_is_settled(share: Share, judge: Judge) -> None:
    queue = await share.queue(6, batches=share.rng.choice([1, 2]))
    consumer = await queue.holder(6)
    await consumer.acked(accept(0, 5))
    for first, last in ((0, 0), (0, 5), (2, 3)):
        told = await _results(consumer, first, last)
        judge["ACK-34"].equal({"NONE"}, told, f"results of {first}..{last}, below the start")
    for first, last in ((6, 6), (6, 20), (100, 101)):
        told = await _results(consumer, first, last)
        judge["ACK-32"].holds(told <= REFUSED, f"results of {first}..{last}: {sorted(told)}")
    stray = await next_catch(queue, consumer)
    judge["ACK-34"].equal({}, stray.counts, "records that came again")


@check("ACK-30", "ACK-31", meets=(IDLE, "reload"))
async def test_nothing_since_the_state_was_read(share: Share, judge: Judge) -> None:
    queue = await share.queue(10)
    former = await queue.holder(10)
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
    left = await next_catch(queue, consumer)
    released = {offset: left.counts.get(offset) for offset in (2, 8)}
    judge["ACK-30"].equal({2: 2, 8: 2}, released, "the released records")
    settled = sorted({4, 6} & left.counts.keys())
    judge["ACK-31"].equal([], settled, "settled records that came again")
