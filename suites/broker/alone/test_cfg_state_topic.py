"""The state topic of a cluster with one broker: with what it can meet, and with what it cannot."""

from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *

STATE = "__share_group_state"
FACTOR = "share.coordinator.state.topic.replication.factor"
NOT_READY = dict.fromkeys(
    (
        ErrorCode.COORDINATOR_NOT_AVAILABLE.name,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name,
        ErrorCode.NOT_COORDINATOR.name,
    ),
    "documentation of the protocol's error codes: the coordinator is not there yet; retriable",
)


@check("CFG-25", "CFG-31", timeout=150)
async def test_replicas_that_are_not_there(lone: SingleBroker, judge: Judge) -> None:
    queue, consumer = await lone.share.with_holder(2, lock_ms=60_000)
    part = await consumer.ack(accept(0))
    judge["CFG-25"].equal(
        "NONE", error_name(part.ack_error), "response with one replica, one wanted"
    )

    # The state topic has to be made anew, by a broker that wants three replicas of it.
    await lone.restart({FACTOR: "3"})
    await lone.share.admin.delete_topics(STATE)
    key = share_key(queue.group, queue.topic.id, 0)
    code = 0
    async for _ in attempts(WITHIN):
        connection = await queue.share.cluster.any()
        response = await connection.call("FindCoordinator", key_type=SHARE, coordinator_keys=[key])
        code = response.coordinators[0].error_code
        if code:
            break
    judge["CFG-31"].one_of(NOT_READY, error_name(code), "response with one replica, three wanted")
