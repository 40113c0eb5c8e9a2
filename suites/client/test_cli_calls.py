"""What the application's calls promise: subscribing, waking up, configuration, callbacks."""

import base64

from fixtures.hostile.changes import INSTANCE
from suites.client.kit import *

TELEMETRY = [71, 72]  # The keys of GetTelemetrySubscriptions and PushTelemetry.


@check("CLI-33", fast=True)
async def test_poll_without_subscription(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue()
    consumer = await harness.consumer(queue.group)
    judge.equal("illegal-state", await refusal(consumer.poll(0.3)), "poll")


@check("CLI-85")
@pytest.mark.parametrize("topic", [None, "", "  "])
async def test_blank_topics(harness: Harness, judge: Judge, topic: str | None) -> None:
    queue = await harness.queue()
    consumer = await harness.consumer(queue.group)
    error = await refusal(consumer.subscribe(topic))
    judge.holds(error, f"subscribing to {topic!r} was not refused")


@check("CLI-91")
async def test_topic_created_later(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue()
    name = harness.env.cluster.fresh_name("t")
    consumer = await harness.consumer(queue.group, name)
    await harness.polls(consumer, lambda _: harness.heartbeats(consumer), READY)
    await harness.polls(consumer, within=1.0)
    topic = await harness.admin.create_topic(1, name=name)
    await harness.admin.produce(topic, 2)
    got = await harness.arrival(consumer, 1, within=30)
    if topic.id not in {topic_id for topic_id, _ in assigned(harness.heartbeats(consumer))}:
        raise Undecided("the new topic was not assigned within 30 s")
    judge.equal([0, 1], got.offsets, "records of a topic created later")


@check("CLI-92", needs="subscription")
async def test_subscription(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue()
    consumer = await harness.consumer(queue.group)
    judge.equal([], await consumer.subscription(), "at first")
    await consumer.subscribe("a", "b")
    judge.equal(["a", "b"], sorted(await consumer.subscription()), "after two topics")
    await consumer.subscribe("c")
    judge.equal(["c"], await consumer.subscription(), "after another one")


@check("CLI-37", "CLI-93", needs="wakeup")
async def test_wakeup(harness: Harness, judge: Judge) -> None:
    queue, consumer = await harness.consuming(1, settle=True)
    async with harness.meanwhile(refusal(consumer.poll(20.0))) as polling:
        await harness.until(polling.done, 0.5)
        await consumer.wakeup()
        ended = await harness.until(polling.done, 10)
        error = polling.result() if ended else "nothing within 10 s"
        judge["CLI-37"].equal("wakeup", error, "how the poll that ran ended")
    await consumer.wakeup()
    judge["CLI-93"].equal("wakeup", await refusal(consumer.poll(5.0)), "how the next poll ended")
    await queue.produce(2)
    # Where a client fetches ahead, the next wakeup meets records that it has already.
    await harness.until(lambda: len({a.offset for a in acquired(harness.seen(consumer))}) > 1, 2)
    await consumer.wakeup()
    # What the next poll has for the application may come with its end, which is told by one more.
    first = await harness.polls(consumer, lambda seen: seen.errors, 5.0, seconds=5.0)
    judge["CLI-93"].equal(["wakeup"], first.error_names, "how one more poll ended")
    got = first.offsets + (await harness.arrival(consumer, 2)).offsets
    judge["CLI-37"].equal([1, 2], sorted({*got}), "records after the wakeups")


@check("CLI-37", needs="wakeup")
async def test_wakeup_while_records_are_on_their_way(hostile: Harness, judge: Judge) -> None:
    queue, consumer = await hostile.consuming(1, settle=True)
    await hostile.until(lambda: False, 0.5)  # a fetch that is under way may end
    (step,) = hostile.play({"on": "ShareFetch", "do": "pass", "times": 0, "delay": 1.5})
    await queue.produce(2)
    async with hostile.meanwhile(refusal(consumer.poll(20.0))) as polling:
        await hostile.until(lambda: step.taken)
        await consumer.wakeup()
        ended = await hostile.until(polling.done, 10)
        error = polling.result() if ended else "nothing within 10 s"
    if not error:
        raise Undecided("the poll ended before the wakeup")
    judge.equal("wakeup", error, "how the poll that ran ended")
    hostile.tap.script.clear()
    got = await hostile.arrival(consumer, 2)
    judge.equal([1, 2], got.offsets, "records that a fetch brought behind the wakeup")


@check("CLI-40")
@pytest.mark.parametrize("group", [None, "", "  "])
async def test_no_group(harness: Harness, judge: Judge, group: str | None) -> None:
    queue = await harness.queue()
    consumer = harness.handle()
    error = await refusal(consumer.open(harness.config(consumer, group)))
    error = error or await refusal(consumer.subscribe(queue.topic.name))
    told = error or (await harness.polls(consumer, lambda seen: seen.errors, 5.0)).errors
    judge.holds(told, f"the group {group!r} was taken")


@check("CLI-94")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("auto.offset.reset", "earliest"),
        ("enable.auto.commit", "true"),
        ("group.instance.id", "one"),
        ("isolation.level", "read_committed"),
    ],
)
async def test_foreign_settings(harness: Harness, judge: Judge, name: str, value: str) -> None:
    queue = await harness.queue()
    consumer = harness.handle()
    error = await refusal(consumer.open(harness.config(consumer, queue.group, extra={name: value})))
    judge.equal("config", error, f"opening with {name}={value}")


@check("CLI-36", needs=("callback", "explicit|mixed"))
@pytest.mark.parametrize("callback", ["throw", "reenter"])
async def test_bad_callback(doomed: Harness, judge: Judge, callback: str) -> None:
    queue, consumer = await doomed.reading(2, batches=2, callback=callback, max_poll_records=1)
    errors = []
    try:
        for _ in range(2):
            errors.append(await refusal(doomed.take(consumer, 1, kind="accept")))
            errors.append(await refusal(doomed.settle(consumer)))
            # One more record, so that there is something to be told a second time.
            await queue.produce(1)
        polled = await doomed.polls(consumer, lambda _: len(consumer.callbacks) >= 2)
        errors += [*polled.error_names, await refusal(consumer.close(doomed.close_limit))]
    except AdapterDied as death:
        judge.holds(False, f"the client's process died: {death}")
    judge.equal([], [e for e in errors if e], "errors of commit and poll")
    judge.holds(len(consumer.callbacks) >= 2, f"{len(consumer.callbacks)} callbacks")


@check("CLI-43", needs="lock-duration")
async def test_lock_duration(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.reading(1, lock_ms=7000)
    before = await consumer.lock_ms()
    if not harness.seen(consumer):  # some fetch before there is a poll
        judge.equal(None, before, "before the first fetch")
    await harness.take(consumer, 1, kind="accept")
    responses = [one.response for one in harness.seen(consumer) if one.response]
    told = [response["acquisition_lock_timeout_ms"] for response in responses]
    judge.equal(told[0], await consumer.lock_ms(), "after it")


@check("CLI-43", needs=("explicit", "renew", "lock-duration"))
async def test_lock_duration_after_a_renewal(hostile: Harness, judge: Judge) -> None:
    _, consumer, got = await hostile.holding(1, lock_ms=7000)
    other = {"name": "acquisition_lock_timeout_ms", "value": 5000}
    (step,) = hostile.play({"on": list(SHARE), "do": "field", "times": 0, **other})
    await consumer.acknowledge(got, "renew")
    await hostile.settle(consumer)
    with contextlib.suppress(Refused):
        await hostile.comes(consumer, 1)
    judge.equal(5000 if step.taken else 7000, await consumer.lock_ms(), "after a renewal")


@check("CLI-95", needs="concurrent")
async def test_two_threads(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.reading()
    await harness.polls(consumer, within=1.0)
    async with harness.meanwhile(refusal(consumer.poll(3.0))) as first:
        await harness.until(first.done, 0.5)
        second = await refusal(consumer.poll(0.1, concurrent=True))
        allowed = {
            "": "order: the first poll may be over, and then nothing is concurrent",
            "concurrent": "Javadoc of KafkaShareConsumer: ConcurrentModificationException",
        }
        judge.one_of(allowed, second, "a poll of another thread")
        judge.equal("", await first, "the poll that ran")


SLOW = 1.5  # Seconds that a broker takes for acknowledgements, while another thread calls.
SERVED = {
    "": "CLI-95 of clients that say that several threads may use one",
    "concurrent": "Javadoc of KafkaShareConsumer: ConcurrentModificationException",
}


@check("CLI-95", needs=("concurrent", "explicit|mixed", "commit-sync"), timeout=90)
@pytest.mark.parametrize("first", ["commit_sync", "close"])
async def test_acknowledging_beside(hostile: Harness, judge: Judge, first: str) -> None:
    _, consumer, got = await hostile.holding(3)
    hostile.play({"on": list(SHARE), "when": {"has": "acks"}, "do": "pass", "delay": SLOW})
    await consumer.acknowledge(got[:2])
    work = consumer.commit_sync() if first == "commit_sync" else consumer.close(within=60.0)
    async with hostile.meanwhile(refusal(work)) as running:
        await hostile.until(running.done, SLOW / 2)
        second = await refusal(consumer.acknowledge(got[2:], concurrent=True))
        judge.equal("", await running, f"{first}, beside which a record was acknowledged")
    finished = "Javadoc of acknowledge: the record is not waiting to be acknowledged"
    others = {"illegal-state": finished, "closed": "Javadoc of close: calls throw afterwards"}
    judge.one_of(SERVED | others, second, f"acknowledging beside {first}")
    if first == "commit_sync":
        with contextlib.suppress(Refused):
            if second:
                await consumer.acknowledge(got[2:])
            await hostile.settle(consumer)
    sent = sorted(ack.offset for ack in hostile.acks(consumer, AckType.ACCEPT) if ack.error == 0)
    wanted = [0, 1] if first == "close" and (second or 2 not in sent) else [0, 1, 2]
    judge.equal(wanted, sent, f"accepted, one of them beside {first}, which said {second!r}")


@check("CLI-95", needs="concurrent", timeout=90)
@pytest.mark.parametrize("second", ["commit_sync", "unsubscribe", "close"])
async def test_calls_beside_a_poll(hostile: Harness, judge: Judge, second: str) -> None:
    if second != "close" and not hostile.adapter.has(second.replace("_", "-")):
        raise OutOfReach(f"the client has no {second}")
    _, consumer = await hostile.consuming(2, settle=True)
    limit = 5000 if second == "commit_sync" or hostile.close_limit else None
    fields = {} if second == "unsubscribe" else {"timeout_ms": limit}
    async with hostile.meanwhile(refusal(consumer.poll(8.0))) as polling:
        await hostile.until(polling.done, 1.0)
        call = consumer.call(second, within=20.0, concurrent=True, **fields)
        took, refused = await hostile.timed(refusal(call))
        judge.holds(took <= 12, f"{second} beside a poll returned after {took:.1f} s")
        judge.one_of(SERVED, refused, f"{second} beside a poll")
        returned = time.monotonic()
        ended = await hostile.until(polling.done, 10.5)  # a poll may wait for its time
        judge.holds(ended, f"a poll of 8 s went on for 10.5 s after {second} had returned")
    if second == "close" and not refused:
        late = [one.api for one in hostile.seen(consumer) if one.sent > returned + 0.5]
        judge.equal([], late, "requests of a poll whose consumer had been closed")
    sent = sorted(ack.offset for ack in hostile.acks(consumer, AckType.ACCEPT))
    judge.equal([0, 1], sent, f"accepted, with a {second} beside a poll")


@check("CLI-96")
async def test_two_consumers(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(40, batches=20)
    consumers = [
        await harness.consumer(queue, acquire=harness.strict, max_poll_records=2) for _ in "ab"
    ]
    got: list[list[int]] = [[], []]

    async def consume(index: int) -> None:
        def done(seen: Polled) -> bool:
            got[index] = seen.offsets
            return bool(seen.errors) or sum(map(len, got)) >= 40

        for error in (await harness.polls(consumers[index], done, READY, seconds=0.4)).errors:
            raise error

    await asyncio.gather(consume(0), consume(1))
    judge.equal(list(range(40)), sorted(got[0] + got[1]), "what both were given")
    for consumer, mine in zip(consumers, got, strict=True):
        brought = sorted(one.offset for one in acquired(harness.seen(consumer)))
        judge.equal(brought, sorted(mine), "acquired by one of them, and given to it")
        strays = {a.offset for a in harness.acks(consumer)} - set(mine)
        judge.equal(set(), strays, "acknowledged by one of them, given to the other")


@check("CLI-44", needs="instance-id")
async def test_instance_id(hostile: Harness, judge: Judge) -> None:
    queue, consumer = await hostile.consuming(2, 1)
    took, refused = await hostile.timed(refusal(consumer.instance_id(2.0)))
    judge.holds(refused, "an instance id was told where no broker takes telemetry")
    judge.holds(took <= 6, f"asking for 2 s took {took:.1f} s")
    hostile.play({"on": "ApiVersions", "do": "with-apis", "keys": TELEMETRY, "times": 0})
    offered = {"do": "telemetry", "times": 0, "applied": False}
    hostile.play({"on": "GetTelemetrySubscriptions", **offered})
    other = await hostile.consumer(queue)
    await hostile.polls(other, within=1.0)
    told = await other.instance_id(10.0)
    source = "Javadoc of clientInstanceId: an id, in the type and form of the client's language"
    in_base64 = base64.urlsafe_b64encode(INSTANCE.bytes).decode().rstrip("=")
    judge.one_of(
        dict.fromkeys((str(INSTANCE), INSTANCE.hex, in_base64), source),
        told,
        "instance id; the cluster gave another",
    )
