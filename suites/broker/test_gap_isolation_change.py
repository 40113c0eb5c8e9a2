"""share.isolation.level changed while a group is at work.

``reconfigure`` waits until the partition's leader goes by the new configs, not only describes them.
"""

from suites.broker.kit import *

pytestmark = pytest.mark.feature("isolation-level")


async def _change(queue: Queue, consumer: Consumer, to: dict[str, str]) -> None:
    # A lock that tells the changed configs from those before; long, for it is not the subject.
    await reconfigure(queue, consumer, queue.env.bounds.longest_lock, **to)


@check("GAP-16", fast=True, crossed=AMONG)
async def test_to_committed(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=1)
    before = await aborted(queue, 2)
    consumer = await queue.consumer()
    seen = await consumer.acquire(before.stop - 1)
    if not set(before) <= set(seen.offsets):
        raise Undecided(f"only {seen.offsets} came before the change")
    after = {*await aborted(queue, 2)}
    await _change(queue, consumer, COMMITTED)

    # Records around them, so that a range that is too wide would take them along.
    await queue.produce(1)
    after |= {*await aborted(queue, env.rng.randint(1, 4))}
    caught = await next_catch(queue, consumer)
    judge.equal(set(), after & set(caught.offsets), "aborted offsets acquired")
    judge.saw(aborted=len(after))


@check("GAP-17", crossed=AMONG)
@pytest.mark.parametrize("finish", [accept, release, reject], ids=["accept", "release", "reject"])
async def test_held_across_the_change(
    env: Env, judge: Judge, finish: Callable[[int, int], Ack]
) -> None:
    queue = await env.queue(records=1)
    dead = await aborted(queue, 3)
    consumer = await queue.consumer()
    await consumer.acquire(dead.stop)
    await _change(queue, consumer, COMMITTED)

    # Offset 0 stays held, so that the response is about these records.
    judge_done(judge, await consumer.ack(finish(dead.start, dead.stop - 1)), finish.__name__)
    if finish is not release:
        again = set(dead) & (await next_catch(queue, consumer)).counts.keys()
        judge.equal(set(), again, "settled records that came again")


@check("GAP-18", crossed=AMONG)
async def test_aborted_do_not_come_back(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=1, group_config=COMMITTED)
    dead = await aborted(queue, env.rng.randint(2, 5))
    last = await queue.produce(1)
    consumer = await queue.consumer()
    if early := set(dead) & (await consumer.drain(until=last)).counts.keys():
        raise Undecided(f"aborted offsets {early} were acquired under read_committed")
    await _change(queue, consumer, UNCOMMITTED)

    later = await aborted(queue, 1)
    caught = await next_catch(queue, consumer)
    judge.equal(set(), set(dead) & set(caught.offsets), "aborted records that came back")
    # That the change is in force shows in an aborted record that was not passed over before it.
    if later.start not in caught.counts:
        raise Undecided(f"{later.start}, aborted after the change, did not come either")
    await consumer.close()
    stranger = await queue.consumer(join=False)
    back = set(dead) & (await next_catch(queue, stranger)).counts.keys()
    judge.equal(set(), back, "aborted records that came back to another member")


@check("GAP-19", crossed=AMONG)
@pytest.mark.parametrize("to", [COMMITTED, UNCOMMITTED], ids=["to-committed", "to-uncommitted"])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_released_around_the_change(
    env: Env, judge: Judge, to: dict[str, str], when: str
) -> None:
    begin = UNCOMMITTED if to == COMMITTED else COMMITTED
    queue = await env.queue(records=1, group_config=begin)
    good = await committed(queue, env.rng.randint(1, 4))
    consumer = await queue.consumer()
    await consumer.acquire(good.stop)
    freed = release(good.start, good.stop - 1)
    if when == "before":
        await consumer.acked(freed)
        await _change(queue, consumer, to)
    else:
        await _change(queue, consumer, to)
        await consumer.acked(freed)

    caught = await next_catch(queue, consumer)
    counts = {o: min(2, caught.counts[o]) for o in good if o in caught.counts}
    what = "counts of what was released, where any higher one is 2"
    await judge_counted(env, judge, dict.fromkeys(good, 2), counts, what)
