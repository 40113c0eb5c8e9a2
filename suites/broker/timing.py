"""Time in checks: when locked records come back, and durations that are as long as configured.

Nothing here sleeps. Every duration is seen from both sides. From before it was begun until its end
was told is the *most* that it can have lasted; from when it had begun until a question that still
found it running was sent is the *least*. A slow harness only makes the one larger and the other
smaller. A slow broker ends things late. So it is the shortest of many that counts, of two durations
side by side: a factor shows in the longer one. How late the broker ends an ordinary wait meanwhile
is added.

* shorter than configured: ``fail``
* beyond ``LONGER`` times as configured at the least, and that lateness, each time: ``fail``
* at most ``SURE`` times as configured: ``pass``
* else it cannot be told; after a few rounds it is ``unknown``
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from fixtures.clients.cluster import RETRIABLE, WITHIN, attempts, gather_all
from fixtures.clients.member import renew
from spec.verdict import OutOfReach, Undecided
from suites.broker.env import BYSTANDING, Consumer, Env, Queue, demand_bystander
from suites.broker.groups import good_beat, member_ids
from suites.broker.settings import HEARTBEAT, SESSION
from suites.judge import Judge

# A lock is judged from both sides. It may not end before its duration has passed since the request
# that took it was sent, and it has to have ended a generous while after the response. Between the
# two lies all the slowness of machines, which proves nothing.
SLACK = 15.0  # Seconds after a lock's end by which the record has to be available again.
EARLY = 0.95
"""Share of a lock's duration that has to pass in any case; the rest is for timers' ticks."""

RENEW_ONLY = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
"""What a ShareFetch that renews has to carry (KIP-1222)."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """The first delivery of an offset that a watch saw: when (monotonic) and its count."""

    at: float
    count: int


async def comes_again(consumer: Consumer, wanted: Collection[int], ms: int = 0) -> dict[int, int]:
    """Return the counts with which offsets come, freed at once or only when their lock is over."""
    seen = await watch(consumer, wanted, ms / 1000 + SLACK)
    if missing := sorted(set(wanted) - seen.keys()):
        raise Undecided(f"offsets {missing} did not come, with locks of {ms} ms at the most")
    return {offset: seen[offset].count for offset in wanted}


async def watch(
    consumer: Consumer, wanted: Iterable[int], within: float, **options: int
) -> dict[int, Sighting]:
    """Fetch until every wanted offset came or ``within`` seconds are over; return all that came.

    Unlike :meth:`Consumer.acquire` it leaves the judgement of what is missing to the check, and it
    sits out the errors that a new leader answers for a moment.
    """
    missing = set(wanted)
    seen: dict[int, Sighting] = {}
    async for left in attempts(within):
        wait = max(1, min(500, int(left * 1000)))
        response = await consumer.fetch(**({"max_wait_ms": wait} | options))
        if response.only.error in RETRIABLE:
            continue
        consumer.sound(response)
        for offset, count in response.only.counts.items():
            seen.setdefault(offset, Sighting(time.monotonic(), count))
        missing -= seen.keys()
        if not missing:
            break
    if missing and within >= BYSTANDING:
        node = consumer.where[0].leaders[consumer.where[1]]
        cluster = consumer.member.cluster
        await demand_bystander(cluster, node, f"{sorted(missing)} did not come")
    return seen


async def linger(consumer: Consumer, seconds: float) -> None:
    """Let time pass as a consumer does: in a fetch that finds nothing."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        response = consumer.sound(await consumer.fetch(max_wait_ms=max(1, int(left * 1000))))
        if response.offsets:
            raise Undecided(f"{response.offsets} came while nothing should have been available")


def in_time(since: float, lock_ms: int) -> None:
    """Demand of ourselves that a lock taken after ``since`` still ran until now."""
    if time.monotonic() - since > lock_ms / 1000 * EARLY:
        raise Undecided(f"the harness needed longer than the lock's {lock_ms} ms for its part")


async def two_partitions(env: Env, records: int, lock_ms: int, **group_config: str) -> Queue:
    """Return a queue for :func:`outlast`: two partitions with one leader, records in the first."""
    where = env.together(2)
    return await env.queue(records, assignments=where, lock_ms=lock_ms, group_config=group_config)


async def outlast(queue: Queue, lock_ms: int) -> None:
    """Wait until every lock that partition 0 gave before now has run out, taking none of them.

    A record of partition 1 is acquired now, from the same broker: when that one is available again,
    the earlier locks are over too, however slow the broker's clock and ours.
    """
    offset = await queue.produce(1, partition=1)
    holder = await queue.consumer(1, join=False)
    await holder.acquire(1)
    other = await queue.consumer(1, join=False)
    if offset not in await watch(other, [offset], lock_ms / 1000 + SLACK):
        raise Undecided("the lock of the sentinel on partition 1 never ran out, see LCK-01")


