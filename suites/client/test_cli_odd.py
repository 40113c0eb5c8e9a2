"""Responses that no broker should send: worthless hints, frames and batches that are damaged."""

import re

from fixtures.wire.errors import ErrorCode
from suites.client.kit import *

# Seconds within which a client that may not read any more has to unsubscribe, or to close.
CLOSES = 10.0
DENIED = "TOPIC_AUTHORIZATION_FAILED"


@check("CLI-115")
@pytest.mark.parametrize(("leader", "epoch"), [(0, 0), (1, 0)])
async def test_worthless_hint(hostile: Harness, judge: Judge, leader: int, epoch: int) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1, 2, 3]])
    queue = await hostile.queue_of(topic, 1)
    _, consumer = await hostile.consuming(queue, settle=True)
    hint = {"leader": leader, "epoch": epoch}
    hostile.play({"on": list(SHARE), "do": "without-hint", "times": 0, **hint})
    moved = await hostile.admin.move_leader(topic, 2)
    await hostile.admin.produce(moved, [b"after"])
    got = (await hostile.arrival(consumer, 1)).offsets
    parts = [part for one in hostile.seen(consumer) for _, part in answers(one.response)]
    hints = sum(one.get("error_code") == ErrorCode.NOT_LEADER_OR_FOLLOWER for one in parts)
    if not hints:
        raise OutOfReach("the client asked nobody who leads no more, and got no hint")
    said = f"the partition moved to broker 2, hints named broker {leader} with epoch {epoch}"
    judge.holds(1 in got, f"{said}; {ARRIVES:g} s later {got} had come")
    judge.saw(hints=hints)


@check("CLI-116", timeout=120)
@pytest.mark.parametrize("api", ["ShareFetch", "ShareGroupHeartbeat"])
@pytest.mark.parametrize("flaw", ["truncated", "correlation"])
async def test_undecodable_response(hostile: Harness, judge: Judge, api: str, flaw: str) -> None:
    queue, consumer = await hostile.consuming(1, settle=True, request_timeout_ms=3000)
    before = len(hostile.tap.exchanges)
    hostile.play({"on": api, "do": "frame", "flaw": flaw})

    def damaged() -> bool:  # and passed on: what is produced before that may be in it
        now = time.monotonic()
        return any(o.scripted and o.responded < now for o in hostile.tap.exchanges[before:])

    await hostile.polls_until(consumer, damaged)
    since = time.monotonic()
    await queue.produce([b"after"])
    got = await hostile.arrival(consumer, 1, within=25)

    def later() -> bool:
        return any(one.sent > since for one in hostile.seen(consumer, api))

    more = await hostile.polls(consumer, lambda _: later(), 25)
    judge.holds(later(), f"no {api} was sent for 25 s after one that was damaged ({flaw})")
    came = got.offsets + more.offsets
    judge.holds(1 in came, f"25 s after a damaged {api} ({flaw}) {came} had come")


async def _polled(hostile: Harness, consumer: Handle) -> Polled:
    first = await hostile.polls(consumer, lambda seen: 2 in seen.offsets, READY, payload="full")
    later = await hostile.polls(consumer, within=1.5, payload="full")
    return Polled(Records(first.records + later.records), first.errors + later.errors)


async def _damaged(hostile: Harness, queue: Queue) -> Handle:
    hostile.play({"on": "ShareFetch", "do": "bad-crc", "offset": 1, "times": 0})
    try:
        return await hostile.consumer(queue, extra={"check.crcs": "true"})
    except Refused:
        return await hostile.consumer(queue)


@check("CLI-104")
async def test_damaged_batch_is_named(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(3, batches=3, lock_ms=3000)
    consumer = await _damaged(hostile, queue)
    polled = await _polled(hostile, consumer)
    if 1 in polled.offsets:
        raise OutOfReach("the client does not verify checksums")
    # Some give the partition beside the message, where no adapter passes it on.
    named = [one for one in polled.errors if re.search(r"\b1\b", one.message)]
    said = [f"{one.name}: {one.message}" for one in polled.errors][:3]
    judge.holds(named, f"no error named offset 1: {said}")
    judge.equal([0, 2], sorted({*polled.offsets}), "delivered, where the batch of 1 is damaged")


@check("CLI-106")
async def test_damaged_batch_is_not_accepted(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(3, batches=3, lock_ms=3000)
    consumer = await _damaged(hostile, queue)
    if 1 in (await _polled(hostile, consumer)).offsets:
        raise OutOfReach("the client does not verify checksums")

    def sent() -> set[str]:
        return {AckType(one.kind).name for one in hostile.acks(consumer) if one.offset == 1}

    await hostile.polls(consumer, lambda _: sent(), 3.0)
    judge.equal(set(), sent() - {"REJECT", "RELEASE"}, "what became of the damaged batch's offset")


@check("CLI-105")
async def test_without_checksums(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(3, batches=3)
    hostile.play({"on": "ShareFetch", "do": "bad-crc", "offset": 1, "times": 0})
    try:
        consumer = await hostile.consumer(queue, extra={"check.crcs": "false"})
    except Refused as error:
        raise OutOfReach(f"the client has no check.crcs: {error}") from None
    polled = await _polled(hostile, consumer)
    offsets = sorted({*polled.offsets})
    said = [f"{one.name}: {one.message}" for one in polled.errors][:1]
    judge.equal([0, 1, 2], offsets, f"delivered with check.crcs=false, errors {said}")


@check("CLI-108")
@pytest.mark.parametrize("way", ["unsubscribe", "close"])
async def test_permission_goes(hostile: Harness, judge: Judge, way: str) -> None:
    if way == "unsubscribe" and not hostile.adapter.has(Capability.UNSUBSCRIBE):
        raise OutOfReach("the client has no unsubscribe")
    queue, consumer = await hostile.consuming(1, settle=True)
    denied = {"times": 0, "code": DENIED}
    hostile.play(
        {"on": "ShareFetch", "do": "partition-error", **denied},
        {"on": "Metadata", "do": "metadata-error", **denied},
    )
    await queue.produce([b"secret"])
    errors = (await hostile.polls(consumer, within=6.0)).error_names
    judge.holds(DENIED in errors, f"polls for 6 s raised {sorted(set(errors))}")
    limit = hostile.close_limit
    work = consumer.unsubscribe() if way == "unsubscribe" else consumer.close(limit, within=40.0)
    took, _ = await hostile.timed(work)
    most = CLOSES if limit else 40.0
    judge.holds(took <= most, f"{way} took {took:.1f} s, {most:g} s at most")
