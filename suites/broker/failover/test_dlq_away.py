"""Dead letters whose broker is away for a while: they wait, and nobody else does."""

from fixtures.clients.configs import configure_topic
from suites.broker.failover.cluster import FailoverCluster
from suites.broker.failover.roles import IN_SYNC
from suites.broker.kit import *

pytestmark = pytest.mark.feature("dead-letters")

SIZE = 10
SHORT = 20.0  # Seconds; a letter is tried five times in 31 s, each pause a fifth longer or shorter.


async def _stalled(judge: Judge, box: DeadLetterSetup, consumer: Consumer) -> list[object]:
    """Reject records whose letters cannot be written; return states and start as stored then."""
    part = await consumer.ack(*(reject(offset) for offset in range(SIZE)))
    judge["DLQ-29"].equal("NONE", error_name(part.ack_error), "result while letters cannot go out")
    stored = {
        offset: batch.delivery_state
        for batch in (await read_state(box.queue)).state_batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }
    return [stored, (await box.queue.offsets()).start]


@check(
    "DLQ-29",
    "DLQ-30",
    "DLQ-31",
    "DLQ-32",
    "DLQ-33",
    "DLQ-34",
    "DLQ-37",
    meets="reload",
    timeout=120,
)
async def test_home_of_the_letters_is_away(stage: FailoverCluster, judge: Judge) -> None:
    env = stage.env
    away = await stage.victim()
    first, second = (node for node in stage.nodes if node != away)
    dead = await dead_topic(env, assignments=[[away]])
    box = await boxed(env, SIZE, batches=SIZE, dead=dead, assignments=[[first, second]])
    other = await dead_topic(env, assignments=[[second]])
    calm = DeadLetterSetup(await env.sibling(box.queue, **naming(other.name)), other)
    consumer, neighbour = await box.queue.consumer(), await calm.queue.consumer()
    await consumer.acquire(SIZE)
    await neighbour.acquire(SIZE)

    await stage.stop(away)
    states, start = await _stalled(judge, box, consumer)
    part = await neighbour.ack(*map(reject, range(SIZE)))
    judge["DLQ-37"].equal("NONE", result(part), "result in the other group")
    missing = set(range(SIZE)) - set(letter_offsets(await calm.arrived(range(SIZE))))
    judge["DLQ-37"].equal(set(), missing, "offsets without a letter of the other group")
    await judge_beyond(judge["DLQ-37"], calm.queue, neighbour, SIZE, again=GIVEN_AGAIN)

    began = time.monotonic()
    moved = await env.admin.move_leader(box.queue.topic, second)
    box = replace(box, queue=replace(box.queue, topic=moved))
    heir = await box.queue.consumer(join=False)
    sentinel = await box.queue.produce(1)
    seen: list[int] = []
    async for _ in attempts():
        seen += (await heir.fetch()).offsets
        if sentinel in seen:
            break
    strays = sorted(offset for offset in seen if offset < SIZE)
    judge["DLQ-30"].equal([], strays, "archiving records delivered by the next leader")
    await heir.acked(*(accept(offset) for offset in seen if offset >= SIZE))
    await stage.start(away)
    outage = time.monotonic() - began

    letters = await box.arrived(range(SIZE), within=2 * WITHIN)
    without = sorted(set(range(SIZE)) - set(letter_offsets(letters)))
    if without and outage > SHORT:
        raise Undecided(f"the broker was away from the next leader for {outage:.0f} s")
    judge["DLQ-34"].equal([], without, "offsets without a letter though the broker is back")
    judge["DLQ-30"].equal(dict.fromkeys(range(SIZE), ARCHIVING), states, "states stored meanwhile")
    judge["DLQ-31"].equal(0, start, "start offset while no letter could be written")
    await judge_beyond(judge["DLQ-32"], box.queue, heir, SIZE)
    sources = {letter.source for letter in await box.letters()}
    topic, group = box.queue.topic.name, box.queue.group
    expected = {(topic, "0", str(offset), group) for offset in range(SIZE)}
    judge["DLQ-33"].equal(expected, sources, "sources named by letters")
    judge["DLQ-33"].saw(letters=len(letters), repeated=len(letters) - SIZE)


@check("DLQ-32", meets="reload", timeout=120)
async def test_leader_stops_with_letters_due(stage: FailoverCluster, judge: Judge) -> None:
    env, size = stage.env, 50
    leader = await stage.victim()
    follower, home = (node for node in stage.nodes if node != leader)
    # Its topic refuses letters until the leader has begun to shut down.
    dead = await dead_topic(env, assignments=[[home]], configs={IN_SYNC: "2"})
    box = await boxed(env, size, batches=5, dead=dead, assignments=[[leader, follower]])
    consumer = await box.queue.holder(size)
    await consumer.acked(reject(0, size - 1))
    if finished := await settled_below(box.queue):
        raise Undecided(f"the letters of {finished} records were given up at once")
    stopping = asyncio.create_task(stage.stop(leader))
    box = replace(box, queue=await located(box.queue))
    await configure_topic(stage.cluster, dead.name, {IN_SYNC: "1"})
    await stopping

    await judge_beyond(judge, box.queue, await box.queue.consumer(join=False), size)
    without = sorted(set(range(size)) - set(letter_offsets(await box.arrived(range(size)))))
    judge.equal([], without, "rejected offsets without a letter, their leader stopped")
