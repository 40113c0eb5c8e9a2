"""Session epochs: the sequence, and every way to get it wrong."""

from suites.broker.kit import *

BAD_EPOCH = ErrorCode.INVALID_SHARE_SESSION_EPOCH
NO_SESSION = ErrorCode.SHARE_SESSION_NOT_FOUND
BELOW = (-2, -(2**31))  # Epochs that mean nothing.


async def holding(env: Env, records: int, more: int = 0) -> tuple[Queue, Consumer]:
    """Return a queue and a consumer that holds some records and has left others, one per batch."""
    queue, consumer = await env.with_consumer(records + more, batches=records + more)
    await consumer.acquire(records, max_records=records)
    return queue, consumer


async def untouched(judge: Judge, consumer: Consumer, held: int) -> None:
    """Judge that refused requests neither settled the held records nor acquired the next one.

    They are let go of, and have to come again: what had been settled could be accepted, too.
    """
    part = await consumer.ack(release(0, held - 1))
    if part.ack_error in (BAD_EPOCH, NO_SESSION):
        raise Undecided("the session did not go on as before, which is SES-05's")
    judge.equal(0, lasting(part.ack_error), "error of the held records' own ack")
    counts = dict.fromkeys(range(held), 2) | {held: 1}
    came = (await consumer.take(counts)).counts
    seen = {offset: came[offset] for offset in counts if offset in came}
    judge.delivered(counts, seen, "delivery counts of what comes then")


async def unaccepted(judge: Judge, queue: Queue, consumer: Consumer) -> None:
    """Judge that 0 and 1, whose ACCEPT was refused, come again when let go of, as 2 does."""
    await consumer.close()
    after = (await (await queue.consumer(join=False)).take(range(3))).counts
    if 2 not in after:
        raise Undecided("nor did a record come back that nobody had tried to accept")
    judge.equal([0, 1], sorted(after.keys() - {2}), "offsets that come back, not being accepted")


