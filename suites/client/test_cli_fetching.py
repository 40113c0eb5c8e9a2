"""What a client fetches, and what of it reaches the application."""

from __future__ import annotations

import time

import pytest

from fixtures.clients.cluster import Topic
from fixtures.clients.handle import Delivery, Handle
from fixtures.clients.member import AckType
from fixtures.clients.transactions import TransactionalProducer
from fixtures.wire.records import Compression, Record, encode_batch
from spec.verdict import Undecided
from suites.broker.check import check
from suites.broker.share import Queue
from suites.client.harness import ARRIVES, Harness
from suites.client.wire import acked, acquired, named
from suites.judge import Judge


@check("CLI-13")
async def test_newer_hint(hostile: Harness, judge: Judge) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1, 2, 3]])
    queue = await hostile.queue_of(topic)
    await queue.produce(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.settle(consumer)
    judge.equal({1}, _asked(hostile, consumer), "brokers asked, while 1 leads")
    moved = await hostile.admin.move_leader(topic, 2)
    last = len(hostile.tap.exchanges)
    await hostile.admin.produce(moved, [b"after"])
    got = await hostile.arrival(consumer)
    judge.equal([1], [r.offset for r in got], "records once 2 leads")
    judge.equal({1, 2}, _asked(hostile, consumer, last) | {1}, "brokers asked since then")


def _asked(harness: Harness, consumer: Handle, since: int = 0) -> set[int]:
    """Return the brokers that were asked for anything, after some exchange."""
    fetches = harness.seen(consumer, "ShareFetch")
    return {one.node for one in fetches if one.partitions and one.number > since}


@check("CLI-60")
async def test_stale_hint(hostile: Harness, judge: Judge) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1, 2, 3]])
    topic = await hostile.admin.move_leader(topic, 2)
    queue = await hostile.queue_of(topic)
    await queue.produce(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.settle(consumer)
    before = _asked(hostile, consumer)
    if before != {2}:
        raise Undecided(f"broker 2 leads, and {before} were asked before there was any hint")
    step = {"on": "ShareFetch", "when": {"node": 2}, "times": 3, "do": "partition-error"}
    stale = {"code": "NOT_LEADER_OR_FOLLOWER", "leader": 3, "epoch": 0}
    hostile.play({**step, **stale, "applied": False})
    await hostile.polls_until(consumer, lambda: any(o.scripted for o in hostile.seen(consumer)))
    await queue.produce([b"after"])
    got = await hostile.arrival(consumer)
    judge.equal([1], [r.offset for r in got], "records after a stale hint")
    fetched = {
        one.node for one in hostile.seen(consumer, "ShareFetch") if (topic.id, 0) in named(one)
    }
    judge.equal({2}, fetched, "brokers that the partition was fetched from")


@check("CLI-14")
async def test_only_what_was_acquired(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(6)
    hostile.play({"on": "ShareFetch", "do": "acquire-fewer", "keep": 2, "times": 0})
    consumer = await hostile.consumer(queue)
    got = await hostile.take(consumer, 1, kind="accept")
    got += (await hostile.polled_for(consumer, 1.5))[0]
    judge.equal([0, 1], [r.offset for r in got], "acquired: 0 and 1; delivered")
    sent = sorted({a.offset for a in acked(hostile.seen(consumer))})
    judge.equal([], [o for o in sent if o > 1], "acknowledged although not acquired")


@check("CLI-15", "CLI-76", needs="explicit|mixed")
async def test_lower_offsets_come_again(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(10)
    consumer = await harness.consumer(queue)
    got = await harness.take(consumer, 10)
    first = {r.offset: r for r in got}
    judge["CLI-15"].equal(list(range(10)), sorted(first), "delivered at first")
    await consumer.acknowledge([first[o] for o in range(5, 10)])
    await consumer.acknowledge([first[o] for o in range(5)], "release")
    await harness.settle(consumer)
    again = await harness.arrival(consumer, lambda r: r.offset == 4)
    judge["CLI-15"].equal(list(range(5)), sorted(r.offset for r in again), "delivered again")
    gaps = [str(a) for a in acked(harness.seen(consumer)) if a.kind == AckType.GAP]
    judge["CLI-15"].equal([], gaps, "gap acknowledgements of records that exist")
    told = {r.offset: r.count for r in again if r.count is not None}
    judge["CLI-76"].equal(
        dict.fromkeys(told, 2), told, "delivery counts that the application was told"
    )


@check("CLI-16", fast=True)
async def test_order_and_counts(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(20, batches=4)
    consumer = await harness.consumer(queue)
    got: list[int] = []
    counts: dict[int, int | None] = {}
    for _ in range(30):
        batch = await consumer.poll(0.5)
        offsets = [r.offset for r in batch]
        judge.equal(sorted(offsets), offsets, "order within one poll")
        counts |= {r.offset: r.count for r in batch}
        got += offsets
        if batch:
            await consumer.acknowledge(batch)
        if len(got) >= 20:
            break
    judge.equal(list(range(20)), sorted(got), "delivered")
    wire = {one.offset: one.count for one in acquired(harness.seen(consumer))}
    told = {offset: count for offset, count in counts.items() if count is not None}
    judge.equal({o: wire[o] for o in told}, told, "delivery counts told")


@check("CLI-17")
async def test_overlapping_ranges(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(4)
    hostile.play({"on": "ShareFetch", "do": "repeat-ranges", "times": 0})
    consumer = await hostile.consumer(queue)
    got = await hostile.take(consumer, 4, kind="accept")
    got += (await hostile.polled_for(consumer, 1.0))[0]
    judge.equal([0, 1, 2, 3], [r.offset for r in got], "delivered")
    told = [r.count for r in got if r.count is not None]
    judge.equal([1] * len(told), told, "delivery counts")


@check("CLI-18", needs="explicit|mixed")
async def test_no_prefetch(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(5, batches=5)
    consumer = await harness.consumer(queue, max_poll_records=1, acquire=harness.strict)
    got = await harness.take(consumer, 1)
    # A fetch that was under way may end; after that there is nothing to wait for.
    await harness.until(lambda: False, 1.5)
    brought = {one.offset for one in acquired(harness.seen(consumer))}
    unseen = sorted(brought - {r.offset for r in got})
    judge.equal([], unseen, "acquired, and waiting with their locks running")


@check("CLI-19", needs=("record-limit", "max-poll-records"))
async def test_record_limit(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(25)
    consumer = await harness.consumer(queue, acquire="record_limit", max_poll_records=10)
    sizes = []
    got: list[int] = []
    for _ in range(40):
        batch = await consumer.poll(0.5)
        if batch:
            sizes.append(len(batch))
            got += [r.offset for r in batch]
            await consumer.acknowledge(batch)
        if len(got) >= 25:
            break
    judge.holds(max(sizes, default=0) <= 10, f"polls returned {sizes}, the limit is 10")
    judge.equal(list(range(25)), sorted(got), "delivered in all")
    fetches = [
        one
        for one in harness.seen(consumer, "ShareFetch")
        if one.request["share_session_epoch"] >= 0
    ]
    modes = {one.request.get("share_acquire_mode") for one in fetches if one.request["max_records"]}
    judge.equal({1}, modes, "ShareAcquireMode of the fetches")


@check("CLI-61", needs="max-poll-records")
async def test_asks_for_no_more(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(3)
    consumer = await harness.consumer(queue, max_poll_records=7)
    await harness.take(consumer, 3, kind="accept")
    asked = [one.request["max_records"] for one in harness.seen(consumer, "ShareFetch")]
    judge.holds(asked, "no fetch was sent")
    judge.holds(max(asked) <= 7, f"max.poll.records is 7, MaxRecords were {set(asked)}")


@check("CLI-25", "CLI-70")
async def test_gaps(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(8)
    hostile.play({"on": "ShareFetch", "do": "omit-records", "every": 2, "times": 0})
    consumer = await hostile.consumer(queue)
    got = await hostile.take(consumer, 4, kind="accept")
    judge["CLI-25"].equal([0, 2, 4, 6], [r.offset for r in got], "delivered")
    await hostile.settle(consumer)
    await hostile.polls_until(consumer, lambda: len(_gaps(hostile, consumer)) >= 4, 5)
    if len(_gaps(hostile, consumer)) < 4:
        await consumer.close()
    real = [str(a) for a in acked(hostile.seen(consumer)) if a.kind == 0 and a.offset % 2 == 0]
    judge["CLI-70"].equal([], real, "gap acknowledgements of records that were there")
    wrong = [str(a) for a in acked(hostile.seen(consumer)) if a.kind == 1 and a.offset % 2]
    judge["CLI-70"].equal([], wrong, "accepted, and never a record there")
    judge["CLI-25"].equal(
        [1, 3, 5, 7], sorted(set(_gaps(hostile, consumer))), "acknowledged as gaps"
    )
    judge["CLI-70"].saw(gaps=4)


def _gaps(hostile: Harness, consumer: Handle) -> list[int]:
    return [a.offset for a in acked(hostile.seen(consumer)) if a.kind == AckType.GAP]


@check("CLI-64")
async def test_bad_crc(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue([b"spoiled"])
    hostile.play({"on": "ShareFetch", "do": "bad-crc", "times": 0})
    consumer = await hostile.consumer(queue)
    got, _ = await hostile.polled_for(consumer, 3.0)
    judge.equal([], [r.offset for r in got], "delivered out of a corrupt batch")
    spoiled = [one for one in acquired(hostile.seen(consumer)) if one.offset == 0]
    judge.holds(spoiled, "a corrupt batch was sent")
    taken = [str(a) for a in acked(hostile.seen(consumer)) if a.kind == AckType.ACCEPT]
    judge.equal([], taken, "accepted out of a corrupt batch")
    hostile.tap.script.clear()
    await queue.produce([b"good"])
    got = await hostile.arrival(consumer, lambda r: r.offset == 1)
    judge.holds(1 in [r.offset for r in got], "the next record did not come")


@check("CLI-42")
async def test_unreadable_batch(hostile: Harness, judge: Judge) -> None:
    # What came along and was dropped with it may come again when its lock is over.
    queue = await hostile.queue(3, batches=3, lock_ms=3000)
    hostile.play({"on": "ShareFetch", "do": "corrupt-batch", "offset": 1, "times": 0})
    consumer = await hostile.consumer(queue)
    got: list[Delivery] = []
    await hostile.polls_until(consumer, lambda: {r.offset for r in got} >= {0, 2}, got=got)
    sent = [a for a in acquired(hostile.seen(consumer)) if a.offset == 1]
    judge.holds(sent, "an unreadable batch was sent")
    await queue.produce([b"after"])
    await hostile.polls_until(consumer, lambda: 3 in {r.offset for r in got}, got=got)
    delivered = sorted({record.offset for record in got})
    judge.equal([0, 2, 3], delivered, "delivered, where the batch of 1 is unreadable")


@check("CLI-65")
@pytest.mark.parametrize("codec", [codec.name for codec in Compression])
async def test_codecs(harness: Harness, judge: Judge, codec: str) -> None:
    queue = await harness.queue()
    values = [b"value %d" % n + b"x" * 200 for n in range(20)]
    now = round(time.time() * 1000)  # what is older than the topic's retention would be deleted
    records = [Record(offset=n, timestamp=now + n, value=v) for n, v in enumerate(values)]
    await harness.admin.append(queue.topic, encode_batch(records, compression=Compression[codec]))
    consumer = await harness.consumer(queue)
    got = await harness.comes(consumer, 20, kind="accept", payload="full")
    judge.equal(values, [r.value for r in got], f"values compressed with {codec}")


@check("CLI-41", fast=True)
async def test_record_fields(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue()
    now = round(time.time() * 1000)
    records = [
        Record(offset=0, timestamp=now, key=b"k", value=b"v", headers=(("h", b"1"),)),
        Record(offset=1, timestamp=now + 1, key=None, value=None),
        Record(
            offset=2,
            timestamp=now + 2,
            key=b"",
            value=b"",
            headers=(("same", b"a"), ("same", b"b"), ("none", None)),
        ),
        Record(offset=3, timestamp=now + 3, key=bytes(range(256)), value=b"\x00\xff"),
    ]
    await harness.admin.append(queue.topic, encode_batch(records))
    consumer = await harness.consumer(queue)
    got = await harness.take(consumer, 4, kind="accept", payload="full")
    plain = [(r.topic, r.partition, r.offset, r.key, r.value) for r in got]
    wanted = [(queue.topic.name, 0, r.offset, r.key, r.value) for r in records]
    judge.equal(wanted, plain, "records")
    if harness.adapter.has("headers"):
        judge.equal([r.headers for r in records], [r.headers for r in got], "headers")
    if harness.adapter.has("timestamps"):
        times = [r.timestamp for r in got]
        judge.equal([r.timestamp for r in records], times, "timestamps")


@check("CLI-66")
async def test_large_record(harness: Harness, judge: Judge) -> None:
    value = bytes(range(256)) * 3600
    queue = await harness.queue([value])
    consumer = await harness.consumer(queue)
    got = await harness.take(consumer, 1, kind="accept", payload="full")
    judge.equal(len(value), len(got[0].value or b""), "bytes of the value")
    judge.holds(got[0].value == value, "the value is another one")


@check("CLI-67")
async def test_empty_polls_end(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    consumer = await harness.consumer(queue)
    await harness.take(consumer, 1, kind="accept")
    for seconds in (0.0, 0.3, 1.0):
        took = await harness.timed(consumer.poll(seconds))
        judge.holds(took <= seconds + 2.5, f"poll({seconds} s) returned after {took:.2f} s")


@check("CLI-87")
async def test_polls_of_no_length(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(3)
    consumer = await harness.consumer(queue)
    got: list[int] = []

    async def poll() -> bool:
        found = await consumer.poll(0.0)
        if found:
            await consumer.acknowledge(found)
        got.extend(r.offset for r in found)
        return len(got) >= 3

    await harness.eventually(poll, ARRIVES)
    judge.equal([0, 1, 2], sorted(got), f"records within {ARRIVES:g} s of poll(0)")


@check("CLI-62", needs="max-poll-records")
async def test_successive_polls_bring_everything_once(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(30, batches=10)
    consumer = await harness.consumer(queue, max_poll_records=3)
    got = await harness.comes(consumer, 30, ARRIVES, "accept")
    judge.equal(list(range(30)), sorted(r.offset for r in got), "delivered")
    wire = sorted(one.offset for one in acquired(harness.seen(consumer)))
    judge.equal(wire, sorted(r.offset for r in got), "acquired, and delivered")


@check("CLI-101", timeout=90)
async def test_topic_made_anew(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(2)
    # A client may look at its topics anew as seldom as it is told to, which is not judged here.
    consumer = await hostile.consumer(queue, metadata_max_age_ms=5000)
    await hostile.take(consumer, 2, kind="accept")
    await hostile.settle(consumer)
    await _recreated(hostile, queue, consumer, 3)
    asked = len(hostile.tap.of("Metadata"))
    got = await hostile.arrival(consumer, lambda r: r.offset == 2, within=40)
    if not got and len(hostile.tap.of("Metadata")) == asked:
        raise Undecided("nothing came within 40 s, and no metadata was asked for: it may come yet")
    judge.equal([0, 1, 2], sorted(r.offset for r in got), "records of the new topic")


async def _recreated(harness: Harness, queue: Queue, consumer: Handle, records: int) -> Topic:
    await harness.admin.delete_topics(queue.topic.name)
    await harness.polled_for(consumer, 1.0)
    again = await harness.admin.create_topic(1, name=queue.topic.name)
    await harness.admin.produce(again, records)
    return again


@check("CLI-08")
async def test_unknown_id(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.settle(consumer)
    again = await _recreated(hostile, queue, consumer, 1)

    def assigned() -> list[float]:
        return [
            one.responded
            for one in hostile.heartbeats(consumer)
            for topic in ((one.response or {}).get("assignment") or {}).get("topic_partitions", [])
            if topic["topic_id"] == again.id
        ]

    await hostile.polls_until(consumer, assigned, within=20)
    if not assigned():
        raise Undecided("the new topic was not assigned within 20 s")

    def told() -> bool:
        return any(
            topic["topic_id"] == again.id
            for one in hostile.tap.of("Metadata")
            for topic in (one.response or {}).get("topics", [])
        )

    await hostile.polls_until(consumer, told, within=15)
    judge.holds(told(), "15 s after an unknown topic id was assigned, nobody asked for it")


@check("CLI-103")
async def test_committed(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1, group_config={"share.isolation.level": "read_committed"})
    async with TransactionalProducer.open(harness.share.cluster) as producer:
        await producer.append(queue.topic, 2)
        await producer.commit()
        await producer.append(queue.topic, 2)
        await producer.abort()
    await queue.produce([b"last"])
    consumer = await harness.consumer(queue)
    got = await harness.arrival(consumer, lambda r: r.offset == 7)
    # A marker stands behind each transaction: 0, 1 2 (3), aborted 4 5 (6), 7.
    judge.equal([0, 1, 2, 7], sorted(r.offset for r in got), "delivered")


@check("CLI-103")
async def test_aborted_batches(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(6)
    hostile.play({"on": "ShareFetch", "do": "aborted", "every": 2, "times": 0})
    consumer = await hostile.consumer(queue)
    got = await hostile.take(consumer, 3, kind="accept")
    await hostile.settle(consumer)
    judge.equal([0, 2, 4], sorted(r.offset for r in got), "delivered")
    strays = [str(a) for a in acked(hostile.seen(consumer)) if a.offset % 2]
    judge.equal([], strays, "acknowledged although aborted, and not acquired")


@check("CLI-102")
async def test_markers(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    async with TransactionalProducer.open(harness.share.cluster) as producer:
        for _ in range(2):
            await producer.append(queue.topic, 2)
            await producer.commit()
    await queue.produce([b"last"])
    consumer = await harness.consumer(queue)
    got = await harness.take(consumer, 6, kind="accept")
    await harness.settle(consumer)
    # A marker stands behind each transaction: 0, 1 2 (3), 4 5 (6), 7.
    judge.equal([0, 1, 2, 4, 5, 7], sorted(r.offset for r in got), "delivered")
    wrong = [
        str(ack)
        for ack in acked(harness.seen(consumer))
        if ack.offset in {3, 6} and ack.kind != AckType.GAP
    ]
    judge.equal([], wrong, "markers acknowledged as if they were records")
