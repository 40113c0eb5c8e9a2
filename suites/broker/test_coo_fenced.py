"""State writes that fail: what the client is told, and what becomes of its records.

No network is cut here. The state of a live share-partition is deleted, replaced or read with a
higher epoch under its leader, by the same RPCs that brokers send each other, so that the leader's
next write fails at once and for good.
"""

from suites.broker.kit import *

KNOWN = {
    "NOT_LEADER_OR_FOLLOWER": "ShareAcknowledgeResponse ErrorCode: the leader was fenced",
    "UNKNOWN_TOPIC_OR_PARTITION": "ShareAcknowledgeResponse ErrorCode: no such topic or partition",
    "UNKNOWN_SERVER_ERROR": "ShareAcknowledgeResponse ErrorCode: what the server did not expect",
    "COORDINATOR_NOT_AVAILABLE": "COO-15 about Apache's choice: the coordinator's own error",
    "GROUP_ID_NOT_FOUND": "COO-15 about Apache's choice: the coordinator's own error",
}
"""What a client may be told when the state of its acknowledgement could not be stored, and why."""


async def _held(env: Env, lock_ms: int = 0) -> tuple[Queue, Consumer, StateKey]:
    queue, consumer = await env.with_holder(10, lock_ms=lock_ms or env.bounds.longest_lock)
    return queue, consumer, Store(env).of(queue)


async def _done(work: Awaitable[str], what: str) -> None:
    if (error := await work) != "NONE":
        raise Undecided(f"{what} answered {error}")


async def _read_ahead(key: StateKey) -> None:
    """Read the state as a leader of the next epoch would."""
    epoch = getattr(await key.summary(), "leader_epoch", 0) + 1
    part = await key.read(leader_epoch=epoch)
    if part.error_code:
        raise Undecided(f"reading ahead answered {error_name(part.error_code)}")


async def _replace(key: StateKey) -> None:
    """Initialise the state again, from offset 5 on, as an alteration of the offsets does."""
    epoch = (await key.summary()).state_epoch + 1
    await _done(key.initialize(epoch, start=5), "Initialize")


@check("COO-16", fast=True, crossed=AMONG)
@pytest.mark.parametrize("fence", [_read_ahead, _replace], ids=["leader-epoch", "state-epoch"])
async def test_fenced_leader(
    env: Env, judge: Judge, fence: Callable[[StateKey], Awaitable[None]]
) -> None:
    _queue, consumer, key = await _held(env)
    await fence(key)

    seen = raw_result(await consumer.ack(accept(1, 3)))

    judge.equal("NOT_LEADER_OR_FOLLOWER", seen, "result from a leader that is fenced")


@check("COO-17", fast=True, crossed=AMONG)
async def test_fenced_leader_loads_anew(env: Env, judge: Judge) -> None:
    queue, consumer, key = await _held(env)
    await _replace(key)
    if not (await consumer.ack(accept(1, 3))).ack_error:
        raise Undecided("the leader was not fenced: its acknowledgement was answered with NONE")

    # The stored state begins at 5 and knows neither locks nor deliveries.
    other = await queue.consumer(join=False)
    sentinel = await queue.produce(1)
    seen = await _patiently(other, sentinel)

    expected = dict.fromkeys([*range(5, 10), sentinel], 1)
    judge.delivered(expected, seen.counts, "delivery counts by the state loaded anew")


@check("COO-17", crossed=AMONG)
async def test_fetch_that_waited_at_a_fenced_leader(env: Env, judge: Judge) -> None:
    queue, consumer, key = await _held(env)
    waiting = asyncio.create_task((await queue.consumer(join=False)).fetch(max_wait_ms=2000))
    await asyncio.wait([waiting], timeout=0.4)
    if waiting.done():
        raise Undecided(f"the fetch did not wait: {waiting.result()}")
    await _replace(key)
    if not (await consumer.ack(accept(6, 8))).ack_error:
        raise Undecided("the leader was not fenced: its acknowledgement was answered with NONE")

    woken = await queue.produce(1)
    first = Catch()
    first.add(await waiting)
    # Whatever the fetch brought, it is held now, and nobody else gets it.
    sentinel = await queue.produce(1)
    second = await _patiently(await queue.consumer(join=False), sentinel)

    twice = sorted(first.counts.keys() & second.counts.keys())
    judge.equal([], twice, "records that two members hold after the state was loaded")
    expected = dict.fromkeys([*range(5, 10), woken, sentinel], 1)
    judge.delivered(expected, first.counts | second.counts, "delivery counts of both")


