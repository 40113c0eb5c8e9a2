"""What moves the start offset (SPSO), what holds it, and how the admin's view follows.

The leader writes the start offset along with the next change of state (KIP-932 §Durable state), so
that the admin's view may be one write behind. Every check here therefore holds a few records
beyond those it is about, and releases one of them to cause a write that moves nothing.
"""

from suites.broker.kit import *

RECORDS = 10  # Records that a check is about: offsets 0 to 9. Those it writes with come after them.


class Window:
    """A queue whose first records are all held, with spare ones behind them to write with."""

    def __init__(self, queue: Queue, consumer: Consumer) -> None:
        self.queue, self.consumer = queue, consumer
        self._spare = RECORDS

    @classmethod
    async def held(cls, env: Env, spare: int = 3) -> "Window":
        """Return a window whose records and spares are all held by one member."""
        queue = await env.queue(RECORDS, batches=env.rng.choice([1, 2, RECORDS]))
        await queue.produce(spare, batches=spare)
        consumer = await queue.consumer()
        await consumer.acquire(RECORDS + spare)
        return cls(queue, consumer)

    async def write(self) -> None:
        """Cause a state write that moves no offset: release a spare record."""
        await self.consumer.acked(release(self._spare))
        self._spare += 1

    async def reached(self, low: int) -> int:
        """Return the start offset that is shown, waiting until it is so high."""
        return (await poll(self.queue.offsets, lambda seen: seen.start >= low)).start

    async def shown(self, expected: int) -> int:
        """Return the admin's start offset after one more write, waiting for the expected one."""
        await self.write()
        return await self.queue.spso(expected)


async def _finished(env: Env, judge: Judge, finish: Callable[..., Ack]) -> None:
    window = await Window.held(env)
    done = env.rng.randint(1, RECORDS)

    await window.consumer.acked(finish(0, done - 1))

    judge.equal(done, await window.shown(done), f"start offset with {done} finished")


@check("OFF-10", fast=True, crossed=(BESIDE, RELOADED))
async def test_moves_past_accepted(env: Env, judge: Judge) -> None:
    await _finished(env, judge, accept)


@check("OFF-10")
async def test_moves_past_one_acquisition_of_several(env: Env, judge: Judge) -> None:
    fetches, count = env.rng.randint(4, 6), env.rng.randint(2, 4)
    queue, consumer = await env.with_consumer()
    for _ in range(fetches):
        await queue.produce(count)
        await consumer.acquire(count)
    done = env.rng.randint(1, count)

    await consumer.acked(accept(0, done - 1))
    await consumer.acked(release(fetches * count - 1))

    shown = await queue.spso(done)
    judge.equal(done, shown, f"start offset with {done} finished of {fetches} fetches")


@check("OFF-11", fast=True, crossed=(BESIDE, RELOADED))
async def test_moves_past_rejected(env: Env, judge: Judge) -> None:
    await _finished(env, judge, reject)


@check("OFF-12", crossed=(BESIDE, RELOADED))
async def test_moves_past_gaps(env: Env, judge: Judge) -> None:
    await _finished(env, judge, gap)


async def _with_hole(env: Env) -> tuple[Window, int]:
    """Return a window in which all records are accepted but one, which is still held."""
    window = await Window.held(env, spare=4)
    hole = env.rng.randrange(RECORDS)
    parts = [(0, hole - 1), (hole + 1, RECORDS - 1)]
    acks = [accept(first, last) for first, last in parts if first <= last]
    await window.consumer.acked(*acks)
    return window, hole


@check("OFF-14", fast=True, crossed=(BESIDE, RELOADED))
async def test_released_record_holds(env: Env, judge: Judge) -> None:
    window, hole = await _with_hole(env)
    await window.consumer.acked(release(hole))
    await window.write()

    judge.holds((at := await window.shown(hole)) <= hole, f"it is {at}, and {hole} is released")


@check("OFF-15", "OFF-16", fast=True, crossed=(BESIDE, RELOADED))
async def test_acquired_record_holds(env: Env, judge: Judge) -> None:
    window, hole = await _with_hole(env)
    await window.write()
    at = await window.shown(hole)
    judge["OFF-15"].holds(at <= hole, f"it is {at}, and {hole} is acquired")

    await window.consumer.acked(accept(hole))
    seen = await window.shown(RECORDS)
    judge["OFF-16"].equal(RECORDS, seen, "start offset after the last record was accepted")


@check("OFF-17", crossed=(BESIDE, RELOADED))
async def test_view_never_runs_ahead(env: Env, judge: Judge) -> None:
    window = await Window.held(env)
    finished: set[int] = set()
    before = first = -1  # -1 until the first write of a share-partition that began by its policy
    for offset in env.rng.sample(range(RECORDS), k=RECORDS):
        await window.consumer.acked(accept(offset))
        finished.add(offset)
        before, first = first, next(n for n in range(RECORDS + 1) if n not in finished)
        shown = await window.reached(before)
        told = f"the admin sees {shown}, {first} is unfinished, {before} was a write before"
        judge.holds(before <= shown <= first, told)

    judge.equal(RECORDS, await window.shown(RECORDS), "start offset in the end")


@check("OFF-18", crossed=(BESIDE, RELOADED))
async def test_view_never_goes_back(env: Env, judge: Judge) -> None:
    total = 60
    queue = await env.queue(total, batches=env.rng.choice([1, 6, 20]))
    views: list[int] = [-1]
    finished: set[int] = set()
    async for _ in attempts(within=60):
        consumer = await queue.consumer()
        for _ in range(env.rng.randint(1, 3)):
            counts = consumer.sound(await consumer.fetch(max_records=15)).only.counts
            # A third delivery is accepted, so that no record runs out of deliveries.
            kept = {o for o, count in counts.items() if count > 2 or env.rng.random() < 0.5}
            if counts:
                acks = [accept(o) if o in kept else release(o) for o in sorted(counts)]
                await consumer.acked(*acks)
            finished |= kept
            shown = (await queue.offsets()).start
            # -1 is no start offset: nothing was written yet, or the coordinator could not be asked.
            if shown >= 0:
                views.append(shown)
            back = views[-1] < max(views)
            judge.holds(not back, f"the start offset went back: {views[-3:]}")
        await consumer.close()
        await consumer.member.leave()
        if len(finished) == total:
            break
    if max(views) < 0:
        raise Undecided("no start offset was ever shown")
    last = (await poll(queue.offsets, lambda seen: seen.start >= max(views))).start
    judge.holds(last >= max(views), f"the start offset {max(views)} is {last} in the end")
    judge.saw(views=len(views), moves=len(set(views)))


@check("OFF-19", fast=True, crossed=BESIDE)
async def test_unfetched_partition_shows_none(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=3, untouched=True)
    by_policy = env.rng.randint(1, 3)
    await env.admin.delete_records(queue.topic, by_policy)
    await queue.consumer()

    seen = await poll(queue.offsets, lambda seen: seen.error not in RETRIABLE)
    if seen.error in RETRIABLE:
        raise Undecided(f"the coordinator is not ready: {error_name(seen.error)}")

    allowed = {
        -1: "DescribeShareGroupOffsetsResponse StartOffset: there may be none before a fetch",
        by_policy: "KIP-932 §Managing the SPSO and SPEO: initialised when first subscribed to",
    }
    judge.equal(0, seen.error, "error of a share-partition that was never fetched from")
    judge.one_of(allowed, seen.start, "its start offset")
