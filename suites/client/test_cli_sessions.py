"""A client's share sessions: epochs, what is in them, what ends them."""

from suites.client.kit import *


@check("CLI-09", "CLI-55", "CLI-58")
async def test_epochs(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(4, batches=4, settle=True, partitions=3)
    await harness.polls(consumer, within=1.0)
    await consumer.close()
    sessions = by_session(harness.seen(consumer))
    judge["CLI-09"].holds(sessions, "no session was opened")
    for session in sessions:
        first = session[0]
        judge["CLI-09"].equal(0, first.request["share_session_epoch"], "epoch of the first request")
        judge["CLI-09"].equal("ShareFetch", first.api, "the request that opens the session")
        said = f"#{first.number} opens a session and acknowledges"
        judge["CLI-09"].holds(not carries_acks(first), said)
        for before, after in pairwise(session):
            said = f"#{after.number} was sent before #{before.number} of its session was answered"
            judge["CLI-58"].holds(after.sent >= before.responded, said)
            went = before.request["share_session_epoch"]
            now = after.request["share_session_epoch"]
            if before.response is not None and not before.response["error_code"] and went >= 0:
                allowed = {
                    went + 1: "KIP-932 §Share sessions: the epoch goes up by one with each request",
                    -1: "KIP-932 §Share sessions: -1 closes the session",
                }
                judge["CLI-09"].one_of(allowed, now, f"epoch after {went}")
    judge["CLI-58"].saw(requests=sum(map(len, sessions)))
    last = {one[-1].node: one[-1].request["share_session_epoch"] for one in sessions}
    closed = dict.fromkeys(last, -1)
    judge["CLI-55"].equal(closed, last, "epochs of a closed client's last requests, by broker")


@check("CLI-10")
@pytest.mark.parametrize("code", ["SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"])
async def test_session_lost_on_fetch(hostile: Harness, judge: Judge, code: str) -> None:
    queue, consumer = await hostile.consuming(1, settle=True)
    lost = {"do": "error", "code": code, "applied": False}
    hostile.play({"on": "ShareFetch", "when": {"min_epoch": 1}, **lost})
    await hostile.meets(consumer)
    await queue.produce([b"after"])
    judge.holds(1 in (await hostile.arrival(consumer, 1)).offsets, f"nothing came after {code}")
    told = next(one.number for one in hostile.seen(consumer) if one.scripted)
    after = [one for one in hostile.seen(consumer) if one.number > told]
    judge.equal(0, after[0].request["share_session_epoch"], f"epoch after {code}")


@check("CLI-57")
async def test_cut_connection(hostile: Harness, judge: Judge) -> None:
    queue, consumer = await hostile.consuming(1, settle=True)
    last = len(hostile.tap.exchanges)
    judge.holds(hostile.tap.close_connections(), "a connection was there to be cut")
    await queue.produce([b"after"])
    judge.holds(1 in (await hostile.arrival(consumer, 1)).offsets, "nothing came after the cut")
    fetches = hostile.seen(consumer, "ShareFetch")
    after = [one for one in fetches if one.number > last + 1 and one.response]
    mine = [one.request for one in after if one.node == queue.topic.leaders[0]]
    opened = [one for one in mine if one["share_session_epoch"] == 0]
    judge.holds(opened, "no session was opened on the new connection")


@check("CLI-11")
async def test_forgets_left_topics(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(1)
    node = queue.topic.leaders[0]
    # With the same leader, from which it goes on fetching.
    other = await harness.admin.create_topic(assignments=[[node]])
    await harness.admin.produce(other, 1)
    consumer = await harness.consumer(queue, queue.topic.name, other.name)
    await harness.take(consumer, 2, kind="accept")
    await harness.settle(consumer)
    await consumer.subscribe(other.name)
    left = queue.topic.id, 0

    def let_go() -> bool:
        mine = [one for one in harness.seen(consumer) if one.node == node]
        return any(left in forgotten(o) or o.request["share_session_epoch"] == -1 for o in mine)

    gone = await harness.polls_until(consumer, let_go, 8)
    judge.holds(gone, f"{queue.topic.name}-0 was never forgotten on broker {node}")


@check("CLI-12")
async def test_no_room_for_a_session(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1)
    full = {"code": "SHARE_SESSION_LIMIT_REACHED", "applied": False, "times": 0}
    opening = {"on": "ShareFetch", "when": {"share_session_epoch": 0}}
    steps = hostile.play({**opening, "do": "error", **full})
    consumer = await hostile.consumer(queue)
    await hostile.polls(consumer, lambda _: sum(step.taken for step in steps) > 1)
    await hostile.polls(consumer, within=2.0)
    tried = [one for one in hostile.seen(consumer) if one.scripted]
    judge.holds(len(tried) > 1, f"{len(tried)} attempts to open a session")
    most = busiest(tried)
    judge.holds(most <= FLOOD, f"{most} attempts within a second")
    judge.holds(hasty(tried) <= HASTE, f"{hasty(tried)} attempts without a pause")
    hostile.tap.script.drop(steps)
    judge.equal([0], (await hostile.arrival(consumer)).offsets, "records once there is room")


@check("CLI-26", "CLI-59", needs="explicit|mixed")
@pytest.mark.parametrize("hint", [True, False])
async def test_leader_moved(hostile: Harness, judge: Judge, hint: bool) -> None:
    topic = await hostile.admin.create_topic(assignments=[[1, 2, 3]])
    queue = await hostile.queue_of(topic, 2)
    _, consumer, got = await hostile.holding(queue, 2)
    before = len(hostile.tap.exchanges)
    if not hint:
        hostile.play({"on": list(SHARE), "do": "without-hint", "times": 0})
    moved = await hostile.admin.move_leader(topic, 2)
    told: list[Settled] = []
    if hostile.adapter.has("commit-sync"):
        told = await hostile.outcome(consumer, got)
    else:
        await consumer.acknowledge(got)
    await hostile.admin.produce(moved, [b"after"])
    later = await hostile.arrival(consumer, 2)
    # What came from the new leader may be acknowledged there from then on, and only that.
    fetched: dict[tuple[int, int], int] = {}
    for one in acquired(hostile.seen(consumer, "ShareFetch")):
        if one.by.node == 2 and one.by.number > before:
            fetched.setdefault((one.partition, one.offset), one.by.number)
    strays = []
    for ack in hostile.acks(consumer):
        since = fetched.get((ack.partition, ack.offset), ack.by.number)
        if ack.by.node == 2 and since >= ack.by.number:
            strays.append(str(ack))
    judge["CLI-26"].equal([], strays, "acknowledgements at the new leader of what it never gave")
    judge["CLI-26"].saw(moves=1)
    if told:
        errors = [one.error for one in told]
        said = f"acknowledged at a leader that was gone, reported as {errors}"
        judge["CLI-26"].holds(all(errors), said)
    said = f"{ARRIVES:g} s later only {later.offsets} had come from there"
    judge["CLI-59"].holds(2 in later.offsets, f"the partition moved to broker 2; {said}")