async def _patiently(consumer: Consumer, until: int) -> Catch:
    """Fetch through the errors of a share-partition that is being loaded, until an offset came."""
    catch = Catch()
    async for _ in attempts():
        response = await consumer.fetch()
        if response.error:
            raise Undecided(f"the fetch answered {error_name(response.error)}")
        catch.add(response)
        if until in catch.counts:
            return catch
    leader = consumer.where[0].leaders[0]
    await demand_bystander(consumer.member.cluster, leader, f"offset {until} never came")
    return catch


async def _failed(judge: Judge, key: StateKey, seen: str) -> None:
    """Demand an error of an ACCEPT whose state was deleted, and which no write can have stored."""
    if seen == "NONE" and (await key.summary()).start_offset != UNSET:
        raise Undecided("the leader could write state where there was none")
    judge.holds(seen != "NONE", "an ACCEPT without a stored state was answered NONE")


@check("COO-14", "COO-15", fast=True, crossed=AMONG)
async def test_failed_write_changes_nothing(env: Env, judge: Judge) -> None:
    queue, consumer, key = await _held(env)
    before = await key.summary()
    await _done(key.delete(), "Delete")

    seen = raw_result(await consumer.ack(accept(1, 3)))

    await _failed(judge["COO-14"], key, seen)
    judge["COO-15"].one_of(KNOWN, seen, "result of an acknowledgement that cannot be stored")
    await _done(key.initialize(before.state_epoch, start=0), "Initialize")
    other = await queue.consumer(join=False)
    leaked = (await next_catch(queue, other)).counts
    judge["COO-14"].equal({}, leaked, "records given to somebody else while they were held")
    again = result(await consumer.ack(accept(1, 3)))
    judge["COO-14"].equal("NONE", again, "the same ACCEPT once more, with the state back")
    await consumer.acked(release(4, 9))
    counts = (await next_catch(queue, other)).counts
    judge["COO-14"].equal(set(), {1, 2, 3} & counts.keys(), "accepted records delivered again")


@check("COO-14", crossed=AMONG)
async def test_failed_write_does_not_keep_the_lock(env: Env, judge: Judge) -> None:
    lock_ms = 2000
    queue, consumer, key = await _held(env, lock_ms)
    before = await key.summary()
    await _done(key.delete(), "Delete")
    seen = raw_result(await consumer.ack(accept(1, 3)))
    await _failed(judge, key, seen)
    await _done(key.initialize(before.state_epoch, start=0), "Initialize")

    other = await queue.consumer(join=False)
    back = await watch(other, range(10), lock_ms / 1000 + SLACK)

    judge.equal([*range(10)], sorted(back), "offsets that came after the locks ran out")


@check("COO-20", fast=True, crossed=AMONG, meets="second partition")
async def test_failed_write_is_one_partitions_affair(env: Env, judge: Judge) -> None:
    several = await spread(env, partitions=3, records=5)
    sick = env.rng.randrange(3)
    await _done(Store(env).of(several.queue, sick).delete(), "Delete")

    seen = await several.acknowledge(*[[accept(1, 4)]] * 3)

    for partition in {0, 1, 2} - {sick}:
        judge.equal("NONE", seen[partition], f"partition {partition} beside a sick one")
    if seen[sick] == "NONE":
        raise Undecided("the write for the partition without state did not fail")
    await several.session.close()
    for partition in {0, 1, 2} - {sick}:
        left = await several.left(partition)
        judge.equal(set(), {1, 2, 3, 4} & left.keys(), "accepted records that came again")


@check("COO-20", fast=True, crossed=AMONG, meets="second partition")
async def test_failed_load_is_one_partitions_affair(env: Env, judge: Judge) -> None:
    leader = env.rng.choice(sorted(env.cluster.brokers))
    queue = await env.queue(assignments=[[leader]] * 3)
    member = (await queue.consumer()).member
    sick = env.rng.randrange(3)
    await _done(Store(env).of(queue, sick).delete(), "Delete")
    for partition in range(3):
        await queue.produce(4, partition)

    session = await member.session(leader)
    named = [(queue.topic, index) for index in range(3)]
    got: dict[int, list[int]] = {0: [], 1: [], 2: []}
    well = got.keys() - {sick}
    async for _ in attempts():
        response = await session.fetch(*named)
        named = []
        judge.equal("NONE", error_name(response.error), "error of the whole fetch")
        for part in response.parts:
            got[part.partition] += part.offsets
            if part.partition in well and part.error not in RETRIABLE:
                judge.equal("NONE", error_name(part.error), f"error of partition {part.partition}")
        if all(len(got[index]) >= 4 for index in well):
            break
    else:
        await demand_bystander(env.cluster, leader, f"no more came than {got}")
    if got[sick]:
        raise Undecided(f"the load of partition {sick} did not fail")
    seen = {index: sorted(got[index]) for index in well}
    expected = {index: [0, 1, 2, 3] for index in well}
    judge.equal(expected, seen, f"acquired with the state of partition {sick} gone")
