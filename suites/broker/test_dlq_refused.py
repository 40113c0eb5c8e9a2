"""Dead-letter topics that may not be used, and groups without one: records are archived at once."""

from fixtures.clients.deadletters import AUTO_CREATE, NAME, PERMITTED, PREFIX
from suites.broker.kit import *

pytestmark = pytest.mark.feature("dead-letters")


async def _archives(env: Env, judge: Judge, configs: Mapping[str, str], why: str) -> None:
    """Demand that a group with these configs leaves rejected records behind and goes on."""
    queue, consumer = await env.with_holder(4, group_config=configs)
    await consumer.acked(reject(0, 1), accept(2), reject(3))
    await judge_beyond(judge, queue, consumer, 4, f"4 rejected, {why}")


@check("DLQ-19", fast=True, crossed=AMONG)
@pytest.mark.parametrize("denied", [True, False], ids=["denied", "not-permitted"])
async def test_topic_without_permission(env: Env, judge: Judge, denied: bool) -> None:
    configs = dict.fromkeys(PERMITTED, "false") if denied else {}
    topic = await env.admin.create_topic(name=await dead_name(env), configs=configs)
    await _archives(env, judge, naming(topic.name), "the topic not permitting letters")
    judge.equal(0, await env.admin.log_offset(topic), "end of the topic")


@check("DLQ-20", fast=True, crossed=AMONG)
async def test_topic_without_prefix(env: Env, judge: Judge) -> None:
    await dead_name(env)
    topic = await env.admin.create_topic(configs=PERMITTED)
    if topic.name.startswith((await env.admin.broker_configs()).get(PREFIX) or ""):
        raise OutOfReach("the cluster asks for no prefix, or for that of our names")
    await _archives(env, judge, naming(topic.name), "the name lacking the prefix")
    judge.equal(0, await env.admin.log_offset(topic), "end of the topic")


@check("DLQ-21", fast=True, crossed=AMONG)
async def test_topic_that_is_not_there(env: Env, judge: Judge) -> None:
    name = await dead_name(env)
    if (await env.admin.broker_configs()).get(AUTO_CREATE) == "true":
        raise OutOfReach("the cluster creates missing dead-letter topics")
    await _archives(env, judge, naming(name), "the topic missing")
    connection = await env.cluster.any()
    async for _ in attempts(NOT_FOR):
        response = await connection.call(
            "Metadata", topics=[{"name": name}], allow_auto_topic_creation=False
        )
        seen = error_name(response.topics[0].error_code)
        judge.equal("UNKNOWN_TOPIC_OR_PARTITION", seen, "what brokers know of the topic")


@check("DLQ-22", fast=True)
async def test_name_of_an_internal_topic(env: Env, judge: Judge) -> None:
    group = (await env.queue(group_config=naming(await dead_name(env)))).group
    for name in ("__consumer_offsets", "__share_group_state", "__dlq.letters", "__"):
        response = await env.admin.try_group_config(group, {NAME: name})
        judge.equal(ErrorCode.INVALID_CONFIG, response.error_code, f"error of the name {name}")


@check("DLQ-18", fast=True, crossed=AMONG)
@pytest.mark.parametrize("configs", [{}, {NAME: ""}], ids=["never-named", "empty-name"])
async def test_group_without_a_topic(env: Env, judge: Judge, configs: dict[str, str]) -> None:
    await dead_name(env)
    queue = await env.queue(6, batches=6, group_config={DELIVERY_LIMIT: "2"} | configs)
    trail = await StateKey(env, queue.group, queue.topic.id).trail()
    consumer = await queue.holder(6)
    await consumer.acked(reject(0, 2), release(3, 5))
    await hold_at(consumer, 3, 2)
    await consumer.acked(release(3, 5))
    await judge_beyond(judge, queue, consumer, 6, "6 undeliverable")

    # The states that each offset was persisted in, one after the other.
    states: dict[int, list[int]] = {offset: [] for offset in range(6)}
    for record in await trail.records():
        for batch in batches_of(record.value) if record.value else ():
            for offset, seen in states.items():
                if batch.first <= offset <= batch.last and batch.state not in seen[-1:]:
                    seen.append(batch.state)
    if not any(states.values()):
        raise Undecided("the state topic holds nothing of the group")
    archiving = [offset for offset, seen in states.items() if ARCHIVING in seen]
    judge.equal([], archiving, "offsets that were stored as archiving")
    judge.saw(stored_states=sum(map(len, states.values())))
