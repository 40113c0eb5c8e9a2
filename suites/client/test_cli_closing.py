"""The end of a client: closing under all conditions, and crashing."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import pytest

from fixtures.clients.adapter import Adapter, AdapterHang, Refused
from fixtures.clients.handle import Delivery, Handle
from fixtures.clients.member import AckType
from spec.adapter import Capability
from suites.broker.check import check
from suites.client.harness import Harness
from suites.client.wire import HEARTBEAT, SHARE, acked
from suites.judge import Judge

SLACK = 6.0
"""Seconds beyond its limit that a close may take before it is called late."""


@check("CLI-38", "CLI-90", needs="explicit|mixed", fast=True)
async def test_close_settles(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(6, lock_ms=30000)
    consumer = await harness.consumer(
        queue, mode="explicit" if harness.has_explicit else "implicit"
    )
    got = await harness.take(consumer, 6)
    await consumer.acknowledge(got[:3])
    await consumer.close()
    accepted = sorted(a.offset for a in acked(harness.seen(consumer)) if a.kind == AckType.ACCEPT)
    judge["CLI-38"].equal([0, 1, 2], accepted, "accepted by closing")
    other = await harness.consumer(queue)
    again = await harness.arrival(other, lambda r: r.offset == 5, within=12)
    judge["CLI-90"].equal([3, 4, 5], sorted(r.offset for r in again), "delivered to another")


@check("CLI-81", needs="close-timeout")
@pytest.mark.parametrize("silent", ["everything", "acknowledgements"])
async def test_close_before_a_silent_broker(hostile: Harness, judge: Judge, silent: str) -> None:
    queue = await hostile.queue(2)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 2, kind="accept")
    apis = [*SHARE, HEARTBEAT, "FindCoordinator", "Metadata"]
    on = apis if silent == "everything" else ["ShareAcknowledge"]
    hostile.play({"on": on, "do": "drop", "times": 0, "applied": False})
    took = await _closed(consumer, 2.0, judge)
    judge.holds(took <= 2 + SLACK, f"close of 2 s took {took:.1f} s")


async def _closed(consumer: Handle, limit: float | None, judge: Judge) -> float:
    """Close and return how long it took; a hang breaks the rule and is no fault of the adapter."""
    began = time.monotonic()
    try:
        await consumer.close(limit, within=45)
    except AdapterHang:
        judge.holds(False, f"close had not returned after {time.monotonic() - began:.0f} s")
    except Refused:
        pass
    return time.monotonic() - began


@check("CLI-82", timeout=90)
async def test_close_without_brokers(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(2)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 2, kind="accept")
    hostile.tap.disappear()
    limit = 2.0 if hostile.adapter.has("close-timeout") else None
    took = await _closed(consumer, limit, judge)
    most = (limit or 30) + SLACK
    judge.holds(took <= most, f"close took {took:.1f} s, at most {most:g} s")


@check("CLI-83")
async def test_closing_twice(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    consumer = await harness.consumer(queue)
    await harness.take(consumer, 1, kind="accept")
    await consumer.close()
    took = await _closed(consumer, None, judge)
    judge.holds(took <= 2, f"closing again took {took:.1f} s")


Calls = dict[str, Callable[[], Awaitable[object]]]


def _calls(consumer: Handle, got: list[Delivery], topic: str) -> Calls:
    """Return every call that the library has, but for closing again and for waking a poll."""
    calls: Calls = {
        "poll": lambda: consumer.poll(1.0),
        "subscribe": lambda: consumer.subscribe(topic),
    }
    optional: Calls = {
        Capability.UNSUBSCRIBE: consumer.unsubscribe,
        Capability.SUBSCRIPTION: consumer.subscription,
        Capability.COMMIT_SYNC: consumer.commit_sync,
        Capability.COMMIT_ASYNC: consumer.commit_async,
        Capability.LOCK_DURATION: consumer.lock_ms,
    }
    calls |= {str(name): call for name, call in optional.items() if consumer.adapter.has(name)}
    if consumer.adapter.has(Capability.EXPLICIT) or consumer.adapter.has(Capability.MIXED):
        calls["acknowledge"] = lambda: consumer.acknowledge(got)
    return calls


@check("CLI-39")
async def test_after_close(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    consumer = await harness.consumer(queue)
    got = await harness.take(consumer, 1)
    await consumer.close()
    before = len(harness.seen(consumer))
    taken: list[str] = []
    took: dict[str, float] = {}
    for name, call in _calls(consumer, got, queue.topic.name).items():
        began = time.monotonic()
        try:
            await call()
            taken.append(name)
        except Refused:
            pass
        took[name] = time.monotonic() - began
    judge.equal([], taken, "calls on a closed consumer that were not refused")
    late = {name: round(seconds, 1) for name, seconds in took.items() if seconds > 2}
    judge.equal({}, late, "seconds until calls on a closed consumer were refused")
    judge.equal(before, len(harness.seen(consumer)), "requests after close")


@check("CLI-84")
async def test_crash(doomed: Harness, adapter: Adapter, judge: Judge) -> None:
    queue = await doomed.queue(3, lock_ms=30000)
    consumer = await doomed.consumer(queue)
    await doomed.take(consumer, 3)
    await doomed.adapter.crash()
    doomed.adapter = adapter
    other = await doomed.consumer(queue)
    began = time.monotonic()
    again = await doomed.arrival(other, lambda r: r.offset == 2, within=20)
    took = time.monotonic() - began
    judge.equal(
        [0, 1, 2],
        sorted(r.offset for r in again),
        f"delivered to another within {took:.0f} s, the locks were for 30 s",
    )
