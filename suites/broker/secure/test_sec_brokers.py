"""What brokers ask each other is not for everybody: the state of share-partitions."""

from fixtures.clients.acls import EVERY, THE_CLUSTER, Acls, Entry, Operation, Resource
from suites.broker.kit import *
from suites.broker.secure.realm import Realm, User

NO_CLUSTER = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name


CALLS: dict[str, dict[str, Any]] = {
    "ReadShareGroupState": {"leader_epoch": 0},
    "ReadShareGroupStateSummary": {"leader_epoch": 0},
    "WriteShareGroupState": {
        "state_epoch": 0, "leader_epoch": 0, "start_offset": 4, "state_batches": [],
    },
    "InitializeShareGroupState": {"state_epoch": 9, "start_offset": 4},
    "DeleteShareGroupState": {},
}  # fmt: skip
"""The five requests, and their fields for a partition beside its index."""


async def _send(user: User, api: str, queue: Queue) -> tuple[set[str], Any]:
    topics = [{"topic_id": queue.topic.id, "partitions": [{"partition": 0, **CALLS[api]}]}]
    response = (await user.call(api, group_id=queue.group, topics=topics)).to_dict()
    parts = [part for topic in response["results"] for part in topic["partitions"]]
    return {error_name(part["error_code"]) for part in parts}, parts


@check("SEC-22")
@pytest.mark.parametrize("api", CALLS)
async def test_state_is_for_brokers_only(realm: Realm, judge: Judge, api: str) -> None:
    lock_ms, user = realm.env.bounds.longest_lock, await realm.user()
    queue = await realm.env.queue(6, lock_ms=lock_ms)  # whose end would be a state write
    consumer = await queue.holder(6)
    await consumer.acked(accept(0, 1), accept(4))
    await user.allow(Operation.ALL, Resource.GROUP, queue.group)
    await user.allow(Operation.ALL, Resource.TOPIC, queue.topic.name)
    before = (await read_state(queue)).to_dict()

    errors, parts = await _send(user, api, queue)
    judge.equal({NO_CLUSTER}, errors, f"{api} with ALL on group and topic")
    numbers = ("start_offset", "delivery_complete_count")  # never 0 here
    shown = [p for p in parts if p.get("state_batches") or any(p.get(n, 0) > 0 for n in numbers)]
    judge.equal([], shown, "what the refusal reveals")
    after = (await read_state(queue)).to_dict()
    judge.equal(before, after, f"the stored state after a refused {api}")

    await user.allow(Operation.CLUSTER_ACTION, Resource.CLUSTER, THE_CLUSTER)
    errors, _ = await _send(user, api, queue)
    judge.holds(NO_CLUSTER not in errors, f"{api} with CLUSTER_ACTION: {errors}")


@check(
    "SEC-35",
    feature="dead-letters",
    solo={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Of what no entry is about the brokers, who come without a name, may do everything.
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:nobody",
    },
)
async def test_brokers_write_letters_everywhere(solo_env: Env, judge: Judge) -> None:
    box, free = await boxed(solo_env, 5), await boxed(solo_env, 5)
    await rejecting(free, 5)
    await free.due(range(5))

    about: dict[str, Any] = {"resource": Resource.TOPIC, "name": box.topic.name}
    others = Entry(user="writer", operation=Operation.WRITE, **about)
    readers = Entry(user=EVERY, operation=Operation.READ, **about)
    await Acls(solo_env.cluster).create(others, readers)
    await rejecting(box, 5)
    letters = letter_offsets(await box.arrived(range(5)))
    judge.equal([*range(5)], letters, "letters of a broker that has no entry for their topic")


@check("SEC-23")
async def test_state_coordinators_are_for_brokers_only(realm: Realm, judge: Judge) -> None:
    (queue,), user = await realm.queues(1), await realm.user()
    await user.allow(Operation.ALL, Resource.GROUP, queue.group)
    await user.allow(Operation.ALL, Resource.TOPIC, queue.topic.name)
    asked = {"key_type": SHARE, "coordinator_keys": [share_key(queue.group, queue.topic.id, 0)]}
    found = (await user.call("FindCoordinator", **asked)).coordinators[0]
    judge.equal(NO_CLUSTER, error_name(found.error_code), "looking with ALL on group and topic")

    await user.allow(Operation.CLUSTER_ACTION, Resource.CLUSTER, THE_CLUSTER)
    found = (await user.call("FindCoordinator", **asked)).coordinators[0]
    judge.holds(error_name(found.error_code) != NO_CLUSTER, "refused with CLUSTER_ACTION")
