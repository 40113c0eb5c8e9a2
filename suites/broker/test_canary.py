"""The check that must fail, in every run: see suites/canary.py."""

from fixtures.clients.cluster import PLAIN_METADATA
from suites.broker.kit import *


@pytest.mark.canary
@pytest.mark.fast
async def test_canary(env: Env, judge: Judge) -> None:
    connection = await env.cluster.any()
    response = await connection.call("Metadata", version=PLAIN_METADATA, topics=[])
    brokers = sorted(f"broker {one.node_id} at {one.host}:{one.port}" for one in response.brokers)
    judge.equal(0, len(brokers), "brokers that answered Metadata", witness=brokers)
