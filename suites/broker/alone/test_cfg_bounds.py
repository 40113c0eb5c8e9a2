"""Group values that were fine when they were set, under a broker with narrower bounds."""

from fixtures.clients.configs import describe_group
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
    # Above the default that Kafka ships with.
    "group.share.min.session.timeout.ms": "46000",
    "group.share.session.timeout.ms": "46000",
}
ALONE = {LOCK: "30000", HEARTBEAT: "8000", SESSION: "50000", DELIVERY_LIMIT: "4"}
"""Values that are good beside the broker's own of all other keys."""


@check("CFG-16", "CFG-33", feature="group-delivery-limit", timeout=90)
async def test_stored_values_are_clamped(lone: SingleBroker, judge: Judge) -> None:
    env = lone.env
    queue = await env.queue(130, batches=130, group_config=STORED_VALUES)
    short = await env.queue(1, group_config={"share.delivery.count.limit": "9"})
    await lone.restart(NARROWED)

    for key, value in ALONE.items():
        response = await env.admin.try_group_config(env.cluster.fresh_name("g"), {key: value})
        judge["CFG-33"].equal(NONE, error_name(response.error_code), f"altering {key} alone")
    topic = await env.admin.create_topic()
    member = await env.member(queue.group)
    response = await member.join(topic)
    session = await member.session(topic.leaders[0])
    fetched = Consumer.sound(await session.fetch((topic, 0), max_wait_ms=0))
    told = fetched.lock_ms, int(response.heartbeat_interval_ms)
    judge["CFG-16"].equal((40_000, 9000), told, "ms of lock and of heartbeat in force")
    consumer = await queue.consumer()
    held = await consumer.acquire(120, max_records=1000)
    more = await consumer.fetch(max_wait_ms=200)
    seen = sorted({*held.offsets, *more.offsets})
    judge["CFG-16"].equal(list(range(120)), seen, "offsets in flight at once, at least 120 now")

    limited = await held_at(short, 1, 5)
    await limited.acked(release(0))
    new, came = await up_to_new(short, limited)
    judge["CFG-16"].equal([new], came.offsets, "offsets delivered after 5 deliveries, 9 stored")


@check("CFG-32", timeout=90)
async def test_other_keys_can_be_altered(lone: SingleBroker, judge: Judge) -> None:
    group, other = lone.env.cluster.fresh_name("g"), "share.isolation.level"
    admin, alone = lone.env.admin, lone.env.cluster.fresh_name("g")
    await admin.group_config(group, STORED_VALUES)
    await admin.group_config(alone, {LOCK: STORED_VALUES[LOCK]})
    await lone.restart(NARROWED)

    response = await admin.try_group_config(alone, {LOCK: None})
    judge.equal(NONE, error_name(response.error_code), f"taking {LOCK} back")
    altering = await admin.try_group_config(group, {other: "read_committed"})
    await lone.restart({})  # until then the nearest bounds may be shown
    shown = await describe_group(lone.env.cluster, alone)
    judge.holds(shown.get(LOCK) != STORED_VALUES[LOCK], f"{LOCK} is as it was, taken back")
    shown = await describe_group(lone.env.cluster, group)
    kept = {name: shown.get(name) for name in STORED_VALUES}
    judge.equal(STORED_VALUES, kept, "stored values, within the bounds again")
    told = error_name(altering.error_code)
    judge.equal(NONE, told, f"altering {other}, beside a stored value that is out of bounds")
