"""Settings of dead letters that change under a live group, and topics that brokers make."""

from fixtures.clients.configs import alter
from fixtures.clients.deadletters import AUTO_CREATE, PERMIT, PERMITTED, PREFIX
from suites.broker.kit import *

pytestmark = pytest.mark.feature("dead-letters")

_NAME, _COPY = "errors_deadletterqueue_topic_name", "errors_deadletterqueue_copy_record_enable"


async def _reject_next(queue: Queue, consumer: Consumer) -> int:
    offset = await queue.produce([b"rejected"])
    await consumer.drain(until=offset)
    await consumer.acked(reject(offset))
    return offset


@check("DLQ-27", fast=True, crossed=AMONG)
async def test_name_taken_away(env: Env, judge: Judge) -> None:
    box = await boxed(env)
    consumer = await box.queue.consumer()
    before = await _reject_next(box.queue, consumer)
    await box.due([before])
    await reconfigure(box.queue, consumer, 29_000, **{_NAME: ""})
    after = [await _reject_next(box.queue, consumer) for _ in range(3)]

    letters = await box.complete(consumer, after[-1] + 1)
    judge.equal(
        [before], letter_offsets(letters), f"source offsets of letters; {after} were rejected later"
    )


@check("DLQ-28", fast=True, crossed=AMONG)
async def test_group_settings_change(env: Env, judge: Judge) -> None:
    box = await boxed(env)
    other = DeadLetterSetup(box.queue, await dead_topic(env))
    consumer = await box.queue.consumer()
    first = await _reject_next(box.queue, consumer)
    await box.due([first])
    await reconfigure(box.queue, consumer, 29_000, **{_COPY: "true"})
    second = await _reject_next(box.queue, consumer)
    copies = {letter.offset: letter.record.value for letter in await box.due([first, second])}
    expected = {first: None, second: b"rejected"}
    judge.equal(expected, copies, "values of letters before and after copying is on")
    await reconfigure(box.queue, consumer, 28_000, **{_NAME: other.topic.name})
    third = await _reject_next(box.queue, consumer)
    moved = letter_offsets(await other.arrived([third]))
    judge.equal([third], moved, "source offsets of letters on the new topic")
    left = letter_offsets(await box.own())
    judge.equal([first, second], left, "source offsets of letters on the old topic")


async def _set_brokers(env: Env, values: Mapping[str, str]) -> None:
    """Change settings of all brokers and wait until they show them."""
    response = await alter(env.cluster, BROKER_RESOURCE, "", values)
    if response.error_code:
        raise Undecided(f"{values} cannot be set: {response.error_message}")

    async def ask() -> bool | None:
        seen = await env.admin.broker_configs()
        return all((seen.get(name) or "") == value for name, value in values.items()) or None

    await eventually(f"brokers showing {values}", ask)


async def _gets_letters(env: Env, name: str) -> list[int]:
    """Reject records of a new group that names the topic until one becomes a letter there.

    A broker shows a setting a moment before it acts on it, so the first ones may be lost. Returns
    the source offsets of the letters, none if time is up.
    """
    queue, consumer = await env.with_consumer(group_config=naming(name))
    async for _ in attempts(pause=0.2):
        await _reject_next(queue, consumer)
        known = await (await env.cluster.any()).call(
            "Metadata", topics=[{"name": name}], allow_auto_topic_creation=False
        )
        if not known.topics[0].error_code:
            letters = await dead_letters_in(env, await env.cluster.topic(name))
            if found := [one for one in letters if one.headers.get("group") == queue.group]:
                return letter_offsets(found)
    await demand_bystander(env.cluster, queue.topic.leaders[0], f"no letters came on {name}")
    return []


@check("DLQ-20", "DLQ-26", "DLQ-28", solo={"num.partitions": "2"})
async def test_broker_settings_change(solo_env: Env, judge: Judge) -> None:
    env = solo_env
    plain = await env.admin.create_topic(configs=PERMITTED)
    missing = f"rejects.{env.cluster.fresh_name('d')}"
    await dead_name(env)

    await _set_brokers(env, {PREFIX: ""})
    seen = await _gets_letters(env, plain.name)
    judge["DLQ-28"].holds(seen, "no letters without restart though the prefix is empty now")
    judge["DLQ-20"].holds(seen, "no letters on a topic of any name though the prefix is empty")

    await _set_brokers(env, {PREFIX: "rejects.", AUTO_CREATE: "true"})
    seen = await _gets_letters(env, missing)
    judge["DLQ-28"].holds(seen, "no letters without restart on a topic to be made")
    judge["DLQ-26"].holds(seen, f"no letters on {missing}, which brokers may make")
    permit = (await env.admin.configs(TOPIC_RESOURCE, missing)).get(PERMIT)
    judge["DLQ-26"].equal("true", permit, "permission of the topic for dead letters")
    made = len((await env.cluster.topic(missing)).partitions)
    judge["DLQ-26"].equal(2, made, "partitions of the topic, num.partitions being 2")
    queue, consumer = await env.with_consumer(group_config=naming(plain.name))
    offset = await _reject_next(queue, consumer)
    await judge_beyond(judge["DLQ-20"], queue, consumer, offset + 1, offset)
    # Letters of the group before may come late.
    groups = {one.headers.get("group") for one in await dead_letters_in(env, plain)}
    judge["DLQ-20"].holds(queue.group not in groups, "letters on a topic lacking the new prefix")
