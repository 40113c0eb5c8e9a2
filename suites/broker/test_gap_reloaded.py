"""Holes in the state that a new leader reads: open records between settled ones, and no records."""

from suites.broker.kit import *

SIZE = 12


@check("GAP-32", crossed=AMONG)
async def test_open_records_between_settled(env: Env, judge: Judge) -> None:
    size = SIZE
    queue = await replicated(env, records=size)
    consumer = await queue.holder(size)
    settled = set(env.rng.sample(range(3, size - 1), k=env.rng.randint(1, size - 5)))
    settled |= {1, size - 1}  # 0 and 2 are open: below what is settled, and within
    await consumer.acked(*(accept(offset) for offset in sorted(settled)))

    queue = await moved(queue)
    left = [offset for offset in range(size) if offset not in settled]
    last, catch = await up_to_new(queue, await queue.consumer(join=False))
    missing = sorted({*left, last} - catch.counts.keys())
    judge.equal([], missing, "open records not acquired from the next leader")
    judge.saw(settled=len(settled), open=len(left))


async def _hole(env: Env) -> tuple[Compacted, range]:
    """Return a group whose next leader read a state with a hole that is a hole of the log too."""
    first = await replicated(env, records=0, topic_config=COMPACTED)
    gapped = Compacted(first)
    await gapped.write(*([name] for name in keys(*range(SIZE))))
    consumer = await first.holder(SIZE)
    begin = env.rng.randint(0, 4)
    holes = range(begin, env.rng.randint(begin + 1, SIZE - 2))
    await consumer.acked(*(accept(offset) for offset in range(SIZE) if offset not in holes))
    await gapped.write(keys(*holes))
    await gapped.fresh()
    await gapped.until_gone(holes)
    gapped.queue = await moved(first)
    await gapped.until_gone(holes)
    return gapped, holes


@check("GAP-33", crossed=AMONG, timeout=CLEANED_WITHIN * 2 + 60)
async def test_hole_in_the_state(env: Env, judge: Judge) -> None:
    gapped, holes = await _hole(env)
    heir = await gapped.queue.consumer(join=False)
    last = await gapped.fresh()
    catch = await heir.drain(until=last)
    await heir.acked(*acknowledge(catch, offered(catch.responses)))
    await rewritten(heir, await gapped.fresh())

    start = await gapped.queue.spso(last + 1, within=5)
    judge.equal(last + 1, start, f"start offset, {holes} being gone")
    judge.saw(removed=len(holes))


@check("GAP-40", crossed=AMONG, timeout=CLEANED_WITHIN * 2 + 60)
async def test_hole_does_not_stall(env: Env, judge: Judge) -> None:
    limit = await window(env)
    gapped, _ = await _hole(env)
    heir = await gapped.queue.consumer(join=False)
    count = limit // 4 + 1
    first = await gapped.write(*(keys(*(f"{part} {n}" for n in range(count))) for part in range(6)))
    every = range(first, first + 6 * count)
    accepted: set[int] = set()
    async for _ in attempts(WITHIN / 2):
        response = heir.sound(await heir.fetch(max_records=limit))
        if response.offsets:
            await heir.acked(*(accept(r.first, r.last) for r in response.only.ranges))
        accepted |= set(response.offsets)
        if accepted.issuperset(every):
            break

    missing = len(set(every) - accepted)
    sentence = f"{missing} of {len(every)} records were never delivered, all before were accepted"
    if missing:
        raise await heir.stopped(sentence)
    judge.equal(0, missing, "records that were never delivered")
