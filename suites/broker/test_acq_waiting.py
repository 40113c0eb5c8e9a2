"""When a ShareFetch answers: at once, when something turns up, or after MaxWaitMs.

A fetch that has to be woken may wait ``LONG`` and has to be answered within ``WITHIN`` of the
event, so that a broker that only answers when the time is over is always found out.
"""

from suites.broker.kit import *

LONG = 50_000  # MaxWaitMs of a fetch that has to be answered before it is over.
WAKES_EARLY = 0.05  # Seconds that the clocks of the two sides may disagree over one wait.


async def _start(consumer: Consumer) -> asyncio.Task[Response]:
    """Send a fetch and see that it waits."""
    task = asyncio.create_task(consumer.fetch(max_wait_ms=LONG, timeout=LONG / 1000 + 20))
    await asyncio.wait([task], timeout=0.4)
    if task.done():
        raise Undecided(f"the fetch did not wait but acquired {task.result().offsets}")
    return task


async def _woken(
    judge: Judge, consumer: Consumer, task: asyncio.Task[Response], by: str, within: float = WITHIN
) -> None:
    """Judge that the fetch is answered, and that it or the member's next one acquired something.

    A response that is empty but comes at once will do: the member asks again without delay.
    """
    began = time.monotonic()
    done, _ = await asyncio.wait([task], timeout=within)
    task.cancel()
    if not done and not await goes_on(consumer.member.cluster, consumer.where[0].leaders[0]):
        raise Undecided(f"nothing came after {by}, nor did the record of a bystander")
    judge.holds(done, f"a fetch still waited {within:g} s after {by}")
    judge.saw(milliseconds_until_woken=int((time.monotonic() - began) * 1000))
    if not Consumer.sound(task.result()).offsets:
        await consumer.acquire(1)


