"""Every error code at every level of a fetch: the client comes back, and floods nobody."""

from suites.client.kit import *

BACK = 20.0  # Seconds within which records have to come again after a trouble that is over.

# Codes for a whole ShareFetch.
WHOLE = [
    ["SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED"],
    ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"],
    ["UNKNOWN_SERVER_ERROR", "UNKNOWN_MEMBER_ID", "REQUEST_TIMED_OUT"],
    ["KAFKA_STORAGE_ERROR", "INVALID_REQUEST", 9999],
]

# Codes for a partition of it.
PARTITION = [
    ["NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "LEADER_NOT_AVAILABLE"],
    ["UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID"],
    ["UNKNOWN_LEADER_EPOCH", "OFFSET_NOT_AVAILABLE", "KAFKA_STORAGE_ERROR"],
    ["UNKNOWN_SERVER_ERROR", "FENCED_STATE_EPOCH", 9999],
]

Codes = Sequence[str | int]


async def _come_back(hostile: Harness, judge: Judge, api: str, do: str, codes: Codes) -> None:
    queue, consumer = await hostile.consuming(1)
    for number, code in enumerate(codes, 1):
        before = len(hostile.seen(consumer))
        hostile.play({"on": api, "do": do, "code": code, "times": 2, "applied": False})
        if api == "ShareFetch":
            await hostile.meets(consumer, since=before)
        else:
            await refusal(hostile.settle(consumer))
        await queue.produce([b"after"])
        # What was acknowledged in a refused request may come again.
        offsets = (await hostile.arrival(consumer, number, BACK)).offsets
        judge.holds(number in offsets, f"{BACK:g} s after {code} only {offsets} had come")
        for each in SHARE:
            most = busiest(o for o in hostile.seen(consumer)[before:] if o.api == each)
            judge.holds(most <= FLOOD, f"{most} {each} requests within a second of {code}")
    if not any(one.scripted for one in hostile.seen(consumer)):
        raise OutOfReach("it sends no acknowledgement by itself")


@check("CLI-20", timeout=120)
@pytest.mark.parametrize("codes", WHOLE, ids=lambda codes: str(codes[0]))
async def test_whole(hostile: Harness, judge: Judge, codes: Codes) -> None:
    await _come_back(hostile, judge, "ShareFetch", "error", codes)


@check("CLI-20", needs="commit-sync|commit-async", timeout=120)
@pytest.mark.parametrize("level", ["error", "partition-error"])
@pytest.mark.parametrize("codes", WHOLE, ids=lambda codes: str(codes[0]))
async def test_acknowledging(hostile: Harness, judge: Judge, codes: Codes, level: str) -> None:
    await _come_back(hostile, judge, "ShareAcknowledge", level, codes)


@check("CLI-97", timeout=120)
@pytest.mark.parametrize("codes", PARTITION, ids=lambda codes: str(codes[0]))
async def test_partition(hostile: Harness, judge: Judge, codes: Codes) -> None:
    await _come_back(hostile, judge, "ShareFetch", "partition-error", codes)


@check("CLI-99")
@pytest.mark.parametrize("do", ["close", "drop"])
async def test_no_answer(hostile: Harness, judge: Judge, do: str) -> None:
    queue, consumer = await hostile.consuming(1, settle=True, request_timeout_ms=3000)
    before = len(hostile.seen(consumer))
    hostile.play({"on": "ShareFetch", "do": do})
    await hostile.meets(consumer, since=before)
    await queue.produce([b"after"])
    # Whatever the lost response had acquired comes when its connection, or its lock, is over.
    got = await hostile.arrival(consumer, 1, within=45)
    judge.holds(1 in got.offsets, "no record came for 45 s after a fetch without a response")


@check("CLI-100")
async def test_slow_broker(hostile: Harness, judge: Judge) -> None:
    hostile.play({"on": ["ShareFetch", "ShareAcknowledge"], "do": "pass", "delay": 0.4, "times": 0})
    queue, consumer, got = await hostile.holding(6, batches=3, kind="accept")
    await hostile.settle(consumer)
    got += (await hostile.polls(consumer, within=2.0)).records
    judge.equal(list(range(6)), sorted(got.offsets), "delivered")
    judge.equal(6, await queue.spso(6), "start offset of the share-partition")
