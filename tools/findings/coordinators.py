"""Coordinators that load, that are asked too early, or that cannot write."""

import asyncio
import time

from fixtures.clients.cluster import attempts, eventually
from fixtures.clients.member import Member, accept
from fixtures.proxies.broker_proxies import Direction
from fixtures.proxies.exchange import Action
from fixtures.wire.errors import error_name
from suites.broker.failover.cluster import FailoverCluster
from suites.broker.share import Consumer, Share
from suites.broker.state import SUMMARY, StateKey, Store
from tools.findings.program import ONCE, Run, limit_records, say

MOVES = 9
WATCHED = 2.0  # seconds for which a new leader is asked, again and again
UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"


async def summary(share: Share, key: StateKey, node: int) -> str:
    """Ask one broker for the summary of a share-partition; return the error's name."""
    asked = {"topic_id": key.topic_id, "partitions": [{"partition": 0, "leader_epoch": 0}]}
    answer = await (await share.cluster.to(node)).call(SUMMARY, group_id=key.group, topics=[asked])
    return error_name(answer.results[0].partitions[0].error_code)


async def watched(share: Share, key: StateKey, node: int, moved: asyncio.Task[object]) -> list[str]:
    """Ask the broker that is to lead until it has led for a while; return what it answered."""
    told: list[str] = []
    began = time.monotonic()
    until = None
    async for _ in attempts(30.0, pause=0.002):
        answer = await summary(share, key, node)
        if answer not in told[-1:]:
            told.append(answer)
            print(f"  {time.monotonic() - began:5.3f} s {answer}", flush=True)
        if until is None and moved.done() and answer in {"NONE", UNKNOWN}:
            until = time.monotonic() + WATCHED
        if until is not None and time.monotonic() > until:
            break
    await moved
    return told


async def moving_coordinator(run: Run) -> bool:
    """A share coordinator that has just read its partition, on the raw wire: finding 042.

    Exit code 1 if that is UNKNOWN_TOPIC_OR_PARTITION for a topic that is there.
    """
    seen = False
    async with run.world() as share:
        queue = await share.queue(MOVES + 1, batches=MOVES + 1, replicas=3, lock_ms=60_000)
        consumer = await queue.consumer()
        await consumer.acquire(MOVES + 1)
        key = Store(share).of(queue)
        topic, partition = await key.home()
        print(f"{topic.name}-{partition} is led by {topic.leaders[partition]}")
        for number in range(MOVES):
            topic = await share.cluster.topic(topic.name, len(topic.leaders))
            others = sorted(share.cluster.brokers.keys() - {topic.leaders[partition]})
            node = others[number % len(others)]
            print(f"move {number + 1}, to broker {node}")
            moving = asyncio.create_task(share.admin.move_leader(topic, node, partition))
            told = await watched(share, key, node, moving)
            seen = seen or UNKNOWN in told
            if told[-1] == UNKNOWN:
                part = await consumer.ack(accept(number), timeout=60.0)
                print(f"  ACCEPT {number} answered {error_name(part.ack_error)} {part.ack_message}")
                await share.admin.create_topic()
                print("  another topic is made", flush=True)
                await watched(share, key, node, moving)
        await share.disband()
    return seen


RECORDS = 6


async def fetched(consumer: Consumer) -> set[str]:
    """Fetch until every record came; print every new answer, and return the errors in them."""
    errors: set[str] = set()
    counts: dict[int, int] = {}
    last = ""
    async for _ in attempts(60.0):
        answer = await consumer.fetch(max_wait_ms=500)
        parts = [part for part in answer.parts if part.error]
        errors |= {error_name(code) for code in answer.errors}
        told = "; ".join(f"{error_name(part.error)}: {part.message}" for part in parts)
        if told and told != last:
            say("ShareFetch answered", told)
        last = told
        counts |= {offset: count for part in answer.parts for offset, count in part.counts.items()}
        if len(counts) == RECORDS:
            break
    say("acquired, with these counts,", counts)
    return errors


async def first_load(run: Run) -> bool:
    """A share-partition that is loaded while its share coordinator cannot answer: finding 043.

    Exit code 1 if the member is told UNKNOWN_SERVER_ERROR.
    """
    async with run.world() as share:
        stage = FailoverCluster(share, run.target.brokers)
        victim = await stage.victim()
        near, far = (node for node in stage.nodes if node != victim)
        queue = await stage.queue(near, far, state=victim, group=far)
        await queue.produce(RECORDS)
        consumer = await queue.consumer()
        say(f"broker {near} leads, broker {victim} keeps the state; nobody has fetched yet")
        if run.scenario == "killed":
            await stage.kill(victim)
            say(f"broker {victim} is killed")
            errors = await fetched(consumer)
        else:
            rule = run.intercept(
                "ReadShareGroupState",
                *stage.nodes,
                direction=Direction.RESPONSE,
                action=Action.RESET,
                once=True,
            )
            errors = await fetched(consumer)
            say(f"answers to ReadShareGroupState lost: {rule.done} of {rule.seen - ONCE + 1}")
        await share.disband()
    return "UNKNOWN_SERVER_ERROR" in errors


OFFSETS = "__consumer_offsets"
PACE = 1.5  # seconds between heartbeats: more than share.assignment.interval.ms


async def gone(share: Share, name: str) -> None:
    await share.admin.delete_topics(name)

    async def ask() -> bool | None:
        found = (await (await share.cluster.any()).call("Metadata", topics=[{"name": name}])).topics
        return True if found[0].error_code else None

    await eventually(f"deletion of {name}", ask)


async def epochs(member: Member, count: int) -> list[int]:
    seen = []
    for _ in range(count):
        answer = await member.heartbeat()
        if answer.error_code:
            say("heartbeat answered", error_name(answer.error_code), answer.error_message)
        seen.append(int(answer.member_epoch))
        await asyncio.sleep(PACE)  # the pace of heartbeats
    return seen


async def topic_not_forgotten(run: Run) -> bool:
    """A topic whose deletion the group coordinator could not write down: finding 050.

    Exit code 1 if the epoch goes up for as long as anybody looks, although nothing changes any
    more.
    """
    async with run.world() as share:
        for jammed in (False, True):
            say("with a jam" if jammed else "without a jam")
            one, two = [await share.admin.create_topic() for _ in range(2)]
            member = await share.member(share.cluster.fresh_name("g"), one, two)
            say("  two topics are there; member epochs", await epochs(member, 3))
            if jammed:
                await limit_records(share, OFFSETS, "1")
            await gone(share, one.name)
            await asyncio.sleep(PACE)  # the coordinator hears of it by itself
            await limit_records(share, OFFSETS, None)
            say("  one is deleted; member epochs", await epochs(member, 5))
            await share.admin.create_topic(name=one.name)
            say("  it is made anew; member epochs", await epochs(member, 5))
            last = await epochs(member, 5)
            say("  and then", last)
        await share.disband()
    return len(set(last)) == len(last)
