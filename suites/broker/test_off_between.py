"""A reload between any two steps of a share-partition's life: what is stored is all that counts.

One group for each place of the reload goes through the same steps on the same records, all groups
at once. When the last connection of a group is gone, its share-partition is loaded again.
"""

from suites.broker.kit import *

RECORDS = 14
BATCHES = 2
STEPS: tuple[tuple[Ack, ...], ...] = (
    (),
    (accept(0, 1), release(2, 3), reject(4)),
    (release(2), accept(5), gap(8)),
    (release(2, 3), accept(6, 7)),
    (accept(2, 3), accept(11), release(12)),
)
"""What is acknowledged in each step, behind a fetch of all that is available."""


def _expected(steps: int) -> tuple[set[int], dict[int, int]]:
    """Return what is settled after some steps, and how often each other offset was given back."""
    settled: set[int] = set()
    given: dict[int, int] = {}
    for acks in STEPS[:steps]:
        for ack in acks:
            for offset in range(ack.first, ack.last + 1):
                if ack.types == (2,):
                    given[offset] = given.get(offset, 0) + 1
                else:
                    settled.add(offset)
    return settled, given


async def _reloaded(queue: Queue, steps: int) -> tuple[dict[int, int], Consumer]:
    """Go some steps, have the state loaded again, and return what a new member is given."""
    consumer = await queue.consumer()
    held: set[int] = set()
    for acks in STEPS[:steps]:
        wanted = {o for ack in acks for o in range(ack.first, ack.last + 1)} - held
        if not held or wanted:
            held.update((await consumer.acquire(len(wanted) or RECORDS)).counts)
        if acks:
            await consumer.acked(*acks)
        released = [ack for ack in acks if ack.types == (2,)]
        held.difference_update(o for ack in released for o in range(ack.first, ack.last + 1))
    await consumer.depart()
    heir = await queue.consumer(join=False)
    counts: dict[int, int] = {}
    while len(counts) < RECORDS - len(_expected(steps)[0]):
        counts |= (await heir.acquire(1)).counts
    return counts, heir


@check("OFF-44", "DLV-31", "PER-39", fast=True, meets=("reload", "two batches"))
async def test_reload_after_any_step(env: Env, judge: Judge) -> None:
    lock = env.bounds.lock(10_000)  # what is held when a connection ends may stay locked
    first = await env.queue(RECORDS, batches=BATCHES, lock_ms=lock)
    groups = [first, *[await env.sibling(first, **{LOCK: str(lock)}) for _ in STEPS[1:]]]
    seen = await asyncio.gather(
        *(_reloaded(queue, steps) for steps, queue in enumerate(groups, start=1))
    )
    for steps, (counts, heir) in enumerate(seen, start=1):
        settled, given = _expected(steps)
        left = [offset for offset in range(RECORDS) if offset not in settled]
        judge["OFF-44"].equal(left, sorted(counts), f"offsets delivered, reloaded after {steps}")
        again = {offset: counts[offset] for offset in given if offset not in settled}
        low = {offset: n for offset, n in again.items() if n <= given[offset]}
        judge["DLV-31"].equal({}, low, f"counts that fell, given back {given} times")
        await heir.acked(*(accept(offset) for offset in left))
        await heir.depart()
    last = await first.produce(1)
    for steps, queue in enumerate(groups, start=1):
        stranger = await queue.consumer(join=False)
        late = await stranger.drain(until=last)
        judge["PER-39"].equal([last], late.offsets, f"offsets that came again, group {steps}")
