"""A client as a member: joining, heartbeats, fencing, leaving."""

from suites.client.kit import *

STOPS = 1.0  # Seconds after it was fenced in which a fetch may still be sent.
OTHER_MS = 2517  # A heartbeat interval that later responses give.
RECOVERY = 12.0  # Seconds within which a client has to be back after a trouble that has passed.


def _after_script(hostile: Harness, consumer: Handle) -> list[Exchange]:
    beats = hostile.heartbeats(consumer)
    changed = [one.number for one in beats if one.scripted]
    return [one for one in beats if changed and one.number > changed[0]]


def _good(hostile: Harness, consumer: Handle) -> list[Exchange]:
    later = _after_script(hostile, consumer)
    good = [one for one in later if one.response and not one.response["error_code"]]
    return [one for one in good if one.request["member_epoch"] >= 0]


def _ids(hostile: Harness, consumer: Handle) -> set[str]:
    return {one.request["member_id"] for one in hostile.heartbeats(consumer)}


@check("CLI-01", timeout=120)
async def test_heartbeat_interval(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(1)
    await harness.polls(consumer, lambda _: len(harness.heartbeats(consumer)) > 7, READY)
    other = {"do": "field", "name": "heartbeat_interval_ms", "value": OTHER_MS, "times": 0}
    harness.play({"on": HEARTBEAT, **other})
    enough = len(harness.heartbeats(consumer)) + 3
    await harness.polls(consumer, lambda _: len(harness.heartbeats(consumer)) > enough, READY)
    beats = [one for one in harness.heartbeats(consumer) if one.response]
    gaps: dict[float, list[float]] = {}
    for a, b in pairwise(one for one in beats if one.request["member_epoch"] > 0):
        interval = (a.response or {})["heartbeat_interval_ms"] / 1000
        gaps.setdefault(interval, []).append(b.sent - a.sent)
    judge.holds(len(gaps) == 2, f"{len(beats)} heartbeats in {READY:g} s twice, with {gaps}")
    for interval, some in gaps.items():
        longest, usual = max(some), sorted(some)[len(some) // 2]
        said, between = f"the interval is {interval} s, and", "between two heartbeats"
        most, late = interval * 2 + 1, harness.delay
        judge.holds(longest <= most + late.late, f"{said} {longest:.2f} s passed {between}")
        steady = interval * 0.4 <= usual <= most / (1 - late.part)
        judge.holds(steady, f"{said} {usual:.2f} s are usual {between}")
    limit = 2 * (beats[-1].sent - beats[0].sent) / min(gaps) + 4
    judge.holds(len(beats) <= limit, f"{len(beats)} heartbeats, at most {limit:.0f}")
    judge.saw(heartbeats=len(beats))


@check("CLI-02", "CLI-48", fast=True)
async def test_identity(harness: Harness, judge: Judge) -> None:
    queue, other = await harness.queue(1), await harness.admin.create_topic(1)
    consumer = await harness.consumer(queue, queue.topic.name, other.name)
    await harness.polls(consumer, lambda _: len(harness.heartbeats(consumer)) >= 4)
    beats = harness.heartbeats(consumer)
    first = beats[0].request
    judge["CLI-48"].equal(0, first["member_epoch"], "epoch of the first heartbeat")
    whole, names = {queue.topic.name, other.name}, {*(first["subscribed_topic_names"] or ())}
    judge["CLI-48"].equal(whole, names, "subscription in the first")
    judge["CLI-48"].equal(queue.group, first["group_id"], "group of the first")
    judge["CLI-02"].equal(1, len(_ids(harness, consumer)), "different member ids")
    only = first["member_id"]
    judge["CLI-02"].holds(1 <= len(only) <= 36, f"the member id has {len(only)} characters: {only}")
    for before, after in pairwise(beats):
        epoch = after.request["member_epoch"]
        if before.response and not before.response["error_code"] and epoch > 0:
            said = f"epoch of heartbeat #{after.number} after the response to #{before.number}"
            judge["CLI-02"].equal(before.response["member_epoch"], epoch, said)
    judge["CLI-02"].saw(heartbeats=len(beats))


@check("CLI-03")
@pytest.mark.parametrize("code", ["FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"])
async def test_fenced(hostile: Harness, judge: Judge, code: str) -> None:
    _, consumer = await hostile.consuming(1, settle=True)
    hostile.play(
        {"on": HEARTBEAT, "do": "error", "code": code, "applied": False},
        {"on": HEARTBEAT, "when": {"member_epoch": 0}, "do": "pass", "delay": 5 * STOPS},
    )
    (fenced, *_), before = await hostile.meets(consumer, HEARTBEAT), hostile.delay.late
    later = await hostile.polls_until(consumer, lambda: _after_script(hostile, consumer), RECOVERY)
    epochs = [one.request["member_epoch"] for one in later[:1]]
    judge.equal([0], epochs, f"epoch of the first heartbeat after {code}")
    judge.equal(1, len(_ids(hostile, consumer)), "different member ids")
    await hostile.polls_until(consumer, lambda: _good(hostile, consumer), RECOVERY)
    since = fenced.responded + STOPS + hostile.delay.late - before
    sent = [o for o in hostile.seen(consumer, "ShareFetch") if since < o.sent < later[0].responded]
    wrong = [o for o in sent if o.request["share_session_epoch"] >= 0 and not forgotten(o)]
    judge.equal([], wrong, f"fetches more than {STOPS:g} s after {code}, and not joined again")


@check("CLI-04")
async def test_group_gone(hostile: Harness, judge: Judge) -> None:
    _, consumer = await hostile.consuming(1)
    hostile.play({"on": HEARTBEAT, "do": "error", "code": "GROUP_ID_NOT_FOUND", "applied": False})

    def again() -> list[int]:
        return [one.request["member_epoch"] for one in _after_script(hostile, consumer)]

    polled = await hostile.polls(consumer, lambda seen: seen.errors or 0 in again())
    if not any(one.scripted for one in hostile.heartbeats(consumer)):
        raise Undecided("the client was not told GROUP_ID_NOT_FOUND")
    said = f"errors {polled.error_names}, heartbeats afterwards {again()}"
    judge.holds(polled.errors or 0 in again(), said)


@check("CLI-05", fast=True)
async def test_leaves_when_closed(harness: Harness, judge: Judge) -> None:
    queue, consumer = await harness.consuming(1)
    await consumer.close()
    members = await _members(harness, queue)
    judge.holds(harness.leaves(consumer), "no heartbeat with epoch -1 was sent")
    judge.equal([], members, "members of the group 8 s after a close")


async def _members(harness: Harness, queue: Queue) -> list[str]:
    """Return who is in a group when all have left; that may take a moment."""
    found: list[str] = []
    async for _ in harness.attempts(8.0):
        described = await harness.admin.describe_group(queue.group)
        if not (found := [member.member_id for member in described.members]):
            break
    return found


@check("CLI-05")
async def test_leaves_while_it_joins(hostile: Harness, judge: Judge) -> None:
    """A member is in the group from its first heartbeat on, which is answered after the close."""
    queue = await hostile.queue()
    hostile.play({"on": HEARTBEAT, "do": "pass", "delay": 1.5})
    consumer = await hostile.consumer(queue)
    await hostile.polls_until(consumer, lambda: hostile.heartbeats(consumer))
    await refusal(hostile.end(consumer, 60.0))
    members = await _members(hostile, queue)
    judge.equal([], members, "members of the group 8 s after a close while joining")


@check("CLI-49")
async def test_leaving_again(hostile: Harness, judge: Judge) -> None:
    queue, consumer = await hostile.consuming(1, request_timeout_ms=3000)
    refused = {"do": "error", "code": "NOT_COORDINATOR", "applied": False}
    hostile.play({"on": HEARTBEAT, "when": {"member_epoch": -1}, **refused})
    await refusal(consumer.close())  # it may say that leaving failed
    members, left = await _members(hostile, queue), hostile.leaves(consumer)
    if not left:
        raise Undecided("no heartbeat with epoch -1 was sent")
    judge.equal([], members, f"members after {len(left)} leaves, the first of which was refused")
    looked = [o for o in hostile.tap.of("FindCoordinator") if o.sent > left[0].responded]
    judge.holds(looked, "no FindCoordinator was sent after a leave was refused")


@check("CLI-06", needs="max-poll-interval")
async def test_silent_application(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(1, max_poll_interval_ms=1500)
    gone = await harness.until(lambda: harness.leaves(consumer), 10)
    judge.holds(gone, "10 s without a poll, the limit is 1.5 s, and no leave was sent")

    def again() -> bool:
        left, beats = harness.leaves(consumer)[0].number, harness.heartbeats(consumer)
        return any(one.number > left and one.request["member_epoch"] == 0 for one in beats)

    rejoined = await harness.polls_until(consumer, again, RECOVERY)
    judge.holds(rejoined, "no heartbeat with epoch 0 after the next poll")


@check("CLI-07")
@pytest.mark.parametrize(
    "code", ["GROUP_AUTHORIZATION_FAILED", "GROUP_MAX_SIZE_REACHED", "UNSUPPORTED_VERSION", None]
)
async def test_no_entry(hostile: Harness, judge: Judge, code: str | None) -> None:
    refusing = {"on": HEARTBEAT, "do": "error", "code": code, "applied": False, "times": 0}
    without = {"on": "ApiVersions", "do": "without-api", "key": 76, "times": 0}
    hostile.play({**refusing} if code else {**without})
    where = f"behind {code or 'no share groups'}"
    queue = await hostile.queue(1)
    consumer = await hostile.consumer(queue.group)
    # Some join then and there, when they subscribe.
    error = await refusal(consumer.subscribe(queue.topic.name))

    def refused() -> bool:
        return any(one.scripted for one in hostile.tap.exchanges)

    first = await hostile.polls(consumer, lambda seen: seen.errors or refused(), READY)
    if not refused():
        raise Undecided(f"nothing was asked {where} within {READY:g} s")
    told = error or first.errors
    told = told or (await hostile.polls(consumer, lambda seen: seen.errors, 6.0)).errors
    judge.holds(told, f"6 s of polling {where}, and no poll failed")
    await hostile.polls(consumer, within=1.5)
    most = max(busiest(hostile.tap.of(api)) for api in {one.api for one in hostile.tap.exchanges})
    judge.holds(most <= FLOOD, f"{most} requests of one kind within a second")


@check("CLI-47", timeout=120)
@pytest.mark.parametrize("code", ["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"])
async def test_pauses_between_failures(hostile: Harness, judge: Judge, code: str) -> None:
    queue = await hostile.queue(1)
    failing = {"do": "error", "code": code, "applied": False, "times": 0}
    steps = hostile.play({"on": HEARTBEAT, **failing})
    consumer = await hostile.consumer(queue.group)
    refused = await refusal(consumer.subscribe(queue.topic.name))
    await hostile.polls(consumer, lambda _: hostile.heartbeats(consumer), READY)
    await hostile.polls(consumer, within=2.5)
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
    first = await hostile.polls(consumer, within=0.1)  # it may pass on one more error
    got = first.records or await hostile.take(consumer, 1, kind="accept")
    judge.equal([0], got.offsets, "records once heartbeats go through")


@check("CLI-50")
@pytest.mark.parametrize("code", ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"])
async def test_coordinator_moved(hostile: Harness, judge: Judge, code: str) -> None:
    _, consumer = await hostile.consuming(1)
    before = len(hostile.tap.of("FindCoordinator"))
    hostile.play({"on": HEARTBEAT, "do": "error", "code": code, "applied": False})
    recovered = await hostile.polls_until(consumer, lambda: _good(hostile, consumer), RECOVERY)
    judge.holds(recovered, f"no good heartbeat within {RECOVERY} s after {code}")
    looked = len(hostile.tap.of("FindCoordinator")) > before
    judge.holds(looked, f"no FindCoordinator was sent after {code}")
    judge.equal(1, len(_ids(hostile, consumer)), "different member ids")


@check("CLI-51")
@pytest.mark.parametrize("code", ["UNKNOWN_SERVER_ERROR", 9999])
async def test_unknown_heartbeat_error(hostile: Harness, judge: Judge, code: str | int) -> None:
    _, consumer = await hostile.consuming(1)
    hostile.play({"on": HEARTBEAT, "do": "error", "code": code, "applied": False, "times": 2})
    polled = await hostile.polls(consumer, lambda p: p.errors or _good(hostile, consumer), 9.0)
    if not any(one.scripted for one in hostile.heartbeats(consumer)):
        raise Undecided(f"the client was not answered {code}")
    holds = polled.errors or _good(hostile, consumer)
    judge.holds(holds, f"after {code} neither a good heartbeat nor an error")


@check("CLI-53")
async def test_lost_heartbeat(hostile: Harness, judge: Judge) -> None:
    _, consumer = await hostile.consuming(1, request_timeout_ms=2000)
    hostile.play({"on": HEARTBEAT, "do": "close"})
    recovered = await hostile.polls_until(consumer, lambda: _good(hostile, consumer), RECOVERY)
    judge.holds(recovered, f"no heartbeat within {RECOVERY} s after a lost response")
    judge.equal(1, len(_ids(hostile, consumer)), "different member ids")


@check("CLI-54")
async def test_assignment_emptied_and_given_back(hostile: Harness, judge: Judge) -> None:
    queue, consumer = await hostile.consuming(1, settle=True, max_wait_ms=5000)

    async def told(*mine: dict[str, object]) -> None:
        now = {"name": "assignment", "value": {"topic_partitions": [*mine]}, "times": 0}
        hostile.tap.script.clear()
        hostile.play({"on": HEARTBEAT, "do": "field", **now})
        await hostile.meets(consumer, HEARTBEAT, since=len(hostile.heartbeats(consumer)) - 1)
        await hostile.polls(consumer, within=1.5)

    await told()
    for _ in range(2):  # the fetch that waited may bring the first, and lose it
        await queue.produce([b"after"])
        await hostile.polls(consumer, within=1.0)
    taken = {one.offset for one in acquired(hostile.seen(consumer))}
    judge.holds(2 not in taken, "a partition that was taken away is fetched 2.5 s later")
    await told({"topic_id": queue.topic.id, "partitions": [0]})
    await queue.produce([b"back"])
    got = await hostile.arrival(consumer, 3)
    judge.holds(3 in got.offsets, "no record of a partition that was taken away and given back")


def _new(polled: Polled) -> bool:
    return any(one.partition == 2 for one in polled.records)


@check("CLI-08", timeout=90)
@pytest.mark.parametrize("lag", [0, 3])
async def test_partition_added_in_use(hostile: Harness, judge: Judge, lag: int) -> None:
    queue = await hostile.queue(1, partitions=2)
    consumer = await hostile.consumer(queue, metadata_max_age_ms=5000)
    await hostile.take(consumer, 1, kind="accept")
    await hostile.settle(consumer)
    before = len(hostile.tap.exchanges)
    if lag:  # metadata knows nothing of the new one for a while
        nobody = {"do": "metadata-error", "code": "LEADER_NOT_AVAILABLE", "level": "partition"}
        hostile.play({"on": "Metadata", "only": 2, "times": 0, **nobody})
    wider = await hostile.admin.create_partitions(queue.topic, 3)
    await hostile.admin.produce(wider, [b"new"], 2)

    def is_there(polled: Polled) -> bool:
        later = [one for one in hostile.heartbeats(consumer) if one.number > before]
        return (queue.topic.id, 2) in assigned(later) or _new(polled)

    first = await hostile.polls(consumer, is_there, 20)
    if not is_there(first):
        raise Undecided("the new partition was not assigned within 20 s")
    first.records += (await hostile.polls(consumer, _new, lag)).records
    hostile.tap.script.clear()
    came = _new(first) or _new(await hostile.polls(consumer, _new))
    judge.holds(came, f"nothing of a new partition for {ARRIVES:g} s, metadata knowing it")


@check("CLI-54")
async def test_fetches_what_is_assigned(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1, partitions=4)
    some = {"topic_partitions": [{"topic_id": queue.topic.id, "partitions": [0, 2]}]}
    hostile.play({"on": HEARTBEAT, "do": "field", "name": "assignment", "value": some, "times": 0})
    _, first = await hostile.consuming(queue, 1)

    def seen() -> tuple[set[Place], set[Place]]:
        fetches = hostile.seen(first, "ShareFetch")
        fetched = {place for one in fetches for place in named(one)}
        return assigned(hostile.heartbeats(first)), fetched

    await hostile.polls(first, within=0.6)  # time for fetches that it may not send
    await hostile.polls(first, lambda _: seen()[0] <= seen()[1], RECOVERY)
    wanted, fetched = seen()
    judge.equal(set(), fetched - wanted, "fetched and never assigned")
    judge.equal(set(), wanted - fetched, "assigned and never fetched")
    judge.saw(partitions=len(fetched))


@check("CLI-08")
async def test_late_metadata(hostile: Harness, judge: Judge) -> None:
    (step,) = hostile.play({"on": "Metadata", "do": "metadata-error", "code": 3, "times": 4})
    _, consumer = await hostile.reading(1)
    got = await hostile.arrival(consumer, within=16.0)
    late = [one for one in hostile.tap.of("Metadata") if one.scripted]
    if not late or (not got.records and 1 < len(late) < step.times):
        raise Undecided(f"it goes on asking, {len(late)} times in 16 s, and was not told yet")
    judge.equal([0], got.offsets, f"records after {len(late)} responses without the topic")


@check("CLI-52", needs="unsubscribe")
async def test_unsubscribe_leaves(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(1, settle=True)
    await consumer.unsubscribe()
    left = await harness.until(lambda: harness.leaves(consumer), 5)
    judge.holds(left, "no heartbeat with epoch -1 was sent")
    if error := await refusal(consumer.poll(0.2)):
        judge.saw(refused=int(error == "illegal-state"))
    await harness.until(lambda: False, 1.5)  # time for fetches that it may not send
    gone = harness.leaves(consumer)[0].responded
    after = [one for one in harness.seen(consumer, "ShareFetch") if one.sent > gone]
    fresh = [one.number for one in after if one.request["share_session_epoch"] != -1]
    judge.equal([], fresh, "fetches after leaving")


@check("CLI-46", needs="running")
async def test_running_means_joined(harness: Harness, judge: Judge) -> None:
    queue, consumer = await harness.reading([b"before"], reset="latest", await_running=True)
    asked = len(harness.seen(consumer, "ShareFetch"))
    await queue.produce([b"right after"])
    got = await harness.arrival(consumer, 1)
    said = f"{asked} ShareFetch requests when it said that it was running"
    judge.equal([1], got.offsets, f"delivered, produced right after the start; {said}")
