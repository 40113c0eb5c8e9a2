"""A client as a member: joining, heartbeats, fencing, leaving."""

from __future__ import annotations

import contextlib
import itertools
from uuid import UUID

import pytest

from fixtures.clients.adapter import Refused
from spec.verdict import Undecided
from suites.broker.check import check
from suites.client.harness import FLOOD, HASTE, READY, Harness
from suites.client.wire import HEARTBEAT, busiest, hasty, named
from suites.judge import Judge

RECOVERY = 12.0
"""Seconds within which a client has to be back after a trouble that has passed."""


@check("CLI-01")
async def test_heartbeat_interval(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    consumer = await harness.consumer(queue)
    await harness.take(consumer, 1, kind="accept")
    await harness.polled_for(consumer, 3.0)
    beats = [one for one in harness.heartbeats(consumer) if one.response]
    steady = [one for one in beats if (one.request["member_epoch"] or 0) > 0]
    interval = steady[0].response["heartbeat_interval_ms"] / 1000 if steady[0].response else 0.5
    gaps = [b.sent - a.sent for a, b in itertools.pairwise(steady)]
    judge.holds(gaps, f"{len(steady)} heartbeats in 3 s, interval {interval} s")
    judge.holds(
        max(gaps) <= interval * 2 + 1,
        f"the interval is {interval} s, and {max(gaps):.2f} s passed between two heartbeats",
    )
    usual = sorted(gaps)[len(gaps) // 2]
    judge.holds(
        usual >= interval * 0.4,
        f"the interval is {interval} s, and {usual:.2f} s are usual between two heartbeats",
    )
    limit = 2 * 4 / interval + 4
    judge.holds(len(beats) <= limit, f"{len(beats)} heartbeats in about 4 s, at most {limit:.0f}")
    overlapping = [
        (a.number, b.number) for a, b in itertools.pairwise(beats) if b.sent < a.responded
    ]
    judge.equal([], overlapping, "heartbeats sent while another was under way")
    judge.saw(heartbeats=len(beats))


@check("CLI-02", "CLI-48", fast=True)
async def test_identity(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    consumer = await harness.consumer(queue)
    await harness.polls_until(consumer, lambda: len(harness.heartbeats(consumer)) >= 4)
    beats = harness.heartbeats(consumer)
    first = beats[0].request
    judge["CLI-48"].equal(0, first["member_epoch"], "epoch of the first heartbeat")
    judge["CLI-48"].equal(
        [queue.topic.name], first["subscribed_topic_names"], "subscription in the first"
    )
    judge["CLI-48"].equal(queue.group, first["group_id"], "group of the first")
    ids = {one.request["member_id"] for one in beats}
    judge["CLI-02"].equal(1, len(ids), "different member ids")
    (only,) = ids
    judge["CLI-02"].holds(1 <= len(only) <= 36, f"the member id has {len(only)} characters: {only}")
    for before, after in itertools.pairwise(beats):
        if (
            before.response
            and not before.response["error_code"]
            and after.request["member_epoch"] > 0
        ):
            judge["CLI-02"].equal(
                before.response["member_epoch"],
                after.request["member_epoch"],
                f"epoch of heartbeat #{after.number} after the response to #{before.number}",
            )
    judge["CLI-02"].saw(heartbeats=len(beats))


@check("CLI-03")
@pytest.mark.parametrize("code", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
async def test_fenced(hostile: Harness, judge: Judge, code: str) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    hostile.play({"on": HEARTBEAT, "do": "error", "code": code, "applied": False})
    await hostile.polls_until(
        consumer, lambda: any(one.scripted for one in hostile.heartbeats(consumer))
    )
    (fenced,) = [one for one in hostile.heartbeats(consumer) if one.scripted]

    def later() -> list[int]:
        beats = hostile.heartbeats(consumer)
        return [one.request["member_epoch"] for one in beats if one.number > fenced.number]

    await hostile.polls_until(consumer, later, RECOVERY)
    judge.equal([0], later()[:1], f"epoch of the first heartbeat after {code}")
    ids = {one.request["member_id"] for one in hostile.heartbeats(consumer)}
    judge.equal(1, len(ids), "different member ids")
    await queue.produce([b"after"])
    got = await hostile.polls_until(
        consumer, lambda: any(one.response for one in hostile.seen(consumer)[-1:]), 1.0
    )
    got += await hostile.polls_until(consumer, lambda: False, 3.0) if not got else []
    judge.equal([1], [r.offset for r in got], "records after joining again")
    judge.saw(fenced=1)


@check("CLI-04")
async def test_group_gone(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    hostile.play({"on": HEARTBEAT, "do": "error", "code": "GROUP_ID_NOT_FOUND", "applied": False})
    errors: list[str] = []
    for _ in range(4):
        errors += (await hostile.polled_for(consumer, 1.5))[1]
        beats = hostile.heartbeats(consumer)
        told = [one.number for one in beats if one.scripted]
        again = [one for one in beats if told and one.number > told[0]]
        if errors or again:
            break
    judge.holds(told, "the client was told GROUP_ID_NOT_FOUND")
    judge.holds(
        errors or any(one.request["member_epoch"] == 0 for one in again),
        f"errors {errors}, heartbeats afterwards {[o.request['member_epoch'] for o in again]}",
    )


@check("CLI-05", fast=True)
async def test_leaves_when_closed(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    consumer = await harness.consumer(queue)
    await harness.take(consumer, 1, kind="accept")
    await consumer.close()
    left = [one for one in harness.heartbeats(consumer) if one.request["member_epoch"] == -1]
    judge.holds(left, "no heartbeat with epoch -1 was sent")
    described = await harness.admin.describe_group(queue.group)
    members = [member.member_id for member in described.members]
    judge.equal([], members, "members of the group after close")


@check("CLI-49")
async def test_leaving_again(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue, request_timeout_ms=3000)
    await hostile.take(consumer, 1, kind="accept")
    hostile.play(
        {
            "on": HEARTBEAT,
            "when": {"member_epoch": -1},
            "do": "error",
            "code": "NOT_COORDINATOR",
            "applied": False,
        }
    )
    with contextlib.suppress(Refused):  # it may say that leaving failed
        await consumer.close()
    described = await hostile.admin.describe_group(queue.group)
    left = [one for one in hostile.heartbeats(consumer) if one.request["member_epoch"] == -1]
    judge.holds(left, "no heartbeat with epoch -1 was sent")
    judge.equal(
        [],
        [member.member_id for member in described.members],
        f"members after {len(left)} leaves, the first of which was refused",
    )


@check("CLI-06", needs="max-poll-interval")
async def test_silent_application(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    consumer = await harness.consumer(queue, max_poll_interval_ms=1500)
    await harness.take(consumer, 1, kind="accept")

    def left() -> list[int]:
        beats = harness.heartbeats(consumer)
        return [one.number for one in beats if one.request["member_epoch"] == -1]

    gone = await harness.until(left, 10)
    judge.holds(gone, "10 s without a poll, the limit is 1.5 s, and no leave was sent")

    def again() -> bool:
        beats = harness.heartbeats(consumer)
        return any(one.number > left()[0] and one.request["member_epoch"] == 0 for one in beats)

    await harness.polls_until(consumer, again, RECOVERY)
    judge.holds(again(), "no heartbeat with epoch 0 after the next poll")


@check("CLI-07")
@pytest.mark.parametrize(
    "code", ["GROUP_AUTHORIZATION_FAILED", "GROUP_MAX_SIZE_REACHED", "UNSUPPORTED_VERSION"]
)
async def test_no_entry(hostile: Harness, judge: Judge, code: str) -> None:
    queue = await hostile.queue(1)
    hostile.play({"on": HEARTBEAT, "do": "error", "code": code, "applied": False, "times": 0})
    consumer = await hostile.consumer(queue.group)
    said = await hostile.subscribing(consumer, queue.topic.name)
    errors = [said] if said else []
    for _ in range(4):
        errors += (await hostile.polled_for(consumer, 1.5))[1]
        if errors:
            break
    judge.holds(errors, f"6 s of polling behind {code}, and no poll failed")
    most = busiest(hostile.heartbeats(consumer))
    judge.holds(most <= FLOOD, f"{most} heartbeats within a second")


@check("CLI-07")
async def test_no_share_groups(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    hostile.play({"on": "ApiVersions", "do": "without-api", "key": 76, "times": 0})
    consumer = await hostile.consumer(queue.group)
    said = await hostile.subscribing(consumer, queue.topic.name)
    errors = [said] if said else []
    for _ in range(4):
        errors += [] if errors else (await hostile.polled_for(consumer, 1.5))[1]
    judge.holds(errors, "6 s of polling without share groups, and no poll failed")
    most = busiest(hostile.heartbeats(consumer))
    judge.holds(most <= FLOOD, f"{most} heartbeats within a second")


@check("CLI-47")
@pytest.mark.parametrize("code", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"])
async def test_pauses_between_failures(hostile: Harness, judge: Judge, code: str) -> None:
    queue = await hostile.queue(1)
    steps = hostile.play(
        {"on": HEARTBEAT, "do": "error", "code": code, "applied": False, "times": 0}
    )
    consumer = await hostile.consumer(queue.group)
    refused = await hostile.subscribing(consumer, queue.topic.name)
    await hostile.polls_until(consumer, lambda: bool(hostile.heartbeats(consumer)), READY)
    await hostile.polled_for(consumer, 2.5)
    failed = hostile.heartbeats(consumer)
    if not failed:
        raise Undecided("no heartbeat was sent")
    most = max(busiest(failed), busiest(hostile.tap.of("FindCoordinator")))
    judge.holds(most <= FLOOD, f"{most} attempts within a second behind {code}")
    row = hasty(failed)
    judge.holds(row <= HASTE, f"{row} heartbeats in a row without a pause")
    hostile.tap.script.drop(steps)
    if refused:  # it joins when it subscribes, and leaves trying again to the application
        await consumer.subscribe(queue.topic.name)
    got = await hostile.polls_until(consumer, lambda: False, 0.1)
    got += await hostile.take(consumer, 1 - len(got), kind="accept") if not got else []
    judge.equal([0], [r.offset for r in got], "records once heartbeats go through")


@check("CLI-50")
@pytest.mark.parametrize("code", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"])
async def test_coordinator_moved(hostile: Harness, judge: Judge, code: str) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    before = len(hostile.tap.of("FindCoordinator"))
    hostile.play({"on": HEARTBEAT, "do": "error", "code": code, "applied": False})

    def recovered() -> bool:
        beats = hostile.heartbeats(consumer)
        told = [one.number for one in beats if one.scripted]
        return bool(told) and any(
            one.number > told[0] and one.response and not one.response["error_code"]
            for one in beats
        )

    await hostile.polls_until(consumer, recovered, RECOVERY)
    judge.holds(recovered(), f"no good heartbeat within {RECOVERY} s after {code}")
    judge.holds(
        len(hostile.tap.of("FindCoordinator")) > before, f"no FindCoordinator was sent after {code}"
    )


@check("CLI-51")
@pytest.mark.parametrize("code", ["UNKNOWN_SERVER_ERROR", 9999])
async def test_unknown_heartbeat_error(hostile: Harness, judge: Judge, code: str | int) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    hostile.play({"on": HEARTBEAT, "do": "error", "code": code, "applied": False, "times": 2})
    errors: list[str] = []
    good: list[int] = []
    for _ in range(6):
        errors += (await hostile.polled_for(consumer, 1.5))[1]
        beats = hostile.heartbeats(consumer)
        told = [one.number for one in beats if one.scripted]
        good = [
            one.number
            for one in beats
            if told and one.number > told[-1] and one.response and not one.response["error_code"]
        ]
        if errors or good:
            break
    judge.holds(told, f"the client was answered {code}")
    judge.holds(errors or good, f"after {code} neither a good heartbeat nor an error")


@check("CLI-53")
async def test_lost_heartbeat(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue, request_timeout_ms=2000)
    await hostile.take(consumer, 1, kind="accept")
    hostile.play({"on": HEARTBEAT, "do": "close"})

    def recovered() -> bool:
        beats = hostile.heartbeats(consumer)
        lost = [one.number for one in beats if one.scripted]
        return bool(lost) and any(one.number > lost[0] and one.response for one in beats)

    await hostile.polls_until(consumer, recovered, RECOVERY)
    judge.holds(recovered(), f"no heartbeat within {RECOVERY} s after a lost response")
    ids = {one.request["member_id"] for one in hostile.heartbeats(consumer)}
    judge.equal(1, len(ids), "different member ids")


@check("CLI-54")
async def test_fetches_what_is_assigned(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1, partitions=3)
    first = await hostile.consumer(queue)
    await hostile.take(first, 1, kind="accept")

    def assigned() -> set[tuple[UUID, int]]:
        return {
            (topic["topic_id"], index)
            for one in hostile.heartbeats(first)
            for topic in ((one.response or {}).get("assignment") or {}).get("topic_partitions", [])
            for index in topic["partitions"]
        }

    def fetched() -> set[tuple[UUID, int]]:
        return {place for one in hostile.seen(first, "ShareFetch") for place in named(one)}

    await hostile.polled_for(first, 0.6)  # time for fetches that it may not send
    await hostile.polls_until(first, lambda: assigned() <= fetched(), RECOVERY)
    judge.equal(set(), fetched() - assigned(), "fetched and never assigned")
    judge.equal(set(), assigned() - fetched(), "assigned and never fetched")
    judge.saw(partitions=len(fetched()))


@check("CLI-08")
async def test_late_metadata(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    hostile.play({"on": "Metadata", "do": "unknown-topics", "times": 4})
    consumer = await hostile.consumer(queue)
    got: list[int] = []
    for _ in range(8):
        got += [r.offset for r in (await hostile.polled_for(consumer, 2.0))[0]]
        if got:
            break
    late = [one for one in hostile.tap.of("Metadata") if one.scripted]
    judge.holds(late, "metadata was asked for")
    judge.equal([0], got, f"records after {len(late)} responses without the topic")


@check("CLI-52", needs="unsubscribe")
async def test_unsubscribe_leaves(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    consumer = await harness.consumer(queue)
    await harness.take(consumer, 1, kind="accept")
    await harness.settle(consumer)
    await consumer.unsubscribe()

    def left() -> bool:
        return any(one.request["member_epoch"] == -1 for one in harness.heartbeats(consumer))

    judge.holds(await harness.until(left, 5), "no heartbeat with epoch -1 was sent")
    try:
        await consumer.poll(0.2)
    except Refused as error:
        judge.saw(refused=int(error.name == "illegal-state"))
    last = max(one.number for one in harness.heartbeats(consumer))
    after = [one for one in harness.seen(consumer, "ShareFetch") if one.number > last]
    fresh = [one.number for one in after if one.request["share_session_epoch"] != -1]
    judge.equal([], fresh, "fetches after leaving")


@check("CLI-46", needs="running")
async def test_running_means_joined(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue([b"before"], reset="latest")
    consumer = await harness.consumer(queue, await_running=True)
    asked = len(harness.seen(consumer, "ShareFetch"))
    await queue.produce([b"right after"])
    got = [one.offset for one in await harness.arrival(consumer, lambda one: one.offset == 1)]
    said = f"{asked} ShareFetch requests when it said that it was running"
    judge.equal([1], got, f"delivered, produced right after the start; {said}")
