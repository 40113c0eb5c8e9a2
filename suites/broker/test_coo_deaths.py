"""What becomes of records whose consumer dies, and of consumers whose topic does."""

from suites.broker.kit import *

NOTICED = 8.0
"""Seconds, counted from when acknowledgements show that the leader has heard of a deletion."""

LONG_WAIT_MS = 40_000  # MaxWaitMs of a fetch that has to be answered before it is over.


@check("COO-34", crossed=(BESIDE, RELOADED))
@pytest.mark.parametrize("how", ["killed", "ended", "stopped"])
async def test_others_get_what_the_dead_left(env: Env, judge: Judge, how: str) -> None:
    total, lock_ms = env.rng.randint(8, 20), env.bounds.prompt_lock
    queue, dead = await env.with_consumer(total, lock_ms=lock_ms, batches=env.rng.choice([1, 5]))
    held = (await dead.acquire(total)).counts
    done = env.rng.randint(1, total - 1)
    await dead.acked(accept(0, done - 1))
    heirs = [await queue.consumer(join=False) for _ in range(2)]

    # End a consumer as the kernel ends a process: it is killed, ends, or is stopped for good.
    if how == "killed":
        dead.session.connection.abort()
    elif how == "ended":
        await dead.session.connection.close()
    wanted = {o for o in range(done, total) if held[o] == 1}  # surely below the delivery limit
    counts: dict[int, int] = {}
    async for _ in attempts(lock_ms / 1000 + SLACK):
        for heir in heirs:
            response = heir.sound(await heir.fetch(max_records=7, max_wait_ms=100))
            counts |= response.only.counts
            if response.offsets:
                await heir.acked(*(accept(r.first, r.last) for r in response.only.ranges))
        if counts.keys() >= wanted:
            break

    came = wanted & counts.keys()
    if came != wanted:
        await demand_bystander(env.cluster, queue.topic.leaders[0], f"no more came than {came}")
        if (await heirs[0].take(1, 2.0)).counts:
            raise Undecided(f"more than {came} was still coming")
        await plain_locks(env, lock_ms)
    judge.equal(wanted, came, f"offsets inherited from a consumer that was {how}")


async def _until_gone(holder: Consumer) -> str:
    """Acknowledge something of a deleted topic until the leader has heard; return what it says.

    Until then the topic is as good as there.
    """
    look = partial(holder.session.acknowledge, {holder.where: PROBE})
    return result_in(await poll(look, lambda seen: result_in(seen, holder) in GONE), holder)


@check("COO-33", crossed=AMONG, timeout=90)
async def test_wait_ends_with_its_topic(env: Env, judge: Judge) -> None:
    queue, holder = await env.with_holder(6, lock_ms=env.bounds.longest_lock)
    waiter = await queue.consumer(join=False)
    waiting = asyncio.create_task(waiter.fetch(max_wait_ms=LONG_WAIT_MS, timeout=90))
    await asyncio.wait([waiting], timeout=0.4)
    if waiting.done():
        raise Undecided(f"the fetch did not wait: {waiting.result()}")

    await env.admin.delete_topics(queue.topic.name)
    if (heard := await _until_gone(holder)) not in GONE:
        raise Undecided(f"the leader does not hear of the deletion: {heard}")

    done, _ = await asyncio.wait([waiting], timeout=NOTICED)
    waiting.cancel()
    if not done:
        await demand_bystander(env.cluster, queue.topic.leaders[0], "the fetch did not end")
    judge.holds(done, f"a fetch still waited {NOTICED:g} s after its topic was deleted")
    told = {error_name(code) for code in waiting.result().errors}
    allowed = {"NONE": "order: the wait may end before the deletion is heard of"} | GONE
    judge.none_but(allowed, told, "errors of the fetch that waited")


@check("ACK-51", "SES-47", crossed=AMONG, timeout=90)
async def test_topic_deleted_under_its_consumers(env: Env, judge: Judge) -> None:
    queue, holder = await env.with_holder(6, lock_ms=env.bounds.longest_lock, untouched=True)

    await env.admin.delete_topics(queue.topic.name)

    seen = await _until_gone(holder)
    judge["ACK-51"].one_of(GONE, seen, "result of an acknowledgement of a deleted topic")
    # On the same broker, so that the session that saw the old topic is asked about the new one.
    home = [[queue.topic.leaders[0]]]
    created = await env.admin.create_topic(name=queue.topic.name, assignments=home)
    heir = replace(queue, topic=created)
    if heir.topic.id == queue.topic.id:
        raise Undecided("the topic was not recreated")
    await heir.produce(4)
    await holder.member.subscribe(heir.topic)
    counts: dict[int, int] = {}
    errors: set[str] = set()
    where = (heir.topic, 0)
    async for _ in attempts():
        response = await holder.session.fetch(where, forget=[holder.where])
        errors |= {error_name(code) for code in response.errors}
        if part := response.part(heir.topic.id):
            counts |= part.counts
        if len(counts) == 4:
            break
    judge["SES-47"].delivered(
        dict.fromkeys(range(4), 1), counts, f"counts of the new topic; {errors}"
    )
