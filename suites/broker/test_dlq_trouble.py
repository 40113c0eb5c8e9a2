"""Dead letters that cannot be written, or not at once, or not in one piece.

What a broker does its best for and does not promise is counted, not judged: how many letters of how
many rejected records were there in the end.
"""

from suites.broker.kit import *

pytestmark = pytest.mark.feature("dead-letters")

TROUBLES: Mapping[str, Mapping[str, str]] = {
    "too-few-in-sync": {"min.insync.replicas": "2"},
    "letters-too-large": {"max.message.bytes": "60"},
    "keys-demanded": {"cleanup.policy": "compact"},
}
"""Configurations with which a topic refuses every letter."""

SIZE = 10


async def _reject_all(consumer: Consumer, size: int) -> None:
    """Acquire the first records of a queue and reject them, one acknowledgement for each."""
    await consumer.acquire(size)
    await consumer.acked(*(reject(offset) for offset in range(size)))


@check("DLQ-35", fast=True, crossed=AMONG, timeout=120)
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_letters_refused(env: Env, judge: Judge, trouble: str) -> None:
    box = await boxed(env, SIZE, dead=await dead_topic(env, configs=TROUBLES[trouble]))
    consumer = await box.queue.consumer()
    await _reject_all(consumer, SIZE)

    # Some of these errors pass elsewhere, and no KIP says how long letters are tried again.
    start = await beyond(judge, box.queue, consumer, SIZE, 3 * WITHIN)
    judge.holds(start >= SIZE, f"the start offset stays at {start} of {SIZE}")
    written = len(letter_offsets(await box.letters()))
    judge.saw(rejected=SIZE, letters_written=written, letters_lost=SIZE - written)


@check("DLQ-44", feature="group-lock-limit", meets=ACROSS_BATCHES, timeout=120)
async def test_window_full_of_letters(env: Env, judge: Judge) -> None:
    dead = await dead_topic(env, configs=TROUBLES["too-few-in-sync"])
    window, behind = 100, 5
    config = {"share.partition.max.record.locks": str(window)}
    box = await boxed(env, window + behind, batches=21, dead=dead, group_config=config)
    consumer, rest = await box.queue.consumer(), [*range(window, window + behind)]
    if (await consumer.acquire(window)).has(rest[:1]):
        raise Undecided("the window is larger than the group's limit")
    await consumer.acked(reject(0, window - 1))

    came = (await consumer.take(rest, 3 * WITHIN)).offsets
    judge.equal([], sorted({*rest} - {*came}), "lost behind a window whose letters are refused")


@check("DLQ-36", fast=True, meets=ACROSS_BATCHES)
@pytest.mark.parametrize("copy", [False, True], ids=["plain", "copy"])
async def test_hundreds_at_once(env: Env, judge: Judge, copy: bool) -> None:
    size, limit = await in_window(env, 500), 10_000
    dead = await dead_topic(env, configs={"max.message.bytes": str(limit)})
    box = await boxed(env, dead=dead, copy=copy)
    values = [b"%d " % number + bytes(200) for number in range(size)]
    await box.queue.produce(values, batches=3)
    consumer = await box.queue.holder(size)
    await consumer.acked(reject(0, size - 1))

    letters = await box.arrived(range(size))
    judge.equal(list(range(size)), letter_offsets(letters), "rejected and written")
    sizes = [batch.size for batch in await read_log(env, dead)]
    judge.holds(max(sizes) <= limit, f"a batch of {max(sizes)} bytes, {limit} allowed")
    judge.saw(letters=len(letters), batches=len(sizes))


@check("DLQ-42", fast=True, crossed=AMONG)
async def test_one_letter_too_large(env: Env, judge: Judge) -> None:
    dead = await dead_topic(env, configs={"max.message.bytes": "2000"})
    box = await boxed(env, dead=dead, copy=True)
    large = env.rng.randint(1, SIZE - 2)
    await box.queue.produce([bytes(5000 if o == large else 10) for o in range(SIZE)])
    consumer = await box.queue.holder(SIZE)
    await consumer.acked(reject(0, SIZE - 1))

    letters = await box.complete(consumer, SIZE)
    missing = sorted({*range(SIZE)} - {large, *letter_offsets(letters)})
    judge.equal([], missing, f"small letters lost beside a large one about {large}")


async def _second_box(env: Env, queue: Queue, dead: Topic) -> DeadLetterSetup:
    return DeadLetterSetup(await env.sibling(queue, **naming(dead.name)), dead)


