"""The lag before there is a start offset, and after an administrator has set or deleted one."""

from fixtures.clients.admin import ShareOffset
from suites.broker.kit import *

pytestmark = pytest.mark.feature("lag")

UNKNOWN = -1


@check("LAG-05", fast=True, crossed=AMONG)
@pytest.mark.parametrize("reset", ["earliest", "latest"])
async def test_unknown_before_first_fetch(env: Env, judge: Judge, reset: str) -> None:
    records = env.rng.randint(1, 20)
    queue = await env.queue(records=records, partitions=2, reset=reset, untouched=True)
    consumer = await queue.consumer()
    seen = await env.admin.share_offsets(queue.group, queue.topic)
    for index, end in enumerate((records, 0)):
        _judge_unknown(judge, seen[index], 0 if reset == "earliest" else end, end)
    other = await env.admin.create_topic()
    lags = {one.lag for one in (await env.admin.share_offsets(queue.group, other)).values()}
    judge.equal(set(), lags - {UNKNOWN}, "lag of a topic that the group never subscribed to")

    # One partition in use does not make the other one known.
    async for _ in attempts():
        await queue.produce(1)
        if Consumer.sound(await consumer.fetch()).offsets:
            break
    _judge_unknown(judge, await queue.offsets(partition=1), 0, 0)


def _judge_unknown(judge: Judge, seen: ShareOffset, at: int, end: int) -> None:
    """Demand what is true before the first fetch: nothing is known, or where the group begins."""
    allowed = {
        (UNKNOWN, UNKNOWN): "KIP-1226 §Proposed Changes: -1 where the start offset is not known",
        (at, end - at): "KIP-932 §Managing the SPSO and SPEO: a first subscription initialises it",
    }
    judge.one_of(allowed, (seen.start, seen.lag), "start offset and lag before any fetch")


async def _drained(env: Env, records: int) -> Queue:
    """Return a queue with all records but the first one accepted, and a group without members."""
    queue, consumer = await env.with_holder(records)
    await consumer.acked(release(0), accept(1, records - 1))
    await consumer.depart()
    return queue


@check("LAG-06", fast=True, crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize("place", ["start", "middle", "end"])
async def test_altered_offset(env: Env, judge: Judge, place: str) -> None:
    records = 105
    queue = await _drained(env, records)
    to = {"start": 0, "middle": env.rng.randint(1, records - 1), "end": records}[place]
    response = await env.admin.alter_offset(queue.group, queue.topic, to)
    require_ok("AlterShareGroupOffsets", next(filter(None, codes_in(response)), 0))

    left = records - to
    judge.equal(left, await queue.lag(left), f"lag after altering to {to} of {records}")
    if left:
        consumer = await queue.holder(left)
        await consumer.acked(accept(records - 1))
        judge.equal(left - 1, await queue.lag(left - 1), "lag with the last one accepted")


@check("LAG-27", feature="complete-count", fast=True)
async def test_first_versions(env: Env, judge: Judge) -> None:
    queue = await env.queue(12, untouched=True)
    name = queue.topic.name
    await altered(env, queue.group, {(name, 0): 0})
    await write_state(queue, 3, [(5, 6, ACKNOWLEDGED, 1)], version=0)
    now = await queue.offsets()
    judge.equal((3, UNKNOWN), (now.start, now.lag), "start and lag after a write without a count")
    asked = fields_of("DescribeShareGroupOffsets", queue.group, name)
    first = await ask_coordinator(env, queue.group, "DescribeShareGroupOffsets", version=0, **asked)
    judge.equal({(name, 0): 3}, starts(first.groups[0]), "start offset shown by version 0")
    consumer = await queue.holder(7)
    await consumer.acked(accept(4))
    judge.equal(6, await queue.lag(6), "lag after a write that counts: 3, and 7 to 11, are left")


@check("LAG-07", crossed=BESIDE)
async def test_deleted_offsets(env: Env, judge: Judge) -> None:
    queue = await _drained(env, 20)
    told = await delete_offsets(env, queue.group, queue.topic.name)
    if refusals(told) != {NONE}:
        raise Undecided(f"DeleteShareGroupOffsets: {told}")
    judge.equal(UNKNOWN, (await queue.offsets()).lag, "lag with the offsets deleted")

    start, done = env.rng.randint(1, 9), env.rng.randint(1, 9)
    await env.admin.delete_records(queue.topic, start)  # another than the state had
    consumer, left = await queue.holder(20 - start), 20 - start - done
    await consumer.acked(accept(20 - done, 19))
    judge.equal(left, await queue.lag(left), f"lag from {start}, with {done} accepted anew")


@check("LAG-24", solo={}, timeout=120)
async def test_failed_write(solo_env: Env, judge: Judge) -> None:
    env = solo_env
    queue, consumer = await env.with_holder(10, lock_ms=env.bounds.longest_lock)
    await consumer.acked(accept(5, 6))
    if await queue.lag(8) != 8:
        raise Undecided("the lag is not 8 before anything failed")
    await limit_state(env, "1")
    final = env.rng.choice([accept, reject])(0, 4)
    told = raw_result(await consumer.ack(final, timeout=2 * WITHIN + 40))
    if told == "NONE":
        raise Undecided("state was taken although the topic takes none")
    judge.equal(8, await queue.lag(8), f"lag after {told}")
    await limit_state(env, None)  # the next write tells what the leader counts
    await rewritten(consumer, await queue.produce(1))
    judge.equal(9, await queue.lag(9), f"lag after {told}, and one more record")


@check("LAG-10", crossed=RELOADED)
async def test_always_within_the_log(env: Env, judge: Judge) -> None:
    queue = await env.queue(group_config={"share.isolation.level": "read_committed"})
    first = await queue.produce(1)
    consumer = await queue.consumer()
    floor = 0

    async def sample() -> None:
        # Unknown, or between 0 and the records there are.
        lag = (await queue.offsets()).lag
        end = await queue.env.admin.log_offset(queue.topic)
        fits = lag == UNKNOWN or 0 <= lag <= end - floor
        judge.holds(fits, f"the lag is {lag}, the log goes from {floor} to {end}")
        judge.saw(samples=1)

    # Here the bound is met exactly: nothing is finished, and the start offset is the log's start.
    await rewritten(consumer, first)
    for number in range(24):
        await sample()
        if number % 8 == 7:
            # Delete a third of the log and let the group notice: by a fetch, with nothing locked.
            start = (await queue.offsets()).start
            end = await queue.env.admin.log_offset(queue.topic)
            before = max(start, 0) + (end - max(start, 0)) // 3
            await queue.env.admin.delete_records(queue.topic, before)
            await sample()
            await consumer.close()
            await rewritten(consumer, await queue.produce(1))
            floor = before
        elif number % 5 == 4:
            await aborted(queue, env.rng.randint(1, 4))
        else:
            # Batches of one record: a cut through a batch is another story (OFF-26).
            size = env.rng.randint(1, 9)
            await queue.produce(size, batches=size)
        await sample()
        held = await consumer.fetch(max_records=env.rng.randint(1, 20), max_wait_ms=50)
        fates = [env.rng.choice([1, 1, 2, 3, None]) for _ in held.offsets]
        acks = [Ack(o, o, (f,)) for o, f in zip(held.offsets, fates, strict=True) if f]
        if acks:
            await consumer.acked(*acks)
