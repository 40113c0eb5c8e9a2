"""Exclusivity: an offset has one holder at a time, groups know nothing of each other."""

from suites.broker.kit import *


@check("ACQ-20", "ACQ-21", fast=True, crossed=(BESIDE, BEHIND))
async def test_held_record_is_given_to_nobody(env: Env, judge: Judge) -> None:
    queue = await env.queue(records=10, batches=env.rng.choice([1, 2, 10]))
    holder, other = await queue.consumer(), await queue.consumer()
    since = time.monotonic()
    held = await holder.acquire(10)

    first, others = await up_to_new(queue, other)
    second, own = await up_to_new(queue, holder)
    in_time(since, held.responses[0].lock_ms)

    judge["ACQ-20"].equal([first], others.offsets, "offsets acquired for another member")
    judge["ACQ-21"].equal([second], own.offsets, "offsets acquired for the holder itself")
    judge["ACQ-20"].saw(held=len(held.counts))
    judge["ACQ-21"].saw(held=len(held.counts))


@check("ACQ-22", crossed=(BESIDE, BEHIND))
async def test_two_members_inside_one_batch(env: Env, judge: Judge) -> None:
    queue, first, second = await env.with_pair(records=12)
    await first.acquire(12)
    given = sorted(env.rng.sample(range(12), k=5))
    kept = sorted(set(range(12)) - set(given))
    await first.acked(*(release(offset) for offset in given))

    judge.equal(given, (await second.acquire(len(given))).offsets, "offsets of the second member")

    for who, foreign in ((second, kept), (first, given)):
        for offset in foreign:
            judge_refusal(judge, await who.ack(accept(offset)), f"settling another's {offset}")
    for who, own in ((first, kept), (second, given)):
        judge_done(judge, await who.ack(*singly(own, AckType.ACCEPT)), "settling one's own")
    if len((rest := (await up_to_new(queue, second))[1]).offsets) > 1:
        raise Undecided(f"after all were accepted {rest.offsets} came, which ACK-01 forbids")


@check("ACQ-25", fast=True, crossed=(BESIDE, BEHIND))
async def test_every_record_once(env: Env, judge: Judge) -> None:
    total = env.rng.randint(60, 150)
    queue = await env.queue(records=total, batches=env.rng.choice([1, 7, 20]))
    members = [await queue.consumer() for _ in range(3)]
    deliveries: Counter[int] = Counter()

    async for _ in attempts():
        for member in members:
            response = member.sound(await member.fetch(max_records=env.rng.randint(1, 30)))
            if response.offsets:
                deliveries.update(response.offsets)
                await member.acked(*(accept(r.first, r.last) for r in response.only.ranges))
        if len(deliveries) >= total:
            break
    else:
        missing = sorted(set(range(total)) - deliveries.keys())
        raise await members[0].stopped(f"offsets {missing} were never delivered")

    again = sorted(offset for offset, times in deliveries.items() if times > 1)
    judge.equal([], again, "offsets that were delivered more than once")
    judge.saw(records=total)
