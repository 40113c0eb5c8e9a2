"""The state topic of a cluster with one broker: with what it can meet, and with what it cannot."""

from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *

STATE = "__share_group_state"
FACTOR = "share.coordinator.state.topic.replication.factor"
NOT_READY = dict.fromkeys(
    ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"),
    "documentation of the protocol's error codes: the coordinator is not there yet; retriable",
)


@check("CFG-25", "CFG-31", "PER-48", timeout=150)
async def test_replicas_that_are_not_there(lone: SingleBroker, judge: Judge) -> None:
    queue, consumer = await lone.env.with_holder(2, lock_ms=60_000)
    part = await consumer.ack(accept(0))
    judge["CFG-25"].equal("NONE", raw_result(part), "response with one replica, one wanted")

    # A client produces to the state topic, and deletes its records.
    before = await stored(queue)
    topic, index = await StateKey(lone.env, queue.group, queue.topic.id).home()
    connection = await lone.env.cluster.to(topic.leaders[index])
    named = {"topic_id": topic.id} if connection.newest("Produce") >= 13 else {"name": STATE}
    data = {"partition_data": [{"index": index, "records": encode_batch([Record(value=b"")])}]}
    written = await connection.call("Produce", acks=-1, timeout_ms=9000, topic_data=[named | data])
    parts = [{"partition_index": index, "offset": 1}]
    deleted = await connection.call(
        "DeleteRecords", topics=[{"name": STATE, "partitions": parts}], timeout_ms=9000
    )
    told = {
        "Produce": error_name(written.responses[0].partition_responses[0].error_code),
        "DeleteRecords": error_name(deleted.topics[0].partitions[0].error_code),
    }
    judge["PER-48"].holds(NONE not in told.values(), f"a client that meddles is answered {told}")
    judge["PER-48"].equal(before, await stored(queue), "the state afterwards")

    # The state topic has to be made anew, by a broker that wants three replicas of it.
    await lone.restart({FACTOR: "3"})
    await without_topic(lone.env)
    key, seen = share_key(queue.group, queue.topic.id, 0), set[str]()
    async for _ in attempts(3 * NOT_FOR):
        connection = await queue.env.cluster.any()
        response = await connection.call("FindCoordinator", key_type=SHARE, coordinator_keys=[key])
        seen.add(error_name(response.coordinators[0].error_code))
    judge["CFG-31"].none_but(NOT_READY, seen, "responses with one replica, three wanted")
