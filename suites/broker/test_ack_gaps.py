"""The batch with gaps of KIP-932: offsets that hold no record inside what was acquired."""

from suites.broker.kit import *

SIZE = 10


async def holed(env: Env) -> tuple[Compacted, tuple[int, ...]]:
    """Return a log with holes in the middle and at the end of its first batch, and the holes.

    Compaction keeps the last record of a key, and a batch keeps its range of offsets for as long as
    one of its records is left. Offset 10 is the first record behind the batch.
    """
    middle = env.rng.randint(2, 5)
    holes = (middle, middle + 1, SIZE - 1)
    log = await compacted(env)
    await log.write(keys(*range(SIZE)), keys(*holes), keys("roll"))
    await log.until_gone(holes)
    return log, holes


def first_batch(held: Catch, holes: Sequence[int]) -> list[Range]:
    if not held.counts.keys() & set(holes):
        raise OutOfReach("the broker acquires no offset without a record")
    ranges = [r for response in held.responses for r in response.only.ranges if r.first < SIZE]
    return [replace(r, last=min(r.last, SIZE - 1)) for r in ranges]


async def judge_gone(judge: Judge, log: Compacted, consumer: Consumer) -> None:
    """Demand that nothing of the first batch comes again, to this member or to another."""
    for who in (consumer, await log.queue.consumer(join=False)):
        again = await log.next_catch(who)
        come = [offset for offset in again.offsets if offset < SIZE]
        judge.equal([], come, "offsets of the batch with gaps that came again")
        await who.close()


@check("ACK-59", "ACK-60", meets=ACROSS_GAP)
async def test_gaps_beside_records(env: Env, judge: Judge) -> None:
    log, holes = await holed(env)
    consumer = await log.queue.consumer()
    held = await consumer.drain(until=SIZE)

    def kind(offset: int) -> AckType:
        final = (AckType.ACCEPT, AckType.REJECT)
        return AckType.GAP if offset in holes else env.rng.choice(final)

    # Which gaps are acquired is the broker's choice, so only what it listed is acknowledged.
    ranges = first_batch(held, holes)
    batches = [each(one.first, [kind(offset) for offset in one.offsets]) for one in ranges]
    judge_done(judge["ACK-59"], await consumer.ack(*batches), f"result of {batches}")
    # The next acknowledgement carries the start offset that this one has led to.
    await consumer.acked(accept(SIZE))
    start = await log.queue.spso(SIZE)
    judge["ACK-60"].holds(start >= SIZE, f"the start offset is {start}, not behind the batch")
    await judge_gone(judge["ACK-59"], log, consumer)


@check("ACK-61", meets=ACROSS_GAP)
async def test_one_type_over_gaps(env: Env, judge: Judge) -> None:
    log, holes = await holed(env)
    consumer = await log.queue.consumer()
    held = await consumer.drain(until=SIZE)
    for acquired in first_batch(held, holes):
        part = await consumer.ack(accept(acquired.first, acquired.last))
        judge_done(judge, part, f"ACCEPT of {acquired}")
    await judge_gone(judge, log, consumer)
