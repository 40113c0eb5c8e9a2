"""ShareAcknowledge requests as a whole: empty ones, wrong addresses, fields from the future."""

from suites.broker.kit import *


@check("ACK-45", fast=True)
async def test_no_batch_at_all(env: Env, judge: Judge) -> None:
    several = await spread(env, 3, records=2)
    for named in range(1, 4):
        response = await several.session.acknowledge(dict.fromkeys(several.where[:named], ()))
        judge.equal(0, response.error, f"error for {named} partitions without batches")
        judge.equal((), response.parts, f"response for {named} partitions without batches")
    results = await several.acknowledge(*([accept(1)] for _ in several.where))
    judge.equal(["NONE"] * 3, results, "response for the same partitions with batches")


@check("ACK-46", fast=True)
async def test_partition_without_batches(env: Env, judge: Judge) -> None:
    several = await spread(env, 4, records=4)
    empty = env.rng.randrange(4)
    acks = [[] if index == empty else [accept(0, 1), release(2)] for index in range(4)]
    results = await several.acknowledge(*acks)
    # Kafka answers NONE for it when any other partition has batches, and leaves it out otherwise.
    allowed = {
        "NONE": "ShareAcknowledgeResponse ErrorCode: of each partition, or 0 if there was no error",
        LEFT_OUT: "ACK-46 of a partition about which nothing was asked: no error is due",
    }
    judge.one_of(allowed, results.pop(empty), "the partition without batches")
    judge.equal(["NONE"] * 3, results, "results of the others")
    for index in range(4):
        expected = {} if index == empty else {2: 2}
        left = await several.left(index)
        judge.delivered(expected, left, f"records of partition {index} that come again")


