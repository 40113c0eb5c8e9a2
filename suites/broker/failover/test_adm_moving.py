"""What administrators are told while the coordinator of a group moves."""

from suites.broker.failover.cluster import OFFSETS, FailoverCluster
from suites.broker.kit import *

REPEATABLE = ("ShareGroupDescribe", "DescribeShareGroupOffsets", "AlterShareGroupOffsets")


async def _hammer(queue: Queue, node: int, until: asyncio.Event) -> AsyncIterator[tuple[str, int]]:
    """Send the requests to a broker again and again; yield (request, error) of each response."""
    connection = await queue.env.cluster.to(node)
    async for _ in attempts(pause=0.001):
        done = until.is_set()
        for api in REPEATABLE:
            fields = fields_of(api, queue.group, queue.topic.name, start=3)
            response = await connection.call(api, **fields)
            yield api, next((code for code in codes_in(response) if code), 0)
        if done:
            return


@check("ADM-49", moves=True)
async def test_coordinator_moves(stage: FailoverCluster, judge: Judge) -> None:
    env = stage.env
    queue = await env.queue()
    await use(queue)
    topic = await env.cluster.topic(OFFSETS)
    partition = partition_of(queue.group, len(topic.leaders))
    old = topic.leaders[partition]
    new = env.rng.choice([node for node in stage.nodes if node != old])
    moved = asyncio.Event()
    said: dict[int, list[tuple[str, int]]] = {old: [], new: []}

    async def listen(node: int) -> None:
        async for response in _hammer(queue, node, moved):
            said[node].append(response)

    async def move() -> None:
        await env.admin.move_leader(topic, new, partition)
        async for _ in attempts():
            if [code for _, code in said[new][-3:]] == [0, 0, 0]:
                break
        moved.set()

    await asyncio.gather(listen(old), listen(new), move())

    for node, responses in said.items():
        wrong = Counter((api, error_name(c)) for api, c in responses if c and c not in RETRIABLE)
        judge.equal({}, dict(wrong), f"final errors from broker {node} while it moved")
    refused = [code for responses in said.values() for _, code in responses if code]
    judge.saw(responses=sum(map(len, said.values())), retriable=len(refused))
    last = {error_name(code) for _, code in said[new][-3:]}
    if last != {"NONE"}:
        raise Undecided(f"the new coordinator was not at work in the end: {last}")
