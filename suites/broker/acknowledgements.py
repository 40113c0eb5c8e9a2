"""Reading the result of an acknowledgement, proving what it did, and leading records to a delivery.

A response without error is evidence only for an offset at or above the start offset, because below
it a broker says NONE to anything. Checks that need such evidence keep their first record, the pin,
unsettled: the start offset cannot pass it, so everything above is judged by its state.
"""

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from fixtures.clients.bounds import DELIVERIES, WINDOW
from fixtures.clients.cluster import RETRIABLE, WITHIN, attempts
from fixtures.clients.member import (
    Ack,
    AckType,
    Part,
    Range,
    Response,
    Session,
    Where,
    accept,
    release,
)
from fixtures.wire.errors import error_name
from spec.verdict import OutOfReach, Undecided
from suites.broker.env import Catch, Consumer, Env, Queue, goes_on, stopped
from suites.broker.state import PASSING
from suites.broker.timing import in_time
from suites.judge import Judge

LEFT_OUT = "no response for the partition"

GONE = {
    "UNKNOWN_TOPIC_ID": "ShareAcknowledgeResponse ErrorCode: a topic id that is not known",
    "UNKNOWN_TOPIC_OR_PARTITION": "ShareAcknowledgeResponse ErrorCode: no such topic or partition",
}
"""Results about a topic that was deleted, and what allows each; so also in a fetch."""

NOT_HERE = {
    "NOT_LEADER_OR_FOLLOWER": "ShareAcknowledgeResponse ErrorCode: not the partition's leader",
    "UNKNOWN_TOPIC_OR_PARTITION": "ShareAcknowledgeResponse ErrorCode: this broker has no replica",
}
"""Results from a broker that does not lead the partition, and what allows each."""


def result(part: Part | None) -> str:
    """Return what :func:`raw_result` does; Undecided of a coordinator's error that passes."""
    if part and part.ack_error in PASSING:
        raise Undecided(f"an acknowledgement got {error_name(part.ack_error)}, which passes")
    return raw_result(part)


def raw_result(part: Part | None) -> str:
    """Return the name of a partition's acknowledge error, or that the response leaves it out."""
    if part is None or (part.partition < 0 and not part.ack_error):
        return LEFT_OUT
    return error_name(part.ack_error)


def lasting(*errors: int) -> int:
    """Return the first error; Undecided if one passes by itself, as of a state write may."""
    if passing := RETRIABLE & {*errors}:
        raise Undecided(f"an acknowledgement got {sorted(map(error_name, passing))}, which pass")
    return next(filter(None, errors), 0)


def result_in(response: Response, consumer: Consumer) -> str:
    part = response.part(consumer.where[0].id, consumer.where[1])
    return error_name(response.error) if response.error else result(part)


def judge_done(judge: Judge, part: Part | str | None, what: str) -> None:
    """Demand that an acknowledgement was taken; Undecided if it got an error that passes."""
    told = part if isinstance(part, str) else result(part)
    if told in map(error_name, RETRIABLE):
        raise Undecided(f"{what}: {told}, which passes")
    judge.equal("NONE", told, what)


def judge_refusal(judge: Judge, part: Part | str | None, what: str) -> None:
    """Demand that an acknowledgement was refused; with which error is for other rules to say."""
    told = part if isinstance(part, str) else result(part)
    judge.holds(told not in {"NONE", LEFT_OUT}, f"{what} was answered {told}", step=what)


PROBE = [accept(900)]
"""Past all that was acquired, so that it is refused without a write while the topic is there."""


async def holder_and_heir(env: Env, records: int) -> tuple[Queue, Consumer, Consumer]:
    """Return a queue, a consumer that holds all its records under a long lock, and another one."""
    queue, consumer = await env.with_holder(records, lock_ms=env.bounds.longest_lock)
    return queue, consumer, await queue.consumer()


async def judge_freed(
    judge: Judge, holder: Consumer, other: Consumer, offsets: Collection[int], what: str
) -> None:
    """Demand that another consumer gets what a holder let go of, before its locks can end."""
    if (catch := await other.take(offsets)).has(offsets):
        in_time(holder.session.made, catch.responses[-1].lock_ms)
    judge.equal(sorted(offsets), catch.offsets, what)
    judge.saw(released=len(catch.counts))


@dataclass(frozen=True, slots=True)
class Spread:
    """A member with one session over all partitions of a queue, all led by one broker."""

    queue: Queue
    session: Session
    where: tuple[Where, ...]

    async def acknowledge(self, *acks: Sequence[Ack]) -> list[str]:
        """Acknowledge partition by partition; return the results in the partitions' order."""
        response = await self.session.acknowledge(dict(zip(self.where, acks, strict=True)))
        return self.results(response)

    def results(self, response: Response) -> list[str]:
        if response.error:
            return [error_name(response.error)] * len(self.where)
        return [raw_result(response.part(topic.id, index)) for topic, index in self.where]

    async def left(self, partition: int) -> dict[int, int]:
        stranger = await self.queue.consumer(partition, join=False)
        return (await next_catch(self.queue, stranger, partition)).counts