@check("DLQ-37")
@pytest.mark.parametrize("trouble", [*TROUBLES, "missing"])
async def test_trouble_of_one_group(env: Env, judge: Judge, trouble: str) -> None:
    name = await dead_name(env)
    if trouble != "missing":
        await dead_topic(env, configs=TROUBLES[trouble], name=name)
    troubled = await env.queue(50, batches=50, group_config=naming(name))
    box = await _second_box(env, troubled, await dead_topic(env))
    first, second = await troubled.consumer(), await box.queue.consumer()
    await first.acquire(50)
    await second.acquire(50)
    for offset in range(0, 50, 5):
        await first.acked(*(reject(o) for o in range(offset, offset + 5)))
        part = await second.ack(*(reject(o) for o in range(offset, offset + 5)))
        judge.equal(0, lasting(part.ack_error), f"error of rejecting in the other group, {trouble}")
    letters = await box.arrived(range(50))
    judge.equal(list(range(50)), letter_offsets(letters), f"rejected and written, {trouble}")
    await judge_beyond(judge, box.queue, second, 50, again=GIVEN_AGAIN)
    judge.saw(letters=len(letters), failing_letters=50)


@check("DLQ-38", fast=True, crossed=AMONG, timeout=120)
async def test_topic_deleted(env: Env, judge: Judge) -> None:
    box = await boxed(env, SIZE)
    consumer = await box.queue.holder(SIZE)
    await consumer.acked(reject(0, 4))
    await box.arrived(range(5))
    deleting = asyncio.create_task(env.admin.delete_topics(box.topic.name))
    await consumer.acked(*(reject(offset) for offset in range(5, SIZE)))
    await deleting

    await judge_beyond(judge, box.queue, consumer, SIZE, within=3 * WITHIN)


@check("DLQ-34", crossed=AMONG)
async def test_topic_moves(env: Env, judge: Judge) -> None:
    pair = two_brokers(env)
    rounds, each = 6, 20
    size = rounds * each
    box = await boxed(env, size, batches=size, dead=await dead_topic(env, assignments=[pair]))
    consumer = await box.queue.holder(size)
    for number in range(rounds):
        moving = asyncio.create_task(env.admin.move_leader(box.topic, pair[(number + 1) % 2]))
        for offset in range(number * each, (number + 1) * each):
            await consumer.acked(reject(offset))
        box = replace(box, topic=await moving)

    lost = sorted(set(range(size)) - set(letter_offsets(await box.arrived(range(size)))))
    judge.saw(rejected=size, letters_lost=len(lost), moves=rounds)
    judge.equal([], lost, f"letters lost of {size}, the topic moving {rounds} times")


@check("DLQ-39", fast=True, meets="start inside a batch")
async def test_topic_of_its_own_letters(env: Env, judge: Judge) -> None:
    own = await dead_topic(env)
    queue = Queue(env=env, topic=own, group=env.cluster.fresh_name("g"))
    configs = naming(own.name, copy=True) | {"share.auto.offset.reset": "earliest"}
    await env.admin.group_config(queue.group, configs)
    await queue.produce(5)
    await env.admin.delete_records(own, 2)
    consumer = await queue.consumer()
    rejected = 0
    for last in (4, 7, 10):
        catch = await consumer.drain(until=last)
        await consumer.acked(*(reject(offset) for offset in catch.offsets))
        rejected += len(catch.offsets)
    rest = await consumer.drain(until=13)
    await consumer.acked(*(accept(offset) for offset in rest.offsets))
    await judge_beyond(judge, queue, consumer, 14, again=GIVEN_AGAIN)
    judge.saw(rejected=rejected)


@check("DLQ-40", fast=True, crossed=AMONG)
async def test_letters_of_letters(env: Env, judge: Judge) -> None:
    first = await boxed(env, 3, batches=3, copy=True)
    consumer = await first.queue.consumer()
    await _reject_all(consumer, 3)
    await first.due(range(3))
    of_letters = replace(first.queue, topic=first.topic)
    second = await _second_box(env, of_letters, await dead_topic(env))
    reader = await second.queue.consumer()
    await _reject_all(reader, 3)

    await second.arrived(range(3))
    if len(letters := await second.letters()) < 3:
        raise Undecided(f"{len(letters)} letters of 3 came, which is DLQ-01's matter")
    expected = {(first.topic.name, "0", str(o), second.queue.group) for o in range(3)}
    judge.equal(expected, {letter.source for letter in letters}, "sources of the second letters")