async def ending(env: Env, who: Consumer, wanted: Collection[int], ms: int) -> dict[int, Sighting]:
    """Watch for what comes when locks end; Undecided if nobody's do, which is LCK-01's."""
    seen = await watch(who, wanted, ms / 1000 + SLACK)
    if not seen.keys() >= set(wanted):
        await plain_locks(env, ms)
    return seen


async def judge_end(
    env: Env, judge: Judge, consumer: Consumer, wanted: Sequence[int], *, since: float, lock_ms: int
) -> None:
    """Judge that locks which began after ``since`` end, and not before their duration is over."""
    seen = await ending(env, consumer, wanted, lock_ms)
    judge.equal(wanted, sorted(seen.keys() & set(wanted)), f"what came after locks of {lock_ms} ms")
    after = min(seen[offset].at for offset in wanted) - since
    if is_early := after < lock_ms / 1000 * EARLY:
        await plain_locks(env, lock_ms)
    judge.holds(not is_early, f"a lock of {lock_ms} ms was over after {after:.3f} s")


async def plain_locks(env: Env, lock_ms: int) -> None:
    """Raise Undecided where even locks left alone are not as long as LCK-01 and LCK-02 demand."""
    spans = await locks_of(env, lock_ms / 1000)
    least, most = min(span.least for span in spans), min(span.most for span in spans)
    if most < lock_ms / 1000 * EARLY or least > lock_ms / 1000 * LONGER:
        raise Undecided(f"all locks of {lock_ms} ms last between {least:.3f} and {most:.3f} s")


async def reconfigure(queue: Queue, consumer: Consumer, lock_ms: int, **more: str | None) -> None:
    """Change group configs of a live group and wait until the partition's leader goes by them.

    The lock duration is changed along with them, to a value not used before, because a fetch shows
    it: a broker describes configs a moment before it acts on them. The fetch asks for no records.
    """
    wanted = {"share.record.lock.duration.ms": str(lock_ms)}
    wanted |= {name.replace("_", "."): value for name, value in more.items()}  # type: ignore[misc]
    await queue.env.admin.group_config(queue.group, wanted)
    async for _ in attempts(WITHIN):
        if consumer.sound(await consumer.fetch(max_records=0, max_wait_ms=0)).lock_ms == lock_ms:
            return
    raise Undecided(f"the leader did not go by a lock duration of {lock_ms} ms")


LONGER, SURE = 1.2, 1.3
"""A broker that takes 1.3 times as long is always noticed or left open, never passed."""

TICK = 0.01  # Seconds by which timers of milliseconds may be early.

ROUNDS, TRIES = 3, 5
PROMPT = 1.0
"""Seconds within which the quickest of several responses has come that were due at once."""

