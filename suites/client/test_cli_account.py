"""What becomes of records and acknowledgements when something else is in their way.

Every check of clients ends with their account, see :mod:`suites.client.account`; the checks here
bring about the situations in which one thing has to go on beside another.
"""

from typing import Any

from fixtures.clients.member import CLOSE
from fixtures.hostile.script import ScriptStep
from suites.client.kit import *


def _kept(harness: Harness, who: Handle, got: Sequence[Delivery], lock: float) -> list[Any]:
    """Return places of what was acquired more than a lock ago and neither given nor let go."""
    seen, over = harness.seen(who), time.monotonic() - lock
    ended = {one.node: one.number for one in seen if one.request["share_session_epoch"] == CLOSE}
    gone = {(one.partition, one.offset) for one in got}
    gone |= {(one.partition, one.offset) for one in acked(seen)}
    held = [one for one in acquired(seen) if ended.get(one.by.node, 0) < one.by.number]
    return sorted({(o.partition, o.offset) for o in held if o.by.responded < over} - gone)


REFUSAL = "KAFKA_STORAGE_ERROR"  # Of one broker's log directory: what it says of others is nothing.


@check("CLI-127", needs="explicit|mixed", timeout=90)
@pytest.mark.parametrize("renewed", [1, 10])
@pytest.mark.parametrize("acquire", ["batch_optimized", "record_limit"])
async def test_new_beside_renewed(
    hostile: Harness, judge: Judge, renewed: int, acquire: str
) -> None:
    has = hostile.adapter.has
    limit = 10 if has(Capability.MAX_POLL_RECORDS) else None
    mode = acquire if hostile.strict else None
    queue = await hostile.queue(20, batches=20, lock_ms=3000)
    consumer = await hostile.consumer(queue, max_poll_records=limit, acquire=mode)
    given = Records()
    async for _ in attempts(READY):
        given += (found := await consumer.poll(0.2))
        long = [one for one in found if one.offset < renewed and has(Capability.RENEW)]
        if long:
            await consumer.acknowledge(long, "renew")
        await consumer.acknowledge([one for one in found if one not in long])
        first = next(iter(acquired(hostile.seen(consumer))), None)
        late = first is not None and time.monotonic() - first.by.responded > 9.5
        if len({*given.offsets}) >= 20 or late:
            break
    kept = [offset for _, offset in _kept(hostile, consumer, given, 6.0)]
    said = f"acquired and never given within two locks, while {renewed} records are renewed"
    judge.equal([], kept, said)
    judge.holds(given, "no record was given")


async def _two_brokers(harness: Harness, **options: Any) -> tuple[Handle, Records, int]:
    """Return a consumer with records of brokers, and one of these that is not its coordinator.

    Fetches wait at all of them when the records are produced, so that one poll may bring all.
    """
    topic = await harness.admin.create_topic(assignments=[[1], [2], [3]])
    queue = await harness.queue_of(topic, 1)
    consumer = await harness.consumer(queue, max_wait_ms=2000, **options)
    if not await harness.polls_until(
        consumer, lambda: len({one.node for one in harness.seen(consumer, "ShareFetch")}) == 3
    ):
        raise Undecided(f"three brokers were not asked within {ARRIVES:g} s")
    for _ in range(8):
        await consumer.acknowledge(await consumer.poll(0.1))
        for partition in range(3):
            await queue.produce(2, partition)
        await harness.until(lambda: False, 0.5)
        found = Records(await consumer.poll(2.0))
        nodes = {one.partition + 1 for one in found}
        if len(nodes) > 1:
            return consumer, found, max(nodes - {harness.heartbeats(consumer)[-1].node})
        await consumer.acknowledge(found)
    raise OutOfReach("no poll of this client brings records of two brokers")


