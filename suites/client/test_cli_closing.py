"""The end of a client: closing under all conditions, and crashing."""

from suites.client.kit import *

SLACK = 6.0  # Seconds beyond its limit that a close may take before it is called late.


@check("CLI-38", "CLI-90", needs="explicit|mixed", fast=True)
async def test_close_settles(harness: Harness, judge: Judge) -> None:
    queue, consumer, got = await harness.holding(6, lock_ms=60000)
    other = await harness.ready(queue)
    await consumer.acknowledge(got[:3])
    await consumer.close()
    accepted = sorted({a.offset for a in harness.acks(consumer, AckType.ACCEPT)})
    judge["CLI-38"].equal([0, 1, 2], accepted, "accepted by closing")
    again = await harness.arrival(other, 5, within=12)
    judge["CLI-90"].equal([3, 4, 5], sorted(again.offsets), "delivered to another")


@check("CLI-81", needs="close-timeout")
@pytest.mark.parametrize("silent", ["everything", "acknowledgements"])
async def test_close_before_a_silent_broker(hostile: Harness, judge: Judge, silent: str) -> None:
    _, consumer = await hostile.consuming(2)
    everything = [*SHARE, HEARTBEAT, "FindCoordinator", "Metadata"]
    on = everything if silent == "everything" else ["ShareAcknowledge"]
    hostile.play({"on": on, "do": "drop", "times": 0, "applied": False})
    took = await _closed(hostile, consumer, 2.0, judge)
    judge.holds(took <= 2 + SLACK, f"close of 2 s took {took:.1f} s")


async def _beside_silence(hostile: Harness, judge: Judge, *, commits: bool) -> tuple[Handle, float]:
    topic = await hostile.admin.create_topic(assignments=[[1], [2], [3]])
    queue = await hostile.queue_of(topic, 1)
    consumer = await hostile.consumer(queue)
    for partition in range(3):
        await queue.produce(2, partition)
    await hostile.take(consumer, 7, kind="accept")
    silent = next(n for n in (3, 2) if n != hostile.heartbeats(consumer)[-1].node)
    drop = {"do": "drop", "times": 0, "applied": False}
    hostile.play({"on": list(SHARE), "when": {"node": silent}, **drop})
    if commits:
        await refusal(hostile.settle(consumer, 2.0))
    return consumer, await _closed(hostile, consumer, 3.0, judge)


@check("CLI-05", needs="close-timeout", timeout=120)
async def test_leaves_beside_a_silent_broker(hostile: Harness, judge: Judge) -> None:
    consumer, took = await _beside_silence(hostile, judge, commits=False)
    said = f"one broker is silent; the coordinator, another one, got no leave in {took:.0f} s"
    judge.holds(hostile.leaves(consumer), said)


@check("CLI-81", needs="close-timeout", timeout=120)
@pytest.mark.parametrize("commits", [False, True])
async def test_closes_beside_a_silent_broker(
    hostile: Harness, judge: Judge, *, commits: bool
) -> None:
    _, took = await _beside_silence(hostile, judge, commits=commits)
    judge.holds(took <= 3 + SLACK, f"close of 3 s took {took:.1f} s")


@check("CLI-38", "CLI-55", needs="explicit|mixed")
async def test_close_after_a_fatal_error(hostile: Harness, judge: Judge) -> None:
    _, consumer, got = await hostile.holding(3)
    await consumer.acknowledge(got)
    denied = {"do": "error", "code": "GROUP_AUTHORIZATION_FAILED", "applied": False}
    hostile.play({"on": HEARTBEAT, "times": 0, **denied})
    await _beaten(hostile, consumer)
    await hostile.until(lambda: False, 0.5)
    await refusal(hostile.end(consumer, 40.0))
    accepted = sorted({a.offset for a in hostile.acks(consumer, AckType.ACCEPT)})
    said = "by closing after a fatal error of the group"
    judge["CLI-38"].equal([0, 1, 2], accepted, f"accepted {said}")
    last = hostile.seen(consumer)[-1].request["share_session_epoch"]
    judge["CLI-55"].equal(-1, last, f"epoch of the last request {said}")


@check("CLI-129", needs=("commit-async", "callback", "callback-offsets", "explicit|mixed"))
async def test_close_during_a_commit(hostile: Harness, judge: Judge) -> None:
    _, consumer, got = await hostile.holding(3)
    late = {"when": {"has": "acks"}, "do": "pass", "delay": 1.0}
    (step,) = hostile.play({"on": list(SHARE), **late})
    await consumer.acknowledge(got)
    await consumer.commit_async()
    await hostile.until(lambda: step.taken)
    await refusal(consumer.close(hostile.close_limit, within=45))
    taken = {ack.offset for ack in hostile.acks(consumer, AckType.ACCEPT) if ack.error == 0}
    done = [one.offsets or () for one in consumer.settled if one.error is None]
    told = {offset for offsets in done for offset in offsets}
    judge.equal(sorted(taken), sorted(taken & told), "taken, answered while closing, and told")


