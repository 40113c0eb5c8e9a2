"""What administrators are told while the coordinator of a group moves."""

from suites.broker.failover.cluster import OFFSETS, FailoverCluster
from suites.broker.kit import *

STATE, SHOWN, ALTERED = "ShareGroupDescribe", "DescribeShareGroupOffsets", "AlterShareGroupOffsets"
DELETED = "DeleteShareGroupOffsets"  # Those of a topic that the group has none of.
PASSES = {NONE, *map(error_name, RETRIABLE)}

Said = list[tuple[str, str]]  # Requests, each with its error or a result that is not the group's.


async def _hammer(queue: Queue, node: int, until: asyncio.Event, start: int, said: Said) -> None:
    """Send the requests to a broker again and again; note what is said of each."""
    connection = await queue.env.cluster.to(node)
    async for _ in attempts(pause=0.001):
        done = until.is_set()
        for api in (STATE, SHOWN, ALTERED, DELETED):
            topic = f"no-{queue.topic.name}" if api == DELETED else queue.topic.name
            response = await connection.call(api, **fields_of(api, queue.group, topic, start=3))
            codes = [response.error_code] if api == DELETED else codes_in(response)
            error = error_name(next(filter(None, codes), 0))
            for group in response.groups if error == NONE and api in (STATE, SHOWN) else ():
                told = {group.group_state} if api == STATE else {*starts(group).values()} or {UNSET}
                error = str(told - {"Empty", start, 3} or NONE)
            said.append((api, error))
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
    start, moved = (await queue.offsets()).start, asyncio.Event()
    said: dict[int, Said] = {old: [], new: []}

    async def move() -> None:
        await env.admin.move_leader(topic, new, partition)
        async for _ in attempts():
            if [error for _, error in said[new][-4:]] == [NONE] * 4:
                break
        moved.set()

    asking = [_hammer(queue, node, moved, start, said[node]) for node in said]
    await asyncio.gather(*asking, move())

    for node, responses in said.items():
        wrong = Counter(one for one in responses if one[1] not in PASSES)
        judge.equal({}, dict(wrong), f"final errors from broker {node} while it moved")
    refused = [error for responses in said.values() for _, error in responses if error != NONE]
    judge.saw(responses=sum(map(len, said.values())), retriable=len(refused))
    last = {error for _, error in said[new][-4:]}
    if last != {NONE}:
        raise Undecided(f"the new coordinator was not at work in the end: {last}")