async def spread(env: Env, partitions: int, records: int) -> Spread:
    """Return a member that holds ``records`` records of each of some partitions, pins included."""
    leader = env.rng.choice(sorted(env.cluster.brokers))
    queue = await env.queue(assignments=[[leader]] * partitions)
    member = (await queue.consumer()).member
    for partition in range(partitions):
        await queue.produce(records, partition)
    session = await member.session(leader)
    several = Spread(queue, session, tuple((queue.topic, index) for index in range(partitions)))
    held: Counter[int] = Counter()
    named = several.where
    async for _ in attempts(WITHIN):
        response = Consumer.sound(await session.fetch(*named))
        named = ()
        held.update({part.partition: len(part.offsets) for part in response.parts})
        if len(held) == partitions and min(held.values()) >= records:
            return several
    sentence = f"only {dict(held)} records of {partitions} partitions were acquired"
    raise await stopped(env.cluster, leader, sentence, session.fetch)


async def judge_held(
    judge: Judge, consumer: Consumer, offsets: Collection[int], after: str
) -> None:
    """Demand that the consumer still holds each offset: it can accept them, one by one.

    The pin must be unsettled. A record that had been settled or made available would be refused.
    """
    told = result(await consumer.ack(*(accept(offset) for offset in offsets)))
    if told != "NONE" and (lock := (await consumer.fetch(max_wait_ms=0)).lock_ms) > 0:
        in_time(consumer.session.made, lock)
    judge_done(judge, told, f"accepting what is still held after {after}")
    judge.saw(still_held=len(offsets))


async def demand_counting(env: Env) -> None:
    """Raise Undecided where start offset and lag are wrong of a log that has no holes, too."""
    queue, consumer = await env.with_holder(3)
    for ack in (accept(0, 1), release(2)):
        await consumer.acked(ack)
    if (seen := (await queue.spso(2), await queue.lag(1))) != (2, 1):
        raise Undecided(f"start offset and lag of a log without holes are {seen}, not 2 and 1")


async def next_catch(queue: Queue, consumer: Consumer, partition: int = 0) -> Catch:
    """Produce a sentinel and return all that the consumer acquires up to it, without it."""
    sentinel, catch = await up_to_new(queue, consumer, partition)
    catch.counts.pop(sentinel)
    return catch


async def up_to_new(queue: Queue, consumer: Consumer, partition: int = 0) -> tuple[int, Catch]:
    """Produce a record and drain until it comes; return its offset and all that came."""
    offset = await queue.produce(1, partition)
    return offset, await consumer.drain(until=offset)


async def given_anew(queue: Queue, partition: int = 0, *, join: bool = True) -> dict[int, int]:
    """Return what a new member is given, with its counts, up to a record produced last."""
    consumer = await queue.consumer(partition, join=join)
    return (await up_to_new(queue, consumer, partition))[1].counts


async def begun_by_latest(queue: Queue, partition: int = 0, *, join: bool = True) -> dict[int, int]:
    """Return what a new member is given first, with its counts, where a group begins by latest.

    Only what comes after the policy was asked: one record is not enough.
    """
    consumer, catch = await queue.consumer(partition, join=join), Catch()
    async for _ in attempts():
        await queue.produce(1, partition)
        catch.add(consumer.sound(await consumer.fetch()))
        if catch.counts:
            return catch.counts
    raise await consumer.stopped("nothing comes to a group that begins by latest")


async def judge_final(
    judge: Judge, queue: Queue, consumer: Consumer, offsets: Iterable[int]
) -> None:
    """Demand that none of the offsets is delivered again, to this consumer or to a new one.

    Whatever this consumer leaves is released by closing its session, so that the new one would get
    anything that is not settled for good.
    """
    settled = set(offsets)
    again = settled & (await next_catch(queue, consumer)).counts.keys()
    judge.equal([], sorted(again), "settled offsets delivered to the same member")
    await consumer.close()
    stranger = await queue.consumer(join=False)
    again = settled & (await next_catch(queue, stranger)).counts.keys()
    judge.equal([], sorted(again), "settled offsets delivered to another member")
    judge.saw(settled=len(settled))


