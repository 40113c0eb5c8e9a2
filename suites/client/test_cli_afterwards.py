"""What a client does afterwards: after a pause, an error that ends it, a late acknowledgement."""

import os
import signal

from fixtures.wire.errors import ErrorCode
from suites.client.kit import *

FATAL = "GROUP_AUTHORIZATION_FAILED"
LATER = 6.0  # Seconds of polling after an error in which a client either consumes or says why not.
POLLS = 8  # Polls that are asked for at once.
LONGER = 1.0  # Seconds for which a client stands still beyond its locks.


@check("CLI-120", timeout=120)
async def test_frozen_longer_than_its_locks(hostile: Harness, judge: Judge) -> None:
    lock = hostile.env.bounds.lock(2000) / 1000
    queue = await hostile.queue(3, lock_ms=2000)
    (late,) = hostile.play({"on": "ShareFetch", "do": "pass", "delay": lock / 2})
    consumer = await hostile.consumer(queue)
    await hostile.polls(consumer, lambda _: late.taken, READY)
    # Polls that wait for each other in the client: the next one begins as soon as one has ended.
    waiting = [asyncio.create_task(consumer.poll(0.3)) for _ in range(POLLS)]
    os.kill(hostile.adapter.pid, signal.SIGSTOP)
    try:
        async for _ in attempts(lock + LONGER):
            pass  # It must not wake before its locks have ended; meanwhile there is nothing to see.
    finally:
        os.kill(hostile.adapter.pid, signal.SIGCONT)
    polled = await asyncio.gather(*waiting, return_exceptions=True)
    first = [one for found in polled if not isinstance(found, BaseException) for one in found]
    with contextlib.suppress(Refused):
        await consumer.acknowledge(first)
    await queue.produce([b"after"])
    later = await hostile.arrival(consumer, 3, READY)
    came = sorted({*later.offsets, *(one.offset for one in first)})
    said = f"frozen for {lock + LONGER:g} s with a fetch under way and locks of {lock:g} s"
    judge.holds(3 in came, f"{said}; of 4 records {came} had come {READY:g} s later")

    def unsent() -> set[int]:
        again = [one for one in acquired(hostile.seen(consumer)) if one.count == 2]
        sent = [(one.offset, one.by.number) for one in hostile.acks(consumer, AckType.ACCEPT)]
        return {
            o.offset for o in again if not any(at > o.by.number for n, at in sent if n == o.offset)
        }

    await hostile.polls_until(consumer, lambda: not unsent())
    await refusal(hostile.settle(consumer))
    judge.equal(set(), unsent(), f"{said}; came again, and was not acknowledged after that")


@check("CLI-121", timeout=120)
async def test_fatal_error_is_not_forgotten(hostile: Harness, judge: Judge) -> None:
    queue, consumer = await hostile.consuming(1, settle=True)
    (refused,) = hostile.play({"on": HEARTBEAT, "do": "error", "code": FATAL})
    await hostile.polls(consumer, lambda _: refused.taken, ARRIVES)
    errors = (await hostile.polls(consumer, within=LATER)).errors
    await queue.produce([b"after"])
    silent, failed, came = 0, 0, False
    async for _ in attempts(LATER):
        poll = await hostile.polls(consumer, lambda _: True)
        silent += not poll.records and not poll.errors
        failed += bool(poll.errors)
        if came := 1 in poll.offsets:
            break
    said = f"after one {FATAL} {len(errors)} polls failed in {LATER:g} s"
    more = f"{failed} in the next {LATER:g} s, {silent} gave nothing"
    judge.holds(came or (failed and not silent), f"{said}, {more}, and no record came")


@check("CLI-122", needs="explicit|mixed", timeout=150)
@pytest.mark.parametrize("hint", [None, -1, 0])
async def test_fetches_on_after_late_acks(
    harness: Harness, hostile: Harness, judge: Judge, hint: int | None
) -> None:
    if hint is None:
        await _late(harness, judge, "the target said what it says")
        return
    # Kafka 4.4.0 names leader 0 with epoch 0 in results that need no hint (COO-25).
    named = {"do": "without-hint", "leader": hint, "epoch": hint}
    hostile.play({"on": list(SHARE), "times": 0, **named})
    await _late(hostile, judge, f"hints named broker {hint} with epoch {hint}")


async def _late(harness: Harness, judge: Judge, said: str) -> None:
    queue, consumer, held = await harness.holding(3, lock_ms=1000)
    # Another member takes the records, which shows that the locks are over; its session ends.
    other = await harness.consumer(queue)
    await harness.take(other, 3)
    await other.close()
    with contextlib.suppress(Refused):
        await consumer.acknowledge(held)
        await harness.settle(consumer)
    got = await harness.polls(consumer, within=1.0)
    sent = [one for one in harness.acks(consumer) if one.offset in {0, 1, 2}]
    if not sent:
        raise OutOfReach("the client sends no acknowledgement when its locks have ended")
    late = ErrorCode.INVALID_RECORD_STATE
    if not any(one.error == late for one in sent):
        raise Undecided(f"no acknowledgement met {late.name}: {[one.error for one in sent]}")
    await queue.produce([b"after"])
    wanted = {0, 1, 2, 3} - {*got.offsets}
    later = await harness.polls(consumer, lambda seen: {*seen.offsets} >= wanted, READY)
    came = sorted({*got.offsets, *later.offsets})
    told = f"after a late acknowledgement, where {said}"
    judge.equal([0, 1, 2, 3], came, f"delivered within {READY:g} s {told}")
