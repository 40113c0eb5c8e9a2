"""Acknowledging: what is sent, of what, in which order, and what the application is told."""

from collections import defaultdict
from math import inf

from suites.client.kit import *

LOST = ("SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH")  # Errors of whole requests.
REFUSED = ("INVALID_RECORD_STATE", "UNKNOWN_SERVER_ERROR", "FENCED_LEADER_EPOCH")
KINDS = {"accept": AckType.ACCEPT, "release": AckType.RELEASE, "reject": AckType.REJECT}


@check("CLI-21")
async def test_accepts_only_what_was_given(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(20, batches=10)
    consumer = await harness.consumer(queue, mode="implicit" if harness.has_implicit else None)
    given = {*(await harness.take(consumer, 1)).offsets}
    # What is on its way when the client is closed was never given to anybody.
    for seconds in (*[0.4] * 5, 0.0) if harness.has_implicit else ():
        given |= {r.offset for r in await consumer.poll(seconds)}
    late = range(20, 25)
    await queue.produce(len(late))
    await harness.until(lambda: any(a.offset in late for a in acquired(harness.seen(consumer))), 2)
    await consumer.close()
    accepted = harness.acks(consumer, AckType.ACCEPT)
    strays = [str(a) for a in accepted if a.offset not in given]
    judge.equal([], strays, "accepted and never given to the application")
    judge.saw(given=len(given), accepted=len(accepted))


async def _polled(consumer: Handle) -> tuple[set[int], set[int]]:
    got: set[int] = set()
    async for _ in attempts(READY):
        if last := {one.offset for one in await consumer.poll(0.5)}:
            got |= last
            if len(got) >= 5:
                return got, last
    raise Undecided(f"{len(got)} of 5 records came")


@check("CLI-22", needs="implicit", fast=True)
async def test_implicit_accepts_with_the_next_poll(harness: Harness, judge: Judge) -> None:
    queue, consumer = await harness.reading(5, mode="implicit")
    got, last = await _polled(consumer)
    early = [str(a) for a in harness.acks(consumer, AckType.ACCEPT) if a.offset in last]
    judge.equal([], early, "accepted before the next poll")

    def accepted() -> list[int]:
        acks = harness.acks(consumer)
        return sorted({a.offset for a in acks if a.kind == AckType.ACCEPT and a.error == 0})

    async def poll() -> bool:
        await consumer.poll(0.5)
        return len(accepted()) >= 5

    await harness.until(poll, 8)
    judge.equal(sorted(got), accepted(), "accepted by the next polls")
    if harness.adapter.has(Capability.COMMIT_SYNC):
        await queue.produce(1)
        await harness.take(consumer, 1)
        await harness.settle(consumer)
        judge.equal([*sorted(got), 5], accepted(), "accepted by a commit")


@check("CLI-68", needs="implicit")
async def test_implicit_close_releases(harness: Harness, judge: Judge) -> None:
    queue, consumer = await harness.reading(5, mode="implicit", lock_ms=60000)
    _, last = await _polled(consumer)
    other = await harness.ready(queue)
    await consumer.close()
    accepted = [str(a) for a in harness.acks(consumer, AckType.ACCEPT) if a.offset in last]
    judge.equal([], accepted, "accepted by close")
    again = await harness.arrival(other, max(last))
    judge.equal(sorted(last), sorted(again.offsets), "delivered to another")


@check("CLI-23", needs="explicit")
async def test_explicit_poll_with_unsettled_records(harness: Harness, judge: Judge) -> None:
    _, consumer, got = await harness.holding(4, mode="explicit")
    await consumer.acknowledge(got[:2])
    refused = await refusal(consumer.poll(0.5))
    judge.equal("illegal-state", refused, "poll with two records not acknowledged")
    await harness.settle(consumer)
    unsettled = {r.offset for r in got[2:]}
    sent = harness.acks(consumer, AckType.ACCEPT)
    late = sorted(a.offset for a in sent if a.offset in unsettled)
    judge.equal([], late, "accepted without the application's word")


@check("CLI-63", needs=("implicit", "explicit"))
async def test_implicit_acknowledge_is_refused(harness: Harness, judge: Judge) -> None:
    _, consumer, got = await harness.holding(1, mode="implicit")
    taken = [kind for kind in KINDS if not await refusal(consumer.acknowledge(got, kind))]
    judge.equal([], taken, "what can be acknowledged in implicit mode")


@check("CLI-24", needs="explicit")
async def test_last_word_counts(harness: Harness, judge: Judge) -> None:
    _, consumer, got = await harness.holding(2)
    await consumer.acknowledge(got, "release")
    last = AckType.ACCEPT
    try:
        await consumer.acknowledge(got, "accept")
    except Refused:  # it takes the first word at once, so that there is no time before sending
        last = AckType.RELEASE
    await harness.settle(consumer)
    sent = [(a.offset, a.kind) for a in harness.acks(consumer)]
    wanted = [(r.offset, int(last)) for r in got]
    judge.equal(wanted, sent, "acknowledgements sent of release, then accept")


@check("CLI-69", needs="explicit")
@pytest.mark.parametrize("case", ["settled", "foreign"])
async def test_not_held(harness: Harness, judge: Judge, case: str) -> None:
    _, consumer, got = await harness.holding(2, kind="accept")
    await harness.settle(consumer)
    place = got[0].place | ({} if case == "settled" else {"offset": 999})
    refused = await refusal(consumer.acknowledge([place], "release"))
    allowed = {
        "illegal-state": "Javadoc of acknowledge: the record is not waiting to be acknowledged",
        "illegal-argument": "Javadoc of acknowledge: the record was never delivered",
    }
    judge.one_of(allowed, refused, f"acknowledging, record {case}")
    await harness.polls(consumer, within=0.6)
    sent = [*map(str, harness.acks(consumer, AckType.RELEASE))]
    judge.equal([], sent, "acknowledgements on the wire")


@check("CLI-73", "CLI-74", "CLI-75", needs="explicit|mixed")
async def test_every_word_is_sent_once(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.reading(12, batches=3)
    said: dict[int, list[int]] = defaultdict(list)

    async def poll() -> bool:
        for record in reversed(await consumer.poll(0.5)):
            kind = "accept" if said[record.offset] else [*KINDS][record.offset % 3]
            said[record.offset].append(KINDS[kind])
            await consumer.acknowledge([record], kind)
        return len(said) >= 12

    await harness.until(poll)
    await harness.settle(consumer)
    await poll()  # what was released comes again
    await harness.settle(consumer)
    sent: dict[int, list[int]] = defaultdict(list)
    requests = [one for one in harness.seen(consumer) if carries_acks(one)]
    for ack in acked(requests):
        if ack.error == 0:  # else who sends it again says nothing new
            sent[ack.offset].append(ack.kind)
    if not sent:
        raise Undecided("nothing was sent, which CLI-128 forbids")
    pairs = {o: [*zip(said[o] or [0], kinds, strict=False)] for o, kinds in sent.items()}
    wrong = {o: both for o, both in pairs.items() if any(one != two for one, two in both)}
    judge["CLI-75"].equal({}, wrong, "what was said of each record, and what was sent")
    final, twice = set[int](), list[str]()
    for ack in acked(requests):
        if ack.offset in final:
            twice.append(str(ack))
        elif ack.error == 0 and ack.kind != AckType.RELEASE:
            final.add(ack.offset)
    judge["CLI-74"].equal([], twice, "acknowledged after it had been taken for good")
    for one in requests:
        offsets = [a.offset for a in acked([one])]
        judge["CLI-73"].holds(
            offsets == sorted(set(offsets)),
            f"#{one.number} acknowledges {offsets}: not in rising order, or overlapping",
        )


@check("CLI-27", "CLI-35", needs=("callback", "callback-offsets", "explicit|mixed"))
async def test_callback_for_each(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(9, batches=3, settle=True)
    await harness.polls(consumer, within=0.8)
    await consumer.close()
    told = [(o, one.error) for one in consumer.settled for o in one.offsets or ()]
    judge["CLI-27"].equal(
        [(o, None) for o in range(9)], sorted(told), "what the callback was told of each"
    )
    if harness.adapter.hello.name in {"kafka-clients", "model"}:
        elsewhere = [event.partitions for event in consumer.callbacks if event.during is None]
        judge["CLI-35"].equal([], elsewhere, "callbacks outside any call of the application")
    else:
        judge["CLI-35"].holds(consumer.callbacks, "no callback ran")


@check("CLI-71", needs=("callback|commit-sync", "explicit|mixed"))
async def test_told_after_a_cut(hostile: Harness, judge: Judge) -> None:
    _, consumer, got = await hostile.holding(3)
    hostile.tap.close_connections()
    told = await hostile.outcome(consumer, got)
    judge.holds(told, "nothing was reported of three acknowledgements")
    good = {a.offset for a in hostile.acks(consumer) if a.error == 0}
    for one in told:
        lied = one.error is None and not {*got.offsets} <= good
        judge.holds(not lied, "reported as done, and the broker never said so")


@check("CLI-28", needs=("explicit|mixed", "commit-sync|callback"))
@pytest.mark.parametrize("code", [*LOST, *REFUSED, 9999])
async def test_errors_are_passed_on(hostile: Harness, judge: Judge, code: str | int) -> None:
    queue = await hostile.queue(2, assignments=[[1], [1]])
    await queue.produce(1, 1)
    _, consumer, got = await hostile.holding(queue, 1)  # of both, where a poll brings both
    bad = got[0 if code in REFUSED else -1].partition
    met = {"when": {"has": "acks"}, "code": code}
    one = {"do": "partition-error", "only": bad, **met}
    if code in LOST:
        hostile.play({"on": list(SHARE), "do": "error", "applied": False, **met})
    else:
        hostile.play(
            {"on": "ShareAcknowledge", **one}, {"on": "ShareFetch", "level": "acknowledge", **one}
        )
    told = [o for o in await hostile.outcome(consumer, got) if o.partition == bad]
    if not any(o.scripted for o in hostile.seen(consumer)):
        raise Undecided("no acknowledgement met the error")
    judge.holds(told, f"nothing was reported of acknowledgements that met {code}")
    # A client may try again, and be told that it is done.
    good = {a.offset for a in hostile.acks(consumer) if a.error == 0 and a.partition == bad}
    mine = {r.offset for r in got if r.partition == bad}
    fine = [o for o in told if not o.error and not good >= {*(o.offsets or mine)}]
    judge.holds(
        not fine, f"acknowledgements that met {code} are reported as {[o.error for o in told]}"
    )
    if isinstance(code, str) and code == "INVALID_RECORD_STATE":
        judge.equal([code] * len(told), [o.error for o in told], "the error's name")


@check("CLI-72", needs=("explicit|mixed", "commit-sync|callback"))
async def test_omitted_partition(hostile: Harness, judge: Judge) -> None:
    _, consumer, got = await hostile.holding(3)
    hostile.play({"on": list(SHARE), "when": {"has": "acks"}, "do": "omit-partitions"})
    told = await hostile.outcome(consumer, got)
    if not any(o.scripted for o in hostile.seen(consumer)):
        raise Undecided("no response was emptied")
    # As above: it may try again.
    good = {a.offset for a in hostile.acks(consumer) if a.error == 0}
    fine = [one for one in told if one.error is None and not good >= {*got.offsets}]
    judge.equal([], fine, "reported as done although no response said so")


@check("CLI-29", needs=("explicit|mixed", "commit-sync"))
async def test_retries_end(hostile: Harness, judge: Judge) -> None:
    _, consumer, got = await hostile.holding(2)
    refused = {"do": "partition-error", "code": "REQUEST_TIMED_OUT"}
    hostile.play({"on": "ShareAcknowledge", "times": 0, "applied": False, **refused})
    await consumer.acknowledge(got)
    took, _ = await hostile.timed(consumer.commit_sync(2.0))
    judge.holds(took <= 6, f"commit of 2 s took {took:.1f} s")
    sent = [one for one in hostile.seen(consumer, "ShareAcknowledge") if carries_acks(one)]
    if not sent and any(map(carries_acks, hostile.seen(consumer, "ShareFetch"))):
        raise OutOfReach("its acknowledgements leave with fetches")
    judge.holds(sent, "no acknowledgement was sent")
    judge.holds(busiest(sent) <= 60, f"{busiest(sent)} attempts within a second")
    ended = time.monotonic()
    await hostile.polls(consumer, within=2.5, kind=None)
    # Where a record comes again, one acknowledgement more is about another delivery.
    again = {one.by.number for one in acquired(hostile.seen(consumer)) if one.by.responded > ended}
    late = {a.by.number for a in hostile.acks(consumer, AckType.ACCEPT) if a.by.sent > ended}
    judge.holds(len(late) <= 1 + len(again), f"{len(late)} attempts after the deadline")


def _places(polled: Polled) -> list[tuple[str, int]]:
    return [(record.topic, record.offset) for record in polled.records]


@check("CLI-30", "CLI-89")
async def test_change_of_subscription(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(3)
    other = await harness.admin.create_topic(1)
    await harness.admin.produce(other, 2)
    consumer = await harness.consumer(queue)
    await harness.take(consumer, 3, kind="accept")
    await consumer.subscribe(other.name)
    got = await harness.polls(consumer, lambda seen: (other.name, 1) in _places(seen))
    judge["CLI-89"].equal(
        [(other.name, 0), (other.name, 1)],
        _places(got),
        "records after subscribing to another topic instead",
    )
    await harness.polls(consumer, within=1.0)  # what was under way before is over then
    await queue.produce(1)
    later = _places(await harness.polls(consumer, within=2.0))
    judge["CLI-89"].equal([], later, "records of the former topic, produced then")
    await harness.settle(consumer)
    sent = [a for a in harness.acks(consumer) if a.topic_id == queue.topic.id]
    offsets = sorted({a.offset for a in sent})
    if offsets != [0, 1, 2] and harness.adapter.has("callback"):
        told = [one for one in consumer.settled if one.topic == queue.topic.name]
        # Without offsets it is about all of the partition.
        known = {n for one in told for n in ((0, 1, 2) if one.offsets is None else one.offsets)}
        said = f"owed 0, 1 and 2; sent {offsets}, and reported {sorted(known)}"
        judge["CLI-30"].holds({0, 1, 2} <= {*offsets} | known, said)
    else:
        judge["CLI-30"].equal([0, 1, 2], offsets, "acknowledged of the topic that was left")


@check("CLI-34", "CLI-86", needs=("explicit|mixed", "commit-sync"))
async def test_commit_results(hostile: Harness, judge: Judge) -> None:
    queue = await hostile.queue(1, assignments=[[1], [1]])
    await queue.produce(1, 1)
    met = {"on": list(SHARE), "when": {"has": "acks"}, "times": 0}
    hostile.play({**met, "do": "pass", "delay": 1.0})
    _, consumer = await hostile.consuming(queue, 2)
    began = time.monotonic()
    results = {one.partition: one.error for one in await consumer.commit_sync()}
    answered = sorted({ack.partition for ack in hostile.acks(consumer) if ack.error is not None})
    # A client may send by itself what was acknowledged, and may leave nothing for the commit to do.
    early = {ack.partition for ack in hostile.acks(consumer) if ack.by.sent < began}
    wanted = dict.fromkeys({0, 1} - (early - results.keys()))
    judge["CLI-34"].equal(wanted, results, "results of the commit")
    judge["CLI-86"].equal([0, 1], answered, "acknowledged on the wire when the commit had returned")
    judge["CLI-34"].equal([], await consumer.commit_sync(), "results of a second commit")


@check("CLI-80", needs=("explicit|mixed", "commit-sync"))
async def test_commit_without_answer(hostile: Harness, judge: Judge) -> None:
    _, consumer, got = await hostile.holding(2)
    # Before the application says a word: some clients send it without waiting for a commit.
    hostile.play({"on": list(SHARE), "do": "drop", "times": 0, "applied": False})
    await consumer.acknowledge(got)
    took, results = await hostile.timed(consumer.commit_sync(1.5))
    judge.holds(took <= 6, f"commit of 1.5 s took {took:.1f} s")
    told = [one.error for one in results or ()]
    judge.holds(all(told), f"reported as done without a response: {told}")


@check("CLI-78", needs=("explicit|mixed", "commit-async"))
async def test_commit_async(harness: Harness, judge: Judge) -> None:
    _, consumer = await harness.consuming(3)
    await consumer.commit_async()

    def done() -> bool:
        return {a.offset for a in harness.acks(consumer) if a.error == 0} == {0, 1, 2}

    judge.holds(await harness.until(done, 5), "not acknowledged 5 s after commit_async")


LONG = 3.0  # Seconds that a fetch waits at the broker.


@check("CLI-58", "CLI-78", needs=("explicit|mixed", "commit-async"))
async def test_commit_behind_a_long_poll(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(2, lock_ms=30000)
    consumer = await harness.consumer(queue, max_wait_ms=round(LONG * 1000))
    # Whoever holds a renewed record has fetched since; others may have, whose next record is there.
    got: Sequence[Delivery] = await harness.take(consumer, 1)
    renews = harness.adapter.has(Capability.RENEW)
    await consumer.acknowledge(got, "renew" if renews else "accept")
    with contextlib.suppress(Refused):
        got = await harness.comes(consumer, 1, LONG + 3) or got
    under_way = [one for one in harness.seen(consumer, "ShareFetch") if one.responded == inf]
    began, late = time.monotonic(), harness.delay.late
    if await refusal(consumer.acknowledge(got)) and renews:
        raise Undecided("the renewed record did not come again")
    await consumer.commit_async()

    def sent() -> list[Acked]:
        mine = harness.acks(consumer, AckType.ACCEPT)
        return [ack for ack in mine if ack.offset == got[-1].offset]

    await harness.until(sent, LONG + 8)
    took = min((ack.by.sent for ack in sent()), default=inf) - began + late - harness.delay.late
    said = f"{len(under_way)} fetches of {LONG:g} s were under way; it was sent after {took:.1f} s"
    for session in by_session(harness.seen(consumer)):
        both = [f"#{b.number}" for a, b in pairwise(session) if b.sent < a.responded]
        judge["CLI-58"].equal([], both, "sent while another request of the session was under way")
    judge["CLI-78"].holds(took <= LONG + 2.5, said)


@check("CLI-79", needs=("explicit|mixed", "commit-sync|callback"))
async def test_too_late(harness: Harness, judge: Judge) -> None:
    queue, consumer, got = await harness.holding(2, lock_ms=1000)
    # Another member has to take the records, which proves that the locks are over. It may not
    # settle them: below the start offset a broker takes any acknowledgement.
    other = await harness.consumer(queue)
    judge.equal([0, 1], sorted((await harness.take(other, 2)).offsets), "delivered to another")
    told = await harness.outcome(consumer, got)
    late = harness.acks(consumer, AckType.ACCEPT)
    answered = {a.error for a in late}
    if late and not told:
        raise Undecided("the acknowledgement was sent, and the client told nothing of it")
    # A client may know that the lock is over, and send nothing: then it is not done either.
    wanted, done = [answered == {0}] * len(told), [one.error is None for one in told]
    judge.equal(wanted, done, f"reported as done; the broker answered {answered}")


@check("CLI-31", "CLI-88", needs=("explicit", "renew"))
async def test_renewing(harness: Harness, judge: Judge) -> None:
    _, consumer, got = await harness.holding([b"payload"])
    await consumer.acknowledge(got, "renew")
    await harness.settle(consumer)
    held = got
    with contextlib.suppress(Refused):  # a client may keep it with the application until it is done
        held = await harness.comes(consumer, 1) or got
    renewing = {ack.by.number: ack.by.request for ack in harness.acks(consumer, AckType.RENEW)}
    judge["CLI-31"].holds(renewing, "no renewal was sent")
    for number, request in renewing.items():
        judge["CLI-31"].equal(True, request.get("is_renew_ack"), f"IsRenewAck of #{number}")
        limits = ("max_wait_ms", "min_bytes", "max_bytes", "max_records")
        asks = {name: request[name] for name in limits if request.get(name)}
        judge["CLI-31"].equal({}, asks, f"what #{number} asks for while it renews")
    await consumer.acknowledge(held)
    await harness.settle(consumer)
    kinds = [a.kind for a in harness.acks(consumer)]
    wanted = [int(AckType.RENEW), int(AckType.ACCEPT)]
    judge["CLI-88"].equal(wanted, kinds, "what was sent of the record")
    judge["CLI-88"].equal([], [str(a) for a in harness.acks(consumer) if a.error], "refused")


@check("CLI-32", needs=("explicit", "renew"))
async def test_renewed_record(harness: Harness, judge: Judge) -> None:
    queue, consumer = await harness.reading()
    record = Record(key=b"k", value=b"payload", headers=(("h", b"1"),))
    await harness.admin.append(queue.topic, encode_batch([record]))
    got = await harness.take(consumer, 1, payload="full")
    for time_ in ("first", "second"):
        await consumer.acknowledge(got, "renew")
        await harness.settle(consumer)
        again = await harness.polls(
            consumer, lambda seen: seen.records or seen.errors, kind=None, payload="full"
        )
        judge.equal([], again.error_names, "the poll that should have given the renewed record")
        judge.equal(got, again.records, f"the record, before and after renewing a {time_} time")
