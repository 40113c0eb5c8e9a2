"""Deletions that stop half way, because the share state could not be deleted.

The state topic of a cluster of the check's own is told to take no record any more, by a
``max.message.bytes`` that nothing fits in. That is refused at once and for good, while a share
coordinator that is not there would be asked again for half a minute.
"""

from fixtures.clients.configs import configure_topic
from suites.broker.kit import *


async def _jam(share: Share, *, jammed: bool) -> None:
    """Let the state topic refuse every record, or take them again; wait until that is in force."""
    name = "max.message.bytes"
    values = {name: "1" if jammed else None}
    await configure_topic(share.cluster, STATE_TOPIC, values)
    async for _ in attempts():
        seen = await share.admin.configs(TOPIC_RESOURCE, STATE_TOPIC)
        if (seen[name] == "1") == jammed:
            await share.admin.in_force()
            return
    raise Undecided(f"{name} of {STATE_TOPIC} did not change")


async def _used(share: Share) -> Queue:
    queue = await share.queue(partitions=2)
    for index in queue.topic.partitions:
        await use(queue, partition=index)
    return queue


@check("ADM-30", "ADM-35", meets=IDLE, solo={})
async def test_repeating_finishes(solo_share: Share, judge: Judge) -> None:
    share = solo_share
    one, two = await _used(share), await _used(share)
    name = one.topic.name

    await _jam(share, jammed=True)
    offsets = await delete_offsets(share, one.group, name)
    group = await delete_groups(share, two.group)
    left = await listed(share, [one.group, two.group])
    await _jam(share, jammed=False)

    judge["ADM-35"].holds(group[two.group] != NONE, "a group is gone and its state was not deleted")
    judge["ADM-35"].equal({one.group, two.group}, set(left), "groups that are left")
    again = await delete_groups(share, two.group)
    judge["ADM-35"].equal({two.group: NONE}, again, "error of deleting the group again")
    found = (await described(share, [two.group]))[two.group]
    judge["ADM-35"].equal(NO_GROUP, error_name(found.error_code), "error of describing it then")

    failed = NONE not in refusals(offsets)
    judge["ADM-30"].holds(failed, f"offsets whose state was not deleted: {offsets}")
    again_offsets = await delete_offsets(share, one.group, name)
    judge["ADM-30"].equal((NONE, {name: NONE}), again_offsets, "errors of the repeated deletion")
    view = await share.admin.share_offsets(one.group, one.topic)
    starts = [offset.start for offset in view.values()]
    judge["ADM-30"].equal([UNSET, UNSET], starts, "start offsets shown afterwards")
