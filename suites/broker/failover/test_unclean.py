"""A log that got shorter than what was consumed: the price of an unclean election."""

from suites.broker.failover.cluster import FailoverCluster
from suites.broker.kit import *


@check("COO-32", meets="reload", timeout=120)
async def test_log_shorter_than_the_start_offset(stage: FailoverCluster, judge: Judge) -> None:
    third = await stage.cluster.active_controller()
    ahead, behind = (node for node in stage.nodes if node != third)
    config = {"unclean.leader.election.enable": "true"}
    queue = await stage.queue(ahead, behind, topic_config=config)
    await queue.produce(5)
    consumer = await queue.holder(5)
    await consumer.acked(accept(0, 4))

    await stage.stop(behind)
    await queue.produce(20)
    await consumer.acquire(20)
    await consumer.acked(accept(5, 24))
    await stage.stop(ahead)
    await stage.start(behind)

    queue = await located(queue)
    first = await append(queue, 30)
    last = first + 29
    if queue.topic.leaders[0] != behind or not first < 25 < last:
        raise Undecided(f"the log was not cut: the next offset is {first}")
    # What is new reaches beyond the old start offset, so that a group which waits there goes on.
    seen = await ReconnectingConsumer(queue).take([last])
    missing = sorted(set(range(first, last + 1)) - seen.keys())
    judge.equal([], missing, f"new records never delivered, the log cut to {first}")
