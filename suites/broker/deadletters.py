"""Dead letters (KIP-1191): groups with a dead-letter topic, and what a plain Fetch finds in it.

Every letter that is owed is written before its source record becomes archived, and the start offset
waits for that. So a start offset that has passed the last record says that no letter is still to
come; that is what "no other letter" rests on here, since letters keep no order.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fixtures.clients.cluster import WITHIN, Topic, attempts
from fixtures.clients.deadletters import COPY, NAME, PERMITTED, PREFIX, DeadLetter
from fixtures.clients.features import share_version
from fixtures.clients.member import Ack, accept, reject
from spec.verdict import OutOfReach, Undecided
from suites.broker.env import Consumer, Env, Queue, goes_on, poll
from suites.broker.logs import read_log
from suites.judge import Judge

DELIVERY_LIMIT = "share.delivery.count.limit"


GIVEN_AGAIN = Judge(("ACK-07",))  # of what comes again, where a check is about something else


@dataclass(frozen=True, slots=True)
class DeadLetterSetup:
    queue: Queue
    topic: Topic

    async def letters(self) -> list[DeadLetter]:
        return await dead_letters_in(self.queue.env, self.topic)

    async def own(self, partition: int = 0) -> list[DeadLetter]:
        wanted = (self.queue.topic.name, str(partition), self.queue.group)
        return [
            letter
            for letter in await self.letters()
            if tuple(letter.headers.get(n) for n in ("topic", "partition", "group")) == wanted
        ]

    async def arrived(
        self, offsets: Iterable[int], within: float = WITHIN, partition: int = 0
    ) -> list[DeadLetter]:
        """Return the letters once each offset has one, or time is up and a bystander went on."""
        wanted, node = set(offsets), self.queue.topic.leaders[partition]
        letters = await poll(
            lambda: self.own(partition), lambda found: wanted <= set(letter_offsets(found)), within
        )
        lost = wanted - set(letter_offsets(letters))
        if lost and not await goes_on(self.queue.env.cluster, node):
            raise Undecided("letters did not come, nor did the record of a bystander")
        return letters

    async def due(self, offsets: Iterable[int]) -> list[DeadLetter]:
        """Return the letters of partition 0, of all these offsets: that there is one is DLQ-01."""
        wanted = set(offsets)
        letters = await self.arrived(wanted)
        if missing := wanted - set(letter_offsets(letters)):
            raise Undecided(f"no letters came for {sorted(missing)}, so others may be late, too")
        return letters

    async def complete(self, consumer: Consumer, end: int) -> list[DeadLetter]:
        """Return the letters of partition 0 once all below ``end`` is behind the group for good."""
        start = await beyond(GIVEN_AGAIN, self.queue, consumer, end)
        if start < end:
            raise Undecided(f"the start offset is {start}, not {end}: letters may be under way")
        return await self.own()


async def beyond(
    judge: Judge, queue: Queue, consumer: Consumer, end: int, within: float = WITHIN
) -> int:
    """Return the start offset: ``end`` or more, or what it still is when time is up.

    All below ``end`` was settled, so that none of it may be delivered again, to which the rule
    is held. The admin's view is that of the last state write, so every look comes after one: a new
    record is acquired and accepted, with whatever else lies behind ``end``.
    """
    start = -1
    async for _ in attempts(within, pause=within / 200):
        catch = await consumer.drain(until=await queue.produce(1))
        again = [offset for offset in catch.offsets if offset < end]
        judge.equal([], again, f"settled offsets below {end} that were delivered again")
        await consumer.acked(*(accept(offset) for offset in catch.offsets))
        start = (await queue.offsets()).start
        if start >= end:
            break
    return start


async def judge_beyond(
    judge: Judge, queue: Queue, consumer: Consumer, end: int, of: object = None, **how: Any
) -> None:
    """Demand that the start offset gets beyond what was settled: ``of`` in the sentence."""
    start = await beyond(how.pop("again", judge), queue, consumer, end, **how)
    judge.holds(start >= end, f"the start offset stays at {start} of {end if of is None else of}")


async def dead_letters_in(env: Env, topic: Topic) -> list[DeadLetter]:
    return [
        DeadLetter(index, record)
        for index in topic.partitions
        for batch in await read_log(env, topic, index)
        if not batch.control
        for record in batch.records
    ]


def letter_offsets(letters: Iterable[DeadLetter]) -> list[int]:
    """Return the source offsets of letters, sorted, each once: KIP-1191 allows repetitions."""
    return sorted({letter.offset for letter in letters})


async def dead_name(env: Env) -> str:
    """Return a name that nobody uses and that the brokers allow for a dead-letter topic."""
    level = await share_version(env.cluster)
    if level < 2:
        raise OutOfReach(f"share.version is {level} on this cluster, dead letters need 2")
    return (await env.admin.broker_configs()).get(PREFIX, "dlq.") + env.cluster.fresh_name("d")


async def dead_topic(env: Env, partitions: int = 1, **options: Any) -> Topic:
    configs = PERMITTED | options.pop("configs", {})
    name = options.pop("name", None) or await dead_name(env)
    return await env.admin.create_topic(partitions, name=name, configs=configs, **options)


def naming(name: str, *, copy: bool = False) -> dict[str, str]:
    return {NAME: name, COPY: str(copy).lower()}


async def boxed(
    env: Env,
    records: int = 0,
    *,
    dead: Topic | None = None,
    copy: bool = False,
    group_config: Mapping[str, str] | None = None,
    **options: Any,
) -> DeadLetterSetup:
    """Return a queue whose group has a dead-letter topic: the given one, or one of its own."""
    dead = dead or await dead_topic(env)
    configs = naming(dead.name, copy=copy) | dict(group_config or {})
    return DeadLetterSetup(await env.queue(records, group_config=configs, **options), dead)


async def rejecting(box: DeadLetterSetup, count: int, *rejected: int) -> Consumer:
    consumer = await box.queue.holder(count)
    await consumer.acked(*verdicts(count, rejected or range(count)))
    return consumer


def verdicts(count: int, rejected: Collection[int], first: int = 0) -> list[Ack]:
    """Return one acknowledgement for each offset: the named ones rejected, the others accepted."""
    return [(reject if o in rejected else accept)(o) for o in range(first, first + count)]
