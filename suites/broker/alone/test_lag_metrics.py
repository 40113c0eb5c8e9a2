"""The metrics of KIP-1103 and KIP-932, against numbers that a check knows because it caused them.

A metric may follow its event by a moment, hence the polling; what it may not do is to stay wrong.
"""

from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *

PARTITION, GROUPS, CACHE = "SharePartitionMetrics", "ShareGroupMetrics", "ShareSessionCache"
TOPICS = "BrokerTopicMetrics"
MEMBERS, STATE = "group-coordinator-metrics", "share-coordinator-metrics"

GAUGED_WITHIN = 75.0  # Seconds: a group coordinator counts its groups once a minute.


def _of(queue: Queue, name: str) -> dict[str, str]:
    return {"group": queue.group, "topic": queue.topic.name, "partition": "0", "name": name}


@check("LAG-16")
async def test_in_flight(lone: SingleBroker, judge: Judge) -> None:
    queue, consumer = await lone.env.with_holder(7, batches=7, lock_ms=60_000)
    messages, batches = (_of(queue, f"InFlight{what}Count") for what in ("Message", "Batch"))
    seen = await lone.until(7, PARTITION, "Value", **messages)
    judge.equal(7, seen, "messages in flight with seven held")
    seen = await lone.number(PARTITION, "Value", **batches)
    judge.holds(1 <= seen <= 7, f"{seen} batches in flight with seven records held")

    await consumer.acked(accept(0, 6))
    seen = await lone.until(0, PARTITION, "Value", **messages)
    judge.equal(0, seen, "messages in flight with all accepted")
    seen = await lone.until(0, PARTITION, "Value", **batches)
    judge.equal(0, seen, "batches in flight with all accepted")


@check("LAG-25")
async def test_lock_expiries(lone: SingleBroker, judge: Judge) -> None:
    queue = await lone.env.queue(2, lock_ms=1000)
    await queue.holder(2)
    name = _of(queue, "AcquisitionLockTimeoutPerSec")
    other = await queue.consumer(join=False)
    if len(await watch(other, [0, 1], 1 + SLACK)) < 2:
        raise Undecided("the locks did not run out")
    seen = await poll(lambda: lone.number(PARTITION, "Count", **name), bool, pause=0.1)
    judge.holds(seen >= 1, f"{seen} lock expiries are counted after two records' locks")


async def _acknowledgements(lone: SingleBroker, queue: Queue) -> dict[str, float]:
    samples = await lone.samples(GROUPS)
    return {
        sample.labels["ackType"].lower(): sample.value
        for sample in samples
        if sample.labels.get("name") == "RecordAcknowledgementsPerSec"
        and sample.attribute == "Count"
        and sample.labels.get("group", queue.group) == queue.group
    }


@check("LAG-17")
async def test_acknowledgements_by_type(lone: SingleBroker, judge: Judge) -> None:
    queue, consumer = await lone.env.with_holder(12, batches=3, lock_ms=60_000)
    before = await _acknowledgements(lone, queue)
    await consumer.acked(accept(0, 4), release(5, 6), reject(7, 9))
    expected = {"accept": 5.0, "release": 2.0, "reject": 3.0}
    if lone.env.cluster.supports("ShareAcknowledge", 2):
        await consumer.acked(renew(10), is_renew_ack=True)
        expected["renew"] = 1.0
    expected = {kind: before.get(kind, 0) + count for kind, count in expected.items()}
    seen: dict[str, float] = {}
    async for _ in attempts(WITHIN, pause=0.1):
        now = await _acknowledgements(lone, queue)
        seen = {kind: now.get(kind, 0) for kind in expected}
        if seen == expected:
            break
    judge.equal(expected, seen, "acknowledged records by type")


@check("LAG-18")
async def test_sessions(lone: SingleBroker, judge: Judge) -> None:
    sessions, partitions = {"name": "ShareSessionsCount"}, {"name": "SharePartitionsCount"}
    queue = await lone.env.queue(2, partitions=2)
    base = await lone.until(0, CACHE, "Value", **sessions)  # those before are on their way out
    held = await lone.until(0, CACHE, "Value", **partitions)
    first = await queue.consumer()
    second = await queue.consumer(1, join=False)
    for _ in range(10):
        await first.open_twice()
    for consumer in (first, second):
        await consumer.fetch(max_wait_ms=0)
    for step, more in [("two opened", 2), ("one closed", 1), ("the other cut off", 0)]:
        if more == 1:
            await first.close()
        elif more == 0:
            await second.session.connection.close()
        seen = await lone.until(base + more, CACHE, "Value", **sessions)
        judge.equal(base + more, seen, f"share sessions with {step}")
        seen = await lone.until(held + more, CACHE, "Value", **partitions)
        judge.equal(held + more, seen, f"share-partitions in sessions with {step}")
    names = {sample.labels.get("name") for sample in await lone.samples(CACHE)}
    evicted = "ShareSessionEvictionsPerSec"
    judge.equal(True, evicted in names, f"whether there is {evicted}")


