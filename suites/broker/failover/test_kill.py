"""A broker dies as by a power cut: kill -9, with requests under way."""

from suites.broker.failover.cluster import FailoverCluster
from suites.broker.failover.roles import *
from suites.broker.kit import *

RETRY = "group.share.initialize.retry.interval.ms"
"""How long a group coordinator waits before it initializes a share-partition once more."""

RETRIED = dict.fromkeys(
    (
        *("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
        *("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "REQUEST_TIMED_OUT"),
        *("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "KAFKA_STORAGE_ERROR"),
        *("FENCED_LEADER_EPOCH", "SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"),
    ),
    "documentation protocol#protocol_error_codes: its column Retriable says True",
)
"""Errors of a fetch after which a consumer tries again, and what allows each."""


@check(
    "COO-01",
    "COO-02",
    "COO-03",
    "COO-09",
    "COO-11",
    "COO-21",
    "COO-22",
    "COO-23",
    "COO-27",
    "COO-31",
    meets="reload",
    timeout=120,
)
async def test_broker_killed(stage: FailoverCluster, judge: Judge) -> None:
    roles = await cast(stage)
    pulses = [await Pulse.of(stage, s.holder.member) for s in (roles.grouped, roles.whole)]

    # Frozen first, so that the state write and the acknowledgement are under way when it dies.
    stage.pause(roles.victim)
    stored = roles.kept.send(accept(12, 13))
    lost = roles.led.send(accept(12, 13))
    await asyncio.wait([stored, lost], timeout=0.3)
    if stored.done():
        raise Undecided("an acknowledgement was answered although its coordinator was frozen")
    await stage.kill(roles.victim)

    expected = {10, 11, *FRESH}
    seen = await watch(roles.grouped.holder, expected, TAKEN_OVER)
    judge["COO-09"].equal(sorted(expected), sorted(seen), "delivered with no group coordinator")
    await judge_holder(judge["COO-09"], roles.grouped, "with no group coordinator")
    roles.led.answered([12, 13], await lost)
    for scene in roles.moving:
        await judge_progress(judge["COO-31"], await judge_new_leader(judge, scene))
    for pulse in pulses:
        await judge_member(judge, pulse)
    part = await stored
    what = "an acknowledgement was not answered after its coordinator had died"
    if part is None:
        await demand_bystander(stage.cluster, roles.near, what)
    judge["COO-11"].holds(part, what)
    roles.kept.answered([12, 13], part)
    # The leader knows anyway. Whether the new coordinator does, the next leader shows.
    roles.kept.settled &= {12, 13}  # of the others COO-21 speaks
    roles.kept.queue = await moved(await located(roles.kept.queue))
    await judge_open(judge["COO-11"], roles.kept, [])

    await stage.start(roles.victim)
    await judge_came_back(judge["COO-27"], roles.alone)


@check("COO-08", "COO-18", "COO-19", meets=IDLE, timeout=120)
async def test_beginning_without_a_coordinator(stage: FailoverCluster, judge: Judge) -> None:
    victim = await stage.victim()
    near, far = (node for node in stage.nodes if node != victim)
    retry = int((await stage.env.admin.broker_configs()).get(RETRY) or 30_000)  # 4.1 hides it
    place = {"state": victim, "group": far}
    unloaded, unknown, bare = [await stage.queue(near, far, **place) for _ in range(3)]
    for queue in (unloaded, unknown):
        await queue.produce(6)
    await unloaded.consumer()
    key = await raised(bare)

    await stage.kill(victim)
    roamer = ReconnectingConsumer(unloaded)
    loading = asyncio.create_task(roamer.take(range(6)))
    member = await stage.env.member(unknown.group)
    await good_beat(member, subscribed_topic_names=[unknown.topic.name])
    await beating([member], lambda: bool(member.assigned), TAKEN_OVER + retry / 1000)
    judge["COO-08"].equal({(unknown.topic.id, 0)}, member.assigned, "assigned after the fail-over")
    # Counts are no matter of these rules: a response that gets lost uses one up.
    came = sorted(await ReconnectingConsumer(unknown).take(range(6)))
    judge["COO-08"].equal(list(range(6)), came, "delivered after a late beginning")

    judge["COO-19"].equal(list(range(6)), sorted(await loading), "delivered after a late load")
    judge["COO-19"].none_but(RETRIED, roamer.told, "errors of fetches meanwhile")

    await judge_raised(judge["COO-18"], key)