@check("CLI-38")
@pytest.mark.parametrize("code", ["GROUP_ID_NOT_FOUND", "UNKNOWN_MEMBER_ID"])
async def test_heartbeat_refused_while_closing(hostile: Harness, judge: Judge, code: str) -> None:
    _, consumer = await hostile.consuming(1, settle=True)
    late = {"do": "error", "code": code, "applied": False, "delay": 1.0}
    hostile.play({"on": HEARTBEAT, **late})
    await _beaten(hostile, consumer)
    refused = await refusal(consumer.close(hostile.close_limit, within=60.0))
    judge.equal("", refused, f"close, a heartbeat under way being answered {code}")


async def _beaten(hostile: Harness, consumer: Handle) -> None:
    def met() -> bool:
        return any(one.scripted for one in hostile.heartbeats(consumer))

    # Some clients send heartbeats while they poll, and at no other time.
    if not (await hostile.until(met, 5.0) or await hostile.polls_until(consumer, met)):
        raise Undecided(f"no heartbeat met the script within {ARRIVES:g} s")


async def _closed(harness: Harness, consumer: Handle, limit: float | None, judge: Judge) -> float:
    """Close and return how long it took; a hang breaks the rule and is no fault of the adapter."""
    began = harness.now
    try:
        await refusal(consumer.close(limit, within=45))
    except AdapterHang:
        harness.excuse("close")
        judge.holds(False, f"close had not returned after {harness.now - began:.0f} s")
    return harness.now - began


@check("CLI-82", timeout=90)
async def test_close_without_brokers(hostile: Harness, judge: Judge) -> None:
    _, consumer = await hostile.consuming(2)
    hostile.tap.disappear()
    took = await _closed(hostile, consumer, hostile.close_limit, judge)
    # Who takes no limit has none that is told; it has to return all the same.
    in_limit = not hostile.close_limit or took <= hostile.close_limit + SLACK
    judge.holds(in_limit, f"close took {took:.1f} s, its limit being {hostile.close_limit} s")


@check("CLI-83")
async def test_closing_twice(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(1)
    await consumer.close()
    took = await _closed(harness, consumer, None, judge)
    judge.holds(took <= 2, f"closing again took {took:.1f} s")


@check("CLI-39")
async def test_after_close(harness: Harness, judge: Judge) -> None:
    queue, consumer, got = await harness.holding(1)
    await consumer.close()
    before = len(harness.seen(consumer))
    has = consumer.adapter.has
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "poll": lambda: consumer.poll(1.0),
        "subscribe": lambda: consumer.subscribe(queue.topic.name),
        "unsubscribe": consumer.unsubscribe,
        "subscription": consumer.subscription,
        "commit-sync": consumer.commit_sync,
        "commit-async": consumer.commit_async,
        "lock-duration": consumer.lock_ms,
        "acknowledge": lambda: consumer.acknowledge(got),
    }
    chosen = {"poll", "subscribe"}
    if has(Capability.EXPLICIT) or has(Capability.MIXED):
        chosen.add("acknowledge")
    taken: list[str] = []
    took: dict[str, float] = {}
    for name, call in calls.items():
        if name not in chosen and not has(name):
            continue
        took[name], refused = await harness.timed(refusal(call()))
        if not refused:
            taken.append(name)
    judge.equal([], taken, "calls on a closed consumer that were not refused")
    late = {name: round(seconds, 1) for name, seconds in took.items() if seconds > 2}
    judge.equal({}, late, "seconds until calls on a closed consumer were refused")
    judge.equal(before, len(harness.seen(consumer)), "requests after close")


@check("CLI-84")
async def test_crash(doomed: Harness, adapter: Adapter, judge: Judge) -> None:
    queue = await doomed.queue(3, lock_ms=60000)
    await doomed.holding(queue, 3)
    own, doomed.adapter = doomed.adapter, adapter
    other = await doomed.ready(queue)
    await own.crash()
    began = time.monotonic()
    again = await doomed.arrival(other, 2, within=20)
    took = time.monotonic() - began
    said = f"delivered to another within {took:.0f} s, the locks were for 60 s"
    judge.equal([0, 1, 2], sorted(again.offsets), said)
