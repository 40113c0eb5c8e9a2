"""A group id is of one kind: share, consumer and classic groups keep out of each other's way."""

from suites.broker.kit import *

Beats = Callable[[Env, str, str, str, int], Awaitable[Struct]]


async def intact(env: Env, judge: Judge, member: Member) -> None:
    """Judge that a share group still has its one member, which can go on."""
    after = await beat(member)
    judge.equal(ErrorCode.NONE, after.error_code, "error of the share member's heartbeat")
    listed = await member_ids(env, member.group)
    judge.equal([member.member_id], listed, "members of the share group")
    judge.equal(["share"], await kind_of(env, member.group), "kind of the group")


@check("MEM-44")
async def test_share_member_in_a_consumer_group(env: Env, judge: Judge) -> None:
    await _intrusion(env, judge, "consumer", consumer_group, consumer_beat)
    with contextlib.suppress(OutOfReach):  # streams groups are later, and may be switched off
        await _intrusion(env, judge, "streams", streams_group, streams_beat)


async def _intrusion(env: Env, judge: Judge, kind: str, joined: Any, beats: Beats) -> None:
    queue = await env.queue()
    insider = await joined(env, queue, queue.group)
    intruder, name = await env.member(queue.group), queue.topic.name

    for who, epoch in ((intruder.member_id, 0), (insider, -1)):
        fields = {"member_id": who, "member_epoch": epoch, "subscribed_topic_names": [name]}
        response = await beat(intruder, **fields)
        refusal = f"a share heartbeat on a {kind} group got {error_name(response.error_code)}"
        judge.holds(response.error_code not in SILENT, refusal)
    described = f"{kind.title()}GroupDescribe"
    after = await ask_coordinator(env, queue.group, described, group_ids=[queue.group])
    seen = await kind_of(env, queue.group)
    await beats(env, queue.group, insider, name, -1)

    listed = [member.member_id for member in after.groups[0].members]
    judge.equal(([kind], [insider]), (seen, listed), "kind and members")


@check("MEM-44")
async def test_share_member_in_a_classic_group(env: Env, judge: Judge) -> None:
    queue = await env.queue()
    await classic_group(env, queue, queue.group)
    intruder = await env.member(queue.group)

    response = await beat(intruder, member_epoch=0, subscribed_topic_names=[queue.topic.name])

    refusal = f"a share heartbeat on a classic group got {error_name(response.error_code)}"
    judge.holds(response.error_code not in SILENT, refusal)
    judge.equal(["classic"], await kind_of(env, queue.group), "kind of the group")
    stored = await committed_offsets(env, queue.group)
    judge.equal({(queue.topic.name, 0): 1}, stored, "committed offsets of the group")


@check("MEM-45")
async def test_classic_requests_on_a_share_group(env: Env, judge: Judge) -> None:
    queue, member = await env.with_member()
    who = {"group_id": queue.group, "member_id": member.member_id}
    requests: list[tuple[str, dict[str, object]]] = [
        ("SyncGroup", who | {"generation_id": 1, "assignments": [], "version": 3}),
        ("Heartbeat", who | {"generation_id": 1, "version": 3}),
        ("LeaveGroup", who | {"version": 2}),
    ]
    responses = [("JoinGroup", await classic_join(env, queue.group))]
    for api, fields in requests:
        responses.append((api, await ask_coordinator(env, queue.group, api, **fields)))
    for api, response in responses:
        refusal = f"{api} on a share group got {error_name(response.error_code)}"
        judge.holds(response.error_code not in SILENT, refusal)
    await intact(env, judge, member)


@check("MEM-46", fast=True)
@pytest.mark.parametrize("beats", [consumer_beat, streams_beat], ids=["consumer", "streams"])
async def test_foreign_member_in_a_share_group(env: Env, judge: Judge, beats: Beats) -> None:
    queue, member = await env.with_member()
    if beats is streams_beat:
        await streams_group(env, queue, env.cluster.fresh_name("g"))

    mine = ((member.member_id, epoch) for epoch in (member.epoch, -1))
    for who, epoch in ((env.member_id(), 0), *mine):
        response = await beats(env, queue.group, who, queue.topic.name, epoch)
        refusal = f"a foreign heartbeat on a share group got {error_name(response.error_code)}"
        judge.holds(response.error_code not in SILENT, refusal)
    await intact(env, judge, member)


@check("MEM-49", fast=True)
async def test_states_of_a_group(env: Env, judge: Judge) -> None:
    queue, other = await env.queue(), await env.admin.create_topic()
    first, second = [await env.member(queue.group) for _ in range(2)]
    names = [queue.topic.name]
    seen: list[str] = []

    async def after(member: Member, **fields: object) -> None:
        await good_beat(member, **fields)
        seen.append((await env.admin.describe_group(queue.group)).group_state)

    await after(first, member_epoch=0, subscribed_topic_names=names)
    await after(second, member_epoch=0, subscribed_topic_names=names)
    await after(first, subscribed_topic_names=[*names, other.name])
    await after(second, member_epoch=-1)
    await after(first, member_epoch=-1)
    await after(second, member_epoch=0, subscribed_topic_names=names)
    await after(second, member_epoch=-1)

    expected = ["Stable"] * 4 + ["Empty", "Stable", "Empty"]
    judge.equal(expected, seen, "states after each join, change and leave")
