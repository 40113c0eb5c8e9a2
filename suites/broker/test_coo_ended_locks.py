"""State writes of locks that ended, stored late: nothing acknowledged meanwhile is taken back.

A lock that runs out is a state write in the background. Where it is refused by a share coordinator
that is not ready, the leader repeats it after one, two, four seconds and so on, whatever has been
stored in between.
"""

from suites.broker.brokers import Proxied
from suites.broker.kit import *

LOCK_MS = 3000
RECORDS = 5
REPEATED_FOR = 20.0
"""Seconds in which a write that was refused is repeated, unless it was refused again."""


def _demand_counts(catch: Catch, count: int) -> None:
    if catch.counts != dict.fromkeys(range(RECORDS), count):
        raise Undecided(f"delivery counts are not all {count}: {catch.counts}")


@check("COO-36", meets=("stored start", "reload"), solo={}, timeout=120)
@pytest.mark.parametrize("refused", [False, True], ids=["calm", "refused"])
async def test_late_write_of_an_ended_lock(between: Proxied, judge: Judge, refused: bool) -> None:
    queue = await between.env.queue(lock_ms=LOCK_MS)
    first = await queue.consumer()
    await first.fetch()  # loads the share-partition, which may be a state write
    await queue.produce(RECORDS)
    with between.state_writes_refused() if refused else contextlib.nullcontext():
        # Locks run out under one consumer after the other; their counts are 1, 2 and 3.
        consumers = [first, *[await queue.consumer(join=False) for _ in range(2)]]
        for count, consumer in enumerate(consumers, start=1):
            _demand_counts(await consumer.acquire(RECORDS), count)
        # With the last connection of the group the leader forgets the share-partition, and the
        # next consumer gets what is stored.
        for consumer in consumers:
            await consumer.depart()
        last = await queue.consumer(join=False)
        caught = await last.acquire(RECORDS)
        if refused:
            _demand_counts(caught, 1)
    await last.acked(accept(0, RECORDS - 1))

    within = REPEATED_FOR if refused else 1.0
    taken_back: list[int] = []
    async for _ in attempts(within):
        state = await read_state(queue)
        available = [b for b in state.state_batches if b.delivery_state == AVAILABLE]
        taken_back = [o for b in available for o in range(b.first_offset, b.last_offset + 1)]
        if taken_back:
            break
    await last.depart()
    reader = await queue.consumer(join=False)
    sentinel, seen = await up_to_new(queue, reader)

    again = sorted(seen.counts.keys() - {sentinel})
    told = f"delivered again after an ACCEPT was answered NONE, stored as available: {taken_back}"
    judge.equal([], again, told)
    judge.saw(accepted=RECORDS, refused=int(refused))
