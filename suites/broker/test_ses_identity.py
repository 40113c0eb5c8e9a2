"""Whose a session is: one for each member, group and broker; and ids that nobody may have."""

from suites.broker.kit import *

BAD_IDS = pytest.mark.parametrize("bad", [None, "", "m" * 37], ids=["null", "empty", "long"])


@check("SES-30", fast=True, crossed=AMONG)
async def test_sessions_of_two_members(env: Env, judge: Judge) -> None:
    queue = await env.queue(4, batches=4, lock_ms=env.bounds.longest_lock)
    one, two = await queue.consumer(), await queue.consumer()
    await one.acquire(2, max_records=2)
    await two.acquire(2, max_records=2)
    expected = one.session.epoch

    await two.fetch(epoch=two.session.epoch + 1)
    await one.session.fetch(epoch=expected, member_id=env.member_id())
    await two.close()
    one.session.epoch = expected

    judge_done(judge, await one.ack(accept(0, 1)), "the first member's ack")
    judge.equal(expected + 1, one.session.epoch, "epoch of the first member")


@check("SES-31")
async def test_sessions_of_one_member_id_in_two_groups(env: Env, judge: Judge) -> None:
    queue = await env.queue(2, lock_ms=env.bounds.longest_lock)
    sibling = await env.sibling(queue)
    here, there = await queue.consumer(), await sibling.consumer()
    there.session.member_id = here.member_id
    await here.acquire(2)
    await there.acquire(2)
    for _ in range(env.rng.randint(1, 4)):
        await there.fetch(max_wait_ms=0)

    judge_done(judge, await here.ack(accept(0)), "the next epoch in the first group")
    await here.close()
    judge_done(judge, await there.ack(accept(0, 1)), "an ack in the other group, later")


@check("SES-32")
async def test_sessions_on_two_brokers(env: Env, judge: Judge) -> None:
    nodes = sorted(env.cluster.brokers)
    if len(nodes) < 2:
        raise OutOfReach("needs a cluster of at least two brokers")
    homes = [[node] for node in nodes[:2]]
    queue = await env.queue(2, partitions=2, assignments=homes, lock_ms=env.bounds.longest_lock)
    await queue.produce(2, 1)
    near = await queue.consumer()
    far = Consumer(near.member, await near.member.session(nodes[1]), (queue.topic, 1))
    await near.acquire(2)
    await far.acquire(2)
    for _ in range(env.rng.randint(1, 4)):
        await far.fetch(max_wait_ms=0)

    judge_done(judge, await near.ack(accept(0)), "the next epoch on the first broker")
    await near.close()
    early = (await next_catch(queue, await queue.consumer(1, join=False), 1)).counts
    judge.equal([], sorted(early), "records of the other broker that were released")
    judge_done(judge, await far.ack(accept(0, 1)), "an ack on the other broker, later")


async def _judge_bad_id(env: Env, judge: Judge, said: str, **bad: Any) -> None:
    _, consumer = await env.with_consumer()

    fetched = await consumer.fetch(epoch=OPEN, max_wait_ms=0, **bad)
    sent = await consumer.session.acknowledge({consumer.where: [accept(0)]}, epoch=1, **bad)

    invalid = ErrorCode.INVALID_REQUEST
    judge.equal(invalid, fetched.error, f"error of ShareFetch{said}")
    judge.equal(invalid, sent.error, f"error of ShareAcknowledge{said}")


@check("SES-33", fast=True, crossed=AMONG)
async def test_null_group_id(env: Env, judge: Judge) -> None:
    await _judge_bad_id(env, judge, "", group_id=None)


@check("SES-34", fast=True, crossed=AMONG)
@BAD_IDS
async def test_bad_member_id(env: Env, judge: Judge, bad: str | None) -> None:
    await _judge_bad_id(env, judge, f" as {bad!r}", member_id=bad)


@check("SES-35", crossed=AMONG)
@BAD_IDS
async def test_bad_ids_are_the_clients_fault(env: Env, judge: Judge, bad: str | None) -> None:
    _, consumer = await env.with_consumer()
    fields: list[dict[str, Any]] = [{"member_id": bad}]
    if bad is None:
        fields.append({"group_id": None})

    for wrong in fields:
        fetched = await consumer.fetch(epoch=OPEN, max_wait_ms=0, **wrong)
        sent = await consumer.session.acknowledge({}, epoch=1, **wrong)
        for api, error in (("ShareFetch", fetched.error), ("ShareAcknowledge", sent.error)):
            blamed = error != ErrorCode.UNKNOWN_SERVER_ERROR
            judge.holds(blamed, f"{api} with {wrong} got error {error}")


@check("SES-40", crossed=AMONG)
async def test_sessions_on_one_connection(env: Env, judge: Judge) -> None:
    queue = await env.queue(6, batches=6, lock_ms=env.bounds.longest_lock)
    consumers = [await queue.consumer()]
    connection = consumers[0].session.connection
    for _ in range(2):
        member = await env.member(queue.group, queue.topic)
        session = Session(connection, queue.group, member.member_id)
        consumers.append(Consumer(member, session, consumers[0].where))
    # A member of another group, with the same id as the first one.
    namesake = await env.member((await env.sibling(queue)).group)
    namesake.member_id = consumers[0].member_id
    await namesake.join(queue.topic)
    session = Session(connection, namesake.group, namesake.member_id)
    consumers.append(Consumer(namesake, session, consumers[0].where))

    held = [(await consumer.acquire(2, max_records=2)).offsets for consumer in consumers]
    for _ in range(env.rng.randint(1, 4)):
        await env.rng.choice(consumers).fetch(max_wait_ms=0)
    errors = [
        lasting((await consumer.ack(*map(accept, offsets))).ack_error)
        for consumer, offsets in zip(consumers, held, strict=True)
    ]

    judge.equal([0, 0, 0, 0], errors, "errors of each member's acknowledgement")
