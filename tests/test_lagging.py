"""Real Kafka with a coordinator that hears of a new topic last, as on a machine with much to do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from fixtures.interface.target import Target
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from fixtures.targets.blocking import run_blocking
from fixtures.wire.codec import Struct
from suites.broker.share import Share, world

HERE = 1
"""The broker that leads the topic, and that a check asks about it."""
FROZEN = 0.2
"""Seconds for a request to reach a frozen broker."""


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """Three brokers, of which two may be frozen."""
    running = open_target(DEFAULT_TARGET, TargetOptions(brokers=3, steady=True))
    running.start()
    yield running
    running.stop()


async def _elsewhere(share: Share) -> tuple[str, int]:
    """Return a group and its coordinator, which no topic needs to be made."""
    awake = {HERE, share.cluster.controller}
    while True:
        group = share.cluster.fresh_name("g")
        if (node := await share.cluster.coordinator(group)) not in awake:
            return group, node


def _errors(response: Struct) -> list[int]:
    return [part.error_code for topic in response.responses for part in topic.partitions]


def test_a_new_topic_is_altered_once_its_coordinator_knows_it(target: Target) -> None:
    async def play() -> list[int]:
        async with world(target.info, Random(1), []) as share:
            group, node = await _elsewhere(share)
            broker = target.brokers[node - 1]
            await share.cluster.to(node)
            broker.pause()
            try:
                topic = await share.admin.create_topic(assignments=[[HERE]])
                altered = asyncio.create_task(share.admin.alter_offset(group, topic, 0))
                await asyncio.sleep(FROZEN)
            finally:
                broker.resume()
            return _errors(await altered)

    assert run_blocking(play()) == [0]
