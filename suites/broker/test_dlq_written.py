"""Which records become dead letters, and what a dead letter says of its source record."""

from itertools import pairwise

from fixtures.clients.deadletters import HEADERS
from suites.broker.kit import *

pytestmark = pytest.mark.feature("dead-letters")


@check("DLQ-01", "DLQ-04", fast=True, crossed=AMONG)
@pytest.mark.parametrize("batches", [1, 12])
async def test_rejected_records(env: Env, judge: Judge, batches: int) -> None:
    box = await boxed(env, 12, batches=batches)
    rejected = sorted(env.rng.sample(range(11), k=env.rng.randint(3, 8)))
    released = 11
    consumer = await box.queue.holder(12)
    await consumer.acked(*verdicts(11, rejected), release(released))

    missing = sorted(set(rejected) - set(letter_offsets(await box.arrived(rejected))))
    judge["DLQ-01"].equal([], missing, "rejected offsets without a letter")
    letters = await box.complete(consumer, released)
    strays = sorted(set(letter_offsets(letters)) - set(rejected))
    judge["DLQ-04"].equal([], strays, "letters of accepted and released records")


@check("DLQ-01", fast=True, crossed=AMONG)
async def test_any_order(env: Env, judge: Judge) -> None:
    box = await boxed(env, 20, batches=4)
    consumer = await box.queue.holder(20)
    order = env.rng.sample(range(20), k=20)
    for start in range(0, 20, 5):
        await consumer.acked(*(reject(offset) for offset in sorted(order[start : start + 5])))

    # KIP-1191 promises no order: a set is all that may be compared.
    found = [letter.offset for letter in await box.arrived(range(20))]
    judge.equal(set(range(20)), set(found), "source offsets in whatever order")
    backwards = sum(later < earlier for earlier, later in pairwise(found))
    judge.saw(letters=len(found), out_of_order=backwards)


@check("DLQ-02", "DLQ-06", "DLQ-07", fast=True, crossed=AMONG)
async def test_releases_up_to_the_limit(env: Env, judge: Judge) -> None:
    box = await boxed(env, 6, batches=6, group_config={DELIVERY_LIMIT: "3"})
    consumer = await box.queue.holder(6)
    await consumer.acked(reject(0), release(1, 5))
    await hold_at(consumer, 5, 2)
    await consumer.acked(reject(1), release(2, 5))
    await hold_at(consumer, 4, 3)
    await consumer.acked(reject(2), release(3, 5))

    letters = await box.arrived(range(6))
    released = [offset for offset in letter_offsets(letters) if offset >= 3]
    judge["DLQ-02"].equal([3, 4, 5], released, "released at the limit and written")
    letters = await box.due(range(6))
    counts = {letter.offset: letter.headers.get("delivery.count") for letter in letters}
    expected = {0: "1", 1: "2", 2: "3", 3: "3", 4: "3", 5: "3"}
    judge["DLQ-07"].equal(expected, counts, "delivery counts in letters")
    causes = {letter.offset: letter.headers.get("message") for letter in letters}
    by_client, by_count = {causes.get(o) for o in range(3)}, {causes.get(o) for o in range(3, 6)}
    apart = by_client.isdisjoint(by_count) and None not in by_client | by_count
    judge["DLQ-06"].holds(apart, f"rejected says {by_client}, delivered too often says {by_count}")


@check("DLQ-03", "DLQ-07", crossed=AMONG)
async def test_locks_that_run_out(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    box = await boxed(env, 2, lock_ms=lock, group_config={DELIVERY_LIMIT: "2"})
    consumer = await box.queue.holder(2)
    await comes_again(consumer, range(2), lock)

    letters = await box.arrived(range(2), lock / 1000 + WITHIN)
    judge["DLQ-03"].equal([0, 1], letter_offsets(letters), "delivered twice, never acknowledged")
    counts = {letter.headers.get("delivery.count") for letter in letters}
    judge["DLQ-07"].equal({"2"}, counts, "delivery counts in letters")


@check("DLQ-45", fast=True, crossed=AMONG)
@pytest.mark.parametrize("accepted", [[], [0]], ids=["whole batch", "rest of a batch"])
async def test_session_closed_at_the_limit(env: Env, judge: Judge, accepted: list[int]) -> None:
    box = await boxed(env, 5, group_config={DELIVERY_LIMIT: "2"})
    consumer = await box.queue.holder(5)
    await consumer.acked(release(0, 4))
    fresh = await box.queue.produce(1)
    await consumer.acquire(6)
    await consumer.acked(*map(accept, accepted))
    await consumer.close()
    await comes_again(await box.queue.consumer(), [fresh])  # else SES-13 is broken

    due = {offset for offset in range(5) if offset not in accepted}
    missing = sorted(due - set(letter_offsets(await box.arrived(due))))
    judge.equal([], missing, "offsets without a letter after the session was closed")


@check("DLQ-05", "DLQ-14", "DLQ-15", fast=True, crossed=AMONG)
async def test_one_topic_for_all(env: Env, judge: Judge) -> None:
    dead = await dead_topic(env, partitions=2)
    first = await boxed(env, dead=dead, partitions=3)
    second = await boxed(env, dead=dead, partitions=3)
    expected: set[tuple[str | None, ...]] = set()
    for box in (first, second):
        topic, group = box.queue.topic, box.queue.group
        await box.queue.consumer()  # the group's share-partitions begin with a member
        for partition in topic.partitions:
            await box.queue.produce(partition + 1, partition)
            consumer = await box.queue.consumer(partition, join=False)
            await consumer.acquire(partition + 1)
            await consumer.acked(reject(0, partition))
            for offset in range(partition + 1):
                expected.add((topic.name, str(partition), str(offset), group))
            await box.arrived(range(partition + 1), partition=partition)

    letters = await dead_letters_in(env, dead)
    if len(letters) < len(expected):
        raise Undecided(f"{len(letters)} letters of {len(expected)} came, which is DLQ-01's matter")
    partitions = {(one.headers.get("partition") or "", one.partition) for one in letters}
    misplaced = [pair for pair in partitions if pair[0].isdecimal() and int(pair[0]) % 2 != pair[1]]
    judge["DLQ-14"].equal([], misplaced, "partitions of sources whose letters are elsewhere")
    wanted = {f"__dlq.errors.{name}" for name in HEADERS}
    lacking = [wanted - {name for name, _ in letter.record.headers} for letter in letters]
    judge["DLQ-05"].equal(set(), set().union(*lacking), "context headers that letters lack")
    bare = {name for one in letters for name in HEADERS if not one.headers.get(name)}
    judge["DLQ-05"].equal(set(), bare, "context headers without a text")
    judge["DLQ-15"].equal(expected, {one.source for one in letters}, "sources named by letters")
    for rule in ("DLQ-05", "DLQ-14"):
        judge[rule].saw(letters=len(letters))
