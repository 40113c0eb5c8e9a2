"""The log's start moves into or past the in-flight records: DeleteRecords under a share group."""

from suites.broker.brokers import Proxied
from suites.broker.kit import *

STATES = ["acquired", "released", "accepted"]


async def _ten_of_twenty(env: Env, batches: int = 20) -> tuple[Queue, Consumer]:
    """Return a queue of records 0 to 19 of which 0 to 9 are held by one member.

    A batch of its own for each record keeps the rule about batches that a deletion cuts, OFF-26,
    out of the checks of the others.
    """
    queue, consumer = await env.with_consumer(records=20, batches=batches)
    await consumer.acquire(10, max_records=10)
    return queue, consumer


async def _settle(holder: Consumer, state: str) -> None:
    """Bring records 0 to 9 from acquired into a state."""
    if state != "acquired":
        await holder.acked((release if state == "released" else accept)(0, 9))


async def _after_deletion(queue: Queue, start: int) -> dict[int, int]:
    """Delete below ``start``; return what another member is given up to a new last record."""
    await queue.env.admin.delete_records(queue.topic, start)
    return await given_anew(queue, join=False)


@check("OFF-20", fast=True, crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize("state", STATES)
async def test_deleted_past_the_window(env: Env, judge: Judge, state: str) -> None:
    queue, holder = await _ten_of_twenty(env)
    await _settle(holder, state)
    start = env.rng.randint(10, 20)

    counts = await _after_deletion(queue, start)

    judge.equal([*range(start, 21)], sorted(counts), f"delivered after deletion below {start}")


@check("OFF-26", crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("in_flight", [True, False], ids=["in-flight", "not-yet-fetched"])
async def test_deleted_inside_a_batch(env: Env, judge: Judge, state: str, in_flight: bool) -> None:
    queue, holder = await _ten_of_twenty(env, batches=2)
    await _settle(holder, state)
    start = env.rng.randint(1, 9) if in_flight else env.rng.randint(11, 19)

    counts = await _after_deletion(queue, start)

    below = sorted(offset for offset in counts if offset < start)
    judge.equal([], below, f"deleted records delivered after deletion below {start}")
    due = range(start if state == "released" else max(start, 10), 21)
    lost = sorted(set(due) - counts.keys())
    judge.equal([], lost, f"records that never came, after deletion below {start}")


@check("OFF-21", crossed=(BESIDE, RELOADED))
async def test_deleted_inside_available(env: Env, judge: Judge) -> None:
    queue, consumer = await _ten_of_twenty(env)
    await consumer.acked(release(0, 9))
    start = env.rng.randint(1, 9)
    counts = await _after_deletion(queue, start)

    expected = dict.fromkeys(range(start, 10), 2) | dict.fromkeys(range(10, 21), 1)
    await judge_counted(env, judge, expected, counts, f"delivered after deletion below {start}")


@check("OFF-22", crossed=(BESIDE, RELOADED))
async def test_deleted_inside_acquired(env: Env, judge: Judge) -> None:
    queue, holder = await _ten_of_twenty(env)
    other = await queue.consumer(join=False)
    start = env.rng.randint(2, 7)
    await env.admin.delete_records(queue.topic, start)
    first = await queue.produce(1)

    fresh = await other.drain(until=first)
    judge.equal(list(range(10, first + 1)), fresh.offsets, "given to another member")

    settled, given = await holder.ack(accept(start, 8)), await holder.ack(release(9))
    in_time(holder.session.made, fresh.responses[-1].lock_ms)
    judge.equal(0, lasting(settled.ack_error), f"error of accepting {start} to 8")
    judge.equal(0, lasting(given.ack_error), "error of releasing 9")
    await holder.close()

    second = await queue.produce(1)
    # The close is answered before its releases are done, so the last one is waited for.
    rest = await other.drain(until=9)
    if second not in rest.counts:
        rest.counts |= (await other.drain(until=second)).counts
    judge.delivered({9: 2, second: 1}, rest.counts, "delivered after the holder is gone")


async def _two_acquisitions(env: Env) -> tuple[Queue, Consumer]:
    """Return a queue of 15 records of which one member holds 5 to 14, having released 0 to 4."""
    queue, holder = await env.with_consumer(records=15, batches=15)
    await holder.acquire(5, max_records=5)
    await holder.acquire(10, max_records=10)
    await holder.acked(release(0, 4))
    return queue, holder


@check("OFF-21")
async def test_deleted_before_another_acquisition(env: Env, judge: Judge) -> None:
    queue, holder = await _two_acquisitions(env)
    start = env.rng.randint(5, 9)
    await holder.acked(release(10, 14))

    counts = await _after_deletion(queue, start)

    expected = dict.fromkeys(range(10, 15), 2) | {15: 1}
    await judge_counted(env, judge, expected, counts, f"delivered after deletion below {start}")


@check("OFF-22", "LCK-18")
async def test_deleted_into_another_acquisition(env: Env, judge: Judge) -> None:
    queue, holder = await _two_acquisitions(env)
    start = env.rng.randint(6, 13)
    await env.admin.delete_records(queue.topic, start)
    other = await queue.consumer(join=False)

    sentinel, fresh = await up_to_new(queue, other)
    in_time(holder.session.made, fresh.responses[-1].lock_ms)
    judge["OFF-22"].delivered({sentinel: 1}, fresh.counts, "given to another member")

    await holder.close()
    back = await other.acquire(15 - start)
    freed = sorted(back.counts)  # 4.1 does not count the deliveries that a close takes back
    judge["LCK-18"].equal(
        [*range(start, 15)], freed, f"offsets freed, those below {start} being deleted"
    )


@check("OFF-23", crossed=(BESIDE, RELOADED))
async def test_deleted_inside_finished(env: Env, judge: Judge) -> None:
    queue, consumer = await _ten_of_twenty(env)
    await consumer.acked(release(0, 4), accept(5, 9))
    start = env.rng.randint(1, 8)
    counts = await _after_deletion(queue, start)

    expected = dict.fromkeys(range(start, 5), 2) | dict.fromkeys(range(10, 21), 1)
    judge.delivered(expected, counts, f"delivered after deletion below {start}")


@check("OFF-24", crossed=(BESIDE, RELOADED))
async def test_deleted_below_the_start(env: Env, judge: Judge) -> None:
    queue, holder = await _ten_of_twenty(env)
    await holder.acked(accept(0, 5), release(9))
    await env.admin.delete_records(queue.topic, env.rng.randint(1, 6))

    other = await queue.consumer(join=False)
    sentinel, catch = await up_to_new(queue, other)
    # Were they settled, the start offset would be behind them, and accepting answered with NONE.
    kept = await holder.ack(release(6, 8))
    in_time(holder.session.made, catch.responses[-1].lock_ms)

    expected = {9: 2} | dict.fromkeys(range(10, sentinel + 1), 1)
    judge.delivered(expected, catch.counts, "given to another member")
    judge.equal(0, lasting(kept.ack_error), "error of releasing what the first member still held")
    again = (await next_catch(queue, other)).counts
    judge.delivered(dict.fromkeys(range(6, 9), 2), again, "what it released")


@check("OFF-25", crossed=(BESIDE, RELOADED))
async def test_start_offset_follows_the_log(env: Env, judge: Judge) -> None:
    queue, consumer = await _ten_of_twenty(env)
    await consumer.acked(release(0, 9))
    start = env.rng.randint(5, 20)
    await env.admin.delete_records(queue.topic, start)
    last = await queue.produce(1)

    # Two rounds: the first writes what the second one's write then carries as the start offset.
    for _ in range(2):
        catch = await consumer.drain(until=last)
        await consumer.acked(*(accept(offset) for offset in catch.offsets))
        settled, last = last, await queue.produce(1)

    seen = await queue.spso(settled, within=5)
    judge.holds(seen >= start, f"the start offset is {seen}, the log begins at {start}")


@check("OFF-47", solo={}, timeout=120)
async def test_deleted_while_an_acknowledgement_fails(between: Proxied, judge: Judge) -> None:
    """The log's start passes records whose final acknowledgement is taken back after that."""
    env = between.env
    queue, holder, other = await env.with_pair(10, batches=10, lock_ms=env.bounds.short_lock)
    await holder.acquire(5, max_records=5)
    final = env.rng.choice([accept, reject])
    with between.state_writes_refused() as refusal:
        pending = asyncio.create_task(holder.ack(final(0, 4), timeout=2 * WITHIN + 40))
        await between.met(refusal, WITHIN)
        await env.admin.delete_records(queue.topic, 7)
        # The leader learns of the log's start from the fetch that reads at it.
        await other.acquire(3)
        if pending.done():
            raise Undecided("the acknowledgement failed before the log's start had moved")
        if (told := raw_result(await pending)) == "NONE":
            raise Undecided("an acknowledgement that could not be stored was answered with NONE")
    await holder.close()
    sentinel = await queue.produce(1)
    came = (await other.drain(until=sentinel)).counts
    judge.equal(1, came[sentinel], f"delivery count of a new record, after {told}")
    judge.equal([], [o for o in came if o < 7], "deleted records that came")


@check("OFF-49", solo={}, timeout=120)
@pytest.mark.parametrize("moves", [True, False], ids=["start-moves", "start-stays"])
async def test_deleted_while_a_release_is_stored(
    between: Proxied, judge: Judge, moves: bool
) -> None:
    """The log's start moves into a batch of records whose release is not stored yet."""
    env = between.env
    queue, holder, other = await env.with_pair(0, lock_ms=env.bounds.lock(10_000))
    await queue.produce(15, batches=3)
    await holder.acquire(5, max_records=5)
    await holder.acquire(5, max_records=5)
    await holder.acked(release(0, 4))  # What the leader reads next, and finds to be deleted.
    start = env.rng.randint(6, 8) if moves else 5
    errors: list[str] = []
    came: dict[int, int] = {}

    async def others() -> bool:
        response = await other.fetch()
        errors.extend(error_name(error) for error in response.errors)
        came.update(response.only.counts | came)
        return bool(came or errors)

    with between.state_writes_refused() as refusal:
        pending = asyncio.create_task(holder.ack(release(5, 9), timeout=2 * WITHIN + 40))
        await between.met(refusal, WITHIN)
        if moves:
            await env.admin.delete_records(queue.topic, start)
        await poll(others, bool)
        if pending.done():
            raise Undecided("the release failed before the log's start had moved")
    if (told := result(await pending)) != "NONE":
        raise Undecided(f"the release was answered with {told}")

    await poll(others, lambda _: came.keys() >= set(range(start, 10)), within=2 * WITHIN)
    counts = {offset: came[offset] for offset in range(start, 10) if offset in came}
    what = f"delivery counts of what was released, with errors {errors} of the fetches"
    await judge_counted(env, judge, dict.fromkeys(range(start, 10), 2), counts, what)
    judge.saw(released=10 - start)
