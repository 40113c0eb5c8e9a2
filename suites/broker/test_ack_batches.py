"""Acknowledgement batches that are malformed: each is refused and settles nothing."""

from fixtures.wire.codec import Raw
from fixtures.wire.connection import CallTimeout
from suites.broker.kit import *

COUNT = 30
NULL_ARRAY = Raw(b"\x00")  # A compact array whose length says null.


MALFORMED = {"INVALID_REQUEST": "ShareAcknowledgeResponse ErrorCode: what is malformed is invalid"}
NOT_HELD = {"INVALID_RECORD_STATE": "KIP-932 §Error codes: because of the state of the record"}


async def judge_refused(
    judge: Judge, consumer: Consumer, *cases: tuple[Ack, ...], by: Mapping[str, str] = MALFORMED
) -> None:
    """Demand that each case is refused, by ShareAcknowledge and by ShareFetch, without a trace."""
    for batches in cases:
        shown = [(ack.first, ack.last, ack.types) for ack in batches]
        judge.one_of(by, result(await consumer.ack(*batches)), f"ShareAcknowledge of {shown}")
        response = await consumer.fetch(*batches, max_wait_ms=0)
        judge.one_of(by, result_in(response, consumer), f"ShareFetch with {shown}")
    await judge_held(judge, consumer, range(1, COUNT), "the refused batches")


@check("ACK-17", crossed=(BESIDE, BEHIND))
async def test_first_offset_above_last(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(COUNT)
    last, more = env.rng.randint(1, 10), env.rng.randint(1, 10)
    await judge_refused(
        judge,
        consumer,
        (Ack(2, 1, (1,)),),
        (Ack(last + more, last, (1,)),),
        (accept(1), Ack(last + more + 1, last + 1, (2,))),
    )


@check("ACK-18", fast=True, crossed=(BESIDE, BEHIND))
async def test_batches_out_of_order(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(COUNT)
    low, high = sorted(env.rng.sample(range(1, COUNT), 2))
    await judge_refused(
        judge,
        consumer,
        (accept(high), accept(low)),
        (accept(20, 25), accept(10, 15)),
        (accept(1), accept(5, 6), accept(3)),
    )


@check("ACK-19", fast=True, crossed=(BESIDE, BEHIND))
async def test_batches_that_overlap(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(COUNT)
    await judge_refused(
        judge,
        consumer,
        (accept(1, 10), accept(11 - env.rng.randint(2, 5), 15)),
        (accept(1, 10), release(1, 10)),
        (accept(1, 20), accept(5, 6)),
        (accept(1, 4), accept(6, 9), release(8, 12)),
    )


@check("ACK-20", crossed=(BESIDE, BEHIND))
async def test_batches_that_share_a_border(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(COUNT)
    border = env.rng.randint(5, 20)
    await judge_refused(
        judge,
        consumer,
        (accept(border - 3, border), accept(border, border + 3)),
        (accept(border), accept(border)),
        (release(border - 2, border), accept(border)),
        by=NOT_HELD,
    )


@check("ACK-21", fast=True, crossed=(BESIDE, BEHIND))
async def test_no_types(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(COUNT)
    await judge_refused(
        judge, consumer, (Ack(1, 1, ()),), (Ack(1, 9, ()),), (accept(1, 3), Ack(5, 5, ()))
    )


@check("ACK-22", crossed=(BESIDE, BEHIND))
async def test_null_types(env: Env, judge: Judge) -> None:
    queue, holder = await env.with_holder(6)
    stranger = await queue.consumer(join=False)
    await stranger.fetch(max_wait_ms=0)
    topic, partition = holder.where
    null = {"first_offset": 1, "last_offset": 5, "acknowledge_types": NULL_ARRAY}
    named = {"partition_index": partition, "acknowledgement_batches": [null]}
    topics = [{"topic_id": topic.id, "partitions": [named]}]
    # The session is the holder's, the connection another: if the broker hangs up on what it cannot
    # parse, the records are still held.
    try:
        raw = await stranger.session.connection.call(
            "ShareAcknowledge",
            group_id=queue.group,
            member_id=holder.member_id,
            share_session_epoch=holder.session.epoch,
            topics=topics,
        )
    except CallTimeout:
        raise  # it proves nothing that there is no response
    except CallFailed:
        judge.holds(True, "the connection was ended")
    else:
        codes = [part.error_code for found in raw.responses for part in found.partitions]
        judge.holds(raw.error_code or any(codes), "null types were answered without error")
        holder.session.epoch += not raw.error_code
    await judge_held(judge, holder, range(1, 6), "a batch with null types")


@check("ACK-23", fast=True, crossed=(BESIDE, BEHIND))
async def test_wrong_number_of_types(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(COUNT)
    size = env.rng.randint(4, 20)
    await judge_refused(
        judge,
        consumer,
        (Ack(1, 1, (1, 1)),),
        (Ack(1, 3, (1, 1)),),
        (Ack(1, size, (1,) * (size - 1)),),
        (Ack(1, size, (1,) * (size + 1)),),
        (Ack(1, 3, (1, 2, 3) * 1000),),
        (accept(1, 4), Ack(5, 7, (1, 2))),
    )


@check("ACK-62", crossed=AMONG)
async def test_offsets_no_record_can_have(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(COUNT)
    highest = 2**63 - 1
    for below in (accept(-5, -1), release(-1), reject(-(2**63)), accept(-(2**63), -1)):
        part = await consumer.ack(below)
        allowed = {
            "INVALID_REQUEST": "ShareAcknowledgeResponse ErrorCode: what is malformed is invalid",
            "NONE": "KIP-932 §In-flight records: all that is below the start offset is over",
            "INVALID_RECORD_STATE": "KIP-932 §In-flight records: below the start it is Archived",
        }
        judge.one_of(allowed, result(part), f"result of {below.first}..{below.last}")
    await judge_refused(
        judge,
        consumer,
        (accept(-(2**63), highest),),
        (accept(1, highest),),
        (accept(highest),),
        (release(2**62, highest),),
        by=MALFORMED | NOT_HELD,
    )
