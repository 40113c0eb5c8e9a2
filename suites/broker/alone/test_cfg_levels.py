"""The two levels of share.version that a cluster of 4.4 may have (KIP-1191 §Compatibility)."""

from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *

STORABLE = {0, 2, 4}  # Delivery states that a broker without dead letters can load.


async def _stored(*queues: Queue) -> set[int]:
    states = [await read_state(queue) for queue in queues]
    return {batch.delivery_state for state in states for batch in state.state_batches}


async def _settle(judge: Judge, *steps: tuple[Consumer, int], at: int) -> None:
    """Reject an offset for each consumer, over the session that each has had all along."""
    for one, offset in steps:
        part = await poll(partial(one.ack, reject(offset)), lambda p: p.ack_error not in RETRIABLE)
        judge.equal("NONE", error_name(part.ack_error), f"response to a rejection at level {at}")


@check("CFG-22", "CFG-23", feature="dead-letters", timeout=120)
async def test_dead_letters_come_with_level_two(lone: SingleBroker, judge: Judge) -> None:
    box = await boxed(lone.env, 6, lock_ms=60_000)
    plain = await lone.env.sibling(box.queue)
    asking, silent = await box.queue.consumer(), await plain.consumer()
    for consumer in (asking, silent):
        await consumer.acquire(6)
    await asking.acked(reject(1), accept(2))
    await box.arrived([1])

    if code := await lone.set_level(1):
        judge["CFG-23"].holds(True, f"lowering share.version is refused with {error_name(code)}")
        raise OutOfReach("share.version cannot be lowered to 1, so neither raised from there")
    # What was archiving when the level fell is archived a moment later.
    states = await poll(lambda: _stored(box.queue, plain), lambda seen: seen <= STORABLE)
    judge["CFG-23"].holds(states <= STORABLE, f"states {states} are stored at level 1")

    await _settle(judge["CFG-22"], (asking, 3), (silent, 3), at=1)
    require_ok("raising share.version to 2", await lone.set_level(2))
    await lone.env.admin.in_force()
    await _settle(judge["CFG-22"], (asking, 4), (silent, 4), at=2)
    letters = await box.arrived([4], WITHIN)
    judge["CFG-22"].equal(
        [1, 4], letter_offsets(letters), "source offsets of the asking group's letters"
    )
    others = [letter for letter in await box.letters() if letter not in letters]
    judge["CFG-22"].equal([], others, "letters of the group that did not ask")
    fresh = await box.queue.produce(1)
    for consumer in (asking, silent):
        came = (await consumer.take([fresh])).has([fresh])
        judge["CFG-22"].holds(came, f"{fresh}, produced at level 2, did not come")


@check("DLQ-17", feature="dead-letters", timeout=180)
async def test_no_letters_below_level_two(lone: SingleBroker, judge: Judge) -> None:
    dead = await dead_topic(lone.env)
    if code := await lone.set_level(1):
        raise OutOfReach(f"share.version cannot be lowered to 1: {error_name(code)}")
    config = naming(dead.name) | {DELIVERY_LIMIT: "2"}
    queue = await lone.env.queue(5, group_config=config)
    consumer = await held_at(queue, 5, 2)
    await consumer.acked(reject(0, 1), accept(2), reject(3), release(4))

    await judge_beyond(judge, queue, consumer, 5, "5 settled", again=GIVEN_AGAIN)
    # One that is owed by now shows where the others would be.
    require_ok("raising share.version to 2", await lone.set_level(2))
    await lone.env.admin.in_force()
    box, owed = DeadLetterSetup(queue, dead), await queue.produce(1)
    await consumer.drain(until=owed)
    await consumer.acked(reject(owed))
    await box.due([owed])
    judge.equal([owed], letter_offsets(await box.letters()), "offsets of dead letters")
