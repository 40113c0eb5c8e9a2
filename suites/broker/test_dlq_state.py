"""The two phases of a dead letter: archiving while it is written, archived afterwards."""

from fixtures.clients.deadletters import DeadLetter
from fixtures.proxies.broker_proxies import Direction, FrameRule
from suites.broker.brokers import STATE_WRITES, Proxied
from suites.broker.kit import *

pytestmark = pytest.mark.feature("dead-letters")


@check("DLQ-30", "DLQ-31", fast=True, crossed=AMONG)
async def test_what_is_stored(env: Env, judge: Judge) -> None:
    box = await boxed(env, 8, batches=env.rng.choice([1, 8]))
    trail = await StateKey(env, box.queue.group, box.queue.topic.id).trail()
    rejected = sorted(env.rng.sample(range(8), k=env.rng.randint(1, 8)))
    consumer = await box.queue.holder(8)
    await consumer.acked(*(reject(o) if o in rejected else accept(o) for o in range(8)))
    await box.arrived(rejected)
    await judge_beyond(judge["DLQ-31"], box.queue, consumer, 8, again=GIVEN_AGAIN)

    history = [
        (
            record.value.start_offset,
            {
                offset: batch.state
                for batch in batches_of(record.value)
                for offset in range(batch.first, batch.last + 1)
            },
        )
        for record in await trail.records()
        if record.value is not None
    ]
    if not history:
        raise Undecided("the state topic holds nothing of the group")
    for offset in rejected:
        stages = [states[offset] for _, states in history if offset in states]
        once = [s for s, before in zip(stages, [-1, *stages], strict=False) if s != before]
        # What the start offset has passed is archived, too (KIP-932 §In-flight records).
        told = f"stored states of offset {offset}: {once}"
        judge["DLQ-30"].holds(once in ([ARCHIVING], [ARCHIVING, ARCHIVED]), told)
        until = next((i for i, (_, s) in enumerate(history) if s.get(offset) == ARCHIVED), 0)
        starts = [first for first, _ in history[:until]]
        passed = [first for first in starts if first > offset]
        judge["DLQ-31"].equal([], passed, f"start offsets beyond {offset} while it was archiving")
    judge["DLQ-30"].saw(letters=len(rejected), stored_records=len(history))


@check("DLQ-32", fast=True, crossed=AMONG)
async def test_next_leader_finishes(env: Env, judge: Judge) -> None:
    box = await boxed(env, 6, batches=6)
    consumer = await box.queue.consumer()
    # The first fetch loads the share-partition; this is how a dead leader would have left it.
    await write_state(box.queue, 0, [(0, 1, ARCHIVING, 1), (3, 3, ARCHIVING, 2)])

    sentinel, catch = await up_to_new(box.queue, consumer)
    judge.equal([2, 4, 5, sentinel], catch.offsets, "offered by the next leader")
    await consumer.acked(*(accept(offset) for offset in catch.offsets))
    without = {0, 1, 3} - set(letter_offsets(await box.arrived([0, 1, 3])))
    judge.equal(set(), without, "archiving offsets without a letter")
    await judge_beyond(judge, box.queue, consumer, sentinel)


async def _movable(env: Env, records: int, *, batches: int = 1) -> DeadLetterSetup:
    dead = await dead_topic(env)
    queue = await replicated(env, 0, group_config=naming(dead.name))
    await queue.produce(records, batches=batches)
    return DeadLetterSetup(queue, dead)


@check("DLQ-32", "DLQ-33", crossed=AMONG)
async def test_leader_moves_meanwhile(env: Env, judge: Judge) -> None:
    size = 200
    box = await _movable(env, size, batches=10)
    consumer = await box.queue.holder(size)
    rejected = range(0, size, 2)
    await consumer.acked(*((accept if o % 2 else reject)(o) for o in range(size)))

    box = DeadLetterSetup(await moved(box.queue), box.topic)
    heir = await box.queue.consumer(join=False)
    sentinel = await box.queue.produce(1)
    async for _ in attempts():
        response = await heir.fetch()
        again = [offset for offset in response.offsets if offset < size]
        judge["DLQ-32"].equal([], again, "settled offsets delivered by the next leader")
        if sentinel in response.offsets:
            break
    await heir.acked(accept(sentinel))
    without = sorted(set(rejected) - set(letter_offsets(await box.arrived(rejected))))
    judge["DLQ-32"].equal([], without, "rejected offsets without a letter")
    await judge_beyond(judge["DLQ-32"], box.queue, heir, sentinel)
    _judge_repeats(judge["DLQ-33"], box, await box.letters(), set(rejected))


