"""Responses that no broker should send: worthless hints, frames and batches that are damaged."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from fixtures.clients.adapter import Refused
from fixtures.clients.handle import Delivery, Handle
from fixtures.clients.member import AckType
from spec.adapter import Capability
from spec.verdict import OutOfReach
from suites.broker.check import check
from suites.broker.share import Queue
from suites.client.harness import ARRIVES, Harness
from suites.client.wire import SHARE, acked
from suites.judge import Judge

CLOSES = 10.0
"""Seconds within which a client that may not read any more has to unsubscribe, or to close."""

DENIED = "TOPIC_AUTHORIZATION_FAILED"


async def _begun(hostile: Harness, queue: Queue, **config: Any) -> Handle:
    """Return a consumer to which the first record came."""
    consumer = await hostile.consumer(queue, **config)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.settle(consumer)
    return consumer


@check("CLI-115")
@pytest.mark.parametrize(("leader", "epoch"), [(0, 0), (1, 0)])
async def test_worthless_hint(hostile: Harness, judge: Judge, leader: int, epoch: int) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1, 2, 3]])
    queue = await hostile.queue_of(topic)
    await queue.produce(1)
    consumer = await _begun(hostile, queue)
    hint = {"leader": leader, "epoch": epoch}
    hostile.play({"on": list(SHARE), "do": "without-hint", "times": 0, **hint})
    moved = await hostile.admin.move_leader(topic, 2)
    await hostile.admin.produce(moved, [b"after"])
    got = [r.offset for r in await hostile.arrival(consumer, lambda r: r.offset == 1)]
    said = f"the partition moved to broker 2, hints named broker {leader} with epoch {epoch}"
    judge.holds(1 in got, f"{said}; {ARRIVES:g} s later {got} had come")
    judge.saw(hints=len([one for one in hostile.seen(consumer) if one.scripted]))


@check("CLI-116", timeout=120)
@pytest.mark.parametrize("api", ["ShareFetch", "ShareGroupHeartbeat"])
@pytest.mark.parametrize("flaw", ["truncated", "correlation"])
async def test_undecodable_response(hostile: Harness, judge: Judge, api: str, flaw: str) -> None:
    queue = await hostile.queue(1)
    consumer = await _begun(hostile, queue, request_timeout_ms=3000)
    before = len(hostile.tap.exchanges)
    hostile.play({"on": api, "do": "frame", "flaw": flaw})
    await hostile.polls_until(
        consumer, lambda: any(one.scripted for one in hostile.tap.exchanges[before:])
    )
    since = time.monotonic()
    await queue.produce([b"after"])
    got = await hostile.arrival(consumer, lambda r: r.offset == 1, within=25)

    def later() -> bool:
        return any(one.sent > since for one in hostile.seen(consumer, api))

    await hostile.polls_until(consumer, later, 25, got)
    judge.holds(later(), f"no {api} was sent for 25 s after one that was damaged ({flaw})")
    came = [r.offset for r in got]
    judge.holds(1 in came, f"25 s after a damaged {api} ({flaw}) {came} had come")


async def _with_errors(hostile: Harness, consumer: Handle) -> tuple[list[Delivery], list[Refused]]:
    """Poll for some seconds; return the records, and the errors as they are.

    An error may come with the polls after the one that brought the last record.
    """
    got: list[Delivery] = []
    errors: list[Refused] = []
    more = 4

    async def poll() -> bool:
        nonlocal more
        try:
            found = await consumer.poll(0.3, payload="full")
        except Refused as error:
            errors.append(error)
            return False
        got.extend(found)
        if found:
            await consumer.acknowledge(found)
        more -= 2 in [one.offset for one in got]
        return more < 0

    await hostile.eventually(poll, 8.0)
    return got, errors


async def _damaged(hostile: Harness, queue: Queue) -> Handle:
    """Return a consumer of three batches, the second of which comes with a wrong checksum."""
    hostile.play({"on": "ShareFetch", "do": "bad-crc", "offset": 1, "times": 0})
    try:
        return await hostile.consumer(queue, extra={"check.crcs": "true"})
    except Refused:
        return await hostile.consumer(queue)


@check("CLI-104")
async def test_damaged_batch_is_named(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(3, batches=3, lock_ms=3000)
    consumer = await _damaged(hostile, queue)
    got, errors = await _with_errors(hostile, consumer)
    if 1 in [one.offset for one in got]:
        raise OutOfReach("the client does not verify checksums")
    # Some give the partition beside the message, where no adapter passes it on.
    named = [one for one in errors if re.search(r"\b1\b", one.message)]
    said = [f"{one.name}: {one.message}" for one in errors][:3]
    judge.holds(named, f"no error named offset 1: {said}")
    offsets = sorted({one.offset for one in got})
    judge.equal([0, 2], offsets, "delivered, where the batch of 1 is damaged")


@check("CLI-106")
async def test_damaged_batch_is_not_accepted(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(3, batches=3, lock_ms=3000)
    consumer = await _damaged(hostile, queue)
    got, _ = await _with_errors(hostile, consumer)
    if 1 in [one.offset for one in got]:
        raise OutOfReach("the client does not verify checksums")
    await hostile.polls_until(
        consumer, lambda: [a for a in acked(hostile.seen(consumer)) if a.offset == 1], within=3.0
    )
    sent = {AckType(one.kind).name for one in acked(hostile.seen(consumer)) if one.offset == 1}
    wrong = sent - {"REJECT", "RELEASE"}
    judge.equal(set(), wrong, "what became of the damaged batch's offset")


@check("CLI-105")
async def test_without_checksums(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(3, batches=3)
    hostile.play({"on": "ShareFetch", "do": "bad-crc", "offset": 1, "times": 0})
    try:
        consumer = await hostile.consumer(queue, extra={"check.crcs": "false"})
    except Refused as error:
        raise OutOfReach(f"the client has no check.crcs: {error}") from None
    got, errors = await _with_errors(hostile, consumer)
    offsets = sorted({one.offset for one in got})
    said = [f"{one.name}: {one.message}" for one in errors][:1]
    judge.equal([0, 1, 2], offsets, f"delivered with check.crcs=false, errors {said}")


@check("CLI-108")
@pytest.mark.parametrize("way", ["unsubscribe", "close"])
async def test_permission_goes(hostile: Harness, judge: Judge, way: str) -> None:
    if way == "unsubscribe" and not hostile.adapter.has(Capability.UNSUBSCRIBE):
        raise OutOfReach("the client has no unsubscribe")
    queue = await hostile.queue(1)
    consumer = await _begun(hostile, queue)
    denied = {"times": 0, "code": DENIED}
    hostile.play(
        {"on": "ShareFetch", "do": "partition-error", **denied},
        {"on": "Metadata", "do": "metadata-error", **denied},
    )
    await queue.produce([b"secret"])
    _, errors = await hostile.polled_for(consumer, 6.0)
    judge.holds(DENIED in errors, f"polls for 6 s raised {sorted(set(errors))}")
    limit = 2.0 if hostile.adapter.has(Capability.CLOSE_TIMEOUT) else None
    work = consumer.unsubscribe() if way == "unsubscribe" else consumer.close(limit, within=40.0)
    took = await hostile.timed(work)
    most = CLOSES if limit else 40.0
    judge.holds(took <= most, f"{way} took {took:.1f} s, {most:g} s at most")