@check("SES-01", fast=True)
async def test_epochs_count_requests(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(4, batches=4)
    session, held = consumer.session, list(range(4))
    steps = [*env.rng.sample(2 * ["fetch", "piggyback", "ack"], 6), "fetch"]

    for epoch, step in enumerate(steps, start=session.epoch):
        acks = [] if step == "fetch" else [accept(held.pop())]
        if step == "ack":
            told = await session.acknowledge({consumer.where: acks}, epoch=epoch)
        else:
            told = await consumer.fetch(*acks, epoch=epoch, max_wait_ms=0)
        judge.equal(0, told.error, f"error of epoch {epoch} ({step}) of {steps}")


@check("SES-02", fast=True, crossed=AMONG)
async def test_fetch_epoch_above(env: Env, judge: Judge) -> None:
    _, consumer = await holding(env, 2, more=2)
    expected = consumer.session.epoch

    for epoch in (expected + 1, expected + env.rng.randint(2, 1000), 2**31 - 1):
        response = await consumer.fetch(accept(0, 1), epoch=epoch)
        judge.equal(BAD_EPOCH, response.error, f"error of epoch {epoch}, not {expected}")
        judge.equal([], response.offsets, f"offsets acquired by epoch {epoch}")
    consumer.session.epoch = expected
    await untouched(judge, consumer, 2)


@check("SES-03", fast=True, crossed=AMONG)
async def test_fetch_epoch_repeated(env: Env, judge: Judge) -> None:
    _, consumer = await holding(env, 2, more=2)
    for _ in range(2):
        await consumer.fetch(max_records=0, max_wait_ms=0)
    expected = consumer.session.epoch

    for epoch in range(1, expected):
        response = await consumer.fetch(accept(0, 1), epoch=epoch)
        judge.equal(BAD_EPOCH, response.error, f"error of epoch {epoch}, not {expected}")
        judge.equal([], response.offsets, f"offsets acquired by epoch {epoch}")
    consumer.session.epoch = expected
    await untouched(judge, consumer, 2)


@check("SES-04", fast=True, crossed=AMONG)
async def test_acknowledge_with_wrong_epoch(env: Env, judge: Judge) -> None:
    queue, consumer = await holding(env, 3)
    await consumer.fetch(max_wait_ms=0)
    expected = consumer.session.epoch

    for epoch in (expected + 1, 2**31 - 1, expected - 1, 1):
        response = await consumer.session.acknowledge({consumer.where: [accept(0, 1)]}, epoch=epoch)
        judge.equal(BAD_EPOCH, response.error, f"error of epoch {epoch}, not {expected}")
    consumer.session.epoch = expected
    await unaccepted(judge, queue, consumer)


@check("SES-05", crossed=AMONG)
async def test_wrong_epochs_leave_the_session(env: Env, judge: Judge) -> None:
    _, consumer = await holding(env, 2, more=2)
    await consumer.fetch(max_records=0, max_wait_ms=0)
    expected = consumer.session.epoch

    for epoch in env.rng.sample([expected - 1, expected + 1, expected + 2, 2**31 - 1], 4):
        await consumer.fetch(epoch=epoch, max_wait_ms=0)
        await consumer.session.acknowledge({}, epoch=epoch)
    part = await consumer.ack(accept(0), epoch=expected)
    fetched = await consumer.fetch(accept(1), epoch=expected + 1)

    judge.equal(0, lasting(part.ack_error), f"error of an ack with epoch {expected}")
    judge.equal((), fetched.errors, f"errors of a fetch with epoch {expected + 1}")


@check("SES-06", fast=True, crossed=AMONG)
async def test_opening_fetch_with_acknowledgements(env: Env, judge: Judge) -> None:
    queue, consumer = await holding(env, 3)

    response = await consumer.fetch(accept(0, 1), epoch=OPEN)

    judge.equal(ErrorCode.INVALID_REQUEST, response.error, "error of the opening fetch")
    await unaccepted(judge, queue, consumer)


@check("SES-07", fast=True, crossed=AMONG)
async def test_opening_acknowledge(env: Env, judge: Judge) -> None:
    queue, consumer = await holding(env, 3)
    stranger = await queue.consumer(join=False)

    for who, name in ((consumer, "with a session"), (stranger, "without a session")):
        part = await who.ack(accept(0, 1), epoch=OPEN)
        judge.equal(BAD_EPOCH, part.ack_error, f"error of epoch 0 {name}")
    await unaccepted(judge, queue, consumer)


@check("SES-08", fast=True)
async def test_fetch_without_session(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(records=1)

    for epoch in (1, 2, 2**31 - 1):
        response = await consumer.session.fetch(consumer.where, epoch=epoch)
        judge.equal(NO_SESSION, response.error, f"error of epoch {epoch}")
    after = (await next_catch(queue, await queue.consumer(join=False))).counts
    judge.equal([0], sorted(after), "offsets left for others")


@check("SES-09", fast=True, crossed=AMONG)
async def test_acknowledge_without_session(env: Env, judge: Judge) -> None:
    queue, consumer = await holding(env, 3)
    stranger = await queue.consumer(join=False)

    for epoch in (1, 2, 2**31 - 1):
        part = await stranger.ack(accept(0, 1), epoch=epoch)
        judge.equal(NO_SESSION, part.ack_error, f"error of epoch {epoch}")
    await unaccepted(judge, queue, consumer)


@check("SES-10", fast=True)
async def test_final_epoch_without_session(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_consumer()

    by_fetch = await consumer.session.fetch(epoch=CLOSE)
    by_ack = await consumer.session.acknowledge({}, epoch=CLOSE)

    judge.equal(NO_SESSION, by_fetch.error, "error of the final ShareFetch")
    judge.equal(NO_SESSION, by_ack.error, "error of the final ShareAcknowledge")


@check("SES-11", crossed=AMONG)
async def test_epoch_below_the_final_one(env: Env, judge: Judge) -> None:
    _, consumer = await holding(env, 2, more=2)
    expected = consumer.session.epoch

    for epoch in (*BELOW, env.rng.randint(-(2**31), -2)):
        fetched = await consumer.fetch(accept(0, 1), epoch=epoch)
        sent = await consumer.session.acknowledge({consumer.where: [accept(0, 1)]}, epoch=epoch)
        for api, error in (("ShareFetch", fetched.error), ("ShareAcknowledge", sent.error)):
            refused = error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR)
            judge.holds(refused, f"{api} with epoch {epoch} got error {error}")
    consumer.session.epoch = expected
    error = (await consumer.fetch(max_records=0, max_wait_ms=0)).error
    judge.equal(0, error, "error of the next epoch after them")
    await untouched(judge, consumer, 2)
