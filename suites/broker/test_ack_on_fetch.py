"""Acknowledgements that ride on a ShareFetch, and requests that follow each other closely."""

from suites.broker.kit import *

LONG_WAIT = 20_000  # Milliseconds that a fetch may wait for records when it should not wait at all.


@check("ACK-04", fast=True, crossed=(BESIDE, RELOADED))
async def test_accept_inside_a_fetch(env: Env, judge: Judge) -> None:
    await judge_final_type(env, judge, AckType.ACCEPT, by_fetch=True)


@check("ACK-06", fast=True, crossed=(BESIDE, RELOADED))
async def test_reject_inside_a_fetch(env: Env, judge: Judge) -> None:
    await judge_final_type(env, judge, AckType.REJECT, by_fetch=True)


@check("ACK-05", fast=True, crossed=(BESIDE, BEHIND))
async def test_release_inside_a_fetch(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(12)
    chosen = sorted(env.rng.sample(range(1, 12), 5))
    response = await consumer.fetch(*singly(chosen, AckType.RELEASE), max_wait_ms=0)
    judge_done(judge, result_in(response, consumer), f"result of releasing {chosen}")
    # Whether the fetch part already sees what the same request released is left open.
    caught = response.only.counts | (await next_catch(queue, consumer)).counts
    judge.equal(dict.fromkeys(chosen, 2), caught, "records that come again")
    judge.saw(redeliveries=len(chosen))


@check("ACK-53", fast=True, crossed=(BESIDE, BEHIND))
async def test_fetch_of_no_records(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(6)
    await queue.produce(3)
    response = await consumer.fetch(accept(1, 2), release(3), max_records=0, max_wait_ms=0)
    judge_done(judge, result_in(response, consumer), "result of the acknowledgements")
    judge.equal([], response.offsets, "records acquired with MaxRecords 0")
    after = await next_catch(queue, consumer)
    judge.equal([3, 6, 7, 8], after.offsets, "records of the next fetches")


@check("ACK-54", fast=True, crossed=(BESIDE, BEHIND))
async def test_refused_acknowledgement_does_not_stop_the_fetch(env: Env, judge: Judge) -> None:
    bad = {"a settled record": accept(1), "an unknown type": Ack(2, 2, (50,))}
    queue, consumer = await env.with_holder(4)
    await consumer.acked(accept(1))
    for what, batch in bad.items():
        fresh = await queue.produce(1)
        got: list[int] = []
        async for _ in attempts():
            response = await consumer.fetch(batch)
            if (told := result_in(response, consumer)) in {"NONE", LEFT_OUT}:
                raise Undecided(f"acknowledging {what} was answered {told}")
            errors = (response.error, response.only.error)
            judge.equal((0, 0), errors, f"errors of the fetch and of the partition beside {what}")
            got += response.offsets
            if fresh in got:
                break
        else:
            node = queue.topic.leaders[0]
            await demand_bystander(env.cluster, node, f"{fresh} did not come beside {what}")
        judge.holds(fresh in got, f"fetches with {what} acquired {got}, and not {fresh}")
    await judge_held(judge, consumer, [2, 3], "refused acknowledgements")


@check("ACK-55", fast=True, crossed=BEHIND)
async def test_requests_take_effect_in_order(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(30)
    session = consumer.session
    calls: list[asyncio.Task[Response]] = []
    first = session.epoch
    chosen = env.rng.sample(range(1, 30), 20)
    released, accepted = sorted(chosen[:10]), sorted(chosen[10:])
    # Nobody waits for a response: all twenty requests are under way at once, and the session's
    # epochs refuse any that were taken out of order.
    for index, (free, done) in enumerate(zip(released, accepted, strict=True)):
        acks = sorted([release(free), accept(done)], key=lambda ack: ack.first)
        epoch = first + 2 * index
        calls += [
            asyncio.create_task(session.acknowledge({consumer.where: acks}, epoch=epoch)),
            asyncio.create_task(session.fetch(epoch=epoch + 1, max_wait_ms=100)),
        ]
    responses = await asyncio.gather(*calls)
    errors = [code for response in responses for code in response.errors]
    judge.equal([], errors, "errors of requests sent without waiting")
    caught = {o: c for response in responses for o, c in response.only.counts.items()}
    judge.saw(pipelined=len(calls), redeliveries=len(caught))
    caught |= (await next_catch(queue, consumer)).counts
    judge.delivered(dict.fromkeys(released, 2), caught, "records acquired by the fetches")


@check("ACK-55", crossed=(BESIDE, BEHIND))
async def test_fetch_right_behind_a_release(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(5)
    session = consumer.session
    # One fetch may be answered empty, whatever there is; three are not that follow a release.
    for offset in env.rng.sample(range(1, 5), 3):
        epoch = session.epoch
        responses = await asyncio.gather(
            session.acknowledge({consumer.where: [release(offset)]}, epoch=epoch),
            session.fetch(epoch=epoch + 1, max_wait_ms=LONG_WAIT),
        )
        judge_done(judge, result_in(responses[0], consumer), "result of the release")
        if counts := responses[1].only.counts:
            break
    judge.delivered({offset: 2}, counts, "what the fetch behind a release acquired")
