"""What a quota makes of delivery counts: a response left empty has delivered nothing."""

from fixtures.clients.users import BYTE_RATE, REQUEST_SHARE
from suites.broker.kit import *

RECORDS, SIZE = 10, 1050
LONG_MS = 2000  # Locks that last longer are let run out as few times as a delivery limit can be.
QUOTAS = {REQUEST_SHARE: LITTLE, BYTE_RATE: RECORDS * SIZE / 10.5}
"""Quotas that a fetch of all records exceeds by little: brokers average bytes over ten seconds."""


async def _fate(env: Env, quota: str) -> tuple[list[int], dict[int, int]]:
    """Return the records that are gone unseen, and the counts that were too high."""
    lock, limit = env.bounds.short_lock / 1000, await delivery_limit(env)
    queue = await env.queue(partitions=3, lock_ms=env.bounds.short_lock)
    await queue.produce([b"x" * SIZE] * RECORDS, 1)
    low = {DELIVERY_LIMIT: "2"}  # where locks last for long
    long = lock * 1000 > LONG_MS
    if long and not (await env.admin.try_group_config(queue.group, low)).error_code:
        await env.admin.group_config(queue.group, low)
        limit = 2
    payer, other = await queue.consumer(1), await queue.consumer(1, join=False)
    async with held_to(env, payer, **{quota: QUOTAS[quota]}):
        # The broker does not listen while it throttles, which makes the pauses between the fetches.
        sent: Counter[int] = Counter()
        high: dict[int, int] = {}
        throttled = 0
        async for _ in attempts((limit + 1) * (lock + 1.2)):
            response = await payer.fetch(max_wait_ms=300)
            if response.error:
                raise Undecided(f"a throttled fetch answered {response.errors}")
            throttled += delay(response) > 0
            for part in response.parts:
                sent.update(part.counts)
                high |= {o: count for o, count in part.counts.items() if count > sent[o]}
        if not throttled:
            raise Undecided("no fetch was throttled")
    seen = await watch(other, range(RECORDS), lock + SLACK)
    high |= {o: s.count for o, s in seen.items() if s.count > sent[o] + 1}
    return [o for o in range(RECORDS) if o not in seen and o not in sent], high


@check("DLV-34", meets="second partition", timeout=90)
async def test_empty_answers_deliver_nothing(env: Env, judge: Judge) -> None:
    fates = await asyncio.gather(*(_fate(env, each) for each in QUOTAS))
    for quota, (lost, high) in zip(QUOTAS, fates, strict=True):
        what = f"held to {quota}: records that no response ever had, and that nobody gets"
        judge.equal([], lost, what)
        judge.equal({}, high, f"held to {quota}: counts above the deliveries there were")
