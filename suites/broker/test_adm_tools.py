"""kafka-share-groups.sh and its like: what the tools print, and what they do.

Every command is a process of its own, so that one command is judged for all that it says.
"""

import re
from datetime import UTC, datetime

from fixtures.clients.tools import SHARE_GROUPS, ToolRun, Tools
from suites.broker.kit import *

pytestmark = pytest.mark.programs

PATIENCE = 340.0  # Seconds that the tools may take together.


def _groups(*names: str) -> list[str]:
    return [word for name in names for word in ("--group", name)]


@check("ADM-41", timeout=400)
async def test_what_is_printed(env: Env, judge: Judge) -> None:
    tools = await Tools.of(env.cluster.info)
    queue = await env.queue(partitions=2)
    await use(queue)
    live = env.cluster.fresh_name("g")
    members = [await env.member(live) for _ in range(2)]
    for member in members:
        await good_beat(member, member_epoch=0, subscribed_topic_names=[queue.topic.name])
    await beating(members, lambda: all(member.assigned for member in members))
    named = _groups(live, queue.group)

    asked = asyncio.gather(
        tools.run(SHARE_GROUPS, "--list"),
        tools.run(SHARE_GROUPS, "--describe", *named, "--members"),
        tools.run(SHARE_GROUPS, "--describe", *named, "--offsets"),
        tools.run(SHARE_GROUPS, "--describe", *named, "--state"),
    )
    # Tools may take longer than a session: the members must not fall silent meanwhile.
    await beating(members, asked.done, within=PATIENCE)
    lists, who, offsets, states = await asked

    mine = {live, queue.group}
    judge.equal(mine, mine & set(lists.lines), f"groups that are listed by {tools.version}")
    assigned = {row["CONSUMER-ID"]: row.get("ASSIGNMENT", "") for row in who.table()}
    expected = {member.member_id: _assignment(queue, member.assigned) for member in members}
    judge.equal(expected, assigned, "members and assignments")
    seen = {(r["GROUP"], r.get("PARTITION")): r.get("START-OFFSET") for r in offsets.table()}
    places = {(queue.group, "0"): "7", (queue.group, "1"): "-", (live, "0"): "-", (live, "1"): "-"}
    judge.equal(places, seen, "start offsets")
    state = {row["GROUP"]: (row["STATE"], row["#MEMBERS"]) for row in states.table()}
    judge.equal({live: ("Stable", "2"), queue.group: ("Empty", "0")}, state, "states")


def _assignment(queue: Queue, assigned: frozenset[tuple[Any, int]]) -> str:
    indexes = ",".join(str(index) for _, index in sorted(assigned, key=lambda place: place[1]))
    return f"{queue.topic.name}:{indexes}" if indexes else ""


OLD, YOUNG = 5, 5  # Records older and younger than the date.


async def _dated(queue: Queue) -> str:
    """Append old and young records; return a date between them as the tool wants it."""
    now = int(time.time() * 1000)
    for count, hours in ((OLD, 2), (YOUNG, 1)):
        records = [
            Record(offset=i, timestamp=now - hours * 3_600_000, value=b"x") for i in range(count)
        ]
        await queue.env.admin.append(queue.topic, encode_batch(records))
    between = datetime.fromtimestamp(now / 1000 - 5400, UTC)
    return between.strftime("%Y-%m-%dT%H:%M:%S.000")


def _new_offsets(run: ToolRun) -> dict[Place, int]:
    return {(row["TOPIC"], int(row["PARTITION"])): int(row["NEW-OFFSET"]) for row in run.table()}


@check("ADM-42", timeout=400)
async def test_resetting_offsets(env: Env, judge: Judge) -> None:
    tools = await Tools.of(env.cluster.info)
    queue = await env.queue(6, partitions=2)
    await queue.produce(7, 1)
    beside = Queue(env=env, topic=await env.admin.create_topic(), group=queue.group)
    date = await _dated(beside)
    member = await env.member(queue.group, queue.topic)
    await member.leave()
    fresh = env.cluster.fresh_name("g")
    name, unused = queue.topic.name, beside.topic.name
    everything = {(name, 0): 3, (name, 1): 4}
    await altered(env, queue.group, everything)

    def reset(group: str, *how: str) -> Any:
        return tools.run(SHARE_GROUPS, "--reset-offsets", *_groups(group), *how)

    dry, new = await asyncio.gather(
        reset(queue.group, "--all-topics", "--to-latest", "--dry-run"),
        reset(fresh, "--topic", name, "--to-latest", "--execute"),
    )
    ends = {(name, 0): 6, (name, 1): 7}
    judge.equal(ends, _new_offsets(dry), f"offsets that a dry run shows: {dry}")
    judge.equal(everything, await group_offsets(env, queue.group), "offsets after a dry run")
    judge.equal(ends, _new_offsets(new), f"shown for a new group: {new}")
    judge.equal(ends, await group_offsets(env, fresh), "offsets of a new group")

    dated = await reset(queue.group, "--topic", unused, "--to-datetime", date, "--execute")
    judge.equal({(unused, 0): OLD}, _new_offsets(dated), f"shown for a date: {dated}")
    everything[unused, 0] = OLD
    judge.equal(everything, await group_offsets(env, queue.group), "offsets by a date")

    zeros = dict.fromkeys(everything, 0)
    first = await reset(queue.group, "--all-topics", "--to-earliest", "--execute")
    judge.equal(zeros, _new_offsets(first), f"shown for earliest: {first}")
    judge.equal(zeros, await group_offsets(env, queue.group), "offsets by earliest")


def _about(run: ToolRun, name: str) -> str:
    """Return what a command says of a name, on any line that has it."""
    return " | ".join(line for line in run.lines if name in line)


@check("ADM-43", timeout=400)
async def test_deleting(env: Env, judge: Judge) -> None:
    tools = await Tools.of(env.cluster.info)
    queue = await env.queue()
    await use(queue)
    live, unknown, empty = (env.cluster.fresh_name("g") for _ in range(3))
    member = await env.member(live, queue.topic)
    gone = await env.member(empty, queue.topic)
    await gone.leave()
    await vacant(env, empty)
    name, nowhere = queue.topic.name, env.cluster.fresh_name("t")

    topics = ["--topic", name, "--topic", nowhere]
    asked = asyncio.gather(
        tools.run(SHARE_GROUPS, "--delete", *_groups(empty, live, unknown)),
        tools.run(SHARE_GROUPS, "--delete-offsets", *_groups(queue.group), *topics),
        tools.run(SHARE_GROUPS, "--delete-offsets", *_groups(live), "--topic", name),
    )
    # Tools may take longer than a member may be silent.
    await beating([member], asked.done, within=PATIENCE)
    groups, some, refused = await asked

    left = await listed(env, [live, empty])
    judge.equal({live}, set(left), f"groups that are left, the tool says: {groups}")
    for group, why in ((live, "not empty|member"), (unknown, "not")):
        said = _about(groups, group)
        judge.holds(re.search(why, said.lower()), f"of {group} the tool says {said!r}")
    judge.holds("success" in _about(groups, empty), f"of {empty}: {groups}")
    judge.holds("Success" in _about(some, name), f"of a topic with offsets: {some}")
    judge.holds("Error" in _about(some, nowhere), f"of a topic without: {some}")
    judge.equal({}, await group_offsets(env, queue.group), "offsets that are left")
    in_use = re.search("error.*(not empty|member)", refused.out.lower())
    judge.holds(in_use, f"of a group with members: {refused}")
