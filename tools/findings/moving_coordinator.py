"""A share coordinator that has just read its partition, on the raw wire: finding 042.

Three brokers with ``metadata.max.idle.interval.ms`` = 0: an idle controller writes no records.
(With the default of 500 the defect is seen in fewer moves.) Each move of the state topic's
partition is shown with all that its new leader answers to a summary. Exit code 1 if that is
UNKNOWN_TOPIC_OR_PARTITION for a topic that is there.
"""

from __future__ import annotations

import asyncio
import time

from fixtures.clients.cluster import attempts
from fixtures.clients.member import accept
from fixtures.wire.errors import error_name
from suites.broker.share import Share
from suites.broker.state import SUMMARY, StateKey, Store
from tools.findings.program import Run

MOVES = 9
WATCHED = 2.0
"""Seconds for which a new leader is asked, again and again."""

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


async def play(run: Run) -> bool:
    """Move the partition about; tell whether a topic that is there was unknown."""
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
            others = [
                node for node in sorted(share.cluster.brokers) if node != topic.leaders[partition]
            ]
            node = others[number % len(others)]
            print(f"move {number + 1}, to broker {node}")
            moving = asyncio.create_task(share.admin.move_leader(topic, node, partition))
            told = await watched(share, key, node, moving)
            if UNKNOWN in told:
                seen = True
            if told[-1] == UNKNOWN:
                part = await consumer.ack(accept(number), timeout=60.0)
                print(f"  ACCEPT {number} answered {error_name(part.ack_error)} {part.ack_message}")
                await share.admin.create_topic()
                print("  another topic is made", flush=True)
                await watched(share, key, node, moving)
        await share.disband()
    return seen
