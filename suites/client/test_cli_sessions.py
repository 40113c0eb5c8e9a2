"""A client's share sessions: epochs, what is in them, what ends them."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from fixtures.proxies.exchange import Exchange
from suites.broker.check import check
from suites.client.harness import ARRIVES, FLOOD, HASTE, Harness
from suites.client.wire import SHARE, acked, busiest, carries_acks, forgotten, hasty, named
from suites.judge import Judge


def by_session(exchanges: list[Exchange]) -> list[list[Exchange]]:
    """Return exchanges grouped by member and broker, each cut where a session is opened anew."""
    lines: dict[object, list[Exchange]] = defaultdict(list)
    for one in exchanges:
        lines[one.request["member_id"], one.node].append(one)
    found: list[list[Exchange]] = []
    for line in lines.values():
        for one in line:
            if (
                one.request["share_session_epoch"] == 0
                or not found
                or found[-1][0].node != one.node
            ):
                found.append([])
            found[-1].append(one)
    return found


@check("CLI-09", "CLI-55", "CLI-58")
async def test_epochs(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(4, batches=4)
    consumer = await harness.consumer(queue)
    await harness.take(consumer, 4, kind="accept")
    await harness.settle(consumer)
    await harness.polled_for(consumer, 1.0)
    await consumer.close()
    sessions = by_session(harness.seen(consumer))
    judge["CLI-09"].holds(sessions, "no session was opened")
    for session in sessions:
        first = session[0]
        judge["CLI-09"].equal(0, first.request["share_session_epoch"], "epoch of the first request")
        judge["CLI-09"].equal("ShareFetch", first.api, "the request that opens the session")
        judge["CLI-09"].holds(
            not carries_acks(first), f"#{first.number} opens a session and acknowledges"
        )
        for before, after in pairwise(session):
            judge["CLI-58"].holds(
                after.sent >= before.responded,
                f"#{after.number} was sent before #{before.number} of its session was answered",
            )
            went = before.request["share_session_epoch"]
            now = after.request["share_session_epoch"]
            if before.response is not None and not before.response["error_code"] and went >= 0:
                allowed = {
                    went + 1: "KIP-932 §Share sessions: the epoch goes up by one with each request",
                    -1: "KIP-932 §Share sessions: -1 closes the session",
                }
                judge["CLI-09"].one_of(allowed, now, f"epoch after {went}")
    judge["CLI-58"].saw(requests=sum(map(len, sessions)))
    last = sessions[-1][-1].request["share_session_epoch"]
    judge["CLI-55"].equal(-1, last, "epoch of the last request of a closed client")


@check("CLI-10")
@pytest.mark.parametrize("code", ["SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"])
async def test_session_lost_on_fetch(hostile: Harness, judge: Judge, code: str) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.settle(consumer)
    hostile.play({"on": "ShareFetch", "when": {"min_epoch": 1}, "do": "error", "code": code})
    await hostile.polls_until(consumer, lambda: any(one.scripted for one in hostile.seen(consumer)))
    await queue.produce([b"after"])
    got = await hostile.arrival(consumer)
    judge.equal([1], [r.offset for r in got], f"records after {code}")
    told = next(one.number for one in hostile.seen(consumer) if one.scripted)
    after = [one for one in hostile.seen(consumer) if one.number > told]
    judge.equal(0, after[0].request["share_session_epoch"], f"epoch after {code}")


@check("CLI-56", needs=("explicit|mixed", "commit-sync|callback"))
@pytest.mark.parametrize("code", ["SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"])
async def test_session_lost_with_acks(hostile: Harness, judge: Judge, code: str) -> None:
    queue = await hostile.queue(2)
    consumer = await hostile.consumer(queue)
    got = await hostile.take(consumer, 2)
    hostile.play(
        {"on": list(SHARE), "when": {"has": "acks"}, "do": "error", "code": code, "applied": False}
    )
    since = len(consumer.settled)
    await consumer.acknowledge(got)
    told = await hostile.outcome(consumer, since)
    judge.holds(told, f"nothing was reported of acknowledgements that met {code}")
    judge.holds(
        all(one.error for one in told),
        f"acknowledgements that met {code} are reported as {[one.error for one in told]}",
    )


@check("CLI-57")
async def test_cut_connection(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.settle(consumer)
    last = len(hostile.tap.exchanges)
    judge.holds(hostile.tap.close_connections(), "a connection was there to be cut")
    await queue.produce([b"after"])
    got = await hostile.arrival(consumer)
    judge.equal([1], [r.offset for r in got], "records after the cut")
    leader = queue.topic.leaders[0]
    after = [
        one
        for one in hostile.seen(consumer, "ShareFetch")
        if one.number > last + 1 and one.response
    ]
    mine = [one for one in after if one.node == leader]
    opened = [one for one in mine if one.request["share_session_epoch"] == 0]
    judge.holds(opened, "no session was opened on the new connection")


@check("CLI-11")
async def test_forgets_left_topics(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    other = await harness.admin.create_topic(1)
    await harness.admin.produce(other, 1)
    consumer = await harness.consumer(queue, queue.topic.name, other.name)
    await harness.take(consumer, 2, kind="accept")
    await harness.settle(consumer)
    await consumer.subscribe(other.name)
    left = queue.topic.id, 0
    node = queue.topic.leaders[0]

    def let_go() -> bool:
        return any(
            left in forgotten(one) or one.request["share_session_epoch"] == -1
            for one in harness.seen(consumer)
            if one.node == node
        )

    await harness.polls_until(consumer, let_go, 8)
    judge.holds(let_go(), f"{queue.topic.name}-0 was never forgotten on broker {node}")
    for one in harness.seen(consumer, "ShareFetch"):
        both = forgotten(one) & {p for p in named(one) if not carries_acks(one)}
        judge.equal(set(), both, f"named and forgotten in #{one.number}")


@check("CLI-12")
async def test_no_room_for_a_session(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    steps = hostile.play(
        {
            "on": "ShareFetch",
            "when": {"share_session_epoch": 0},
            "do": "error",
            "code": "SHARE_SESSION_LIMIT_REACHED",
            "applied": False,
            "times": 0,
        }
    )
    consumer = await hostile.consumer(queue)
    await hostile.polls_until(
        consumer, lambda: len([o for o in hostile.seen(consumer) if o.scripted]) > 1
    )
    await hostile.polled_for(consumer, 2.0)
    tried = [one for one in hostile.seen(consumer) if one.scripted]
    judge.holds(len(tried) > 1, f"{len(tried)} attempts to open a session")
    most = busiest(tried)
    judge.holds(most <= FLOOD, f"{most} attempts within a second")
    judge.holds(hasty(tried) <= HASTE, f"{hasty(tried)} attempts without a pause")
    hostile.tap.script.drop(steps)
    got = await hostile.arrival(consumer)
    judge.equal([0], [r.offset for r in got], "records once there is room")


@check("CLI-26", "CLI-59", needs="explicit|mixed")
@pytest.mark.parametrize("hint", [True, False])
async def test_leader_moved(hostile: Harness, judge: Judge, hint: bool) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1, 2, 3]])
    queue = await hostile.queue_of(topic)
    await queue.produce(2)
    consumer = await hostile.consumer(queue)
    got = await hostile.take(consumer, 2)
    before = len(hostile.tap.exchanges)
    if not hint:
        hostile.play({"on": list(SHARE), "do": "without-hint", "times": 0})
    moved = await hostile.admin.move_leader(topic, 2)
    since = len(consumer.settled)
    await consumer.acknowledge(got)
    told = []
    if hostile.adapter.has("commit-sync"):
        told = await hostile.outcome(consumer, since)
    await hostile.admin.produce(moved, [b"after"])
    seen = [r.offset for r in await hostile.arrival(consumer, lambda r: r.offset == 2)]
    # What came from the new leader may be acknowledged there from then on, and only that.
    fetched: dict[tuple[int, int], int] = {}
    for one in hostile.seen(consumer, "ShareFetch"):
        if one.node == 2 and one.number > before:
            for place in hostile.brought(one):
                fetched.setdefault(place, one.number)
    strays = [
        str(ack)
        for ack in acked(hostile.seen(consumer))
        if ack.by.node == 2
        and fetched.get((ack.partition, ack.offset), ack.by.number) >= ack.by.number
    ]
    judge["CLI-26"].equal([], strays, "acknowledgements at the new leader of what it never gave")
    judge["CLI-26"].saw(moves=1)
    if told:
        judge["CLI-26"].holds(
            all(one.error for one in told),
            f"acknowledged at a leader that was gone, reported as {[one.error for one in told]}",
        )
    judge["CLI-59"].holds(
        2 in seen,
        f"the partition moved to broker 2; {ARRIVES:g} s later only {seen} had come from there",
    )
