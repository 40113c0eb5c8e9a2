"""What a client does afterwards: after its process stood still, after an error that ends it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator

import pytest

from fixtures.clients.adapter import Refused
from suites.client.harness import ARRIVES, READY, Harness
from suites.client.wire import HEARTBEAT
from suites.judge import Judge

FATAL = "GROUP_AUTHORIZATION_FAILED"

LATER = 6.0
"""Seconds of polling after an error in which a client either consumes or says why not."""

POLLS = 8
"""Polls that are asked for at once."""


@contextlib.asynccontextmanager
async def _frozen(hostile: Harness) -> AsyncIterator[None]:
    """Stop the client's process, and let it go on."""
    os.kill(hostile.adapter.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(hostile.adapter.pid, signal.SIGCONT)


@pytest.mark.requirement("CLI-120")
@pytest.mark.timeout(120)
async def test_frozen_longer_than_its_locks(hostile: Harness, judge: Judge) -> None:
    """CLI-120: What was under way when its process stood still, and came again, stops nothing."""
    lock = hostile.share.bounds.lock(2000) / 1000
    queue = await hostile.queue(3, lock_ms=2000)
    (late,) = hostile.play({"on": "ShareFetch", "do": "pass", "delay": lock / 2})
    consumer = await hostile.consumer(queue)
    await hostile.polls_until(consumer, lambda: late.taken, READY)
    # Polls that wait for each other in the client: the next one begins as soon as one has ended.
    waiting = [asyncio.create_task(consumer.poll(0.3)) for _ in range(POLLS)]
    async with _frozen(hostile):
        await asyncio.sleep(lock + 1)  # how long it stands still
    polled = await asyncio.gather(*waiting, return_exceptions=True)
    first = [one for found in polled if not isinstance(found, BaseException) for one in found]
    with contextlib.suppress(Refused):
        await consumer.acknowledge(first)
    await queue.produce([b"after"])
    got = [*first, *await hostile.arrival(consumer, lambda r: r.offset == 3, READY)]
    came = sorted({one.offset for one in got})
    said = f"frozen for {lock + 1:g} s with a fetch under way and locks of {lock:g} s"
    judge.holds("CLI-120", 3 in came, f"{said}; of 4 records {came} had come {READY:g} s later")


@pytest.mark.requirement("CLI-121")
@pytest.mark.timeout(120)
async def test_fatal_error_is_not_forgotten(hostile: Harness, judge: Judge) -> None:
    """CLI-121: After a refused heartbeat records come, or polls go on to fail."""
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.settle(consumer)
    (refused,) = hostile.play({"on": HEARTBEAT, "do": "error", "code": FATAL})
    await hostile.polls_until(consumer, lambda: refused.taken, ARRIVES)
    _, errors = await hostile.polled_for(consumer, LATER)
    await queue.produce([b"after"])
    got, later = await hostile.polled_for(consumer, LATER)
    said = f"after one {FATAL} {len(errors)} polls failed in {LATER:g} s"
    holds = 1 in [one.offset for one in got] or later
    judge.holds("CLI-121", holds, f"{said}, none in the next {LATER:g} s, and no record came")