@check("ACQ-60", fast=True, crossed=AMONG)
async def test_empty_fetch_takes_max_wait(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(1)
    wait = env.rng.randint(400, 1500) / 1000

    sent = time.monotonic()
    response = await consumer.fetch(max_wait_ms=int(wait * 1000))
    took = time.monotonic() - sent

    judge.equal(((), []), (response.errors, response.offsets), "errors and offsets")
    judge.holds(took > wait - WAKES_EARLY, f"answered after {took:.3f} s, MaxWaitMs {wait} s")


@check("ACQ-60", crossed=AMONG)
async def test_waits_last_as_asked(env: Env, judge: Judge) -> None:
    idle = await idle_consumer(env)

    async def plain(seconds: float) -> float:
        # Until the waits have ended: they end at the same moment, and so may meet the same pause.
        whole = attempts(seconds + 0.5, pause=0.05)
        return max([await _timed_fetch(idle, 0) async for _ in whole])

    async def waits(seconds: float) -> list[Span]:
        consumers = [await idle_consumer(env) for _ in range(3)]
        took = await gather_all(_timed_fetch(each, seconds) for each in consumers)
        return [Span(each, each) for each in took]

    await judge_span(
        judge, "wait", apart(1000, 3000), waits, plain, shorter="ACQ-60", longer="ACQ-60"
    )


async def _timed_fetch(consumer: Consumer, seconds: float) -> float:
    asked = time.monotonic()
    consumer.sound(await consumer.fetch(max_wait_ms=int(seconds * 1000)))
    return time.monotonic() - asked


@check("ACQ-61", fast=True, crossed=AMONG)
async def test_no_wait(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(1)
    empty = await consumer.fetch(max_wait_ms=0)
    await queue.produce(3)
    filled = await consumer.acquire(3, max_wait_ms=0)

    judge.equal([], empty.offsets, "acquired with nothing available")
    judge.equal([1, 2, 3], filled.offsets, "acquired afterwards")
    await judge_prompt(env, judge, "a fetch with MaxWaitMs 0", partial(_timed_fetch, consumer, 0))


@check("ACQ-62", fast=True, crossed=AMONG)
async def test_new_records_wake(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(1)
    task = await _start(consumer)

    await queue.produce(2)

    await _woken(judge, consumer, task, "a produce")

    async def again() -> float:
        task = await _start(consumer)
        asked = time.monotonic()
        await queue.produce(1)
        await task
        return time.monotonic() - asked

    await judge_prompt(env, judge, "a produced record and its delivery", again)


async def _wakes(
    judge: Judge, pair: Sequence[Consumer], by: str, act: Callable[[Consumer], Awaitable[object]]
) -> None:
    """Judge that what a holder does wakes another member's fetch, as the locks' end would, too."""
    task = await _start(pair[1])
    await act(pair[0])
    await _woken(judge, pair[1], task, by)
    in_time(pair[0].session.made, task.result().lock_ms)


async def _held(env: Env) -> Sequence[Consumer]:
    """Return a holder of all six records, and another member."""
    _, *pair = await env.with_pair(6, lock_ms=env.bounds.longest_lock)
    await pair[0].acquire(6)
    return pair


@check("ACQ-63", fast=True, crossed=AMONG)
async def test_release_wakes(env: Env, judge: Judge) -> None:
    freed = release(first := env.rng.randint(0, 4), first + 1)
    await _wakes(judge, await _held(env), "a release", lambda one: one.acked(freed))


async def _full_window(env: Env) -> tuple[Consumer, Consumer]:
    """Return a holder of a whole window, and another member."""
    limit = await window(env)
    batches = -(-limit // 100) + 2
    lock = env.bounds.longest_lock
    _, holder, other = await env.with_pair(batches * 100, batches=batches, lock_ms=lock)
    held: set[int] = set()
    while len(held) < limit:
        held |= set((await holder.acquire(1)).offsets)
    return holder, other


@check("ACQ-64", crossed=AMONG)
async def test_moving_window_wakes(env: Env, judge: Judge) -> None:
    by, pair = "an acknowledgement", await _full_window(env)
    await _wakes(judge, pair, by, lambda one: one.acked(accept(0, 99)))


@check("ACQ-65", crossed=AMONG)
async def test_piggybacked_ack_wakes(env: Env, judge: Judge) -> None:
    async def fetch(holder: Consumer) -> None:
        # MaxRecords 0, so that the holder's own fetch takes nothing of what it makes room for.
        Consumer.sound(await holder.fetch(accept(0, 99), max_records=0))

    pair = await _full_window(env)
    await _wakes(judge, pair, "an acknowledgement inside a fetch", fetch)


@check("ACQ-66", crossed=AMONG)
async def test_lock_expiry_wakes(env: Env, judge: Judge) -> None:
    lock = env.bounds.prompt_lock
    _, holder, other = await env.with_pair(5, lock_ms=lock)
    await holder.acquire(5)
    task = await _start(other)

    began = f"the locks had begun, which last {lock / 1000:g} s"
    await _woken(judge, other, task, began, lock / 1000 + WITHIN)


@check("ACQ-67", crossed=AMONG)
async def test_session_close_wakes(env: Env, judge: Judge) -> None:
    await _wakes(judge, await _held(env), "a session was closed", Consumer.close)


@check("ACQ-68", crossed=RELOADED)
async def test_min_bytes_waits_for_enough(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(1)
    fetch = consumer.fetch(max_wait_ms=LONG, min_bytes=5000, timeout=LONG / 1000 + 20)
    task = asyncio.create_task(fetch)
    await queue.produce([bytes(1000)])

    done, _ = await asyncio.wait([task], timeout=1.0)
    judge.holds(not done, "a fetch for 5000 bytes was answered with 1000 bytes there")
    await queue.produce([bytes(3000), bytes(3000)])

    await _woken(judge, consumer, task, "7000 bytes were there for a MinBytes of 5000")


@check("ACQ-69", crossed=AMONG)
async def test_min_bytes_not_reached(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(1)
    await queue.produce([bytes(100)])

    catch = await consumer.acquire(1, max_wait_ms=1000, min_bytes=100_000)

    judge.equal([1], catch.offsets, "offsets acquired with MinBytes not reached")


@check("ACQ-70", fast=True, crossed=AMONG)
async def test_empty_partitions_hold_nobody_up(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(partitions=4, assignments=env.together(4))
    named = [(queue.topic, index) for index in queue.topic.partitions]
    await consumer.session.fetch(*named)
    filled = env.rng.randrange(4)
    await queue.produce(3, filled)

    fetch = consumer.session.fetch(max_wait_ms=LONG, timeout=LONG / 1000 + 20)
    task = asyncio.create_task(fetch)

    await _woken(judge, consumer, task, f"it was sent, with records in partition {filled}")
