"""Administering many groups, topics and partitions in one request, one of them wrongly."""

from suites.broker.kit import *


def _places(topics: tuple[Topic, ...]) -> list[Place]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


@check("ADM-01", "ADM-04", "ADM-36", meets=IN_LISTS)
@AT
async def test_one_unknown_group(env: Env, judge: Judge, position: str) -> None:
    unknown, *known = await neighbours(env, MANY + 1)
    matrix = await grid(env, known[0], partitions=MANY**2)
    members = {known[0]: [matrix.member]}
    for group in known:
        here = members.setdefault(group, [])
        here += [await env.member(group) for _ in range(MANY - len(here))]
        names = [topic.name for topic in matrix.topics]
        for member in here:
            if not member.epoch:
                await good_beat(member, member_epoch=0, subscribed_topic_names=names)
        await beating(here, lambda here=here: covered(here) >= every(*matrix.topics))  # type: ignore[misc]

    await _judge_described(judge, env, members, among(known, unknown, position), matrix)
    for here in members.values():
        for member in here:
            await member.leave()
    for group in known:
        await vacant(env, group)
    told = await delete_groups(env, *among(known, unknown, position))
    expected = dict.fromkeys(known, NONE) | {unknown: NO_GROUP}
    judge["ADM-36"].equal(expected, told, "errors of the deletion")
    left = [group for group, one in (await described(env, known)).items() if not is_gone(one)]
    judge["ADM-36"].equal([], left, "groups described afterwards")


async def _judge_described(
    judge: Judge, env: Env, members: dict[str, list[Member]], asked: list[str], matrix: Grid
) -> None:
    names = sorted(topic.name for topic in matrix.topics)
    expected: dict[str, object] = {}
    seen: dict[str, object] = {}
    async for _ in attempts():
        for member in (member for here in members.values() for member in here):
            await good_beat(member)
        found = await described(env, asked)
        expected = {
            group: {m.member_id: (names, sorted(map(str, m.assigned))) for m in here}
            for group, here in members.items()
        }
        seen = {
            group: {
                m.member_id: (
                    sorted(m.subscribed_topic_names),
                    sorted(
                        str((topic.topic_id, index))
                        for topic in m.assignment.topic_partitions
                        for index in topic.partitions
                    ),
                )
                for m in found[group].members
            }
            for group in members
            if group in found
        }
        if seen == expected:
            break
    judge["ADM-04"].equal(set(asked), set(found), "groups that are answered")
    judge["ADM-01"].equal(expected, seen, "members of the groups, their topics and partitions")
    bad = {group for group, entry in found.items() if entry.error_code}
    judge["ADM-04"].equal(set(asked) - set(members), bad, "groups with an error")


async def _begun(env: Env, group: str) -> Grid:
    """Return a group without members that was told nine start offsets, all different."""
    matrix = await grid(env, group)
    await matrix.produce(12)
    await matrix.member.leave()
    await vacant(env, group)
    await altered(env, group, {place: at for at, place in enumerate(_places(matrix.topics), 1)})
    return matrix


@check("ADM-04", "ADM-10", meets=IN_LISTS)
@AT
async def test_offsets_of_many(env: Env, judge: Judge, position: str) -> None:
    unknown, *known = await neighbours(env, MANY + 1)
    worlds = [await _begun(env, group) for group in known]
    nowhere = env.cluster.fresh_name("t")
    wanted = {
        group: dict(
            among(
                [(topic.name, topic.partitions) for topic in matrix.topics],
                (nowhere, (0,)),
                position,
            )
        )
        for group, matrix in zip(known, worlds, strict=True)
    }
    asked = among(known, unknown, position)
    found = await described_offsets(
        env, {group: wanted.get(group, wanted[known[0]]) for group in asked}
    )
    judge["ADM-04"].equal(set(asked), set(found), "groups that are answered")
    for group, matrix in zip(known, worlds, strict=True):
        expected = {place: index + 1 for index, place in enumerate(_places(matrix.topics))}
        seen = starts(found[group])
        seen.pop((nowhere, 0), None)  # how a topic is shown that is not there is ADM-11
        judge["ADM-10"].equal(expected, seen, "start offsets of a group")


@check("ADM-10", meets=IN_LISTS, timeout=150)
async def test_offsets_beside_no_partition(env: Env, judge: Judge) -> None:
    # Kafka takes half a minute (finding 017), in which it serves nothing else of the
    # connection.
    group = env.cluster.fresh_name("g")
    matrix = await _begun(env, group)
    named = [
        {"topic_name": topic.name, "partitions": among(topic.partitions, 1000, position)}
        for topic, position in zip(matrix.topics, POSITIONS, strict=True)
    ]
    connection = await env.cluster.dial(await env.cluster.coordinator(group))
    response = await connection.call(
        "DescribeShareGroupOffsets", groups=[{"group_id": group, "topics": named}], timeout=90
    )
    expected = {place: index + 1 for index, place in enumerate(_places(matrix.topics))}
    if response.groups[0].error_code in RETRIABLE:
        raise Undecided(f"DescribeShareGroupOffsets was answered {response.groups[0]}")
    found = starts(response.groups[0])
    seen = {place: start for place, start in found.items() if place[1] != 1000}
    judge.equal(expected, seen, "start offsets, in each topic beside one not there")


@check("ADM-16", "ADM-18", meets=IN_LISTS)
@AT
async def test_altering_many(env: Env, judge: Judge, position: str) -> None:
    matrix = await _begun(env, env.cluster.fresh_name("g"))
    *places, kept = _places(matrix.topics)
    topic = matrix.topics[among(range(1, 9), 0, position).index(0) // 3].name
    for bad in ((topic, 1000), (env.cluster.fresh_name("t"), 0)):
        offsets = {
            place: 0 if place == bad else 12 - places.index(place)
            for place in among(places, bad, position)
        }
        told = await alter_offsets(env, matrix.member.group, offsets, strangers=True)
        expected = (NONE, dict.fromkeys(places, NONE) | {bad: NO_TOPIC})
        judge["ADM-18"].equal(expected, told, f"errors, the {position} one being {bad[1]}")
    seen = await group_offsets(env, matrix.member.group)
    kept_at, shown = seen.pop(kept, None), {place: 12 - n for n, place in enumerate(places)}
    judge["ADM-18"].equal(shown, seen, "start offsets of what was named")
    judge["ADM-16"].equal(MANY**2, kept_at, "start offset of what was not")


@check("ADM-27", "ADM-29", meets=IN_LISTS)
@AT
async def test_deleting_many(env: Env, judge: Judge, position: str) -> None:
    matrix = await _begun(env, env.cluster.fresh_name("g"))
    names = [topic.name for topic in matrix.topics]
    bad = env.cluster.fresh_name("t")
    told = await delete_offsets(env, matrix.member.group, *among(names, bad, position))
    judge["ADM-29"].equal((NONE, dict.fromkeys(names, NONE) | {bad: NO_TOPIC}), told, "errors")
    left = await shown_starts(env, matrix.member.group)
    judge["ADM-27"].equal(set(), left, "offsets shown afterwards")
