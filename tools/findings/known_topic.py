"""Where partitions begin whose topic a share group knows by an alteration only: finding 047.

Nobody has set share.auto.offset.reset, so that a group begins at the log's end. In the scene
``altered`` the start offset of partition 0 is set before the group is used for the first time; in
``refused`` that is tried and answered with an error. Then a member reads partition 1, and another
group's member does. Exit code 1 if the first one is given records that are older than its group.
One broker.
"""

from __future__ import annotations

from fixtures.clients.cluster import attempts
from fixtures.wire.errors import error_name
from suites.broker.share import Queue
from suites.broker.state import STATE_TOPIC
from tools.findings.program import Run, jam, say

OLD = 5
"""How many records are older than the groups."""


async def alter(queue: Queue) -> None:
    """Set the start offset of partition 0 to the log's end."""
    part = {"partition_index": 0, "start_offset": OLD}
    answer = await queue.share.cluster.at_coordinator(
        queue.group,
        "AlterShareGroupOffsets",
        group_id=queue.group,
        topics=[{"topic_name": queue.topic.name, "partitions": [part]}],
    )
    errors = {
        part.partition_index: f"{error_name(part.error_code)} {part.error_message or ''}".strip()
        for topic in answer.responses
        for part in topic.partitions
    }
    say("AlterShareGroupOffsets of partition 0 answered", errors)


async def first_read(queue: Queue) -> list[int]:
    """Join, read partition 1 up to a record that comes after the first fetch; return it all."""
    member = await queue.share.member(queue.group)
    await member.join(queue.topic, within=90)
    session = await member.session(queue.topic.leaders[1])
    seen: list[int] = []
    named = [(queue.topic, 1)]
    async for _ in attempts():
        seen += (await session.fetch(*named)).offsets
        if seen:
            break
        named = []
        await queue.produce(1, 1)
    await member.leave()
    await session.connection.close()
    return seen


async def play(run: Run) -> bool:
    """Play the scenario; tell whether the group was given what is older than itself."""
    async with run.world() as share:
        warm = await share.queue(1)
        await warm.consumer()
        plain = await share.queue(partitions=2, reset=None)
        for partition in plain.topic.partitions:
            await plain.produce(OLD, partition, batches=OLD)
        touched = Queue(share=share, topic=plain.topic, group=share.cluster.fresh_name("g"))
        if run.scenario == "refused":
            await jam(share, STATE_TOPIC, "1")
        await alter(touched)
        if run.scenario == "refused":
            await jam(share, STATE_TOPIC, None)
        found = {}
        for what, queue in (("untouched", plain), (run.scenario, touched)):
            found[what] = await first_read(queue)
            say(f"the {what} group is first given, of partition 1,", found[what])
        await share.disband()
    return min(found[run.scenario], default=OLD) < OLD <= min(found["untouched"], default=OLD)
