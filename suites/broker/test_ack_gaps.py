"""The batch with gaps of KIP-932: offsets that hold no record inside what was acquired."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import pytest

from fixtures.clients.cluster import Topic, attempts
from fixtures.clients.member import AckType, Range, accept, each
from fixtures.wire.records import Record, decode_batches, encode_batch
from spec.verdict import Undecided
from suites.broker.acking import result
from suites.broker.share import Catch, Consumer, Queue, Share
from suites.judge import Judge

CLEANED_WITHIN = 90.0
"""Seconds: a cleaner with default settings looks for work every 15 s."""
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "segment.ms": "100",
    "delete.retention.ms": "0",
}
SIZE = 10


@dataclass(frozen=True, slots=True)
class Holed:
    """A queue whose first batch, offsets 0 to 9, has lost records to compaction."""

    queue: Queue
    holes: tuple[int, ...]

    @property
    def records(self) -> list[int]:
        """The offsets of the first batch that still hold a record."""
        return [offset for offset in range(SIZE) if offset not in self.holes]


async def log_offsets(share: Share, topic: Topic) -> set[int]:
    """Return the offsets that hold records, read with a plain Fetch."""
    connection = await share.cluster.to(topic.leaders[0])
    wanted = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    answer = await connection.call(
        "Fetch",
        max_wait_ms=100,
        min_bytes=1,
        session_epoch=-1,
        topics=[{"topic_id": topic.id, "partitions": [wanted]}],
    )
    records = answer.responses[0].partitions[0].records
    return {record.offset for batch in decode_batches(records) for record in batch.records}


async def append(queue: Queue, second: int, keys: list[bytes]) -> int:
    """Append a batch of records with these keys, as if at that second; return the first offset."""
    stamp = (int(time.time()) // 1000 - 1) * 1_000_000 + 1000 * second
    batch = [Record(offset=i, timestamp=stamp, key=k, value=k) for i, k in enumerate(keys)]
    return await queue.share.admin.append(queue.topic, encode_batch(batch))


async def judge_gone(judge: Judge, rule: str, world: Holed, consumer: Consumer) -> None:
    """Demand that nothing of the first batch comes before a sentinel, to whoever asks.

    The sentinel has a key, as every record of a compacted topic.
    """
    for who in (consumer, await world.queue.consumer(join=False)):
        sentinel = await append(world.queue, 3, [b"sentinel"])
        again = await who.drain(until=sentinel)
        come = [offset for offset in again.offsets if offset < SIZE]
        judge.equal(rule, [], come, "offsets of the batch with gaps that came again")
        await who.close()


async def holed(share: Share) -> Holed:
    """Return a queue with holes in the middle and at the end of its first batch.

    Compaction keeps the last record of a key, and a batch keeps its range of offsets for as long as
    one of its records is left. Segments roll by the records' timestamps, so nobody has to wait.
    """
    middle = share.rng.randint(2, 5)
    holes = (middle, middle + 1, SIZE - 1)
    queue = await share.queue(topic_config=COMPACTED)
    await append(queue, 0, [b"key %d" % number for number in range(SIZE)])
    await append(queue, 1, [b"key %d" % number for number in holes])
    await append(queue, 2, [b"roll"])  # the active segment is never cleaned
    async for _ in attempts(CLEANED_WITHIN):
        left = await log_offsets(share, queue.topic)
        if not left & set(holes):
            return Holed(queue, holes)
    raise Undecided(f"the cleaner left offsets {sorted(left)} for {CLEANED_WITHIN:g} s")


def first_batch(held: Catch) -> list[Range]:
    """Return the acquired ranges within the batch with gaps."""
    ranges = [r for answer in held.answers for r in answer.only.ranges if r.first < SIZE]
    return [replace(r, last=min(r.last, SIZE - 1)) for r in ranges]


def kinds(share: Share, world: Holed, acquired: Range) -> list[AckType]:
    """Return GAP for each gap of a range, and a final type for each record."""
    final = (AckType.ACCEPT, AckType.REJECT)
    return [
        AckType.GAP if offset in world.holes else share.rng.choice(final)
        for offset in acquired.offsets
    ]


@pytest.mark.requirement("ACK-59", "ACK-60")
async def test_gaps_beside_records(share: Share, judge: Judge) -> None:
    """ACK-59, ACK-60: Gaps are acknowledged in the batch of the records beside them."""
    world = await holed(share)
    consumer = await world.queue.consumer()
    held = await consumer.acquire(len(world.records) + len(world.holes) + 1)
    missing = [offset for offset in world.records if offset not in held.counts]
    judge.equal("ACK-59", [], missing, "records of the batch with gaps that were not acquired")
    delivered = {r.offset for answer in held.answers for r in answer.only.acquired_records()}
    judge.equal("ACK-59", set(), delivered & set(world.holes), "records delivered for gaps")

    # Which gaps are acquired is the broker's choice, so only what it listed is acknowledged.
    batches = [each(r.first, kinds(share, world, r)) for r in first_batch(held)]
    part = await consumer.ack(*batches)
    judge.equal("ACK-59", "NONE", result(part), f"result of {batches}")
    # The next acknowledgement carries the start offset that this one has led to.
    await consumer.acked(accept(SIZE))
    at_least = await world.queue.spso(SIZE)
    judge.holds("ACK-60", at_least >= SIZE, f"the start offset is {at_least}, below {SIZE}")
    judge.saw("ACK-60", gaps=len(held.counts.keys() & set(world.holes)))
    await judge_gone(judge, "ACK-59", world, consumer)


@pytest.mark.requirement("ACK-61")
async def test_one_type_over_gaps(share: Share, judge: Judge) -> None:
    """ACK-61: One type for an acquired range is accepted although the range has gaps."""
    world = await holed(share)
    consumer = await world.queue.consumer()
    held = await consumer.acquire(len(world.records) + 1)
    for acquired in first_batch(held):
        part = await consumer.ack(accept(acquired.first, acquired.last))
        judge.equal("ACK-61", "NONE", result(part), f"ACCEPT of {acquired}")
    await judge_gone(judge, "ACK-61", world, consumer)
    judge.saw("ACK-61", gaps=len(held.counts.keys() & set(world.holes)))