@check("CLI-128", "CLI-111", timeout=120)
@pytest.mark.parametrize("trouble", ["forbidden", "deleted", "recreated"])
async def test_one_topic_of_two(hostile: Harness, judge: Judge, trouble: str) -> None:
    queue = await hostile.queue(2)
    other = await hostile.admin.create_topic(2)
    await hostile.admin.produce(other, 2, 1)
    mode = "implicit" if hostile.has_implicit else None
    kind = None if mode else "accept"
    consumer = await hostile.consumer(queue, queue.topic.name, other.name, mode=mode)
    got = await hostile.take(consumer, 4, kind=kind)
    if trouble == "forbidden":  # the partition that only the other topic has
        denied = {"code": "TOPIC_AUTHORIZATION_FAILED", "only": 1}
        hostile.play({"on": list(SHARE), "do": "partition-error", "times": 0, **denied})
    else:
        await hostile.admin.delete_topics(other.name)
    got += (await hostile.polls(consumer, within=1.5, kind=kind)).records
    if trouble == "recreated":
        again = await hostile.admin.create_topic(2, name=other.name)
        await hostile.admin.produce(again, 2, 1)
    await queue.produce(2)

    def given(polled: Polled) -> list[int]:
        found = [*got, *polled.records]
        return sorted({one.offset for one in found if one.topic == queue.topic.name})

    def accepted() -> list[int]:
        mine = [a for a in hostile.acks(consumer, AckType.ACCEPT) if a.topic_id == queue.topic.id]
        return sorted({one.offset for one in mine if one.error == 0})

    polled = await hostile.polls(consumer, lambda seen: len(given(seen)) == 4, kind=kind)
    judge["CLI-111"].equal([0, 1, 2, 3], given(polled), f"of the other topic, one being {trouble}")
    await hostile.polls(consumer, lambda _: len(accepted()) == 4, 6.0, kind=kind)
    if len(accepted()) < 4 and hostile.adapter.has(Capability.COMMIT_SYNC):
        await refusal(hostile.settle(consumer))
    judge["CLI-128"].equal([0, 1, 2, 3], accepted(), f"accepted, the other topic being {trouble}")


TROUBLES: dict[str, dict[str, Any]] = {
    "silent": {"do": "drop", "applied": False},
    "slow": {"do": "pass", "delay": 2.0},
    "cut": {"do": "close", "applied": False},
    "gone": {},
    "refusing": {"do": "error", "code": REFUSAL, "applied": False},
    "without the session": {"do": "error", "code": "SHARE_SESSION_NOT_FOUND", "applied": False},
    "no leader": {"do": "partition-error", "code": "NOT_LEADER_OR_FOLLOWER", "applied": False},
}


def _trouble(hostile: Harness, node: int, trouble: str) -> list[ScriptStep]:
    if trouble != "gone":
        at_it = {"on": list(SHARE), "when": {"node": node}, "times": 0}
        return hostile.play({**at_it, **TROUBLES[trouble]})
    hostile.tap.disappear(node)
    return []


@check("CLI-127", timeout=90)
@pytest.mark.parametrize("trouble", ["silent", "cut", "gone", "refusing"])
async def test_given_beside_a_failing_broker(hostile: Harness, judge: Judge, trouble: str) -> None:
    lock = 3.0
    topic = await hostile.admin.create_topic(assignments=[[1], [2], [3]])
    queue = await hostile.queue_of(topic, 1)
    config = {"share.record.lock.duration.ms": f"{lock * 1000:.0f}"}
    await hostile.admin.group_config(queue.group, config)
    consumer = await hostile.consumer(queue, max_wait_ms=500)
    got = await hostile.take(consumer, 1, kind="accept")
    await hostile.polls_until(
        consumer, lambda: {one.node for one in hostile.seen(consumer, "ShareFetch")} == {1, 2, 3}
    )
    bad = max({1, 2, 3} - {hostile.heartbeats(consumer)[-1].node})
    steps = _trouble(hostile, bad, trouble)
    await hostile.polls_until(consumer, lambda: all(step.taken for step in steps))
    for partition in {0, 1, 2} - {bad - 1}:
        await queue.produce(1, partition)
    got += (await hostile.polls(consumer, lambda seen: len(seen.records) > 1, 2.5 * lock)).records
    # Some ask no other broker while one is silent, and so acquire nothing that they had to give.
    said = f"acquired and not given within a lock, broker {bad} being {trouble}"
    judge.equal([], _kept(hostile, consumer, got, lock), said)
    judge.saw(acquired=len(acquired(hostile.seen(consumer))))


