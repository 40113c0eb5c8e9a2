"""What administrators are told while the coordinator of a group moves."""

from suites.broker.failover.cluster import OFFSETS, FailoverCluster
from suites.broker.kit import *

STATE, SHOWN, ALTERED = "ShareGroupDescribe", "DescribeShareGroupOffsets", "AlterShareGroupOffsets"
DELETED = "DeleteShareGroupOffsets"  # Those of a topic that the group has none of.
REMOVED = "DeleteGroups"  # A group of the same coordinator, which has a member.
REQUESTS = (STATE, SHOWN, ALTERED, DELETED, REMOVED)
PASSES = {NONE, *map(error_name, RETRIABLE)}

Said = list[tuple[str, str]]  # Requests, each with its error or a result that is not the group's.


async def _hammer(
    queue: Queue, node: int, until: asyncio.Event, said: Said, *, start: int, live: str
) -> None:
    """Send the requests to a broker again and again; note what is said of each."""
    connection = await queue.env.cluster.to(node)
    async for _ in attempts(pause=0.001):
        done = until.is_set()
        for api in REQUESTS:
            topic = f"no-{queue.topic.name}" if api == DELETED else queue.topic.name
            asked = live if api == REMOVED else queue.group
            response = await connection.call(api, **fields_of(api, asked, topic, start=3))
            codes = [response.error_code] if api == DELETED else codes_in(response)
            error = error_name(next(filter(None, codes), 0))
            if api == REMOVED:
                error = {NON_EMPTY: NONE, NONE: "success"}.get(error, error)
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
            if [error for _, error in said[new][-len(REQUESTS) :]] == [NONE] * len(REQUESTS):
                break
        moved.set()

    live = env.cluster.fresh_name("g")
    while partition_of(live, len(topic.leaders)) != partition:
        live = env.cluster.fresh_name("g")
    member = await env.member(live, queue.topic)
    asking = [_hammer(queue, node, moved, said[node], start=start, live=live) for node in said]
    await asyncio.gather(*asking, move())
    in_time(member.beaten, env.bounds.sessions.default)  # who is silent for longer is removed

    for node, responses in said.items():
        wrong = Counter(one for one in responses if one[1] not in PASSES)
        judge.equal({}, dict(wrong), f"final errors from broker {node} while it moved")
    refused = [error for responses in said.values() for _, error in responses if error != NONE]
    judge.saw(responses=sum(map(len, said.values())), retriable=len(refused))
    last = {error for _, error in said[new][-len(REQUESTS) :]}
    if last != {NONE}:
        raise Undecided(f"the new coordinator was not at work in the end: {last}")
