"""Acknowledge types: what ACCEPT, RELEASE, REJECT and GAP do to a record."""

from __future__ import annotations

import pytest

from fixtures.clients.member import accept
from suites.broker.share import Share
from suites.judge import Judge


@pytest.mark.requirement("ACK-01")
@pytest.mark.fast
async def test_accepted_record_never_comes_back(share: Share, judge: Judge) -> None:
    """ACK-01: A record whose ACCEPT was answered without error is never delivered again."""
    queue = await share.queue(records=share.rng.randint(5, 20))
    consumer = await queue.consumer()
    held = await consumer.acquire(5)

    part = await consumer.ack(*(accept(offset) for offset in held.offsets))
    sentinel = await queue.produce(1)
    after = await consumer.drain(until=sentinel)

    judge.equal("ACK-01", 0, part.ack_error, "error of the acknowledgement")
    again = sorted(held.counts.keys() & after.counts.keys())
    judge.equal("ACK-01", [], again, "accepted offsets that were delivered again")
    judge.saw("ACK-01", accepted=len(held.counts))