@check("CLI-128", "CLI-129", needs=("commit-sync", "explicit|mixed"), timeout=120)
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_one_broker_of_several(hostile: Harness, judge: Judge, trouble: str) -> None:
    consumer, found, bad = await _two_brokers(hostile, request_timeout_ms=20000)
    _trouble(hostile, bad, trouble)
    await consumer.acknowledge(found)
    try:
        results = await consumer.commit_sync(5.0)
    except Refused as error:
        if not hostile.adapter.has(Capability.CALLBACK):
            raise OutOfReach(f"no callback tells of a commit that is refused: {error}") from None
        results = []
    await hostile.polls(consumer, within=0.5)
    hostile.tap.script.clear()
    await refusal(hostile.end(consumer, 60.0))
    wanted = {(one.partition, one.offset) for one in found if one.partition + 1 != bad}
    mine = [ack for ack in hostile.acks(consumer) if (ack.partition, ack.offset) in wanted]
    sent = {(ack.partition, ack.offset) for ack in mine if ack.kind == AckType.ACCEPT}
    judge["CLI-128"].equal(sorted(wanted), sorted(sent), "sent to the other brokers")
    told = {
        (one.partition, offset)
        for one in [*results, *consumer.settled]
        if one.error is None
        # Without offsets it is about all of the partition.
        for offset in (
            [n for p, n in wanted if p == one.partition] if one.offsets is None else one.offsets
        )
    }
    taken = {(ack.partition, ack.offset) for ack in mine if ack.error == 0}
    said = f"taken by others and told, broker {bad} being {trouble}"
    judge["CLI-129"].equal(sorted(taken), sorted(told & taken), said)


@check("CLI-129", needs=("callback", "callback-offsets", "explicit|mixed"))
@pytest.mark.parametrize(
    "code",
    [REFUSAL, "UNKNOWN_SERVER_ERROR", "GROUP_AUTHORIZATION_FAILED", "REQUEST_TIMED_OUT", 9999],
)
async def test_fetch_fails_with_acks(hostile: Harness, judge: Judge, code: str | int) -> None:
    _, consumer, got = await hostile.holding(3)
    hostile.play({"on": list(SHARE), "when": {"has": "acks"}, "do": "error", "code": code})
    await consumer.acknowledge(got)
    await hostile.polls(consumer, lambda _: len(consumer.settled) > 0, 6.0)
    if not any(one.scripted for one in hostile.seen(consumer)):
        await hostile.settle(consumer)
    await refusal(hostile.end(consumer, 30.0))
    # Whoever sends them again tells of the last answer.
    fine = {ack.offset for ack in hostile.acks(consumer) if ack.error == 0}
    said = [(offset, one) for one in consumer.settled for offset in one.offsets or ()]
    told = [offset for offset, one in said if one.error or offset in fine]
    judge.equal([], sorted({0, 1, 2} - {*told}), f"failed with {code}, and not told")


