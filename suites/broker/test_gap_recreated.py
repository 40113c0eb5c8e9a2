"""A topic deleted and created again under the same name: another topic, as far as groups go."""

from suites.broker.kit import *


async def _recreated(queue: Queue) -> Queue:
    """Delete a queue's topic and create another of its name; return the new queue."""
    env = queue.env
    await env.admin.delete_topics(queue.topic.name)
    async for _ in attempts():
        topic = await env.admin.create_topic(name=queue.topic.name)
        if topic.id != queue.topic.id:
            return replace(queue, topic=topic)
    return queue


async def _used(env: Env) -> tuple[Queue, Consumer]:
    """Return a queue with records held, released and finished, so that there is state to forget."""
    queue, consumer = await env.with_holder(10, untouched=True)
    await consumer.acked(accept(0, 2), release(3, 5), accept(8, 9))
    return queue, consumer


@check("GAP-38", crossed=AMONG)
@pytest.mark.parametrize("fresh", [True, False], ids=["new-member", "same-member"])
async def test_starts_afresh(env: Env, judge: Judge, fresh: bool) -> None:
    old, consumer = await _used(env)
    queue, member = await _recreated(old), consumer.member
    count = env.rng.randint(3, 12)
    await queue.produce(count)
    if fresh:
        await consumer.close()
        await member.leave()
        consumer = await queue.consumer()
    else:

        async def ask() -> bool | None:
            await member.heartbeat()
            return (queue.topic.id, 0) in member.assigned or None

        await eventually("assigning the new topic", ask)
        consumer = Consumer(member, consumer.session, (queue.topic, 0))
        await consumer.reconnect()
    catch = await consumer.acquire(count)
    judge.equal(dict.fromkeys(range(count), 1), catch.counts, "delivery counts")


@check("GAP-39", crossed=AMONG)
async def test_old_topic_is_refused(env: Env, judge: Judge) -> None:
    old, consumer = await _used(env)
    queue = await _recreated(old)
    await queue.produce(10)
    where = (old.topic, 0)
    await consumer.reconnect()
    code = 0
    async for _ in attempts():
        response = await consumer.session.fetch(where, max_wait_ms=0)
        part = response.part(old.topic.id)
        judge.equal([], response.offsets, "acquired from a topic that is gone")
        code = response.error or (part.error if part else 0)
        if code and code not in RETRIABLE:
            break
    judge.one_of(GONE, error_name(code), "result of a fetch")
    none = {"SHARE_SESSION_NOT_FOUND": "ShareFetchResponse ErrorCode: no fetch opened a session"}
    ack = await consumer.session.acknowledge({where: [accept(6, 7)]})
    part = ack.part(old.topic.id)
    seen = error_name(ack.error or (part.ack_error if part else 0))
    judge.one_of(GONE | (none if response.error else {}), seen, "result of an acknowledgement")
