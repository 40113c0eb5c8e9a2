"""What a refusal gives away: nothing, or whether a topic is there."""

from fixtures.clients.acls import Operation, Resource
from suites.broker.kit import *
from suites.broker.secure.realm import Realm

BY_NAME = (
    "ShareGroupHeartbeat",
    "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
)
"""The share APIs that take a topic by its name."""


@check("SEC-05")
@pytest.mark.parametrize("api", BY_NAME)
async def test_refusals_do_not_tell_what_exists(realm: Realm, judge: Judge, api: str) -> None:
    (queue,), user = await realm.queues(1), await realm.user()
    await user.allow(Operation.ALL, Resource.GROUP, queue.group)
    # The group knows the hidden topic, has a start offset for it, and is empty again.
    await (await realm.env.member(queue.group, queue.topic)).leave()

    hidden = queue.topic.name
    missing = hidden[:-1] + ("y" if hidden.endswith("x") else "x")
    member = realm.env.member_id()
    seen: list[str] = []
    for topic in (hidden, missing):
        fields = fields_of(api, queue.group, topic, member_id=member)
        response = (await user.call(api, **fields)).to_dict()
        response.pop("throttle_time_ms", None)
        seen.append(str(response).replace(topic, "TOPIC"))
    told, of_missing = seen
    judge.equal(of_missing, told, f"{api} of a hidden topic, as of a missing one")
    judge.holds(str(queue.topic.id) not in told, f"{api} tells the topic's id: {told}")
