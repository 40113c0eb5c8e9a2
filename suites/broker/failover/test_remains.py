"""What deleted groups leave in the log of a coordinator, and whether it can be loaded."""

from fixtures.clients.configs import configure_topic
from suites.broker.failover.cluster import OFFSETS, FailoverCluster
from suites.broker.failover.roles import Pulse
from suites.broker.kit import *

EAGER = {"segment.ms": "50", "min.cleanable.dirty.ratio": "0.0"}
"""Topic configs that let the cleaner work at once on all but the newest records."""


@check("COO-05", timeout=120)
async def test_remains_can_be_loaded(stage: FailoverCluster, judge: Judge) -> None:
    home, other = stage.nodes[:2]
    kept = await stage.queue(*stage.nodes, group=home)
    await kept.produce(3)
    consumer = await kept.consumer()
    log = await stage.cluster.topic(OFFSETS)
    partition = partition_of(kept.group, len(log.leaders))
    await configure_topic(stage.cluster, OFFSETS, EAGER)
    try:
        for group_too in (True, False):  # of one the group goes first, of the other the topic alone
            queue = await stage.queue(*stage.nodes, group=home)
            await (await queue.consumer()).member.leave()
            if group_too:
                await delete_group(stage.env, queue.group)
            await stage.env.admin.delete_topics(queue.topic.name)
        async for _ in attempts(CLEANED_WITHIN):
            # The newest segment is left alone, so that what was deleted needs something behind it.
            await stage.env.member(kept.group, kept.topic)
            await good_beat(consumer.member)
            offsets = data_offsets(await read_log(stage.env, log, partition))
            if offsets and (holes := max(offsets) + 1 - len(offsets)):
                break
        else:
            raise Undecided(f"nothing was removed from {log.name}-{partition}")
    finally:
        await configure_topic(stage.cluster, OFFSETS, dict.fromkeys(EAGER))

    pulse = await Pulse.of(stage, consumer.member)
    await stage.led_by(OFFSETS, partition, other)
    await stage.led_by(OFFSETS, partition, home)

    response = await pulse.beat()
    judge.equal("NONE", error_name(response.error_code), "heartbeat after the load")
    await consumer.acquire(3)
    judge.equal("NONE", result(await consumer.ack(accept(0, 2))), "ACCEPT after the load")
    fresh = await stage.queue(*stage.nodes, group=home)
    await fresh.produce(3)
    caught = await (await fresh.consumer()).acquire(3)
    judge.equal([0, 1, 2], caught.offsets, "delivered to a new group after the load")
    judge.saw(removed=holes)
