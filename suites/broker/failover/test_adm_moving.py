"""What administrators are told while the coordinator of a group moves."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from suites.broker.failover.cluster import OFFSETS, FailoverCluster
from suites.broker.groups import codes_in, use
from suites.broker.kit import *


def _requests(queue: Queue) -> dict[str, dict[str, Any]]:
    """Return requests about a group that can be repeated, with their fields."""
    group, name = queue.group, queue.topic.name
    offset = [{"partition_index": 0, "start_offset": 3}]
    return {
        "ShareGroupDescribe": {"group_ids": [group]},
        "DescribeShareGroupOffsets": {"groups": [{"group_id": group, "topics": None}]},
        "AlterShareGroupOffsets": {
            "group_id": group,
            "topics": [{"topic_name": name, "partitions": offset}],
        },
    }


async def _hammer(queue: Queue, node: int, until: asyncio.Event) -> AsyncIterator[tuple[str, int]]:
    """Send the requests to a broker again and again; yield (request, error) of each response."""
    connection = await queue.share.cluster.to(node)
    async for _ in attempts(pause=0.001):
        done = until.is_set()
        for api, fields in _requests(queue).items():
            response = await connection.call(api, **fields)
            yield api, next((code for code in codes_in(response) if code), 0)
        if done:
            return


@check("ADM-49", moves=True)
async def test_coordinator_moves(stage: FailoverCluster, judge: Judge) -> None:
    share = stage.share
    queue = await share.queue()
    await use(queue)
    topic = await share.cluster.topic(OFFSETS)
    partition = partition_of(queue.group, len(topic.leaders))
    old = topic.leaders[partition]
    new = share.rng.choice([node for node in stage.nodes if node != old])
    moved = asyncio.Event()
    said: dict[int, list[tuple[str, int]]] = {old: [], new: []}

    async def listen(node: int) -> None:
        async for response in _hammer(queue, node, moved):
            said[node].append(response)

    async def move() -> None:
        await share.admin.move_leader(topic, new, partition)
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
    judge.equal({"NONE"}, last, "errors of the new coordinator in the end")
