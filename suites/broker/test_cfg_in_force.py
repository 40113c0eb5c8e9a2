"""Whose configuration is in force: the group's own or the broker's, from when on, and where."""

from fixtures.clients.configs import describe_group
from suites.broker.kit import *

Told = tuple[int, int]
"""Lock duration and heartbeat interval in ms, as a group's members are told them."""


async def _joined(queue: Queue) -> Member:
    return await queue.env.member(queue.group, queue.topic)


async def _told(queue: Queue, member: Member, partition: int = 0) -> Told:
    """Return what a member is told by a partition's leader and by the group coordinator."""
    session = await member.session(queue.topic.leaders[partition])
    named = ((queue.topic, partition),) if session.epoch == 0 else ()
    fetched = Consumer.sound(await session.fetch(*named, max_records=0, max_wait_ms=0))
    return fetched.lock_ms, int((await good_beat(member)).heartbeat_interval_ms)


async def _until_told(queue: Queue, member: Member, told: Told, partition: int = 0) -> Told:
    """Return the expected values, or what the member is still told after a while."""
    seen = await poll(lambda: _told(queue, member, partition), lambda seen: seen == told)
    if seen != told:
        node = queue.topic.leaders[partition]
        await demand_bystander(queue.env.cluster, node, f"{told} did not come into force")
    return seen


async def _broker_defaults(env: Env) -> Told:
    broker = await broker_values(env)
    return int(broker[f"group.{LOCK}"]), int(broker[f"group.{HEARTBEAT}"])


def _own(env: Env, *taken: int) -> tuple[Told, dict[str, str]]:
    """Return values that a group may have and nobody else has, and the configs that set them."""
    lock = env.bounds.locks.drawn(env.rng, 15_000, 40_000, taken)
    longest = min(14_000, env.bounds.sessions.default - 1)
    beat = env.bounds.heartbeats.drawn(env.rng, 500, longest, taken)
    return (lock, beat), {LOCK: str(lock), HEARTBEAT: str(beat)}


@check("CFG-13")
async def test_groups_do_not_share_values(env: Env, judge: Judge) -> None:
    default = await _broker_defaults(env)
    one, configs = _own(env, *default)
    two, others = _own(env, *default, *one)
    first = await env.queue(1, group_config=configs)
    second = await env.sibling(first, **others)
    queues = (first, second, await env.sibling(first))

    seen = [await _told(queue, await _joined(queue)) for queue in queues]
    judge.equal([one, two, default], seen, "lock and heartbeat of the three groups")


@check("CFG-13")
async def test_short_locks_are_one_groups(env: Env, judge: Judge) -> None:
    lock = env.bounds.short_lock
    short = await env.queue(1, lock_ms=lock)
    long = await env.sibling(short, **{LOCK: str(env.bounds.long_lock)})
    since = time.monotonic()
    for queue in (long, short):
        await (await queue.consumer()).acquire(1)
    other = await long.consumer(join=False)

    back = await watch(await short.consumer(join=False), [0], lock / 1000 + SLACK)
    still = other.sound(await other.fetch(max_wait_ms=0)).offsets
    in_time(since, env.bounds.long_lock)
    judge.equal(([0], []), (sorted(back), still), "offsets that came back in each group")


@check("CFG-14", fast=True)
async def test_change_reaches_every_broker(env: Env, judge: Judge) -> None:
    nodes = sorted(env.cluster.brokers)
    queue = await env.queue(assignments=[[node] for node in nodes])
    member = await _joined(queue)
    before = await _broker_defaults(env)
    for partition in queue.topic.partitions:
        await _until_told(queue, member, before, partition)

    after, configs = _own(env, *before)
    response = await env.admin.try_group_config(queue.group, configs)
    require_ok(f"configs of group {queue.group}", response.error_code)
    for partition, node in enumerate(nodes):
        seen = await _until_told(queue, member, after, partition)
        judge.equal(after, seen, f"lock and heartbeat with broker {node} leading")
        shown = await describe_group(env.cluster, queue.group, node)
        values = (int(shown[LOCK]), int(shown[HEARTBEAT]))
        judge.equal(after, values, f"configurations that broker {node} shows")


@check("CFG-15", fast=True)
async def test_removal_brings_the_default_back(env: Env, judge: Judge) -> None:
    default = await _broker_defaults(env)
    own, configs = _own(env, *default)
    queue = await env.queue(group_config=configs)
    member = await _joined(queue)
    if (told := await _until_told(queue, member, own)) != own:
        raise Undecided(f"lock and heartbeat in force are {told}, not {own}, as CFG-13 demands")

    await env.admin.group_config(queue.group, dict.fromkeys(configs))
    judge.equal(default, await _until_told(queue, member, default), "lock and heartbeat, removed")


@check("CFG-15", feature="group-delivery-limit", fast=True)
async def test_removal_brings_the_default_limit_back(env: Env, judge: Judge) -> None:
    config = table(env, Scope.GROUP).get(DELIVERY_LIMIT)
    if config is None:
        raise OutOfReach("groups of this release have no delivery limit of their own")
    lowest, default = bounds(config, await broker_values(env)).low, await delivery_limit(env)
    if lowest >= default:
        raise OutOfReach(f"no limit below the default of {default} is allowed")
    queue = await env.queue(1, group_config={DELIVERY_LIMIT: str(lowest)})
    consumer = await held_at(queue, 1, lowest)

    removed = {DELIVERY_LIMIT.replace(".", "_"): None}
    await reconfigure(queue, consumer, env.bounds.lock(29_000), **removed)
    await consumer.acked(release(0))
    catch = await consumer.drain(until=await queue.produce(1))

    judge.holds(0 in catch.counts, f"a record that a limit of {lowest} ends did not come again")


@check("CFG-17", fast=True)
async def test_configured_before_it_exists(env: Env, judge: Judge) -> None:
    default = await _broker_defaults(env)
    own, configs = _own(env, *default)
    queue = await env.queue(5, group_config={**configs, RESET: "earliest"})
    consumer = await queue.consumer()
    judge.equal(own, await _told(queue, consumer.member), "what the first member is told")
    came = await watch(consumer, range(5), WITHIN)
    judge.equal(list(range(5)), sorted(came), "offsets by the configured reset")
