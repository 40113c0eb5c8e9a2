"""Leaders of many partitions named in one response: of four brokers one can name three others."""

from suites.broker.kit import *

HINTED = "NOT_LEADER_OR_FOLLOWER"


async def _asked(queue: Queue, node: int, position: str) -> tuple[Response, Response]:
    """Fetch and acknowledge at one broker what three others lead, and what it leads itself."""
    *led, own = [(queue.topic, index) for index in queue.topic.partitions]
    places = among(led, own, position)
    async for _ in attempts():
        session = await (await queue.env.member(queue.group)).session(node)
        fetched = await session.fetch(*places, epoch=OPEN, max_wait_ms=0)
        acked = await session.acknowledge({where: [accept(0)] for where in places})
        parts = [fetched.part(topic.id, at) for topic, at in led]
        if all(part and error_name(part.error or part.ack_error) == HINTED for part in parts):
            return fetched, acked
    raise Undecided(f"broker {node} does not say that it leads only one of four partitions")


@check("COO-25", meets=IN_LISTS, solo={"brokers": 4}, timeout=120)
async def test_three_leaders(solo_env: Env, judge: Judge) -> None:
    env = solo_env
    node, *others = sorted(env.cluster.brokers)
    queue = await env.queue(assignments=[*([each, node] for each in others), [node, *others[:1]]])
    await queue.consumer(len(others))
    for position in POSITIONS:
        for response in await _asked(queue, node, position):
            # A broker that never led a partition may not know it where records are acknowledged.
            hints = [part for part in response.parts if part.partition != len(others)]
            if any(error_name(part.error or part.ack_error) != HINTED for part in hints):
                continue
            leaders = {
                index: part.leader[0]
                for index in range(len(others))
                if (part := response.part(queue.topic.id, index))
            }
            judge.equal(dict(enumerate(others)), leaders, "CurrentLeader by partition")
            expected = {other: env.cluster.brokers[other] for other in others}
            named = {at: where for at, where in response.endpoints.items() if at != node}
            judge.equal(expected, named, "NodeEndpoints")  # its own broker leads, too
            judge.saw(hints=len(others))
