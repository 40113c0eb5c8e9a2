"""Deletions and alterations that stop half way, because the share state could not be changed.

The state topic of a cluster of the check's own is told to take no record any more, by a
``max.message.bytes`` that nothing fits in. That is refused at once and for good, while a share
coordinator that is not there would be asked again for half a minute.
"""

from suites.broker.kit import *


async def _used(env: Env) -> Queue:
    queue = await env.queue(partitions=2)
    for index in queue.topic.partitions:
        await use(queue, partition=index)
    return queue


@check("ADM-30", "ADM-35", "ADM-53", meets=IDLE, solo={})
async def test_repeating_finishes(solo_env: Env, judge: Judge) -> None:
    env = solo_env
    one, two, three = [await _used(env) for _ in range(3)]
    name, before, to = one.topic.name, await stored(three), {(three.topic.name, 0): 3}

    await limit_state(env, "1")
    offsets = await delete_offsets(env, one.group, name)
    group = await delete_groups(env, two.group)
    asked = fields_of("AlterShareGroupOffsets", three.group, three.topic.name, start=3)
    altered = await env.cluster.at_coordinator(three.group, "AlterShareGroupOffsets", **asked)
    left = await listed(env, [one.group, two.group])
    await limit_state(env, None)

    judge["ADM-35"].holds(group[two.group] != NONE, "a group is gone and its state was not deleted")
    judge["ADM-35"].holds(two.group in left, f"groups that are left: {set(left)}")
    again = await delete_groups(env, two.group)
    judge["ADM-35"].equal({two.group: NONE}, again, "error of deleting the group again")
    found = (await described(env, [two.group]))[two.group]
    judge["ADM-35"].holds(is_gone(found), f"described as {found.group_state} then")
    summaries = [await Store(env).of(two, index).summary() for index in two.topic.partitions]
    kept = [int(each.start_offset) for each in summaries]
    judge["ADM-35"].equal([UNSET] * 2, kept, "start offsets stored of the group afterwards")

    failed = NONE not in refusals(offsets)
    judge["ADM-30"].holds(failed, f"offsets whose state was not deleted: {offsets}")
    again_offsets = await delete_offsets(env, one.group, name)
    judge["ADM-30"].equal((NONE, {name: NONE}), again_offsets, "errors of the repeated deletion")
    view = await env.admin.share_offsets(one.group, one.topic)
    starts = [offset.start for offset in view.values()]
    judge["ADM-30"].equal([UNSET, UNSET], starts, "start offsets shown afterwards")

    codes = sorted({error_name(code) for code in codes_in(altered)})
    judge["ADM-53"].holds(codes != [NONE], f"altering what cannot be stored got {codes}")
    judge["ADM-53"].equal(before, await stored(three), "state after an alteration that failed")
    done = refusals(await alter_offsets(env, three.group, to))
    judge["ADM-53"].equal({NONE}, done, "errors of the repeated alteration")
    counts = await given_anew(three)
    judge["ADM-53"].delivered(dict.fromkeys(range(3, 11), 1), counts, "delivered from 3 on")
