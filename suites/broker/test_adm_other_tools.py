"""kafka-groups.sh and kafka-configs.sh, which are for groups of every kind, put to share groups."""

import re

from fixtures.clients.tools import CONFIGS, GROUPS, ToolRun, Tools
from fixtures.machine.maven import kafka_release
from suites.broker.kit import *

pytestmark = pytest.mark.programs

PATIENCE = 340.0  # Seconds that the tools may take together.
TOO_SHORT_MS = 1  # A lock that no bounds allow.


def _told(run: ToolRun, *groups: str) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in run.words if row[0] in groups}


@check("ADM-46", timeout=400)
async def test_groups_of_all_types(env: Env, judge: Judge) -> None:
    # Groups of other types that a filter lets through are none of this rule's business.
    tools = await Tools.of(env.cluster.info)
    queue, member = await env.with_member()
    other, old = env.cluster.fresh_name("g"), env.cluster.fresh_name("g")
    await consumer_group(env, queue, other)
    await classic_group(env, queue, old)

    asked = asyncio.gather(
        tools.run(GROUPS, "--list"),
        tools.run(GROUPS, "--list", "--share"),
        tools.run(GROUPS, "--list", "--group-type", "share"),
        tools.run(GROUPS, "--list", "--consumer"),
    )
    # Tools may take longer than a session: the member must not fall silent meanwhile.
    await beating([member], asked.done, within=PATIENCE)
    every, ours, typed, others = await asked

    said = _told(every, queue.group, other, old)
    if not {other, old} <= said.keys():
        raise Undecided(f"the list does not have the consumer groups: {every}")
    judge.equal(["Share", "share"], said.get(queue.group), f"listed by {tools.version}")
    for run in (ours, typed):
        if run.status or any("Error" in line for line in run.lines):
            raise Undecided(str(run))
        seen = sorted(_told(run, queue.group, other, old))
        judge.equal([queue.group], seen, f"groups listed by {run.command}")
    judge.equal([], sorted(_told(others, queue.group)), f"share groups listed by {others.command}")


def _entries(run: ToolRun) -> dict[str, str]:
    found = (re.match(r"([\w.]+)=(\S*) sensitive=", line) for line in run.lines)
    return {match[1]: match[2] for match in found if match}


async def _stored(env: Env, group: str) -> set[str | None]:
    return {shown.get(LOCK) for shown in (await everywhere(env, group)).values()}


@check("ADM-47", timeout=400)
async def test_group_configs(env: Env, judge: Judge) -> None:
    tools = await Tools.of(env.cluster.info, kafka_release)
    group = env.cluster.fresh_name("g")
    before, lock = await _stored(env, group), str(env.bounds.lock(20_001))
    about = ["--entity-type", "groups", "--entity-name", group]

    def alter(*how: str) -> asyncio.Task[ToolRun]:
        return asyncio.create_task(tools.run(CONFIGS, *about, "--alter", *how))

    done = await alter("--add-config", f"{LOCK}={lock}")
    judge.equal(0, done.status, f"status of {done}")
    shown = await tools.run(CONFIGS, *about, "--describe")
    judge.equal({LOCK: lock}, _entries(shown), f"configs of the group's own: {shown}")

    refused = await alter("--add-config", f"{LOCK}={TOO_SHORT_MS}")
    judge.holds(refused.status, f"a lock of {TOO_SHORT_MS} ms was taken: {refused}")
    judge.holds(LOCK in f"{refused}"[len(refused.command) :], f"not said why: {refused}")

    back = await alter("--delete-config", LOCK)
    judge.equal(0, back.status, f"status of {back}")
    bare = await tools.run(CONFIGS, *about, "--describe")
    judge.equal({}, _entries(bare), f"configs of the group's own afterwards: {bare}")
    judge.equal(before, await _stored(env, group), f"{LOCK} afterwards, as before")