async def _requests(lone: SingleBroker, **labels: str) -> dict[str, float]:
    found = [s for s in await lone.samples(TOPICS) if s.attribute == "Count"]
    topic = labels.get("topic")
    return {
        name: sum(
            s.value
            for s in found
            if (s.labels.get("name"), s.labels.get("topic")) == (f"{name}RequestsPerSec", topic)
        )
        for name in (
            "TotalShareFetch",
            "FailedShareFetch",
            "TotalShareAcknowledgement",
            "FailedShareAcknowledgement",
        )
    }


@check("LAG-19")
async def test_requests(lone: SingleBroker, judge: Judge) -> None:
    queue, consumer = await lone.env.with_consumer(5, lock_ms=60_000)
    everywhere = await _requests(lone)
    named = {sample.labels.get("name") for sample in await lone.samples(TOPICS)}
    missing = [name for name in everywhere if f"{name}RequestsPerSec" not in named]
    judge.equal([], missing, "rates that the broker does not report")
    await consumer.acquire(4)
    for _ in range(2):
        Consumer.sound(await consumer.fetch(max_wait_ms=0))
    await consumer.acked(accept(1))
    part = await consumer.ack(accept(1))
    if part.ack_error not in {ErrorCode.INVALID_RECORD_STATE, ErrorCode.INVALID_REQUEST}:
        raise Undecided("a wrong acknowledgement was not refused")
    seen = await poll(
        lambda: _requests(lone, topic=queue.topic.name),
        lambda seen: seen["FailedShareAcknowledgement"] and seen["TotalShareFetch"] >= 3,
        pause=0.1,
    )
    fetches = seen.pop("TotalShareFetch")
    judge.holds(fetches >= 3, f"{fetches} share fetches of the topic, there were three")
    expected = {
        "FailedShareFetch": 0.0,
        "TotalShareAcknowledgement": 2.0,
        "FailedShareAcknowledgement": 1.0,
    }
    judge.equal(expected, seen, "requests about the topic")
    grown = {name: now - everywhere[name] for name, now in (await _requests(lone)).items()}
    for name, count in expected.items():
        judge.holds(grown[name] >= count, f"{name} of the broker grew by {grown[name]}")


@check("LAG-20", timeout=150)
async def test_groups_by_state(lone: SingleBroker, judge: Judge) -> None:
    queue = await lone.env.queue(1)
    others = [await lone.env.sibling(queue) for _ in range(2)]
    rebalances = await lone.number(MEMBERS, "share_group_rebalance_count")
    member = await lone.env.member(queue.group, queue.topic)
    for other in others:
        await (await lone.env.member(other.group, other.topic)).leave()
    expected: dict[str, int] = {}
    seen: dict[str, float] = {}
    async for _ in attempts(GAUGED_WITHIN, pause=0.2):
        await good_beat(member)
        connection = await lone.env.cluster.any()
        response = await connection.call("ListGroups", states_filter=[], types_filter=["share"])
        states = [group.group_state for group in response.groups]
        expected = {state: states.count(state) for state in ("Stable", "Empty")}
        seen = {s: await lone.number(MEMBERS, "share_group_count", state=s) for s in expected}
        expected["in all"] = len(states)
        seen["in all"] = await lone.number(MEMBERS, "group_count", protocol="share")
        if not all(expected.values()):
            raise Undecided(f"the broker lists {expected}, with one group left and one joined")
        if seen == expected:
            break
    judge.equal(expected, seen, "share groups by state")
    now = await lone.number(MEMBERS, "share_group_rebalance_count")
    judge.holds(now > rebalances, f"{now} rebalances after joins, {rebalances} before")


