"""State writes that a leader gathers and sends in one request: each has an outcome of its own.

The state topic of a cluster of the check's own is told to take small records only. The state of
many records acknowledged in turns does not fit, that of one record does.
"""

from fixtures.proxies.broker_proxies import Direction, FrameRule
from suites.broker.brokers import STATE_WRITES, Proxied
from suites.broker.kit import *

SMALL = "600"  # Bytes of a record that the state topic takes.
RECORDS, PAIRS = 60, 6
"""How many records a large acknowledgement is about, and how many are sent with a small one."""

IN_TURNS = tuple(AckType.REJECT if number % 2 else AckType.ACCEPT for number in range(RECORDS))


async def _holder(queue: Queue, count: int, *, join: bool = False) -> tuple[Consumer, int]:
    """Return a new consumer that holds the next records, and the first of them."""
    consumer = await queue.consumer(join=join)
    held = (await consumer.acquire(count, max_records=count, batch_size=1)).offsets
    if held != list(range(held[0], held[0] + count)):
        raise Undecided(f"not in a row: {held}")
    return consumer, held[0]


@check("PER-47", solo={}, timeout=120)
async def test_none_means_stored(between: Proxied, judge: Judge) -> None:
    total = RECORDS + PAIRS * (RECORDS + 1)
    queue = await between.env.queue(total, batches=total, lock_ms=60_000)
    # What the first one holds stays unfinished, so that the start offset passes nothing.
    alone, first = await _holder(queue, RECORDS, join=True)
    large = [await _holder(queue, RECORDS) for _ in range(PAIRS)]
    small = [await _holder(queue, 1) for _ in range(PAIRS)]
    await limit_state(between.env, SMALL)
    if (refused := raw_result(await alone.ack(each(first, IN_TURNS)))) == "NONE":
        raise OutOfReach(f"the state of {RECORDS} records fits into {SMALL} bytes")

    # A leader has one state write under way at its coordinator; what comes meanwhile gathers, and
    # a leader that takes the last result for all of them is to find that of a small one.
    held_up = FrameRule(apis=STATE_WRITES, direction=Direction.REQUEST, delay=1.0)

    async def acknowledge_small() -> list[Part]:
        async for _ in attempts(WITHIN):
            if held_up.seen:
                break
        return await gather_all(one.ack(accept(only), timeout=60.0) for one, only in small)

    with between.disturbed(held_up):
        late = asyncio.create_task(acknowledge_small())
        parts = await gather_all(one.ack(each(at, IN_TURNS), timeout=60.0) for one, at in large)
        told = [raw_result(part) for part in (*parts, *await late)]

    good = [begin for (_, begin), one in zip(large, told[:PAIRS], strict=True) if one == "NONE"]
    wanted = [offset for begin in good for offset in range(begin, begin + RECORDS)]
    state = await read_state(queue)
    finished = {
        offset
        for batch in state.state_batches
        if batch.delivery_state in {ACKNOWLEDGED, ARCHIVED}
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    missing = [o for o in wanted if o >= state.start_offset and o not in finished]
    judge.equal([], missing, f"answered NONE and not stored; alone it is {refused}")
    judge.saw(refused=told.count(refused), accepted=told.count("NONE"), writes=held_up.done)
