"""What brokers ask each other is not for everybody: the state of share-partitions."""

from fixtures.clients.acls import THE_CLUSTER, Operation, Resource
from suites.broker.kit import *
from suites.broker.secure.realm import Realm, User

NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name


@dataclass(frozen=True, slots=True, kw_only=True)
class StateCall:
    """One of the five requests: the fields for a partition, beside its index."""

    api: str
    fields: dict[str, Any] = field(default_factory=dict)


CALLS = (
    StateCall(api="ReadShareGroupState", fields={"leader_epoch": 0}),
    StateCall(api="ReadShareGroupStateSummary", fields={"leader_epoch": 0}),
    StateCall(
        api="WriteShareGroupState",
        fields={"state_epoch": 0, "leader_epoch": 0, "start_offset": 4, "state_batches": []},
    ),
    StateCall(api="InitializeShareGroupState", fields={"state_epoch": 9, "start_offset": 4}),
    StateCall(api="DeleteShareGroupState"),
)


async def _send(user: User, call: StateCall, queue: Queue) -> tuple[set[str], Any]:
    partition = {"partition": 0, **call.fields}
    topics = [{"topic_id": queue.topic.id, "partitions": [partition]}]
    response = (await user.call(call.api, group_id=queue.group, topics=topics)).to_dict()
    parts = [part for topic in response["results"] for part in topic["partitions"]]
    return {error_name(part["error_code"]) for part in parts}, parts


def _reveals(part: dict[str, Any]) -> bool:
    """Tell whether a refusal carries anything of the state: here its offsets are never 0."""
    told = (part.get(name, 0) for name in ("start_offset", "delivery_complete_count"))
    return bool(part.get("state_batches")) or any(number > 0 for number in told)


@check("SEC-22")
@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.api)
async def test_state_is_for_brokers_only(realm: Realm, judge: Judge, call: StateCall) -> None:
    queue, user = await realm.share.queue(6), await realm.user()
    consumer = await queue.holder(6)
    await consumer.acked(accept(0, 1), accept(4))
    await user.allow(Operation.ALL, Resource.GROUP, queue.group)
    await user.allow(Operation.ALL, Resource.TOPIC, queue.topic.name)
    before = (await read_state(queue)).to_dict()

    errors, parts = await _send(user, call, queue)
    judge.equal({NO_CLUSTER}, errors, f"{call.api} with ALL on group and topic")
    shown = [part for part in parts if _reveals(part)]
    judge.equal([], shown, "what the refusal reveals")
    after = (await read_state(queue)).to_dict()
    judge.equal(before, after, f"the stored state after a refused {call.api}")

    await user.allow(Operation.CLUSTER_ACTION, Resource.CLUSTER, THE_CLUSTER)
    errors, _ = await _send(user, call, queue)
    judge.holds(NO_CLUSTER not in errors, f"{call.api} with CLUSTER_ACTION: {errors}")


@check("SEC-23")
async def test_state_coordinators_are_for_brokers_only(realm: Realm, judge: Judge) -> None:
    (queue,), user = await realm.queues(1), await realm.user()
    await user.allow(Operation.ALL, Resource.GROUP, queue.group)
    await user.allow(Operation.ALL, Resource.TOPIC, queue.topic.name)
    asked = {"key_type": SHARE, "coordinator_keys": [share_key(queue.group, queue.topic.id, 0)]}
    found = (await user.call("FindCoordinator", **asked)).coordinators[0]
    seen = (error_name(found.error_code), found.node_id)
    judge.equal((NO_CLUSTER, -1), seen, "looking with ALL on group and topic")

    await user.allow(Operation.CLUSTER_ACTION, Resource.CLUSTER, THE_CLUSTER)
    found = (await user.call("FindCoordinator", **asked)).coordinators[0]
    judge.equal("NONE", error_name(found.error_code), "looking with CLUSTER_ACTION")
