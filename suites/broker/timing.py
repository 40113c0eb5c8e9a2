"""Durations: that they are neither shorter nor longer than configured, on slow machines, too.

Every duration is seen from both sides. From before it was begun until its end was told is the
*most* that it can have lasted; from when it had begun until a question that still found it running
was sent is the *least*. A slow harness only makes the one larger and the other smaller. A slow
broker ends things late. So it is the shortest of many that counts, of two durations side by side: a
factor shows in the longer one. How late the broker ends an ordinary wait meanwhile is added.

* shorter than configured: ``fail``
* beyond ``LONGER`` times as configured at the least, and that lateness: ``fail``
* at most ``SURE`` times as configured: ``pass``
* else it cannot be told; after a few rounds it is ``unknown``
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from fixtures.clients.cluster import attempts, gather_all
from fixtures.clients.member import renew
from spec.verdict import OutOfReach, Undecided
from suites.broker.locks import SLACK
from suites.broker.membership import good_beat, member_ids
from suites.broker.settings import HEARTBEAT, SESSION
from suites.broker.share import Consumer, Queue, Share
from suites.judge import Judge

LONGER, SURE = 1.2, 1.3
"""A broker that takes 1.3 times as long is always noticed or left open, never passed."""

TICK = 0.01
"""Seconds by which timers of milliseconds may be early."""

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
    """Judge that spans of each duration are as long as configured.

    Args:
        judge: the check's judge.
        what: what lasts, in the singular.
        durations: configured seconds, side by side.
        measure: gives spans of one configured duration.
        lateness: tells how late the broker ends waits, over so many seconds.
        shorter: the rule that forbids one to be shorter.
        longer: the rule that forbids one to be longer.

    Raises:
        Undecided: this machine was too slow to tell.
    """
    sure: set[float] = set()
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
            judge[longer].holds(least <= configured * LONGER + late, sentence)
            judge[longer].saw(spans=len(spans))
            if most <= configured * SURE:
                sure.add(configured)
        if sure.issuperset(durations):
            return
    raise Undecided(f"too slow here to tell how long a {what} of {durations} s lasts")


async def waits_end_late(share: Share, seconds: float) -> float:
    """Return how many seconds late fetches are that find nothing and wait: the median of many."""
    consumer = await idle_consumer(share)
    began = time.monotonic()
    late: list[float] = []
    while time.monotonic() - began < seconds or not late:
        asked = time.monotonic()
        consumer.sound(await consumer.fetch(max_wait_ms=int(_WAIT * 1000)))
        late.append(max(0.0, time.monotonic() - asked - _WAIT))
    return statistics.median(late)


async def idle_consumer(share: Share) -> Consumer:
    """Return a consumer with an open session and nothing to acquire."""
    consumer = await (await share.queue()).consumer()
    consumer.sound(await consumer.fetch(max_wait_ms=0))
    return consumer


def apart(shortest: int, longest: int) -> tuple[float, float]:
    """Return two durations in seconds, as far apart as bounds in milliseconds allow, up to thrice.

    Raises:
        OutOfReach: the bounds allow about one duration.
    """
    second = min(3 * shortest, longest)
    if second < SURE * shortest:
        raise OutOfReach(f"durations from {shortest} to {longest} ms cannot be told apart")
    return shortest / 1000, second / 1000


async def locks_of(
    share: Share, seconds: float, *, renewed: bool = False, holders: int = 1, count: int = 6
) -> list[Span]:
    """Return how long locks last that a group has for so many seconds.

    Each record has an acquisition of its own, or a renewal. Another member asks for them all the
    time. Of several holders, who acquire in turns, it is the locks of the last.
    """
    queue = await share.queue(count, batches=count, lock_ms=int(seconds * 1000))
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


async def silences_of(share: Share, seconds: float, count: int = 3) -> list[Span]:
    """Return how long members stay listed that are silent, under a session timeout of so long."""
    timing = {SESSION: str(int(seconds * 1000)), HEARTBEAT: str(share.bounds.short_heartbeat)}
    queue = await share.queue(group_config=timing)
    return await gather_all(_silence(queue, seconds) for _ in range(count))


async def _silence(queue: Queue, seconds: float) -> Span:
    member = await queue.share.member(queue.group, queue.topic)
    sent = time.monotonic()
    await good_beat(member)
    got = listed = time.monotonic()
    async for _ in attempts(seconds + SLACK, pause=0.01):
        asked = time.monotonic()
        if member.member_id not in await member_ids(queue.share, queue.group):
            return Span(max(0.0, listed - got), time.monotonic() - sent)
        listed = asked
    return Span(listed - got, float("inf"))


async def judge_prompt(
    share: Share, judge: Judge, what: str, call: Callable[[], Awaitable[float]]
) -> None:
    """Judge that something due at once takes no time: the quickest of some tries.

    Args:
        share: the check's world; what takes the broker no time in any case is asked in between.
        judge: the check's judge.
        rule: the rule that says so.
        what: what is due.
        call: has it happen once, and tells how many seconds it took.

    Raises:
        Undecided: this machine was too slow to tell.
    """
    took: list[float] = []
    plain: list[float] = []
    while len(took) < TRIES and min(took, default=PROMPT + 1) > PROMPT:
        plain.append(await _round_trip(share))
        took.append(await call())
    quickest = min(took)
    if quickest > PROMPT and quickest <= PROMPT + TRIES * max(plain):
        raise Undecided(f"{what} took {quickest:.3f} s, and a plain request {max(plain):.3f} s")
    sentence = f"{what}: the quickest of {len(took)} took {quickest:.3f} s"
    judge.holds(quickest <= PROMPT, sentence)
    judge.saw(milliseconds=int(1000 * quickest))


async def _round_trip(share: Share) -> float:
    asked = time.monotonic()
    await (await share.cluster.any()).call("Metadata", topics=[])
    return time.monotonic() - asked
