"""Where a share-partition begins that has no start offset yet: share.auto.offset.reset."""

from suites.broker.kit import *


async def _first_delivery(queue: Queue, consumer: Consumer) -> tuple[int, list[int]]:
    """Produce one by one until something is delivered; return the log's end and what came.

    A start offset at the log's end is only fixed when the leader initialises the share-partition,
    during a first fetch; what is produced before that moment may rightly be skipped.
    """
    seen: list[int] = []
    partition = consumer.where[1]
    end = await queue.env.admin.log_offset(queue.topic, partition=partition)
    async for _ in attempts():
        seen += consumer.sound(await consumer.fetch()).offsets
        if seen:
            return end, seen
        end = await queue.produce(1, partition) + 1
    raise await consumer.stopped("nothing came of what was produced one by one")


@check("OFF-01", fast=True, crossed=AMONG)
async def test_default_is_latest(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(records=5, reset=None)

    end, first = await _first_delivery(queue, consumer)
    last = await queue.produce(4) + 3
    rest = await consumer.drain(until=last)

    judge.holds(min(first) >= 5, f"{first} were delivered; 0 to 4 came before the group")
    expected = list(range(min(first), last + 1))
    judge.equal(expected, sorted({*first, *rest.offsets}), "all that was delivered")
    judge.saw(skipped=min(first), log_end=end)


@check("OFF-45", fast=True, meets=IDLE)
async def test_neighbours_of_an_altered_partition(env: Env, judge: Judge) -> None:
    queue = await env.queue(partitions=2, reset=None)
    for partition in queue.topic.partitions:
        await queue.produce(5, partition)
    await altered(env, queue.group, {(queue.topic.name, 0): env.rng.randint(0, 5)})

    end, first = await _first_delivery(queue, await queue.consumer(1))

    judge.holds(min(first) >= 5, f"{first} were delivered; 0 to 4 came before the group")
    judge.saw(skipped=min(first), log_end=end)


@check("OFF-02", fast=True, crossed=AMONG)
@pytest.mark.parametrize("deleted", [0, 3], ids=["from 0", "after DeleteRecords"])
async def test_earliest(env: Env, judge: Judge, deleted: int) -> None:
    queue = await env.queue(records=10, batches=env.rng.choice([1, 2, 10]))
    if deleted:
        await env.admin.delete_records(queue.topic, deleted)
    heir = await queue.consumer()
    catch = await heir.take(10 - deleted)

    judge.equal(list(range(deleted, 10)), catch.offsets, "offsets delivered")


@check("OFF-03", crossed=AMONG)
async def test_by_duration(env: Env, judge: Judge) -> None:
    hours = env.rng.randint(1, 5)
    times = {"message.timestamp.type": "CreateTime"}
    queue = await env.queue(reset=f"by_duration:PT{hours}H30M", topic_config=times)
    now = int(time.time() * 1000)
    for age in range(6, 0, -1):
        record = Record(offset=0, timestamp=now - age * 3_600_000, value=b"%d hours old" % age)
        await env.admin.append(queue.topic, encode_batch([record]))

    catch = await (await queue.consumer()).acquire(hours)

    judge.equal(list(range(6 - hours, 6)), catch.offsets, f"records at most {hours} h 30 min old")


@check("OFF-05", fast=True, crossed=AMONG)
async def test_each_group_by_its_own(env: Env, judge: Judge) -> None:
    early = await env.queue(records=6)
    late = await env.sibling(early, **{RESET: "latest"})
    first, second = await early.consumer(), await late.consumer()

    _, newest = await _first_delivery(late, second)

    judge.equal(list(range(6)), (await first.acquire(6)).offsets[:6], "first offsets with earliest")
    judge.holds(min(newest) >= 6, f"with latest {newest} were delivered")


@check("OFF-06", crossed=AMONG)
@pytest.mark.parametrize("later", ["latest", "earliest", "by_duration:PT1S"])
async def test_stored_offset_wins(env: Env, judge: Judge, later: str) -> None:
    queue, consumer = await env.with_consumer(records=10, batches=10)
    held = await consumer.acquire(10)
    done = env.rng.randint(1, 8)
    await consumer.acked(accept(0, done - 1), release(done, 9))
    await consumer.depart()

    await env.admin.group_config(queue.group, {RESET: later})
    back = await (await queue.consumer()).acquire(10 - done)

    judge.equal(list(range(done, 10)), back.offsets, "delivered after coming back")
    judge.saw(delivered_before=len(held.counts))


@check("OFF-46", crossed=AMONG)
async def test_decided_once(env: Env, judge: Judge) -> None:
    queue = await replicated(env, 5, reset=None)
    _, held = await _first_delivery(queue, await queue.consumer())

    after = await moved(queue)
    roamer = ReconnectingConsumer(after)
    seen: dict[int, int] = {}
    async for _ in attempts():
        if part := await roamer.fetch():
            seen |= part.counts
        if seen:
            break
        await after.produce(1)
    if not seen:
        raise Undecided("the next leader gave nothing")

    told = f"first record given by the next leader; {held} were held under the one before"
    judge.equal(min(held), min(seen), told)
    judge.saw(leader_moves=1)


@check("OFF-07", crossed=AMONG)
async def test_added_partition_begins_at_zero(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(records=1, reset=None)
    await _first_delivery(queue, consumer)

    grown = await env.admin.create_partitions(queue.topic, 2)
    await env.admin.produce(grown, 5, 1)
    await consumer.member.subscribe(grown)
    session = await consumer.member.session(grown.leaders[1])
    seen: set[int] = set()
    named = [(grown, 1)]
    sentinel = -1
    async for _ in attempts():
        seen |= set(consumer.sound(await session.fetch(*named)).offsets)
        named = []
        if sentinel in seen:
            break
        # One more record each time round: at the latest it is delivered, and shows what was not.
        sentinel = await env.admin.produce(grown, 1, 1)

    if not seen:
        sentence = "no record of the new partition was delivered"
        raise await stopped(env.cluster, grown.leaders[1], sentence, session.fetch)
    missing = sorted(set(range(max(seen))) - seen)
    judge.equal([], missing, "offsets of the new partition that were skipped")