@check("ACK-47", fast=True, crossed=AMONG)
async def test_no_topic_at_all(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(4)
    session = consumer.session
    used = session.epoch
    response = await session.acknowledge({})
    judge.equal((0, ()), (response.error, response.parts), "response to no topics")
    again = await session.acknowledge({}, epoch=used)
    judge.holds(again.error, "the same epoch again was answered without error")
    await judge_held(judge, consumer, range(1, 4), "a request without topics")


@check("ACK-48", fast=True)
async def test_unknown_topic_id(env: Env, judge: Judge) -> None:
    _, consumer = await env.with_holder(6)
    random_id = uuid.UUID(bytes=env.rng.randbytes(16))
    unknown = Topic(name="", id=random_id, leaders=(0,))
    response = await consumer.session.acknowledge(
        {(unknown, 0): [accept(0, 3)], consumer.where: [reject(1, 2)]}
    )
    judge.equal("UNKNOWN_TOPIC_ID", result(response.part(random_id)), "result of a random topic id")
    judge_done(judge, result_in(response, consumer), "result beside it")
    judge_refusal(judge, await consumer.ack(accept(1)), "accepting the rejected record")
    await judge_held(judge, consumer, range(3, 6), "acknowledging another id")


@check("ACK-49", fast=True)
async def test_unknown_partition(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(6)
    topic, _ = consumer.where
    for offset, index in enumerate((1, env.rng.randint(2, 10_000), 2**31 - 1), 1):
        response = await consumer.session.acknowledge(
            {(topic, index): [accept(0, 3)], consumer.where: [release(offset)]}
        )
        seen = result(response.part(topic.id, index))
        judge.equal("UNKNOWN_TOPIC_OR_PARTITION", seen, f"result of partition {index}")
        judge_done(judge, result_in(response, consumer), "result beside it")
    again = await next_catch(queue, consumer)
    judge.equal([1, 2, 3], again.offsets, "records released beside it that come again")
    await judge_held(judge, consumer, range(4, 6), "unknown partitions")


def judge_not_here(judge: Judge, env: Env, response: Response, topic: Topic, what: str) -> None:
    """Demand a refusal of partition 0 by a broker that does not lead it."""
    part = response.part(topic.id)
    judge.one_of(NOT_HERE, result(part), what)
    if part and result(part) == "NOT_LEADER_OR_FOLLOWER":
        leader = topic.leaders[0]
        judge.equal(leader, part.leader[0], "CurrentLeader of the refusal")
        address = response.endpoints.get(leader)
        judge.equal(env.cluster.brokers[leader], address, "NodeEndpoints' leader")


@check("ACK-50", crossed=AMONG)
async def test_broker_that_does_not_lead(env: Env, judge: Judge) -> None:
    nodes = sorted(env.cluster.brokers)
    if len(nodes) < 2:
        raise OutOfReach("a broker that does not lead needs a cluster of two brokers or more")
    leader, *others = env.rng.sample(nodes, len(nodes))
    _, consumer = await env.with_holder(6, assignments=[[leader, others[0]]])
    where = consumer.where
    for node in others:
        kind = "a follower" if node == others[0] else "a broker without a replica"
        session = await consumer.member.session(node)
        await session.fetch(where, max_wait_ms=0)
        response = await session.acknowledge({where: [accept(1, 5)]})
        judge_not_here(judge, env, response, where[0], f"ShareAcknowledge to {kind}")
        response = await session.fetch(acks={where: [release(1, 5)]}, max_wait_ms=0)
        judge_not_here(judge, env, response, where[0], f"ShareFetch to {kind}")
    await judge_held(judge, consumer, range(1, 6), "asking other brokers")


async def one_topic_gone(env: Env) -> tuple[Session, Topic, Topic]:
    """Return a session that holds 4 records of each of two topics, one of them deleted since."""
    leader = min(env.cluster.brokers)
    queue = await env.queue(assignments=[[leader]], lock_ms=env.bounds.longest_lock)
    doomed = await env.admin.create_topic(assignments=[[leader]])
    member = await env.member(queue.group, queue.topic, doomed)
    await queue.produce(4)
    await env.admin.produce(doomed, 4)
    session = await member.session(leader)
    held: list[int] = []
    async for _ in attempts():
        where = [] if session.epoch else [(queue.topic, 0), (doomed, 0)]
        held += (await session.fetch(*where)).offsets
        if len(held) == 8:
            break
    else:
        sentence = f"only offsets {held} of two topics were acquired"
        raise await stopped(env.cluster, leader, sentence, session.fetch)
    await env.admin.delete_topics(doomed.name)
    return session, queue.topic, doomed


@check("ACK-51", crossed=AMONG)
async def test_deleted_topic(env: Env, judge: Judge) -> None:
    session, kept, doomed = await one_topic_gone(env)
    seen = ""
    # A broker learns of the deletion some time after the controller has answered it, and an
    # acknowledgement on the way may meet state that is half gone; only where it ends is judged.
    async for _ in attempts():
        response = await session.acknowledge({(doomed, 0): PROBE})
        seen = error_name(response.error) if response.error else result(response.part(doomed.id))
        if seen in GONE:
            break
    else:
        await demand_bystander(env.cluster, min(env.cluster.brokers), f"only {seen} was told")
    judge.one_of(GONE, seen, "result of the deleted topic")
    response = await session.acknowledge({(doomed, 0): [accept(0, 3)], (kept, 0): [accept(1, 3)]})
    in_time(session.made, env.bounds.longest_lock)
    judge.one_of(GONE, result(response.part(doomed.id)), "result beside another topic")
    judge_done(judge, response.part(kept.id), "result of the other topic")
    # Record 0 is still held, so that the start offset cannot pass what was accepted.
    settled = result((await session.acknowledge({(kept, 0): [accept(1, 3)]})).part(kept.id))
    judge_refusal(judge, settled, "accepting these again")


@check("ACK-64", crossed=AMONG)
async def test_deleted_topic_inside_a_fetch(env: Env, judge: Judge) -> None:
    session, kept, doomed = await one_topic_gone(env)
    seen = ""
    async for _ in attempts():
        response = await session.fetch(acks={(doomed, 0): PROBE}, max_wait_ms=100)
        judge.equal("NONE", error_name(response.error), "error of the whole ShareFetch")
        seen = result(response.part(doomed.id))
        if seen in GONE:
            break
    else:
        await demand_bystander(env.cluster, min(env.cluster.brokers), f"only {seen} was told")
    judge.one_of(GONE, seen, "result of the deleted topic")
    both = {(doomed, 0): [accept(0, 3)], (kept, 0): [release(1, 3)]}
    response = await session.fetch(acks=both, max_wait_ms=100)
    in_time(session.made, env.bounds.longest_lock)
    judge.equal("NONE", error_name(response.error), "error of a ShareFetch with both")
    judge.one_of(GONE, result(response.part(doomed.id)), "result beside another topic")
    judge_done(judge, response.part(kept.id), "result of the other topic")
    again = offsets_in(response, (kept, 0))
    if len(again) < 3:
        more = await acquired(session, (kept, 0), count=3 - len(again), named=False)
        again += more[kept, 0]
    judge.equal([1, 2, 3], sorted(again), "records of the other topic fetched again")


@check("ACK-52", fast=True, crossed=AMONG)
async def test_unknown_tagged_fields(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(8)

    def tags() -> dict[int, bytes]:
        numbers = env.rng.sample(range(50, 100_000), 3)
        return {number: env.rng.randbytes(env.rng.randint(0, 300)) for number in numbers}

    def topics(offset: int) -> list[dict[str, Any]]:
        batch = accept(offset).wire() | {"_tags": tags()}
        part = {"partition_index": 0, "acknowledgement_batches": [batch], "_tags": tags()}
        return [{"topic_id": queue.topic.id, "partitions": [part], "_tags": tags()}]

    response = await consumer.session.acknowledge({}, topics=topics(1), _tags=tags())
    judge_done(judge, result_in(response, consumer), "ShareAcknowledge full of tags")
    response = await consumer.fetch(topics=topics(2), _tags=tags(), max_wait_ms=0)
    judge_done(judge, result_in(response, consumer), "ShareFetch full of tags")
    judge_refusal(judge, await consumer.ack(release(1, 2)), "releasing the accepted")
    judge.equal({}, (await next_catch(queue, consumer)).counts, "records that came again")
    await judge_held(judge, consumer, range(3, 8), "requests full of tags")
