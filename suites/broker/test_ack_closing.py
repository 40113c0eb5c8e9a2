"""Acknowledgements in the request that closes the share session."""

from suites.broker.kit import *

COUNT = 10


async def judge_rest(
    judge: Judge,
    queue: Queue,
    consumer: Consumer,
    response: Response,
    rest: set[int],
) -> None:
    """Demand that a closing request succeeds, and that exactly ``rest`` is available after it."""
    judge_done(judge, result_in(response, consumer), "result in the closing request")
    judge.equal([], response.offsets, "records acquired by the closing request")
    heir = await queue.consumer(join=False)
    # Delivery counts are another rule's.
    if (catch := await heir.take(len(rest))).has(len(rest)):
        in_time(consumer.session.made, catch.responses[-1].lock_ms)
    free = set(catch.counts)
    free |= (await next_catch(queue, heir)).counts.keys()
    judge.equal(sorted(rest), sorted(free), "records that another member gets after it")
    judge.saw(freed=len(rest))


@check("SES-14", fast=True, crossed=(BESIDE, BEHIND))
async def test_closing_fetch(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(COUNT)
    cut = env.rng.randint(3, 6)
    fresh = await queue.produce(2)
    batches = (accept(1, cut - 1), reject(cut), release(cut + 1))
    response = await consumer.fetch(*batches, epoch=CLOSE)
    rest = {0, *range(cut + 1, COUNT), fresh, fresh + 1}
    await judge_rest(judge, queue, consumer, response, rest)


@check("ACK-58", crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize("by_fetch", [False, True], ids=["acknowledge", "fetch"])
async def test_refused_while_closing(env: Env, judge: Judge, by_fetch: bool) -> None:
    queue, consumer = await env.with_holder(COUNT)
    await consumer.acked(accept(5))
    # If a part of it were done all the same, which ACK-37 forbids, that would be let go of, too.
    bad = env.rng.choice([release(1, 5), Ack(1, 2, (33,))])
    close = consumer.fetch(bad, epoch=CLOSE) if by_fetch else consumer.close(bad)
    if (told := result_in(await close, consumer)) in {"NONE", LEFT_OUT}:
        raise Undecided(f"{bad} in the closing request was answered {told}")
    rest = set(range(COUNT)) - {5}
    free = (await (await queue.consumer(join=False)).take(rest)).counts.keys()
    judge.equal(sorted(rest), sorted(rest & free), "records that another member gets after it")
    judge.saw(freed=len(rest))


@check("ACK-58")
async def test_refused_in_one_of_three_while_closing(env: Env, judge: Judge) -> None:
    several = await spread(env, 3, records=COUNT)
    await several.acknowledge(*([accept(5)] for _ in range(3)))
    bad = {several.where[env.rng.randrange(3)]: [release(1, 5)]}
    closed = await several.session.close(bad, by_fetch=env.rng.random() < 0.5)
    if {*several.results(closed)} <= {"NONE", LEFT_OUT}:
        raise Undecided("the acknowledgement in the closing request was not refused")
    rest = set(range(COUNT)) - {5}
    for index in range(3):
        other = await several.queue.consumer(index, join=False)
        free = rest & (await other.take(rest)).counts.keys()
        judge.equal(sorted(rest), sorted(free), f"records of partition {index} that are free")
