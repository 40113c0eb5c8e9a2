"""DeleteShareGroupOffsets: a group forgets a topic, if nobody uses it."""

from suites.broker.kit import *


@check("ADM-27", fast=True)
@pytest.mark.parametrize("reset", ["earliest", "latest"])
async def test_a_topic_is_forgotten(env: Env, judge: Judge, reset: str) -> None:
    queue = await env.queue(partitions=2)
    for index in (0, 1):
        await use(queue, partition=index)
    await env.admin.group_config(queue.group, {"share.auto.offset.reset": reset})

    answered = await delete_offsets(env, queue.group, queue.topic.name)

    judge.equal((NONE, {queue.topic.name: NONE}), answered, "errors of the deletion")
    view = await env.admin.share_offsets(queue.group, queue.topic)
    starts = {index: offset.start for index, offset in view.items()}
    judge.equal({0: UNSET, 1: UNSET}, starts, "start offsets shown")
    judge.equal(set(), await shown_starts(env, queue.group), "what the group has to show")
    for index in (0, 1):
        if reset == "earliest":
            counts = await given_anew(queue, index, join=not index)
            judge.equal(dict.fromkeys(range(11), 1), counts, f"given of partition {index}")
        else:
            counts = await begun_by_latest(queue, index, join=not index)
            afresh = min(counts) >= 10 and {*counts.values()} == {1}
            judge.holds(afresh, f"partition {index} gives {counts} by latest, end 10")


@check("ADM-54", fast=True, crossed=AMONG)
async def test_results_have_topic_ids(env: Env, judge: Judge) -> None:
    queue = await env.queue(10)
    beside = await env.admin.create_topic()
    await use(queue)
    await use(queue, beside)
    ids = {topic.name: topic.id for topic in (queue.topic, beside)}
    first = [{"partition_index": 0, "start_offset": env.rng.randint(0, 9)}]
    requests: dict[str, list[dict[str, Any]]] = {
        "AlterShareGroupOffsets": [{"topic_name": name, "partitions": first} for name in ids],
        "DeleteShareGroupOffsets": [{"topic_name": name} for name in ids],
    }
    for api, topics in requests.items():
        response = await ask_coordinator(env, queue.group, api, group_id=queue.group, topics=topics)
        told = {one.topic_name: one.topic_id for one in response.responses}
        if response.error_code or told.keys() != ids.keys() or _errors(response):
            raise Undecided(f"{api} was answered {response}")
        judge.equal(ids, told, f"topic ids in the results of {api}")


def _errors(response: Any) -> set[int]:
    parts = (part for one in response.responses for part in getattr(one, "partitions", [one]))
    return {part.error_code for part in parts} - {0}


@check("ADM-52", fast=True)
async def test_group_that_is_not_there(env: Env, judge: Judge) -> None:
    topic = await env.admin.create_topic()

    unknown = await delete_offsets(env, env.cluster.fresh_name("g"), topic.name)

    judge.equal({NO_GROUP}, refusals(unknown), "errors with a group that is not there")


@check("ADM-28", fast=True, crossed=AMONG)
async def test_who_may_not(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_holder(10)
    await consumer.acked(accept(0, 4))
    before = await queue.offsets()

    live = await delete_offsets(env, queue.group, queue.topic.name)

    judge.equal({NON_EMPTY}, refusals(live), "errors with a member in the group")
    after = await queue.offsets()  # which may follow the acknowledgements late
    judge.holds(after.start >= before.start, f"offsets before and afterwards: {before}, {after}")
    judge_done(judge, await consumer.ack(accept(5, 9)), "settling what was held all the time")


@check("ADM-29", fast=True)
async def test_each_topic_on_its_own(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    second, unused = await env.admin.create_topic(), await env.admin.create_topic()
    await use(queue)
    await use(queue, second)
    nowhere = env.cluster.fresh_name("t")
    names = [queue.topic.name, unused.name, nowhere, second.name]
    env.rng.shuffle(names)

    whole, told = await delete_offsets(env, queue.group, *names)

    told.pop(unused.name, None)  # nothing is stored of it: that is deleted, or not there
    expected = {queue.topic.name: NONE, second.name: NONE, nowhere: NO_TOPIC}
    judge.equal((NONE, expected), (whole, told), "errors")
    judge.equal(set(), await shown_starts(env, queue.group), "offsets that are left")


ROUNDS, TOGETHER, DELETION = 24, 6, "DeleteShareGroupOffsets"


async def _raced(env: Env, topic: Topic) -> tuple[str, int, str, list[int]]:
    """Let a join and a deletion of offsets meet in a group whose start offset was set to 5.

    Returns the deletion's error, the smallest offset that the new member is delivered by
    "earliest", the result of its ACCEPT, and what comes again once the state is loaded anew.
    """
    queue = Queue(env=env, topic=topic, group=env.cluster.fresh_name("g"))
    await env.admin.group_config(queue.group, {"share.auto.offset.reset": "earliest"})
    await altered(env, queue.group, {(topic.name, 0): 5})
    member = await env.member(queue.group)
    joining = beat(member, member_epoch=0, subscribed_topic_names=[topic.name])
    fields = fields_of(DELETION, queue.group, topic.name)
    deleting = env.cluster.at_coordinator(queue.group, DELETION, **fields)
    racers = [joining, deleting] if env.rng.random() < 0.5 else [deleting, joining]
    error = max(codes_in((await asyncio.gather(*racers))[racers.index(deleting)]), key=abs)
    if error in RETRIABLE:  # who asks again does not know whether something was done the first time
        raise Undecided(f"the deletion was answered {error_name(error)}")
    await member.join(topic)
    session = await member.new_session(topic.leaders[0])
    consumer = Consumer(member, session, (topic, 0))
    caught = await consumer.drain(until=9)
    kept = result(await consumer.ack(accept(first := caught.offsets[0], 9)))
    in_time(session.made, caught.responses[-1].lock_ms)
    await consumer.depart()
    again = sorted(offset for offset in await given_anew(queue) if offset <= 9)
    return error_name(error), first, kept, again


@check("ADM-31", meets=IDLE, timeout=90)
async def test_races_with_a_join(env: Env, judge: Judge) -> None:
    topic = await env.admin.create_topic()
    await env.admin.produce(topic, 10, batches=10)
    for _ in range(ROUNDS // TOGETHER):
        rounds = await asyncio.gather(*(_raced(env, topic) for _ in range(TOGETHER)))
        for error, first, kept, again in rounds:
            judge.one_of(RACED, error, "error of a deletion in a race")
            begins = 0 if error == NONE else 5
            judge.equal(begins, first, f"first offset delivered, deletion got {error}")
            judge.equal(NONE, kept, f"result of accepting it, deletion got {error}")
            judge.equal([], again, "delivered again after it was accepted")
            judge.saw(**{"deleted" if error == NONE else "refused": 1})
