"""Compaction before, between and under the fetches of a share group.

Compaction keeps the last record of each key. A batch keeps its range of offsets for as long as one
of its records is left, and goes as a whole otherwise.
"""

from suites.broker.kit import *

pytestmark = pytest.mark.timeout(CLEANED_WITHIN + 60)

SIZE = 10


@check("GAP-21", "GAP-22", crossed=AMONG)
async def test_batch_with_holes(env: Env, judge: Judge) -> None:
    holes = sorted(env.rng.sample(range(1, SIZE), k=env.rng.randint(2, 5)))
    gapped = await compacted(env)
    await gapped.write(keys(*range(SIZE)))
    await gapped.write(keys(*holes))
    last = await gapped.write(keys("roll"))
    await gapped.until_gone(holes)
    consumer = await gapped.queue.consumer()
    catch = await consumer.drain(until=last)

    seen = offered(catch.responses)
    judge["GAP-21"].equal(set(), seen & set(holes), "removed offsets that came as records")
    left = set(range(last + 1)) - set(holes)
    missing = sorted(left - (seen & catch.counts.keys()))
    judge["GAP-22"].equal([], missing, "records of the thinned-out log that were not delivered")

    # Offset 0 stays open: below the start offset a response would prove nothing.
    del catch.counts[0]
    await consumer.acked(*(accept(offset) for offset in catch.offsets if offset in seen))
    for offset in sorted(catch.counts.keys() - seen):
        told = result(await consumer.ack(gap(offset)))
        judge["GAP-21"].equal("NONE", told, f"result of a gap at {offset}")
    judge["GAP-21"].saw(acquired_holes=len(set(catch.offsets) & set(holes)))
    await consumer.close()
    rest = await gapped.next_catch(await gapped.queue.consumer(join=False))
    judge["GAP-21"].equal(set(), offered(rest.responses) & {*holes}, "records of another member")


@dataclass(frozen=True, slots=True)
class Passed:
    """What a live group was given of a log of which ``holes`` vanished between two fetches."""

    gapped: Compacted
    consumer: Consumer
    holes: range
    last: int
    caught: tuple[Catch, Catch]

    @property
    def records(self) -> set[int]:
        return offered([response for catch in self.caught for response in catch.responses])


async def _passed(env: Env) -> Passed:
    """Let a group fetch one record, remove batches behind it, and let it fetch on to the end."""
    gapped = await compacted(env)
    await gapped.write(*([name] for name in keys(*range(SIZE))))
    consumer = await gapped.queue.consumer()
    first = await consumer.acquire(1, max_records=1)
    begin = env.rng.randint(max(first.offsets) + 1, 6)
    holes = range(begin, env.rng.randint(begin + 1, SIZE))
    await gapped.write(keys(*holes))
    await gapped.fresh()
    await gapped.until_gone(holes)
    last = await gapped.fresh()
    return Passed(gapped, consumer, holes, last, (first, await consumer.drain(until=last)))


@check("GAP-23", crossed=AMONG)
async def test_batches_gone_between_fetches(env: Env, judge: Judge) -> None:
    log = await _passed(env)
    missing = set(range(log.last + 1)) - {*log.holes} - log.records
    judge.equal([], sorted(missing), "records behind the hole that were not delivered")
    judge.saw(removed=len(log.holes))


@check("GAP-27", feature="lag", crossed=AMONG)
async def test_hole_passed_is_no_lag(env: Env, judge: Judge) -> None:
    log = await _passed(env)
    queue = log.gapped.queue
    for catch in log.caught:
        await log.consumer.acked(*acknowledge(catch, log.records))
    # The next state write is the one that tells of the start offset behind the hole.
    await rewritten(log.consumer, await log.gapped.fresh())
    wanted = (log.last + 1, 1)
    if (seen := (await queue.spso(wanted[0]), await queue.lag(1))) != wanted:
        await demand_counting(env)
    judge.equal(wanted, seen, "start offset and lag, with one record left")


@check("GAP-24", crossed=AMONG)
@pytest.mark.parametrize("batches", [1, SIZE], ids=["one-batch", "many"])
async def test_released_records_gone(env: Env, judge: Judge, batches: int) -> None:
    gapped = await compacted(env)
    names = keys(*range(SIZE))
    await gapped.write(*([names] if batches == 1 else [[name] for name in names]))
    consumer = await gapped.queue.consumer()
    # The log's first batches are acquired, released, and compacted away.
    held = await consumer.acquire(SIZE)
    await consumer.acked(*(release(offset) for offset in held.offsets))
    await gapped.write(keys(*range(SIZE)), keys("roll"))
    gone = range(SIZE)
    await gapped.until_gone(gone)

    last = await gapped.write(keys("new"))
    rest = await consumer.drain(until=last)
    seen = offered(rest.responses)
    judge.equal(set(), seen & set(gone), "removed records that came")
    await consumer.acked(*acknowledge(rest, seen))
    await rewritten(consumer, await gapped.write(keys("another")))
    judge.equal(last + 1, await gapped.queue.spso(last + 1), "start offset")
    judge.saw(removed=len(gone))


@check("GAP-26", crossed=AMONG)
@pytest.mark.parametrize("finish", [accept, release], ids=["accept", "release"])
async def test_held_records_gone(env: Env, judge: Judge, finish: Callable[[int, int], Ack]) -> None:
    gapped = await compacted(env, lock_ms=env.bounds.longest_lock)
    await gapped.write(keys("pin"), *([name] for name in keys(*range(1, SIZE), "kept")))
    consumer = await gapped.queue.holder(SIZE + 1)
    gone = range(1, SIZE)
    await gapped.write(keys(*gone), keys("roll"))
    await gapped.until_gone(gone)

    async def twice(*of: int) -> tuple[str, bool]:
        told, again = [result(await consumer.ack(how(*of))) for how in (finish, accept)]
        return told, again == "NONE"

    if (kept := await twice(SIZE, SIZE)) != ("NONE", False):
        raise Undecided(f"so it is with a record that is still in the log: {kept}")
    # The pin is held, so that the results are about these records.
    told = await twice(gone.start, gone.stop - 1)
    judge.equal(kept, told, f"result of {finish.__name__}, and whether it goes twice")
