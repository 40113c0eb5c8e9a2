"""Group values that were fine when they were set, under a broker with narrower bounds."""

from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *

STORED_VALUES = {
    "share.record.lock.duration.ms": "50000",
    "share.heartbeat.interval.ms": "14000",
    "share.delivery.count.limit": "9",
    "share.partition.max.record.locks": "110",
}
NARROWED = {
    "group.share.max.record.lock.duration.ms": "40000",
    "group.share.max.heartbeat.interval.ms": "9000",
    "group.share.max.delivery.count.limit": "5",
    "group.share.delivery.count.limit": "3",
    "group.share.min.partition.max.record.locks": "120",
}


@check("CFG-16", timeout=90)
async def test_stored_values_are_clamped(lone: SingleBroker, judge: Judge) -> None:
    share = lone.share
    queue = await share.queue(130, batches=130, group_config=STORED_VALUES)
    short = await share.queue(1, group_config={"share.delivery.count.limit": "9"})
    await lone.restart(NARROWED)

    topic = await share.admin.create_topic()
    member = await share.member(queue.group)
    response = await member.join(topic)
    session = await member.session(topic.leaders[0])
    fetched = await session.fetch((topic, 0), max_wait_ms=0)
    told = fetched.lock_ms, int(response.heartbeat_interval_ms)
    judge.equal((40_000, 9000), told, "ms of lock and of heartbeat in force")
    consumer = await queue.consumer()
    held = await consumer.acquire(120, max_records=1000)
    more = await consumer.fetch(max_wait_ms=200)
    seen = sorted({*held.offsets, *more.offsets})
    judge.equal(list(range(120)), seen, "offsets in flight at once, at least 120 now")

    limited = await held_at(short, 1, 5)
    await limited.acked(release(0))
    alone, came = await sentinel_only(short, limited)
    judge.equal(alone, came.offsets, "offsets delivered after 5 deliveries, 9 stored")
