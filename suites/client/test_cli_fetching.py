"""What a client fetches, and what of it reaches the application."""

from fixtures.clients.transactions import TransactionalProducer
from fixtures.wire.records import Compression
from suites.client.kit import *


@check("CLI-13")
async def test_newer_hint(hostile: Harness, judge: Judge) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1, 2, 3]])
    queue = await hostile.queue_of(topic, 1)
    _, consumer = await hostile.consuming(queue, 1, settle=True)
    judge.equal({1}, _asked(hostile, consumer), "brokers asked, while 1 leads")
    moved = await hostile.admin.move_leader(topic, 2)
    last = len(hostile.tap.exchanges)
    await hostile.admin.produce(moved, [b"after"])
    judge.holds(1 in (await hostile.arrival(consumer, 1)).offsets, "nothing came once 2 leads")
    judge.equal({1, 2}, _asked(hostile, consumer, last) | {1}, "brokers asked since then")


def _asked(harness: Harness, consumer: Handle, since: int = 0) -> set[int]:
    fetches = harness.seen(consumer, "ShareFetch")
    return {one.node for one in fetches if one.partitions and one.number > since}


@check("CLI-60")
@pytest.mark.parametrize("behind", [1, 0], ids=["older", "the same"])
async def test_stale_hint(hostile: Harness, judge: Judge, behind: int) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1, 2, 3]])
    topic = await hostile.admin.move_leader(topic, 2)
    queue = await hostile.queue_of(topic, 1)
    _, consumer = await hostile.consuming(queue, 1, settle=True)
    before = _asked(hostile, consumer)
    if before != {2}:
        raise Undecided(f"broker 2 leads, and {before} were asked before there was any hint")
    told = await (await hostile.env.cluster.any()).call("Metadata", topics=[{"name": topic.name}])
    known = told.topics[0].partitions[0].leader_epoch
    step = {"on": "ShareFetch", "when": {"node": 2}, "times": 3, "do": "partition-error"}
    stale = {"code": "NOT_LEADER_OR_FOLLOWER", "leader": 3, "epoch": known - behind}
    hostile.play({**step, **stale, "applied": False})
    await hostile.meets(consumer)
    await queue.produce([b"after"])
    judge.holds(1 in (await hostile.arrival(consumer, 1)).offsets, "nothing came after a hint")
    fetches = hostile.seen(consumer, "ShareFetch")
    fetched = {one.node for one in fetches if (topic.id, 0) in named(one)}
    judge.equal({2}, fetched, "brokers that the partition was fetched from")


@check("CLI-14")
async def test_only_what_was_acquired(hostile: Harness, judge: Judge) -> None:
    hostile.play({"on": "ShareFetch", "do": "acquire-fewer", "keep": 2, "times": 0})
    _, consumer, got = await hostile.holding(6, 1, kind="accept")
    got += (await hostile.polls(consumer, within=1.5)).records
    mine = sorted({one.offset for one in acquired(hostile.seen(consumer))})
    if len(mine) > 5:
        raise OutOfReach("it acquires record by record, and gets none that it did not acquire")
    judge.equal(mine, got.offsets, "delivered, of what was acquired")
    strays = sorted({a.offset for a in hostile.acks(consumer)} - {*mine})
    judge.equal([], strays, "acknowledged although not acquired")


@check("CLI-15", "CLI-70", "CLI-76", needs="explicit|mixed")
async def test_lower_offsets_come_again(harness: Harness, judge: Judge) -> None:
    _, consumer, got = await harness.holding(10)
    first = {r.offset: r for r in got}
    judge["CLI-15"].equal(list(range(10)), sorted(first), "delivered at first")
    await consumer.acknowledge([first[o] for o in range(5, 10)])
    await consumer.acknowledge([first[o] for o in range(5)], "release")
    await harness.settle(consumer)
    again = await harness.arrival(consumer, 4)
    judge["CLI-15"].equal(list(range(5)), sorted(again.offsets), "delivered again")
    gaps = [*map(str, harness.acks(consumer, AckType.GAP))]
    judge["CLI-70"].equal([], gaps, "gap acknowledgements of records that exist")
    told = {r.offset: r.count for r in again.records if r.count is not None}
    wanted = dict.fromkeys(told, 2)
    judge["CLI-76"].equal(wanted, told, "delivery counts that the application was told")