@check("LAG-21")
async def test_state_writes(lone: SingleBroker, judge: Judge) -> None:
    _, consumer = await lone.env.with_holder(12, batches=12, lock_ms=60_000)
    before = await lone.number(STATE, "write")
    pruned = await lone.number(STATE, "last_pruned_offset")
    for offset in range(12):
        await consumer.acked(accept(offset))
    seen = await lone.number(STATE, "write")
    judge.holds(seen >= before + 12, f"{seen - before} state writes, there were twelve")
    rate = await lone.number(STATE, "write_rate")
    judge.holds(rate > 0, f"write_rate is {rate} after state writes")
    # Latencies are in whole ms, of which a fast disk needs none; without a value they are NaN.
    for attribute in ("write_latency_avg", "write_latency_max"):
        told = [s.value for s in await lone.samples(STATE) if s.attribute == attribute]
        judge.holds(told and min(told) >= 0, f"{attribute} is {told} after state writes")
    topic = await lone.env.cluster.topic(STATE_TOPIC)
    served = await lone.until(len(topic.leaders), STATE, "num_partitions", state="active")
    judge.equal(len(topic.leaders), served, "partitions of the state topic that are served")
    # A ratio is measured over windows of time, and may be a little more than 1.
    for attribute, high in (("thread_idle_ratio_avg", 2), ("partition_load_time_max", 60_000)):
        told = [s.value for s in await lone.samples(STATE) if s.attribute == attribute]
        judge.holds(told and not max(told) > high, f"{attribute} is {told}")
    look = partial(lone.number, STATE, "last_pruned_offset")
    cut = await poll(look, lambda cut: cut > pruned, pause=0.1)
    judge.holds(cut > pruned, f"the state topic was cut at {cut}, at {pruned} before")


LISTED: tuple[tuple[str, str, str, int, int], ...] = (
    (PARTITION, "InFlightBatchMessageCount", "Max", 1, 7),
    (PARTITION, "FetchLockTimeMs", "Count", 1, 99),
    (PARTITION, "FetchLockRatio", "Count", 1, 99),
    (PARTITION, "FetchLockRatio", "Max", 0, 100),
    (GROUPS, "RequestTopicPartitionsFetchRatio", "Max", 100, 100),
    (GROUPS, "TopicPartitionsAcquireTimeMs", "Count", 1, 99),
)
"""Histograms of a share-partition or a group: an attribute and its bounds after one acquisition."""


@check("LAG-26", timeout=90)
async def test_listed_metrics(lone: SingleBroker, judge: Judge) -> None:
    loads = {"name": "PartitionLoadTimeMs"}
    await lone.env.with_holder(1)  # a load that fails while the state topic is made is timed, too
    loaded = await lone.number(GROUPS, "Count", **loads)
    queue, consumer = await lone.env.with_holder(7, lock_ms=60_000)
    for bean, name, attribute, low, high in LISTED:
        labels = {"group": queue.group, "name": name}
        look = partial(lone.number, bean, attribute, **labels)
        told = await poll(look, range(low, high + 1).__contains__, pause=0.1)
        judge.holds(low <= told <= high, f"{attribute} of {name} is {told}, not {low} to {high}")
    batches = await lone.number(PARTITION, "Value", **_of(queue, "InFlightBatchCount"))
    largest = await lone.number(PARTITION, "Max", **_of(queue, "InFlightBatchMessageCount"))
    judge.holds(largest * batches >= 7, f"seven records in {batches} batches of {largest} at most")
    waiting = {"delayedOperation": "ShareFetch", "name": "NumDelayedOperations"}
    look = partial(lone.number, "DelayedOperationPurgatory", "Value", **waiting)
    over = partial(lone.number, "DelayedShareFetchMetrics", "Count", name="ExpiresPerSec")
    await consumer.fetch(max_wait_ms=0)
    base, before = await look(), await over()
    fetch = asyncio.create_task(consumer.fetch(max_wait_ms=4000))
    seen = await poll(look, lambda seen: seen > base, 3.5, pause=0.1)
    if fetch.done() and seen <= base:
        raise Undecided("the fetch was over before the metrics were read")
    judge.holds(seen > base, f"{seen} operations are delayed while a fetch waits, {base} before")
    # Here are fetches that ended, too, until they are cleared away.
    size = await lone.number(
        "DelayedOperationPurgatory", "Value", **waiting | {"name": "PurgatorySize"}
    )
    judge.holds(fetch.done() or size >= 1, f"{size} operations are watched while a fetch waits")
    await fetch
    seen = await poll(over, lambda seen: seen > before, pause=0.1)
    judge.holds(seen > before, f"{seen} waits for records are counted as over, {before} before")
    seen = await lone.until(loaded + 1, GROUPS, "Count", **loads)
    judge.equal(loaded + 1, seen, "share-partitions whose load was timed, one being new")
