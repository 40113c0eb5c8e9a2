"""Coordinators that load, that are asked too early, or that cannot write."""

import asyncio

from fixtures.clients.cluster import eventually
from fixtures.clients.member import Member
from fixtures.wire.errors import error_name
from shareproof.findings.program import Run, limit_records, say
from suites.broker.env import Env

OFFSETS = "__consumer_offsets"
PACE = 1.5  # seconds between heartbeats: more than share.assignment.interval.ms


async def gone(env: Env, name: str) -> None:
    await env.admin.delete_topics(name)

    async def ask() -> bool | None:
        found = (await (await env.cluster.any()).call("Metadata", topics=[{"name": name}])).topics
        return True if found[0].error_code else None

    await eventually(f"deletion of {name}", ask)


async def epochs(member: Member, count: int) -> list[int]:
    seen = []
    for _ in range(count):
        answer = await member.heartbeat()
        if answer.error_code:
            say("heartbeat answered", error_name(answer.error_code), answer.error_message)
        seen.append(int(answer.member_epoch))
        await asyncio.sleep(PACE)  # the pace of heartbeats
    return seen


async def topic_not_forgotten(run: Run) -> bool:
    """A topic whose deletion the group coordinator could not write down: finding 050.

    Exit code 1 if the epoch goes up for as long as anybody looks, although nothing changes any
    more.
    """
    async with run.open_env() as env:
        for jammed in (False, True):
            say("with a jam" if jammed else "without a jam")
            one, two = [await env.admin.create_topic() for _ in range(2)]
            member = await env.member(env.cluster.fresh_name("g"), one, two)
            say("  two topics are there; member epochs", await epochs(member, 3))
            if jammed:
                await limit_records(env, OFFSETS, "1")
            await gone(env, one.name)
            await asyncio.sleep(PACE)  # the coordinator hears of it by itself
            await limit_records(env, OFFSETS, None)
            say("  one is deleted; member epochs", await epochs(member, 5))
            await env.admin.create_topic(name=one.name)
            say("  it is created again; member epochs", await epochs(member, 5))
            last = await epochs(member, 5)
            say("  and then", last)
        await env.disband()
    return len(set(last)) == len(last)