@check("DLQ-33", fast=True, crossed=AMONG)
async def test_written_twice(env: Env, judge: Judge) -> None:
    box = await _movable(env, 4, batches=4)
    consumer = await box.queue.holder(4)
    await consumer.acked(reject(1, 3))
    await box.due([1, 2, 3])
    # Offset 0 is held, so that the start offset stays and the state of the others is still told.
    # The higher count makes this the later word on them.
    await write_state(box.queue, 0, [(1, 3, ARCHIVING, 2)])
    box = DeadLetterSetup(await moved(box.queue), box.topic)
    heir = await box.queue.consumer(join=False)
    async for _ in attempts():
        await heir.fetch()
        if len(await box.letters()) >= 6:
            break
    _judge_repeats(judge, box, await box.letters(), {1, 2, 3})


def _judge_repeats(
    judge: Judge, box: DeadLetterSetup, letters: list[DeadLetter], offsets: set[int]
) -> None:
    """Demand that letters name the offsets' sources and no other, however often."""
    topic, group = box.queue.topic.name, box.queue.group
    expected = {(topic, "0", str(offset), group) for offset in offsets}
    times = Counter(letter.source for letter in letters)
    judge.equal(expected, set(times), "sources named by letters")
    judge.saw(letters=len(letters), repeated=sum(times.values()) - len(times))


@check("DLQ-43", meets=IDLE, solo={})
async def test_last_lock_ends_while_writes_fail(solo_env: Env, judge: Judge) -> None:
    env = solo_env
    lock_ms = env.bounds.lock(3000)
    box = await boxed(env, 4, lock_ms=lock_ms, group_config={DELIVERY_LIMIT: "2"})
    consumer = await box.queue.holder(4)
    await consumer.acked(release(0, 3))
    await consumer.acquire(4)
    await limit_state(env, "1")
    if (told := raw_result(await consumer.ack(reject(0)))) == NONE:
        raise Undecided("the state was to be refused, and a REJECT was answered with NONE")
    other = await box.queue.consumer(join=False)
    await linger(other, lock_ms / 1000 + 1)
    await limit_state(env, None)

    await judge_beyond(judge, box.queue, other, 4)
    letters = letter_offsets(await box.arrived(range(4)))
    judge.equal(list(range(4)), letters, f"offsets with a letter; a REJECT got {told}")


@check("DLQ-46", meets=IDLE, solo={}, timeout=120)
@pytest.mark.parametrize("way", ["rejected", "expired"])
async def test_emptied_while_letters_are_due(between: Proxied, judge: Judge, way: str) -> None:
    """The log is emptied after records became undeliverable, and before their state is stored."""
    env, window, due = between.env, 100, (1, 3)
    config = {"share.partition.max.record.locks": str(window), DELIVERY_LIMIT: "2"}
    lock_ms = env.bounds.lock(3000)
    box = await boxed(env, 10, batches=2, lock_ms=lock_ms, group_config=config)
    holder, other = await box.queue.consumer(), await box.queue.consumer(join=False)
    await holder.acquire(5, max_records=5)
    if way == "expired":
        await holder.acked(*((release if o in due else accept)(o) for o in range(5)))
        await holder.acquire(len(due), max_records=len(due))
    with between.state_writes_refused() as refused:
        # The leader repeats the write until it is stored, and settles the records only then.
        final = [holder.ack(*verdicts(5, due), timeout=2 * WITHIN)] if way == "rejected" else []
        pending = asyncio.gather(*final)
        await between.met(refused, 2 * WITHIN)
        await env.admin.delete_records(box.queue.topic, 10)
        # The leader learns of the log's start from a fetch that reads below it.
        await other.fetch(max_wait_ms=500)
    stored = FrameRule(apis=STATE_WRITES, direction=Direction.RESPONSE)
    with between.disturbed(stored):
        await between.met(stored, 2 * WITHIN)
    if (told := {result(part) for part in await pending}) - {NONE}:
        raise Undecided(f"an acknowledgement that could be stored in the end: {told}")

    came: list[int] = []
    for _ in range(3):
        last = await box.queue.produce(window // 2) + window // 2 - 1
        catch = await other.drain(until=last)
        await other.acked(*(accept(offset) for offset in catch.offsets))
        came += catch.offsets
    judge.equal([*range(10, 10 + 3 * window // 2)], came, "delivered behind them")
    judge.saw(due=len(due), letters=len(letter_offsets(await box.letters())))
