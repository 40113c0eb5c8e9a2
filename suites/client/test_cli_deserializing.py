"""What becomes of a record that the application's deserializer cannot read."""

from suites.client.kit import *

# Reads values of four bytes, and throws on others.
NUMBERS = "org.apache.kafka.common.serialization.IntegerDeserializer"
VALUES = [b"0000", b"0001", b"odd", b"0003"]
BAD = 2  # The offset of the value that cannot be read.


async def _reading_numbers(harness: Harness, queue: Queue, **config: str) -> Handle:
    try:
        return await harness.consumer(queue, extra={"value.deserializer": NUMBERS}, **config)
    except Refused as error:
        raise OutOfReach(f"the client has no value.deserializer: {error}") from None


async def _to_error(harness: Harness, consumer: Handle) -> Polled:
    return await harness.polls(consumer, lambda seen: seen.errors, READY, seconds=0.5)


@check("CLI-107", needs="explicit", timeout=150)
@pytest.mark.parametrize("kind", ["reject", "accept"])
async def test_unreadable_value(harness: Harness, judge: Judge, kind: str) -> None:
    queue = await harness.queue(VALUES)
    consumer = await _reading_numbers(harness, queue)
    first = await _to_error(harness, consumer)
    judge.equal([0, 1], first.offsets, f"delivered before the first error, {BAD} is unreadable")
    # Nothing is said of it: it comes again, and what is behind it may come before that.
    await harness.settle(consumer)
    behind = await _to_error(harness, consumer)
    told = first.errors + behind.errors
    judge.holds(len(told) > 1, f"named by {len(told)} polls, and never acknowledged")
    said = [f"{one.name}: {one.message}" for one in told]
    bad = f"{queue.topic.name}-0", f"offset {BAD}"
    named = all(part in one.message for one in told for part in bad)
    judge.holds(named, f"not all name it: {said}")
    place = {"topic": queue.topic.name, "partition": 0, "offset": BAD}
    try:
        await consumer.acknowledge([place], kind, by="offset")
    except Unsupported:
        raise OutOfReach("the client takes no acknowledgement by offset") from None
    await harness.settle(consumer)
    rest = await harness.polls(
        consumer, lambda seen: 3 in behind.offsets + seen.offsets, READY, seconds=0.5
    )
    came = sorted({*behind.offsets, *rest.offsets})
    judge.equal([3], came, f"delivered behind it, after it was acknowledged ({kind})")
    judge.equal([], [*map(str, rest.errors)], "errors after it was acknowledged")
    sent = [AckType(one.kind).name for one in harness.acks(consumer) if one.offset == BAD]
    judge.equal(kind.upper(), sent[-1] if sent else "", f"sent last of {BAD}")
    strays = set(sent[:-1]) - {"RELEASE"}
    judge.equal(set(), strays, f"sent of {BAD} before the application acknowledged it")


@check("CLI-107", timeout=150)
@pytest.mark.parametrize("mode", ["implicit", "explicit"])
async def test_unreadable_value_is_not_accepted(harness: Harness, judge: Judge, mode: str) -> None:
    if not harness.adapter.has(mode):
        raise OutOfReach(f"the client has no {mode} mode")
    queue = await harness.queue(VALUES)
    consumer = await _reading_numbers(harness, queue, mode=mode)
    kind = "accept" if mode == "explicit" else None
    await harness.polls(consumer, lambda seen: len(seen.errors) > 1, kind=kind, seconds=0.5)
    await consumer.close()
    seen = harness.seen(consumer)
    sent = [str(one) for one in acked(seen) if one.offset == BAD and one.kind == AckType.ACCEPT]
    judge.equal([], sent, f"accepted of offset {BAD}, which no application was given")
    judge.saw(unreadable=len([one for one in acquired(seen) if one.offset == BAD]))


@check("CLI-123", needs=("explicit", "callback", "callback-offsets"), timeout=150)
async def test_acks_before_an_unreadable_value(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(VALUES)
    consumer = await _reading_numbers(harness, queue)
    polled = await _to_error(harness, consumer)
    taken = sorted(offset for offset in polled.offsets if offset < BAD)
    if not polled.errors or not taken:
        raise OutOfReach("no poll fails for a value that cannot be read")

    def told() -> list[int]:
        return sorted({offset for one in consumer.settled for offset in one.offsets or ()})

    async def reported() -> bool:
        with contextlib.suppress(Refused):
            await harness.settle(consumer, 1.0)
            await consumer.acknowledge(await consumer.poll(0.3))
        return set(told()) >= set(taken)

    await harness.until(reported, ARRIVES)
    sent = sorted({one.offset for one in harness.acks(consumer) if one.offset in taken})
    said = f"reported of what was accepted before a poll failed; sent of it {sent}"
    judge.equal(taken, [one for one in told() if one in taken], said)
    judge.equal(taken, sent, "sent of what was accepted before a poll failed")


@check("CLI-123", needs="implicit", timeout=150)
async def test_implicit_acks_before_an_unreadable_value(harness: Harness, judge: Judge) -> None:
    queue = await harness.queue(VALUES)
    consumer = await _reading_numbers(harness, queue, mode="implicit")

    def sent() -> set[int]:
        return {one.offset for one in harness.acks(consumer, AckType.ACCEPT) if one.error == 0}

    polled = await harness.polls(
        consumer, lambda seen: seen.errors and {0, 1} <= sent(), kind=None, seconds=0.5
    )
    if not polled.errors or not {0, 1} <= {*polled.offsets}:
        raise OutOfReach("no poll fails for a value that cannot be read")
    judge.equal([0, 1], sorted(sent() & {0, 1}), "accepted, where the next poll failed")
    if harness.adapter.has("callback") and harness.adapter.has("callback-offsets"):
        await harness.polls(consumer, lambda _: len(consumer.settled) > 1, 5.0)
        told = {offset for one in consumer.settled for offset in one.offsets or ()}
        judge.equal([0, 1], sorted(told & {0, 1}), "reported, where the next poll failed")
