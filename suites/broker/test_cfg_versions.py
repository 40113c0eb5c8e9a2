"""Versions of the share APIs: what a broker offers, and what a client of the first one gets."""

from pathlib import Path

from fixtures.wire.connection import Connection
from fixtures.wire.schema import SHARE_APIS, SchemaError
from spec.releases import numbers
from spec.rule import SpecError
from suites.broker.kit import *

Ranges = dict[str, tuple[int, int] | None]


@check("CFG-02", fast=True)
async def test_advertised_versions(env: Env, judge: Judge) -> None:
    jar = Path(env.cluster.info.schema_jar).stem.removeprefix("kafka-clients-")
    try:
        same = numbers(jar) == numbers(env.cluster.info.version)
    except SpecError:
        same = False
    if not same:
        raise OutOfReach("the message definitions at hand are not those of the release under test")
    expected: Ranges = {}
    for api in SHARE_APIS:
        try:
            valid = env.cluster.schemas.request(api).valid
        except SchemaError:
            expected[api] = None
        else:
            expected[api] = (valid.low, valid.high)
    for node in sorted(env.cluster.brokers):
        offered = (await env.cluster.to(node)).versions
        seen: Ranges = {api: offered.get(api) for api in SHARE_APIS}
        if not seen.keys() & offered.keys() & {*STATE_RPCS}:
            # Another persister than Kafka's need not have them (KIP-932 §Broker configuration).
            seen |= {api: expected[api] for api in STATE_RPCS}
        judge.equal(expected, seen, f"versions that broker {node} offers")
    asked = {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}
    quorum = await (await env.cluster.any()).call("DescribeQuorum", topics=[asked])
    # The listeners of the controllers; there are none where the cluster does not tell.
    controllers = getattr(quorum, "nodes", None) or []
    for listener in (listener for node in controllers for listener in node.listeners):
        with contextlib.suppress(CallFailed):  # nobody lets us in
            async with await Connection.open(
                listener.host, listener.port, schemas=env.cluster.schemas, timeout=5.0
            ) as connection:
                offered = connection.versions
            shared = {api: offered[api] for api in SHARE_APIS if api in offered}
            judge.equal({}, shared, "share APIs on a controller's listener")
            judge.saw(controllers=1)


@check("CFG-24", feature="renew", fast=True)
async def test_first_version_is_served(env: Env, judge: Judge) -> None:
    queue, consumer = await env.with_consumer(6)
    caught = await consumer.acquire(6, version=1)
    records = [one for response in caught.responses for one in response.only.acquired_records()]
    seen = {"offsets": caught.offsets, "records": len(records)}
    judge.equal({"offsets": [*range(6)], "records": 6}, seen, "what fetches bring")

    part = await consumer.ack(accept(0), release(1, 2), reject(3), version=1)
    judge.equal("NONE", error_name(part.ack_error), "response to a mixed acknowledgement")
    part = await consumer.ack(renew(4), version=1)
    judge.equal(ErrorCode.INVALID_REQUEST.name, error_name(part.ack_error), "response to a renewal")

    again = await watch(consumer, [1, 2], WITHIN, version=1)
    judge.equal([1, 2], sorted(again), "offsets that come again, of what was released")
    carried = await consumer.fetch(accept(1), version=1, max_wait_ms=0)
    judge.equal((), carried.errors, "errors of a fetch that acknowledges")
    closed = await consumer.session.acknowledge({consumer.where: [accept(2)]}, epoch=-1, version=1)
    judge.equal((), closed.errors, "errors of a close that acknowledges")

    other = await queue.consumer(join=False)
    left = await watch(other, [4, 5], WITHIN, version=1)
    judge.equal([4, 5], sorted(left), "offsets left for another member")