async def judge_final_type(
    env: Env, judge: Judge, kind: AckType, *, by_fetch: bool = False
) -> None:
    """Settle a random half of a batch with a type; demand that it never comes back."""
    count = env.rng.randint(6, 20)
    queue, consumer = await env.with_holder(count)
    chosen = sorted(env.rng.sample(range(1, count), count // 2))
    acks, what = singly(chosen, kind), f"{kind.name} of {chosen}"
    if by_fetch:
        judge_done(judge, result_in(await consumer.fetch(*acks, max_wait_ms=0), consumer), what)
    else:
        judge_done(judge, await consumer.ack(*acks), what)
    await judge_final(judge, queue, consumer, chosen)


def singly(offsets: Iterable[int], kind: int) -> list[Ack]:
    return [Ack(offset, offset, (kind,)) for offset in offsets]


async def judge_counted(
    env: Env, judge: Judge, expected: dict[int, int], counts: dict[int, int], what: str
) -> None:
    """Demand these offsets and counts; Undecided if a record that is left alone is counted else."""
    if expected != counts and expected.keys() == counts.keys():
        _, consumer = await env.with_holder(1)
        await consumer.acked(release(0))
        if (plain := (await consumer.acquire(1)).counts) != {0: 2}:
            raise Undecided(f"{what}: {counts}, and any record, once released, comes as {plain}")
    judge.equal(expected, counts, what)


async def delivery_limit(env: Env) -> int:
    """Return the cluster's delivery limit; 5 where a broker does not tell (KIP-932)."""
    env.cluster.transcript.tight.pop(DELIVERIES, None)
    return int((await env.admin.broker_configs()).get("group.share.delivery.count.limit") or 5)


async def limit_above_two(env: Env) -> int:
    if (limit := await delivery_limit(env)) < 3:
        raise OutOfReach(f"with a delivery limit of {limit} the second delivery is the last")
    return limit


async def window(env: Env) -> int:
    env.cluster.transcript.tight.pop(WINDOW, None)
    return int((await env.admin.broker_configs())["group.share.partition.max.record.locks"])


async def in_window(env: Env, wanted: int) -> int:
    """Return as many as wanted, or what may be in flight at once, if that is known and less."""
    with contextlib.suppress(OutOfReach):
        return min(wanted, await window(env))
    return wanted


def releases(ranges: Iterable[Range]) -> list[Ack]:
    return [release(acquired.first, acquired.last) for acquired in ranges]


async def hold_at(consumer: Consumer, count: int, delivery: int) -> None:
    """Let ``count`` records be delivered and released until all are held on their nth delivery.

    Each record is held as soon as it is there. So it does not matter in which pieces they come: a
    broker may hand out ever smaller ones as records near the limit (KAFKA-17541).
    """
    held, given = set[int](), Counter[int]()
    async for _ in attempts(pause=0.001):
        response = consumer.sound(await consumer.fetch())
        given.update(offset for one in response.only.ranges for offset in one.offsets)
        early = [r for r in response.only.ranges if r.count < delivery]
        held |= {o for r in response.only.ranges if r.count >= delivery for o in r.offsets}
        if early:
            await consumer.acked(*releases(early))
        if len(held) >= count:
            return
    # What counts deliveries otherwise, or does not count them, is for the rules about counts.
    if [offset for offset in given.keys() - held if given[offset] >= delivery]:
        raise Undecided(f"records came {max(given.values())} times, never as delivery {delivery}")
    raise await consumer.stopped(
        f"only {sorted(held)} were held on delivery {delivery}, not {count} records"
    )


async def held_at(queue: Queue, count: int, delivery: int) -> Consumer:
    consumer = await queue.consumer()
    await hold_at(consumer, count, delivery)
    return consumer


def ladder(limit: int, size: int) -> list[int]:
    """Return how many of ``size`` records each delivery hands out when all are released each time.

    From max(2, ceil(limit / 2)) earlier deliveries on it is half as many as before, and on the last
    delivery one record. With a limit of 2 there is nothing between the first and the last.
    """
    sizes = []
    for earlier in range(limit):
        if limit > 2 and earlier >= max(2, -(-limit // 2)):
            size = 1 if earlier == limit - 1 else max(1, size // 2)
        sizes.append(size)
    return sizes


async def descend(consumer: Consumer, deliveries: int) -> list[int]:
    """Fetch and release that many times; return how many records each delivery brought."""
    sizes: list[int] = []
    for _ in range(deliveries):
        ranges: tuple[Range, ...] = ()
        async for _left in attempts(WITHIN):
            ranges = consumer.sound(await consumer.fetch(max_records=1000)).only.ranges
            if ranges:
                break
        if not ranges:
            raise await consumer.stopped(f"nothing came after deliveries of {sizes} records")
        sizes.append(sum(len(acquired.offsets) for acquired in ranges))
        await consumer.acked(*releases(ranges))
    return sizes


async def acquired(
    session: Session, *partitions: Where, count: int, within: float = WITHIN, named: bool = True
) -> dict[Where, list[int]]:
    """Fetch from several partitions until ``count`` records are acquired; return them by place.

    The error of a whole fetch ends it, with what was acquired by then. Partitions are named in the
    first of the fetches only, and not at all if not ``named``.
    """
    found: dict[Where, list[int]] = {where: [] for where in partitions}
    names = partitions if named else ()
    async for _ in attempts(within):
        response = await session.fetch(*names)
        for where in partitions:
            found[where] += offsets_in(response, where)
        names = ()
        if response.error or sum(map(len, found.values())) >= count:
            return found
    (topic, index), member = partitions[0], session.member
    if member and not await goes_on(member.cluster, topic.leaders[index]):
        raise Undecided(f"only {found} came, and the record of a bystander did not")
    return found


def offsets_in(response: Response, where: Where) -> list[int]:
    part = response.part(where[0].id, where[1])
    return part.offsets if part else []
