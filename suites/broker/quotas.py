"""Members that are held to a quota by their client id, on a cluster that knows no users.

Since KIP-219 a broker that throttles answers at once, says for how long it will not listen, and
does not listen. The connection of the share session has a client id of its own, so that a quota
meets this one member and nobody else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fixtures.clients.member import Response, Session
from fixtures.clients.users import set_quotas
from spec.verdict import OutOfReach
from suites.broker.share import Consumer, Share

LITTLE = 0.0001
"""A request quota that any request exceeds, in percent of one thread; it delays for a second."""


@asynccontextmanager
async def held_to(share: Share, consumer: Consumer, **quotas: float) -> AsyncIterator[None]:
    """Hold a consumer to quotas, on a new connection whose client id has the run's prefix.

    Raises:
        OutOfReach: the broker has no client quotas at all.
    """
    connection = await share.cluster.any()
    if "AlterClientQuotas" not in connection.versions:
        raise OutOfReach("the broker has no client quotas")
    name = share.cluster.fresh_name("q")
    topic, partition = consumer.where
    connected = await share.cluster.dial(topic.leaders[partition], name)
    consumer.session = Session(connected, consumer.session.group, consumer.member_id)
    await set_quotas(share.cluster, name, quotas, kind="client-id")
    try:
        yield
    finally:
        await set_quotas(share.cluster, name, dict.fromkeys(quotas), kind="client-id")


def delay(response: Response) -> int:
    """Return for how many milliseconds a response says that its connection is throttled."""
    return int(response.raw.throttle_time_ms)
