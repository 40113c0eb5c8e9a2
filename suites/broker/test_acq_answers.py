"""What a ShareFetch answer looks like: ranges, records, counts, the lock, partitions, errors."""

from fixtures.wire.codec import WireError
from fixtures.wire.records import Compression, decode_batches
from suites.broker.kit import *


@check("ACQ-05", "ACQ-07", fast=True, crossed=(BESIDE, BEHIND))
async def test_ranges_in_order_with_counts(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(30, batches=env.rng.choice([1, 3, 6]))
    freed = sorted(env.rng.sample(range(30), k=10))
    await consumer.acked(*(release(offset) for offset in freed))
    await queue.produce(5)

    catch = await consumer.acquire(15)

    for response in catch.responses:
        for part in response.parts:
            borders = [border for r in part.ranges for border in (r.first, r.last + 1)]
            ordered = all(r.first <= r.last for r in part.ranges) and borders == sorted(borders)
            judge["ACQ-05"].holds(ordered, f"ranges out of order: {part.ranges}")
    expected = dict.fromkeys(freed, 2) | dict.fromkeys(range(30, 35), 1)
    judge["ACQ-07"].equal(expected, catch.counts, "counts of released and of new records")
    judge["ACQ-05"].equal(sorted(expected), catch.offsets, "acquired offsets")


@check("ACQ-06", crossed=AMONG)
@pytest.mark.parametrize("codec", list(Compression), ids=lambda codec: codec.name.lower())
async def test_records_come_as_produced(env: Env, judge: Judge, codec: Compression) -> None:
    queue = await env.queue()
    produced = [
        Record(
            offset=index,
            key=None if index % 3 == 0 else b"k%d" % index,
            value=env.rng.randbytes(env.rng.randint(0, 200)),
            headers=(("h", b"%d" % index), ("none", None)),
        )
        for index in range(12)
    ]
    await env.admin.append(queue.topic, encode_batch(produced, compression=codec))
    consumer = await queue.consumer()

    _judge_records(judge, produced, await consumer.acquire(12))

    # Out of the middle of the batch, and not in one piece.
    again = sorted(env.rng.sample(range(1, 11), 5))
    await consumer.acked(*(release(offset) for offset in again))
    _judge_records(judge, [produced[offset] for offset in again], await consumer.acquire(5))


def _judge_records(judge: Judge, produced: Sequence[Record], catch: Catch) -> None:
    """Judge that there is a record for each acquired offset, as it was produced."""
    got = [r for a in catch.responses for part in a.parts for r in part.acquired_records()]
    offsets = [record.offset for record in produced]
    judge.equal(offsets, [r.offset for r in got], "offsets of the records")
    for ours, theirs in zip(produced, got, strict=True):
        judge.equal(
            (ours.key, ours.value, ours.headers),
            (theirs.key, theirs.value, theirs.headers),
            f"record {ours.offset}",
        )


@check("ACQ-08", crossed=(BESIDE, BEHIND))
async def test_records_never_null(env: Env, judge: Judge) -> None:
    queue = await env.queue(partitions=2, records=3, assignments=env.together(2))
    consumer = await queue.consumer()
    named = [(queue.topic, 0), (queue.topic, 1), (queue.topic, 5)]

    # The field cannot be null from version 1 on, so that null records are an unreadable answer.
    unreadable, parts = "", []
    try:
        responses = [await consumer.session.fetch(*named, max_wait_ms=0)]
        responses += [await consumer.session.fetch(max_wait_ms=100) for _ in range(3)]
        parts = [part for response in responses for part in response.parts]
    except WireError as error:
        unreadable = str(error)

    judge.equal("", unreadable, "what is wrong with the bytes of a response")
    judge.holds(any(not p.ranges for p in parts), "no partition came without records")


@check("ACQ-09", fast=True, crossed=(BESIDE, BEHIND))
async def test_lock_timeout_is_the_groups(env: Env, judge: Judge) -> None:
    broker = await env.admin.broker_configs()
    # The defaults, for a broker that has no such bounds.
    low = int(broker.get("group.share.min.record.lock.duration.ms", 15_000))
    own = env.rng.randint(low, int(broker.get("group.share.max.record.lock.duration.ms", 60_000)))
    special = await env.queue(records=1, lock_ms=own)

    for queue, expected in (
        (special, own),
        (await env.queue(records=1), int(broker["group.share.record.lock.duration.ms"])),
    ):
        catch = await (await queue.consumer()).acquire(1)
        judge.equal(expected, catch.responses[-1].lock_ms, "AcquisitionLockTimeoutMs")


@check("ACQ-10", fast=True)
async def test_several_partitions_in_one_fetch(env: Env, judge: Judge) -> None:
    queue = await env.queue(partitions=3, assignments=env.together(3))
    sizes = {index: env.rng.randint(1, 9) for index in queue.topic.partitions}
    for index, size in sizes.items():
        await queue.produce([b"p%d" % index] * size, index)
    consumer = await queue.consumer()

    seen: dict[int, list[int]] = {index: [] for index in sizes}
    values: set[tuple[int, bytes | None]] = set()
    named = [(queue.topic, index) for index in sizes]
    async for _ in attempts():
        for part in (await consumer.session.fetch(*named)).parts:
            judge.equal(queue.topic.id, part.topic_id, "topic id of a partition")
            seen[part.partition] += part.offsets
            values |= {(part.partition, record.value) for record in part.acquired_records()}
        named = []
        if sum(map(len, seen.values())) >= sum(sizes.values()):
            break

    expected = {index: list(range(size)) for index, size in sizes.items()}
    judge.equal(expected, seen, "acquired offsets by partition")
    judge.equal({(i, b"p%d" % i) for i in sizes}, values, "values by partition")


@check("ACQ-11", crossed=BESIDE)
async def test_more_records_than_acquired(env: Env, judge: Judge) -> None:
    _, first, second = await env.with_pair(records=10)
    await first.acquire(10)
    await first.acked(release(2), release(7))

    catch = await second.acquire(2)

    judge.equal({2: 2, 7: 2}, catch.counts, "acquired offsets and counts")
    batches = [b for a in catch.responses for p in a.parts for b in decode_batches(p.records)]
    sent = {record.offset for batch in batches for record in batch.records}
    judge.holds({2, 7} <= sent, f"acquired 2 and 7, records for {sorted(sent)} came")
    # Whatever else came along is not held: its holder can still settle it.
    others = [accept(offset) for offset in range(10) if offset not in (2, 7)]
    settled = await first.ack(*others)
    judge.equal(0, settled.ack_error, "error of the first member's acknowledgement")
    judge.saw(records_not_acquired=len(sent - {2, 7}))


async def _beside(
    env: Env, judge: Judge, topic: Topic | None, index: int, error: ErrorCode
) -> None:
    """Judge a fetch that names a good partition and an unknown one, of its topic or another."""
    queue, consumer = await env.with_consumer(records=5)
    other = (topic or queue.topic, index)

    responses = [await consumer.session.fetch(consumer.where, other)]
    judge.equal(0, responses[0].error, "top-level error")
    part = responses[0].part(other[0].id, other[1])
    judge.equal(error, part and part.error, "error of the unknown partition")
    async for _ in attempts():
        if any(response.offsets for response in responses):
            break
        responses.append(await consumer.session.fetch())
    served = [offset for response in responses for offset in response.offsets]
    judge.equal([0, 1, 2, 3, 4], served, "offsets of the partition that exists")


@check("ACQ-12", fast=True, crossed=(BESIDE, BEHIND))
async def test_unknown_topic_fails_alone(env: Env, judge: Judge) -> None:
    ghost = Topic(name="ghost", id=uuid.UUID(bytes=env.rng.randbytes(16)), leaders=())
    await _beside(env, judge, ghost, 0, ErrorCode.UNKNOWN_TOPIC_ID)


@check("ACQ-13", fast=True, crossed=(BESIDE, BEHIND))
async def test_unknown_partition_fails_alone(env: Env, judge: Judge) -> None:
    index = env.rng.randint(1, 999)
    await _beside(env, judge, None, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@check("ACQ-14", crossed=AMONG)
async def test_deleted_topic_fails_alone(env: Env, judge: Judge) -> None:
    placed = env.together(1)
    doomed = await env.queue(records=2, assignments=placed)
    other = Queue(
        env=env, topic=await env.admin.create_topic(assignments=placed), group=doomed.group
    )
    consumer = await doomed.consumer()
    await consumer.member.subscribe(doomed.topic, other.topic)
    await consumer.session.fetch(consumer.where, (other.topic, 0))

    await env.admin.delete_topics(doomed.topic.name)
    last = await other.produce(3) + 2
    served: set[int] = set()
    gone = False
    async for _ in attempts():
        response = await consumer.session.fetch()
        lost = response.part(doomed.topic.id)
        unknown = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        gone = gone or (lost is not None and lost.error in unknown)
        part = response.part(other.topic.id)
        served |= set(part.offsets if part else ())
        if gone and last in served:
            break

    judge.holds(gone, f"the deleted topic was never reported; last: {response.errors}")
    judge.equal(set(range(3)), served, "offsets of the other topic")