_WAIT = 0.25


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds that a duration lasted at least and at most, as far as could be seen."""

    least: float
    most: float


async def judge_span(
    judge: Judge,
    what: str,
    durations: Sequence[float],
    measure: Callable[[float], Awaitable[Sequence[Span]]],
    lateness: Callable[[float], Awaitable[float]],
    *,
    shorter: str,
    longer: str,
) -> None:
    """Judge that spans of each of some durations, side by side, are as long as configured.

    ``measure`` gives spans of a duration, ``lateness`` how late the broker ends waits over so many
    seconds. ``shorter`` and ``longer`` are the rules that forbid a span to be that.
    """
    sure: set[float] = set()
    long: Counter[float] = Counter()
    for _ in range(ROUNDS):
        late, found = await asyncio.gather(
            lateness(max(durations)), gather_all(measure(each) for each in durations)
        )
        for configured, spans in zip(durations, found, strict=True):
            most = min(span.most for span in spans)
            least = min(span.least for span in spans)
            early = f"a {what} of {configured:g} s was over after {most:.3f} s"
            judge[shorter].holds(most >= configured - TICK, early)
            sentence = (
                f"the shortest {what} of {configured:g} s, of {len(spans)}, lasted {least:.3f} s "
                f"or longer, while waits ended {late:.3f} s late"
            )
            # A busy machine may hold up one thread of a broker and not another: once is no proof.
            is_long = least > configured * LONGER + late
            long[configured] += is_long
            judge[longer].holds(long[configured] < ROUNDS, sentence)
            judge[longer].saw(spans=len(spans))
            if most <= configured * SURE and not is_long:
                sure.add(configured)
        if sure.issuperset(durations):
            return
    raise Undecided(f"too slow here to tell how long a {what} of {durations} s lasts")


async def waits_end_late(env: Env, seconds: float) -> float:
    """Return how many seconds late fetches are that find nothing and wait: the worst of many.

    A lock that is not seen to end for a second may be one that the machine stood still for.
    """
    consumer = await idle_consumer(env)
    began = time.monotonic()
    late: list[float] = []
    while time.monotonic() - began < seconds or not late:
        asked = time.monotonic()
        consumer.sound(await consumer.fetch(max_wait_ms=int(_WAIT * 1000)))
        late.append(max(0.0, time.monotonic() - asked - _WAIT))
    return max(late)


async def idle_consumer(env: Env) -> Consumer:
    """Return a consumer with an open session and nothing to acquire."""
    consumer = await (await env.queue()).consumer()
    consumer.sound(await consumer.fetch(max_wait_ms=0))
    return consumer


def apart(shortest: int, longest: int) -> tuple[float, float]:
    """Return two durations in seconds, as far apart as bounds in milliseconds allow, up to 3x."""
    second = min(3 * shortest, longest)
    if second < SURE * shortest:
        raise OutOfReach(f"durations from {shortest} to {longest} ms cannot be told apart")
    return shortest / 1000, second / 1000


async def locks_of(
    env: Env, seconds: float, *, renewed: bool = False, holders: int = 1, count: int = 6
) -> list[Span]:
    """Return how long locks last that a group has for so many seconds.

    Each record has an acquisition of its own, or a renewal. Another member asks for them all the
    time. Of several holders, who acquire in turns, it is the locks of the last.
    """
    queue = await env.queue(count, batches=count, lock_ms=int(seconds * 1000))
    first, *others = [await queue.consumer(join=not number) for number in range(holders + 1)]
    *more, other = others
    taking = itertools.cycle([first, *more])
    other.sound(await other.fetch(max_records=0, max_wait_ms=0))
    begun: dict[int, tuple[float, float]] = {}
    half = time.monotonic() + seconds / 2
    while len(begun) < (count if time.monotonic() < half else holders):
        sent = time.monotonic()
        holder = next(taking)
        came = set(holder.sound(await holder.fetch(max_records=1)).offsets)
        if again := begun.keys() & came:
            raise Undecided(f"{sorted(again)} came back while others were still to be acquired")
        begun |= dict.fromkeys(came, (sent, time.monotonic()))
    for offset in begun if renewed else ():
        sent = time.monotonic()
        await first.acked(renew(offset), is_renew_ack=True)
        begun[offset] = (sent, time.monotonic())
    locked = {offset: got for offset, (_, got) in begun.items()}
    spans: dict[int, Span] = {}
    poll = max(10, int(seconds * 20))
    end = time.monotonic() + seconds + SLACK
    while len(spans) < len(begun) and time.monotonic() < end:
        asked = time.monotonic()
        came = set(other.sound(await other.fetch(max_wait_ms=poll)).offsets)
        now = time.monotonic()
        for offset in begun.keys() - spans.keys():
            sent, got = begun[offset]
            if offset in came:
                spans[offset] = Span(max(0.0, locked[offset] - got), now - sent)
            else:
                locked[offset] = asked
    for offset in begun.keys() - spans.keys():
        spans[offset] = Span(locked[offset] - begun[offset][1], float("inf"))
    return [spans[offset] for offset in sorted(spans)[holders - 1 :: holders]]


async def silences_of(env: Env, seconds: float, count: int = 3) -> list[Span]:
    """Return how long members stay listed that are silent, under a session timeout of so long."""
    timing = {SESSION: str(int(seconds * 1000)), HEARTBEAT: str(env.bounds.short_heartbeat)}
    queue = await env.queue(group_config=timing)
    return await gather_all(_silence(queue, seconds) for _ in range(count))


async def _silence(queue: Queue, seconds: float) -> Span:
    member = await queue.env.member(queue.group, queue.topic)
    sent = time.monotonic()
    await good_beat(member)
    got = listed = time.monotonic()
    async for _ in attempts(seconds + SLACK, pause=0.01):
        asked = time.monotonic()
        if member.member_id not in await member_ids(queue.env, queue.group):
            return Span(max(0.0, listed - got), time.monotonic() - sent)
        listed = asked
    return Span(listed - got, float("inf"))


async def judge_prompt(
    env: Env, judge: Judge, what: str, call: Callable[[], Awaitable[float]]
) -> None:
    """Judge that something due at once takes no time: the quickest of some tries.

    ``call`` has it happen, and tells the seconds; what never takes time is asked in between.
    """
    took: list[float] = []
    plain: list[float] = []
    while len(took) < TRIES and min(took, default=PROMPT + 1) > PROMPT:
        asked = time.monotonic()
        await (await env.cluster.any()).call("Metadata", topics=[])
        plain.append(time.monotonic() - asked)
        took.append(await call())
    quickest = min(took)
    if quickest > PROMPT and quickest <= PROMPT + TRIES * max(plain):
        raise Undecided(f"{what} took {quickest:.3f} s, and a plain request {max(plain):.3f} s")
    judge.holds(quickest <= PROMPT, f"{what}: the quickest of {len(took)} took {quickest:.3f} s")
    judge.saw(milliseconds=int(1000 * quickest))
