"""An acknowledgement whose state write meets the end of its topic."""

from suites.broker.brokers import Proxied
from suites.broker.kit import *

REPEATED_WITHIN = 20.0
"""Seconds after which a write that was refused is repeated for the third time; see ``MOST``."""
MOST = 5  # How often Kafka sends a state write before it gives up, with pauses of 1, 2, 4 and 8 s.


@check("ACK-51", solo={}, timeout=120)
async def test_state_write_meets_the_end_of_its_topic(between: Proxied, judge: Judge) -> None:
    env = between.env
    queue, holder = await env.with_holder(6, lock_ms=env.bounds.longest_lock)
    with between.state_writes_refused() as refusal:
        acks = {holder.where: [accept(0, 2)]}
        acking = asyncio.create_task(holder.session.acknowledge(acks, timeout=60.0))
        await between.met(refusal, REPEATED_WITHIN, refusal.done)
        await env.admin.delete_topics(queue.topic.name)
        async for _ in attempts():
            asked = [{"name": queue.topic.name}]
            found = await (await env.cluster.any()).call("Metadata", topics=asked)
            if found.topics[0].topic_id != queue.topic.id:
                break
        else:
            raise Undecided("the broker did not hear that the topic is gone")
        # The next is a second away: the share coordinator knows of the deletion by then.
        await between.met(refusal, REPEATED_WITHIN, refusal.done)
    told = result_in(await acking, holder)
    if refusal.done >= MOST:
        raise Undecided(f"{refusal.done} state writes were refused: the leader may have given up")
    judge.one_of(GONE, told, "result of an acknowledgement under way of a deleted topic")
