"""What the leader of a share-partition has its coordinator keep, compared with its responses."""

from suites.broker.kit import *

KEPT = {accept: ACKNOWLEDGED, reject: ARCHIVED, release: AVAILABLE}  # what is left behind


@check("PER-39", fast=True)
async def test_answered_is_persisted(env: Env, judge: Judge) -> None:
    count = env.rng.randint(20, 40)
    queue, consumer = await env.with_holder(count, batches=env.rng.choice([1, 4]))
    offsets = list(range(1, count))
    env.rng.shuffle(offsets)
    expected: dict[int, int] = {}
    while offsets:
        fates = {
            offsets.pop(): env.rng.choice(list(KEPT))
            for _ in range(min(len(offsets), env.rng.randint(1, 4)))
        }
        acks: list[Ack] = [fate(offset) for offset, fate in sorted(fates.items())]
        if env.rng.random() < 0.5:
            await consumer.acked(*acks)
        else:
            consumer.sound(await consumer.fetch(*acks, max_records=0, max_wait_ms=0))
        stored = per_offset(batches_of(await read_state(queue)))
        expected |= {offset: KEPT[fate] for offset, fate in fates.items()}
        seen = {offset: stored.get(offset, (None,))[0] for offset in expected}
        judge.equal(expected, seen, "state kept of what was answered")
    judge.saw(offsets=len(expected))


@check("PER-33", "PER-40", fast=True, crossed=AMONG)
async def test_log_of_a_live_group(env: Env, judge: Judge) -> None:
    queue = await env.queue(30, batches=6, lock_ms=env.bounds.longest_lock)
    store = Store(env)
    key = store.of(queue)
    since = await key.trail()
    consumer = await queue.consumer()
    held: list[int] = []
    for _ in range(6):
        trail = await key.trail()
        caught = await consumer.acquire(1, max_records=5, batch_size=5)
        records = await trail.records()
        first = not held  # the first fetch reads the state, which stores the leader's epoch
        held += caught.offsets
        written = [r.offset for r in records if r.value and batches_of(r.value)]
        appended = written if first else [r.offset for r in records]
        judge["PER-40"].equal([], appended, "records written by a fetch that acquires")
        fates = [env.rng.choice([accept, reject, release, None]) for _ in caught.offsets]
        acks = [f(o) for f, o in zip(fates, caught.offsets, strict=True) if f]
        if acks:
            await consumer.acked(*acks)

    records = await since.records()
    states = [b.state for r in records if r.value for b in batches_of(r.value)]
    judge["PER-40"].equal(0, states.count(ACQUIRED), "records that hold the acquired state")
    judge["PER-40"].saw(states=len(states))
    part = await read_state(queue)
    kept = replayed(records, store.release)
    expected = (kept.start, kept.batches) if kept else None
    what = f"start offset and batches, {len(records)} records replayed and as read"
    judge["PER-33"].equal(expected, (part.start_offset, joined(part)), what)


@check("PER-41", crossed=AMONG)
@pytest.mark.parametrize("gives_up", ["release", "timeout"])
async def test_count_is_persisted(env: Env, judge: Judge, gives_up: str) -> None:
    lock = env.bounds.short_lock
    queue, consumer = await env.with_consumer(4, lock_ms=lock)
    for count in (1, 2):
        await consumer.acquire(4, within=lock / 1000 + WITHIN)
        if gives_up == "release":
            await consumer.acked(release(0, 3))
        expected = dict.fromkeys(range(4), (AVAILABLE, count))
        seen: dict[int, tuple[int, int]] = {}
        async for _ in attempts(lock / 1000 + SLACK):
            seen = per_offset(batches_of(await read_state(queue)))
            if seen == expected:
                break
        else:
            await demand_bystander(env.cluster, queue.topic.leaders[0], f"{expected} is not stored")
        judge.equal(expected, seen, f"state and count kept after {count} x {gives_up}")


@check("PER-45", crossed=AMONG)
async def test_archiving_is_finished(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(10, batches=env.rng.choice([1, 10]))
    await write_state(queue, 0, [(0, 1, ARCHIVING, 1), (4, 4, ARCHIVING, 2)])

    sentinel = await queue.produce(1)
    seen: set[int] = set()
    expected = {2, 3, *range(5, 10), sentinel}
    async for _ in attempts():
        seen |= (await consumer.fetch()).only.counts.keys()
        if seen >= expected:
            break
    else:
        await demand_bystander(env.cluster, queue.topic.leaders[0], f"only {seen} came")
    judge.equal(expected, seen, "delivered, not being archived")
    await consumer.acked(*(accept(offset) for offset in sorted(seen)))
    last = await queue.produce(1)
    await consumer.acquire(1)
    await consumer.acked(release(last))
    judge.equal(last, await queue.spso(last), "start offset with everything before it finished")