@check("CLI-16", fast=True)
async def test_order_and_counts(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.reading(20, batches=4)
    got, told = set[int](), set[tuple[int, int | None]]()
    async for _ in harness.attempts(READY):
        batch = await consumer.poll(0.5)
        offsets = [r.offset for r in batch]
        judge.equal(sorted(offsets), offsets, "order within one poll")
        told |= {(r.offset, r.count) for r in batch}
        got |= {*offsets}
        if batch:
            await consumer.acknowledge(batch)
        if len(got) >= 20:
            break
    else:
        raise Undecided(f"only {sorted(got)} of 20 records came within {READY:g} s")
    wire = {(one.offset, one.count) for one in acquired(harness.seen(consumer))}
    # Some libraries tell none.
    if any(count for _, count in told) or harness.adapter.hello.name in {"kafka-clients", "model"}:
        judge.equal([], sorted(told - wire, key=str), "delivery counts told that were not so")


@check("CLI-17")
async def test_overlapping_ranges(hostile: Harness, judge: Judge) -> None:
    hostile.play({"on": "ShareFetch", "do": "repeat-ranges", "times": 0})
    _, consumer, got = await hostile.holding(4, kind="accept")
    got += (await hostile.polls(consumer, within=1.0)).records
    judge.equal([0, 1, 2, 3], sorted(got.offsets), "delivered")
    told = [r.count for r in got if r.count is not None]
    judge.equal([1] * len(told), told, "delivery counts")


@check("CLI-18", needs="explicit|mixed")
async def test_no_prefetch(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(5, batches=5)
    _, consumer, got = await harness.holding(queue, 1, max_poll_records=1, acquire=harness.strict)
    # A fetch that was under way may end; after that there is nothing to wait for.
    await harness.until(lambda: False, 1.5)
    unseen = sorted({one.offset for one in acquired(harness.seen(consumer))} - {*got.offsets})
    judge.equal([], unseen, "acquired, and waiting with their locks running")


@check("CLI-19", "CLI-132", needs=("record-limit", "max-poll-records"))
async def test_record_limit(harness: Harness, judge: Judge) -> None:
    options = {"acquire": "record_limit", "max_poll_records": 2, "max_wait_ms": 3000}
    _, consumer = await harness.reading(25, **options)
    sizes, began = list[int](), harness.now
    got: list[int] = []
    async for _ in harness.attempts(READY):
        batch = await consumer.poll(3.0)
        if batch:
            began = began if got else harness.now
            sizes.append(len(batch))
            got += [r.offset for r in batch]
            await consumer.acknowledge(batch)
        if len(got) >= 25:
            break
    took = harness.now - began
    said = f"{len(got)} records that were there came by {len(sizes)} polls within {took:.1f} s"
    judge["CLI-132"].holds(not got or took <= SOON * len(sizes) / 2, said)
    judge["CLI-19"].holds(max(sizes, default=0) <= 2, f"polls returned {sizes}, the limit is 2")
    judge["CLI-19"].equal(list(range(25)), sorted({*got}), "delivered in all")
    fetches = [one.request for one in harness.seen(consumer, "ShareFetch")]
    asking = [one for one in fetches if one["share_session_epoch"] >= 0 and one["max_records"]]
    modes = {one.get("share_acquire_mode") for one in asking}
    judge["CLI-19"].equal({1}, modes, "ShareAcquireMode of the fetches")


SOON = 2.5  # Seconds within which a poll has to return what has arrived.


@check("CLI-132", timeout=150)
async def test_beside_a_slow_broker(hostile: Harness, judge: Judge) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1], [2], [3]])
    queue = await hostile.queue_of(topic, 1)
    consumer = await hostile.consumer(queue, max_wait_ms=500)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.polls_until(
        consumer, lambda: {one.node for one in hostile.seen(consumer, "ShareFetch")} == {1, 2, 3}
    )
    slow = {"when": {"node": 3}, "do": "pass", "delay": 6.0, "times": 0}
    hostile.play({"on": "ShareFetch", **slow})
    late = list[float]()
    for partition in (0, 1, 0, 1):
        before = len(acquired(hostile.seen(consumer)))
        await queue.produce(1, partition)
        got = await hostile.take(consumer, 1, kind="accept", seconds=8.0)
        came = acquired(hostile.seen(consumer))[before:]
        late += [time.monotonic() - one.by.responded for one in came if got][:1]
    judge.holds(late, "no record arrived")
    said = f"seconds that records of two brokers waited for a third: {[round(s, 1) for s in late]}"
    judge.holds(max(late, default=0) <= SOON + hostile.delay.late, said)


