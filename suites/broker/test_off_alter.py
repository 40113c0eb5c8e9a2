"""An administrator sets the start offset: AlterShareGroupOffsets (KIP-932 §Managing the SPSO)."""

from suites.broker.kit import *


def _codes(response: Struct) -> dict[int, int]:
    named = [p for topic in response.responses for p in topic.partitions]
    return {partition.partition_index: partition.error_code for partition in named}


async def _alter(judge: Judge, queue: Queue, offset: int) -> None:
    """Alter the start offset of partition 0 and demand that the response says it was done."""
    response = await queue.env.admin.alter_offset(queue.group, queue.topic, offset)
    done = (response.error_code, _codes(response))
    judge.equal((0, {0: 0}), done, f"error and partitions altered to {offset}")


async def _used(env: Env, rounds: int = 0) -> Queue:
    """Return a queue of ten records, 0 to 4 accepted, the others released, nobody in the group.

    In each of ``rounds`` its member's session is opened over two connections at the same moment.
    """
    queue, consumer = await env.with_holder(10, batches=env.rng.choice([1, 5, 10]))
    await consumer.acked(accept(0, 4), release(5, 9))
    for _ in range(rounds):
        await consumer.open_twice()
    await consumer.depart()
    return queue


@check("OFF-30", fast=True, crossed=RELOADED)
@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice at a time"])
async def test_alter_sets_the_start(env: Env, judge: Judge, *, twice: bool) -> None:
    queue = await _used(env, rounds=10 * twice)
    to = env.rng.choice([0, env.rng.randint(1, 4), env.rng.randint(5, 9)])
    await _alter(judge, queue, to)

    judge.equal(list(range(to, 11)), sorted(await given_anew(queue)), f"delivered from {to} on")


@check("OFF-34", fast=True, crossed=RELOADED)
async def test_alter_discards_state(env: Env, judge: Judge) -> None:
    queue = await _used(env)
    await _alter(judge, queue, 0)

    judge.equal(dict.fromkeys(range(11), 1), await given_anew(queue), "delivery counts")


@check("ADM-48", fast=True, crossed=RELOADED)
async def test_alter_raises_the_epoch(env: Env, judge: Judge) -> None:
    queue = await _used(env)
    seen = [await group_epoch(env, queue.group)]
    for to in env.rng.sample(range(10), k=2):
        await _alter(judge, queue, to)
        seen.append(await group_epoch(env, queue.group))

    told = f"group epoch before and after two alterations: {seen}"
    judge.holds(seen[0] < seen[1] < seen[2], told)


@check("OFF-35", crossed=RELOADED)
async def test_alter_is_shown(env: Env, judge: Judge) -> None:
    queue = await _used(env)
    for to in env.rng.sample(range(10), k=3):
        await _alter(judge, queue, to)
        judge.equal(to, await queue.spso(to), "start offset that is shown")
        await (await env.member(queue.group, queue.topic)).leave()
        judge.equal(to, (await queue.offsets()).start, "shown when a member has come and gone")


@check("OFF-31", crossed=RELOADED)
async def test_alter_to_the_end(env: Env, judge: Judge) -> None:
    queue = await _used(env)
    await _alter(judge, queue, 10)

    judge.delivered({10: 1}, await given_anew(queue), "delivered")


@check("OFF-32", crossed=AMONG)
@pytest.mark.parametrize("reset", ["earliest", "latest"])
async def test_alter_to_uninitialised(env: Env, judge: Judge, reset: str) -> None:
    queue = await _used(env)
    await env.admin.group_config(queue.group, {"share.auto.offset.reset": reset})
    await _alter(judge, queue, -1)

    if reset == "earliest":
        judge.delivered(
            dict.fromkeys(range(11), 1), await given_anew(queue), "delivered by earliest"
        )
        return
    begins = min(await begun_by_latest(queue))
    late = begins is not None and begins >= 10
    judge.holds(late, f"delivery by latest began at {begins}, the end was at 10")


@check("OFF-33", fast=True, crossed=(BESIDE, RELOADED))
async def test_alter_needs_an_empty_group(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10, batches=10)
    await consumer.acked(accept(0, 2))
    before = await queue.offsets()

    response = await env.admin.alter_offset(queue.group, queue.topic, env.rng.randint(0, 9))

    code = response.error_code or max(_codes(response).values(), default=0)
    judge.equal(ErrorCode.NON_EMPTY_GROUP, code, "error of the alteration")
    judge.equal(before, await queue.offsets(), "what the admin sees afterwards")
    judge_done(judge, await consumer.ack(accept(3, 9)), "settling what was held all the time")
    sentinel, rest = await up_to_new(queue, consumer)
    judge.equal([sentinel], rest.offsets, "delivered afterwards")


@check("OFF-36", crossed=RELOADED)
async def test_alter_one_partition(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=6, partitions=2)
    await queue.produce(6, 1)
    for index in (0, 1):
        consumer = await queue.holder(6, index)
        await consumer.acked(accept(0, 3), release(4, 5))
        await consumer.depart()
    await _alter(judge, queue, 0)

    altered, other = await given_anew(queue, 0), await given_anew(queue, 1, join=False)

    judge.delivered(dict.fromkeys(range(7), 1), altered, "the altered partition")
    judge.delivered({4: 2, 5: 2, 6: 1}, other, "the other partition")


@check("OFF-38", crossed=RELOADED)
@pytest.mark.parametrize("closed", [False, True], ids=["session open", "connection open"])
async def test_alter_holds_at_once(env: Env, judge: Judge, closed: bool) -> None:
    queue, former = await env.with_holder(10, batches=10)
    await former.acked(accept(0, 4), release(5, 9))
    # For the group this member is gone, as one that was paused too long; its connection is not.
    await former.member.leave()
    if closed:
        await former.close()
    to = env.rng.randint(0, 4)
    await _alter(judge, queue, to)

    counts = await given_anew(queue)

    expected = dict.fromkeys(range(to, 11), 1)
    judge.delivered(expected, counts, f"delivered to a new member, altered to {to}")


@check("OFF-39", crossed=RELOADED)
async def test_alter_below_the_log(env: Env, judge: Judge) -> None:
    queue = await _used(env)
    start = env.rng.randint(3, 8)
    await env.admin.delete_records(queue.topic, start)
    await _alter(judge, queue, env.rng.randint(0, start - 1))

    counts = await given_anew(queue)

    judge.delivered(dict.fromkeys(range(start, 11), 1), counts, f"delivered from {start} on")