@check("CLI-127")
async def test_without_leader(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(10, lock_ms=6000)
    limit = 1 if hostile.adapter.has(Capability.MAX_POLL_RECORDS) else None
    try:
        consumer = await hostile.consumer(queue, max_poll_records=limit, metadata_max_age_ms=500)
    except Refused:  # some ask for metadata more seldom
        consumer = await hostile.consumer(queue, max_poll_records=limit)
    got = await hostile.take(consumer, 1, kind="accept")
    nobody = {"do": "metadata-error", "code": "LEADER_NOT_AVAILABLE", "level": "partition"}
    hostile.play({"on": "Metadata", "times": 0, **nobody})
    got += (await hostile.polls(consumer, lambda seen: len(seen.records) >= 9, 7.0)).records
    judge.equal([], _kept(hostile, consumer, got, 6.0), "acquired and not given without a leader")


@check("CLI-127", "CLI-08", timeout=90)
async def test_without_leader_for_a_moment(hostile: Harness, judge: Judge) -> None:
    """Metadata that another partition asks for knows no leader of the one that is fetched."""
    topic = await hostile.admin.create_topic(assignments=[[3], [2]])
    queue = await hostile.queue_of(topic, 1)
    # What was dropped comes again when its lock is over.
    await hostile.admin.group_config(queue.group, {"share.record.lock.duration.ms": "60000"})
    consumer = await hostile.consumer(queue, max_wait_ms=6000)
    got = await hostile.take(consumer, 1, kind="accept")
    moved = {"on": "ShareFetch", "when": {"node": 2}, "do": "partition-error", "only": 1}
    nobody = {"on": "Metadata", "do": "metadata-error", "level": "partition", "only": 0}
    (met, asked) = hostile.play(
        {**moved, "code": "NOT_LEADER_OR_FOLLOWER"},
        {**nobody, "code": "LEADER_NOT_AVAILABLE", "times": 0},
    )
    await queue.produce(1, 1)  # which ends the fetch there; the other one waits
    got += (await hostile.polls(consumer, lambda _: met.taken)).records
    await queue.produce(1, 1)
    got += (await hostile.polls(consumer, lambda _: asked.taken)).records
    if not asked.taken:
        raise OutOfReach(f"it asks for no metadata {ARRIVES:g} s after NOT_LEADER_OR_FOLLOWER")
    await queue.produce(2)
    got += (await hostile.polls(consumer, within=1.5)).records
    hostile.tap.script.clear()
    await queue.produce(1)
    wanted = {0, 1, 2, 3}

    def given(polled: Polled) -> set[int]:
        return {one.offset for one in [*got, *polled.records] if one.partition == 0}

    polled = await hostile.polls(consumer, lambda seen: wanted <= given(seen))
    last, said = given(polled), "without a leader for a moment"
    kept = [o for p, o in _kept(hostile, consumer, got + polled.records, 1.0) if p == 0]
    judge["CLI-127"].equal([], kept, f"acquired and not given {said}")
    judge["CLI-08"].equal([], sorted(wanted - last), f"did not come: {said}")


@check("CLI-128", needs="explicit|mixed")
async def test_lock_begins_with_the_response(harness: Harness, judge: Judge) -> None:
    """A fetch waits for nearly a lock, and what it brings is worked on for half of one."""
    lock = harness.env.bounds.lock(4000) / 1000
    queue, consumer = await harness.consuming(
        1, settle=True, lock_ms=4000, max_wait_ms=round(lock * 1250)
    )
    before = len(harness.seen(consumer, "ShareFetch"))
    async with harness.meanwhile(consumer.poll(3 * lock)) as polling:
        await harness.until(lambda: len(harness.seen(consumer, "ShareFetch")) > before)
        await harness.until(polling.done, lock * 0.8)
        await queue.produce(1)
        got = Records(await polling)
    got = got or await harness.take(consumer, 1)
    came = [one.by for one in acquired(harness.seen(consumer)) if one.offset == 1]
    if not came:
        raise Undecided("offset 0 came again first: the machine is slow")
    since = came[0]
    await harness.until(lambda: time.monotonic() - since.responded > lock / 2)
    with contextlib.suppress(Refused):
        await consumer.acknowledge(got)
        await harness.settle(consumer)
    late = time.monotonic() - since.responded > lock - 0.2
    await harness.polls(consumer, lambda _: len(harness.acks(consumer)) > 1, 1.0)
    sent = [ack for ack in harness.acks(consumer) if ack.offset == 1]
    if late and not sent:
        raise Undecided("the lock ran out: the machine is slow")
    in_lock = {int(ack.kind) for ack in sent if ack.by.sent - since.responded < lock}
    waited = f"of a record that came after {since.responded - since.sent:.1f} s of waiting"
    judge.equal({1}, in_lock, f"sent {waited}")  # a broker's clock began with its own response