@check("CLI-61", needs="max-poll-records")
async def test_asks_for_no_more(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(3, max_poll_records=7)
    asked = [one.request["max_records"] for one in harness.seen(consumer, "ShareFetch")]
    judge.holds(asked, "no fetch was sent")
    judge.holds(max(asked) <= 7, f"max.poll.records is 7, MaxRecords were {set(asked)}")


@check("CLI-25", "CLI-70")
async def test_gaps(hostile: Harness, judge: Judge) -> None:
    hostile.play({"on": "ShareFetch", "do": "omit-records", "every": 2, "times": 0})
    _, consumer, got = await hostile.holding(8, 4, kind="accept")
    judge["CLI-25"].equal([0, 2, 4, 6], got.offsets, "delivered")
    await hostile.settle(consumer)
    await hostile.polls(consumer, lambda _: len(hostile.acks(consumer, AckType.GAP)) >= 4, 5)
    if len(hostile.acks(consumer, AckType.GAP)) < 4:
        await consumer.close()
    real = [str(a) for a in hostile.acks(consumer) if a.kind == 0 and a.offset % 2 == 0]
    judge["CLI-70"].equal([], real, "gap acknowledgements of records that were there")
    wrong = [str(a) for a in hostile.acks(consumer) if a.kind == 1 and a.offset % 2]
    judge["CLI-70"].equal([], wrong, "accepted, and never a record there")
    gaps = sorted({a.offset for a in hostile.acks(consumer, AckType.GAP)})
    judge["CLI-25"].equal([1, 3, 5, 7], gaps, "acknowledged as gaps")
    judge["CLI-70"].saw(gaps=4)


@check("CLI-64")
async def test_bad_crc(hostile: Harness, judge: Judge) -> None:
    hostile.play({"on": "ShareFetch", "do": "bad-crc", "times": 0})
    queue, consumer = await hostile.reading([b"spoiled"])
    first = await hostile.polls(consumer, lambda _: acquired(hostile.seen(consumer)))
    later = await hostile.polls(consumer, within=3.0)
    judge.equal([], first.offsets + later.offsets, "delivered out of a corrupt batch")
    if not acquired(hostile.seen(consumer)):
        raise Undecided("no corrupt batch was sent")
    taken = [*map(str, hostile.acks(consumer, AckType.ACCEPT))]
    judge.equal([], taken, "accepted out of a corrupt batch")
    hostile.tap.script.clear()
    await queue.produce([b"good"])
    judge.holds(1 in (await hostile.arrival(consumer, 1)).offsets, "the next record did not come")


@check("CLI-42")
async def test_unreadable_batch(hostile: Harness, judge: Judge) -> None:
    # What came along and was dropped with it may come again when its lock is over.
    hostile.play({"on": "ShareFetch", "do": "corrupt-batch", "offset": 1, "times": 0})
    queue, consumer = await hostile.reading(3, batches=3, lock_ms=3000)
    first = await hostile.polls(consumer, lambda seen: {*seen.offsets} >= {0, 2}, READY)
    if not any(one.offset == 1 for one in acquired(hostile.seen(consumer))):
        raise Undecided("no unreadable batch was sent")
    await queue.produce([b"after"])
    delivered = sorted({*first.offsets, *(await hostile.arrival(consumer, 3)).offsets})
    judge.equal([0, 2, 3], delivered, "delivered, where the batch of 1 is unreadable")


@check("CLI-65", timeout=90)
@pytest.mark.parametrize("codec", [codec.name for codec in Compression])
async def test_codecs(harness: Harness, judge: Judge, codec: str) -> None:
    queue = await harness.queue()
    values = [b"value %d" % n + b"x" * 200 for n in range(20)]
    now = round(time.time() * 1000)  # what is older than the topic's retention would be deleted
    records = [Record(offset=n, timestamp=now + n, value=v) for n, v in enumerate(values)]
    await harness.admin.append(queue.topic, encode_batch(records, compression=Compression[codec]))
    consumer = await harness.consumer(queue)
    got = await harness.polls(
        consumer, lambda seen: seen.errors[9:] or len(seen.records) >= 20, READY, payload="full"
    )
    came = {r.offset: r.value for r in got.records}
    judge.equal(dict(enumerate(values)), came, f"values compressed with {codec}")


@check("CLI-41", fast=True)
async def test_record_fields(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(partitions=2)
    now = round(time.time() * 1000)
    headers = (("same", b"a"), ("same", b"b"), ("none", None))
    records = [
        Record(offset=0, timestamp=now, key=b"k", value=b"v", headers=(("h", b"1"),)),
        Record(offset=1, timestamp=now + 1, key=None, value=None),
        Record(offset=2, timestamp=now + 2, key=b"", value=b"", headers=headers),
        Record(offset=3, timestamp=now + 3, key=bytes(range(256)), value=b"\x00\xff"),
    ]
    await harness.admin.append(queue.topic, encode_batch(records), 1)
    consumer = await harness.consumer(queue)
    got = await harness.take(consumer, 4, kind="accept", payload="full")
    plain = [(r.topic, r.partition, r.offset, r.key, r.value) for r in got]
    wanted = [(queue.topic.name, 1, r.offset, r.key, r.value) for r in records]
    judge.equal(wanted, plain, "records")
    if harness.adapter.has("headers"):
        judge.equal([r.headers for r in records], [r.headers for r in got], "headers")
    if harness.adapter.has("timestamps"):
        judge.equal([r.timestamp for r in records], [r.timestamp for r in got], "timestamps")


@check("CLI-66")
async def test_large_record(harness: Harness, judge: Judge) -> None:
    value = bytes(range(256)) * 4095  # 1 048 392 bytes with its batch, of 1 048 588.
    _, consumer = await harness.reading([value])
    got = await harness.polls(
        consumer, lambda seen: seen.errors[9:] or seen.records, READY, payload="full"
    )
    judge.equal([len(value)], [len(r.value or b"") for r in got.records], "bytes of the value")
    judge.holds(got.records[0].value == value, "the value is another one")


@check("CLI-67")
async def test_empty_polls_end(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(1)
    for seconds in (0.0, 0.3, 1.0):
        took, _ = await harness.timed(consumer.poll(seconds))
        judge.holds(took <= seconds + 2.5, f"poll({seconds} s) returned after {took:.2f} s")


@check("CLI-87")
async def test_polls_of_no_length(harness: Harness, judge: Judge) -> None:
    queue, consumer = await harness.consuming(1, settle=True)
    await harness.polls(consumer, within=0.6, seconds=0.0)
    await queue.produce(3)
    got = await harness.comes(consumer, 3, ARRIVES, "accept", seconds=0.0)
    judge.equal([1, 2, 3], sorted(got.offsets), f"records within {ARRIVES:g} s of poll(0)")


@check("CLI-62", needs="max-poll-records")
async def test_successive_polls_bring_everything_once(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.reading(30, batches=10, max_poll_records=3)
    got = await harness.comes(consumer, 30, READY, "accept")
    judge.equal(list(range(30)), sorted(got.offsets), "delivered")
    wire = sorted(one.offset for one in acquired(harness.seen(consumer)))
    judge.equal(wire, sorted(got.offsets), "acquired, and delivered")


@check("CLI-101", timeout=90)
async def test_topic_made_anew(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(2)
    # A client may look at its topics anew as seldom as it is told to, which is not judged here.
    consumer = await hostile.consumer(queue, metadata_max_age_ms=5000)
    await hostile.take(consumer, 2, kind="accept")
    await hostile.settle(consumer)
    await _recreated(hostile, queue, consumer, 3)
    asked = len(hostile.tap.of("Metadata"))
    got = await hostile.arrival(consumer, 2, within=40)
    if not got.records and len(hostile.tap.of("Metadata")) == asked:
        raise Undecided("nothing came within 40 s, and no metadata was asked for: it may come yet")
    judge.equal([0, 1, 2], sorted(got.offsets), "records of the new topic")


async def _recreated(harness: Harness, queue: Queue, consumer: Handle, records: int) -> Topic:
    await harness.admin.delete_topics(queue.topic.name)
    await harness.polls(consumer, within=1.0)
    again = await harness.admin.create_topic(1, name=queue.topic.name)
    await harness.admin.produce(again, records)
    return again


@check("CLI-08")
async def test_unknown_id(hostile: Harness, judge: Judge) -> None:
    queue, consumer = await hostile.consuming(1, settle=True)
    again = await _recreated(hostile, queue, consumer, 1)

    def is_assigned() -> bool:
        found = assigned(hostile.heartbeats(consumer))
        return again.id in {topic_id for topic_id, _ in found}

    if not await hostile.polls_until(consumer, is_assigned, 20):
        raise Undecided("the new topic was not assigned within 20 s")

    def told() -> bool:
        responses = [one.response or {} for one in hostile.tap.of("Metadata")]
        topics = [topic for response in responses for topic in response.get("topics", [])]
        return again.id in {topic["topic_id"] for topic in topics}

    asked = await hostile.polls_until(consumer, told, 15)
    judge.holds(asked, "15 s after an unknown topic id was assigned, nobody asked for it")


@check("CLI-103")
async def test_committed(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1, group_config={"share.isolation.level": "read_committed"})
    async with TransactionalProducer.open(harness.env.cluster) as producer:
        await producer.append(queue.topic, 2)
        await producer.commit()
        await producer.append(queue.topic, 2)
        await producer.abort()
    await queue.produce([b"last"])
    consumer = await harness.consumer(queue)
    got = await harness.arrival(consumer, 7, READY)
    # A marker stands behind each transaction: 0, 1 2 (3), aborted 4 5 (6), 7.
    judge.equal([0, 1, 2, 7], sorted(got.offsets), "delivered")


@check("CLI-103")
async def test_aborted_batches(hostile: Harness, judge: Judge) -> None:
    hostile.play({"on": "ShareFetch", "do": "aborted", "every": 2, "times": 0})
    _, consumer, got = await hostile.holding(6, 3, kind="accept")
    await hostile.settle(consumer)
    judge.equal([0, 2, 4], sorted(got.offsets), "delivered")
    strays = [str(a) for a in hostile.acks(consumer) if a.offset % 2]
    judge.equal([], strays, "acknowledged although aborted, and not acquired")


@check("CLI-102")
async def test_markers(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    async with TransactionalProducer.open(harness.env.cluster) as producer:
        for end in (producer.commit, producer.abort):
            await producer.append(queue.topic, 2)
            await end()
    await queue.produce([b"last"])
    consumer = await harness.consumer(queue)
    got = await harness.take(consumer, 6, kind="accept")
    await harness.settle(consumer)
    await consumer.close()
    # A marker stands behind each transaction: 0, 1 2 (3), 4 5 (6), 7.
    judge.equal(set(), {3, 6} & {*got.offsets}, "markers delivered")
    sent = [ack for ack in harness.acks(consumer) if ack.kind != AckType.GAP]
    wrong = [str(ack) for ack in sent if ack.offset in {3, 6}]
    judge.equal([], wrong, "markers acknowledged as if they were records")
