"""A start offset at the log's end, before anything was acknowledged: finding 052.

Nobody has set share.auto.offset.reset. A member of a new group fetches, and gets nothing. In the
scene ``idle`` (one broker) it goes, records are produced, and another member comes. In ``leader``
(three brokers) it is given the records that are produced, and while it holds them, another broker
becomes the partition's leader; ``earliest`` is the same with share.auto.offset.reset=earliest. Exit
code 1 if records that came after the group's first fetch are not given to the member that comes
last.
"""

from __future__ import annotations

from dataclasses import replace

from fixtures.clients.cluster import attempts
from suites.broker.leaders import ReconnectingConsumer
from suites.broker.share import Consumer
from tools.findings.program import Run, say, stored

OLD, NEW = 5, 5


async def taken(consumer: Consumer, until: int | None = None) -> dict[int, int]:
    """Fetch until an offset came, or anything; return the delivery counts."""
    counts: dict[int, int] = {}
    async for _ in attempts():
        answer = consumer.sound(await consumer.fetch())
        counts |= answer.only.counts
        if until in counts or (until is None and counts):
            break
    return counts


async def play(run: Run) -> bool:
    """Play the scenario; tell whether records were lost."""
    async with run.world() as share:
        replicas = 1 if run.scenario == "idle" else 3
        reset = "earliest" if run.scenario == "earliest" else None
        queue = await share.queue(OLD, reset=reset, replicas=replicas, lock_ms=60_000)
        consumer = await queue.consumer()
        first = consumer.sound(await consumer.fetch()).only.counts
        say(f"the log has 0-{OLD - 1}; the first fetch of the group is given", first or "nothing")
        say("stored:", await stored(queue))
        topic = queue.topic
        if run.scenario == "idle":
            await consumer.depart()
            say("the member has gone")
        await queue.produce(NEW, batches=NEW)
        last = OLD + NEW - 1
        say(f"{OLD}-{last} are produced")
        if run.scenario != "idle":
            say("the member is given", await taken(consumer, until=last))
            say("stored:", await stored(queue))
            new = next(node for node in sorted(share.cluster.brokers) if node != topic.leaders[0])
            topic = await share.admin.move_leader(topic, new)
            say(f"broker {new} leads, and nothing was acknowledged")
        heir = ReconnectingConsumer(replace(queue, topic=topic))
        async for _ in attempts():
            if part := await heir.fetch():
                break
        counts = part.counts if part else {}
        sentinel = await share.admin.produce(topic, 1)
        counts |= await heir.take([sentinel])
        say(f"{sentinel} is produced; the last member is given", counts)
        lost = [offset for offset in range(OLD, OLD + NEW) if offset not in counts]
        await share.disband()
    return bool(lost)
