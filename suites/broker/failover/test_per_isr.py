"""The state topic without enough replicas in sync: nothing may be promised that is not kept."""

from suites.broker.failover.cluster import FailoverCluster
from suites.broker.failover.roles import short_of_replicas
from suites.broker.kit import *


@check("PER-43", meets=ACROSS_BATCHES, timeout=150)
async def test_too_few_in_sync(stage: FailoverCluster, judge: Judge) -> None:
    away = await stage.victim()
    leader, state = stage.env.rng.sample([n for n in stage.nodes if n != away], 2)
    queue = await stage.queue(leader, state=state, group=leader)
    await queue.produce(9, batches=6)
    consumer = await queue.holder(9)
    await consumer.acked(accept(0, 2))
    async with short_of_replicas(stage, away):
        # Whoever has to store it may go on trying, so the response is not waited for.
        asked = asyncio.create_task(consumer.ack(accept(3, 5), timeout=60.0))
        await asyncio.wait({asked}, timeout=2 * NOT_FOR)
        answered = error_name(asked.result().ack_error) if asked.done() else "no response yet"
        what = "response with two replicas in sync, three wanted"
        judge.holds(answered != "NONE", f"{what}: {answered}", step=what)
        await stage.start(away)
        await asked
        seen = ""
        async for _ in attempts(WITHIN):
            seen = error_name((await consumer.ack(accept(6, 8), timeout=60.0)).ack_error)
            if seen == "NONE":
                break
        else:
            await demand_bystander(stage.cluster, leader, f"acknowledging is answered {seen}")
        judge.equal("NONE", seen, "response with all replicas in sync again")
        kept = await read_state(queue)
        done = kept.start_offset > 8 or any(b.last_offset >= 8 for b in kept.state_batches)
        judge.holds(done, f"the last acknowledgement is not in the stored state {kept}")
