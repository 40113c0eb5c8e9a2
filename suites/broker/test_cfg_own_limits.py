"""The group keys of KIP-1240: their bounds, and that each value does what it says."""

from fixtures.clients.configs import describe_group
from suites.broker.kit import *

LIMIT = "share.delivery.count.limit"
WINDOW = "share.partition.max.record.locks"
RENEW = "share.renew.acknowledge.enable"


@check("CFG-19", feature="group-delivery-limit", fast=True)
async def test_bounds(env: Env, judge: Judge) -> None:
    broker = await broker_values(env)
    group = env.cluster.fresh_name("g")
    keys = table(env, Scope.GROUP)
    for name in (LIMIT, WINDOW):
        limits = bounds(keys[name], broker)
        values = [(str(limits.low), "NONE"), (str(limits.high), "NONE")]
        values += [(value, ErrorCode.INVALID_CONFIG.name) for value in limits.beyond]
        for value, expected in values:
            response = await env.admin.try_group_config(group, {name: value})
            judge.equal(expected, error_name(response.error_code), f"response to {name}={value}")
        await env.admin.group_config(group, {name: str(limits.high)})
    for value in ("false", "true"):
        await env.admin.group_config(group, {RENEW: value})
        judge.equal(value, (await describe_group(env.cluster, group))[RENEW], f"{RENEW} shown")


@check("CFG-19", feature="group-delivery-limit")
async def test_effects(env: Env, judge: Judge) -> None:
    broker = await broker_values(env)
    keys = table(env, Scope.GROUP)
    limit, window = (bounds(keys[name], broker).low for name in (LIMIT, WINDOW))
    configs = {LIMIT: str(limit), WINDOW: str(window), RENEW: "false"}
    _, consumer = await env.with_consumer(window + 20, batches=window + 20, group_config=configs)

    held = await consumer.acquire(window, max_records=window + 20)
    more = consumer.sound(await consumer.fetch(max_wait_ms=200)).offsets
    seen = sorted({*held.offsets, *more})
    judge.equal(list(range(window)), seen, f"offsets held with {WINDOW}={window}")

    part = await consumer.ack(renew(0), is_renew_ack=True)
    judge.holds(part.ack_error, f"a renewal succeeds with {RENEW}=false")

    for delivery in range(1, limit):
        await consumer.acked(release(0))
        await hold_at(consumer, 1, delivery + 1)
    await consumer.acked(release(0))
    # With the first record given up there is room for one behind the window.
    came = await consumer.acquire(1, max_records=1)
    judge.delivered({window: 1}, came.counts, f"delivered behind {limit} deliveries of offset 0")
