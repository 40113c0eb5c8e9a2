"""State writes that come late: what was promised meanwhile holds, under the next leader, too.

A leader repeats a state write that failed for up to half a minute. Others are stored in between,
and what the client was told of those has to outlive the one that comes last.
"""

from suites.broker.failover.cluster import FailoverCluster
from suites.broker.failover.roles import short_of_replicas
from suites.broker.kit import *

RECORDS = 5
FAILING_FOR = 8.5  # Seconds in which a write fails that is to come late.


@check("COO-38", meets="reload", timeout=150)
async def test_late_write_of_an_acknowledgement(stage: FailoverCluster, judge: Judge) -> None:
    away = await stage.victim()
    leader, other = stage.env.rng.sample([n for n in stage.nodes if n != away], 2)
    queue = await stage.queue(leader, other, state=other, group=leader)
    await queue.produce(30, batches=30)
    one, two = await queue.consumer(), await queue.consumer(join=False)
    ten = {"max_records": 10, "batch_size": 1}
    first = (await one.acquire(10, **ten)).offsets
    second = (await two.acquire(10, **ten)).offsets
    third = (await one.acquire(10, **ten)).offsets
    if [*first, *second, *third] != list(range(30)):
        raise Undecided(f"acquired {first}, {second} and {third}")

    async with short_of_replicas(stage, away):
        late = asyncio.create_task(two.ack(accept(second[0], second[-1]), timeout=60.0))
        # A write that fails is tried again after about 1, 3, 7 and 15 seconds. Of these gaps the
        # last is long enough for two acknowledgements on a busy machine.
        await asyncio.wait({late}, timeout=FAILING_FOR)
    await one.acked(accept(first[0], first[-1]))
    await one.acked(accept(third[0], third[-1]))
    before = int((await read_state(queue)).start_offset)
    if late.done():
        raise Undecided("the write that was to be late was not")
    last = await late
    after = int((await read_state(queue)).start_offset)

    judge.holds(after >= before, f"the stored start offset went from {before} to {after}")
    await stage.led_by(queue.topic.name, 0, other)
    sentinel = await (await located(queue)).produce(1)
    seen = await ReconnectingConsumer(await located(queue)).take([sentinel])
    promised = {*first, *third, *(() if last.ack_error else second)}
    again = sorted(seen.keys() & promised)
    judge.equal([], again, "delivered again after an ACCEPT was answered NONE")
    judge.saw(accepted=len(promised))


@check("COO-37", meets="reload", timeout=90, moves=True)
@pytest.mark.parametrize("stored", [False, True], ids=["calm", "unanswered"])
async def test_release_after_an_acceptance_that_failed(
    stage: FailoverCluster, judge: Judge, stored: bool
) -> None:
    leader, other = stage.env.rng.sample(stage.nodes, 2)
    queue = await stage.queue(leader, other)
    await queue.produce(RECORDS)
    consumer = await queue.holder(RECORDS)
    if stored:
        # What is left of an ACCEPT whose state writes are carried out and whose answers are all
        # lost: the client is told that it failed, and has the records still.
        await write_state(queue, 0, [(1, 3, ACKNOWLEDGED, 1)])
    await consumer.acked(release(1, 3))

    await stage.led_by(queue.topic.name, 0, other)
    sentinel = await (await located(queue)).produce(1)
    seen = await ReconnectingConsumer(await located(queue)).take([sentinel])

    missing = sorted({1, 2, 3} - seen.keys())
    judge.equal([], missing, "never delivered after a RELEASE was answered NONE")
    judge.saw(released=3, acceptances_without_an_response=int(stored))
