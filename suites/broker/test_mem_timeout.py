"""The session timeout of a member: who is removed, when, and what is left to it.

Lower bounds count from before the last heartbeat was sent, so a slow machine can only make them
safer. Where the harness itself was too slow to heartbeat in time, nothing is judged.
"""

from suites.broker.kit import *


async def hasty(env: Env, timeout_ms: int, partitions: int = 1) -> Queue:
    """Return a queue whose group removes members after ``timeout_ms`` of silence."""
    timing = {SESSION: str(timeout_ms), HEARTBEAT: str(env.bounds.short_heartbeat)}
    return await env.queue(partitions=partitions, group_config=timing)


async def gone(env: Env, member: Member, within: float) -> float | None:
    """Return when a member was first not listed any more, ``None`` if it always was."""
    async for _ in attempts(within):
        if member.member_id not in await member_ids(env, member.group):
            return time.monotonic()
    return None


@check("MEM-37")
async def test_silent_member_is_removed(env: Env, judge: Judge) -> None:
    timeout_ms = env.bounds.session(env.rng.randint(1000, 2500))
    queue = await hasty(env, timeout_ms)
    member = await env.member(queue.group, queue.topic)

    before = time.monotonic()
    await good_beat(member)
    within = timeout_ms / 1000 + WITHIN
    at = await gone(env, member, within)
    after = await beat(member)

    judge.holds(at is not None, f"a silent member was still listed after {within:g} s")
    silent = (at or before) - before
    early = f"removed after {silent:.3f} s, with a session timeout of {timeout_ms} ms"
    judge.holds(silent >= timeout_ms / 1000, early)
    judge.equal(ErrorCode.UNKNOWN_MEMBER_ID, after.error_code, "error of its next heartbeat")


@check("MEM-37", timeout=240)
async def test_session_timeouts_last_as_configured(env: Env, judge: Judge) -> None:
    await judge_span(
        judge,
        "session timeout",
        apart(env.bounds.session(2000), env.bounds.longest_session),
        partial(silences_of, env),
        partial(waits_end_late, env),
        shorter="MEM-37",
        longer="MEM-37",
    )


@check("MEM-38")
async def test_heartbeats_keep_a_member(env: Env, judge: Judge) -> None:
    timeout_ms = env.bounds.session(1500)
    timeout = timeout_ms / 1000
    queue = await hasty(env, timeout_ms)
    member = await env.member(queue.group, queue.topic)

    start = last = time.monotonic()
    beats = 0
    async for _ in attempts(max(2 * timeout, 3 * 1.5) + 1, pause=0.1):
        sent = time.monotonic()
        response = await beat(member)
        silence = time.monotonic() - last
        if response.error_code and silence >= timeout:
            raise Undecided(f"the harness itself was silent for {silence:.1f} s")
        error = f"error of a heartbeat {silence:.3f} s after the one before"
        judge.equal(ErrorCode.NONE, response.error_code, error)
        last, beats = sent, beats + 1

    listed = await member_ids(env, queue.group)
    if not listed and time.monotonic() - last >= timeout:
        raise Undecided("the harness was silent for a session timeout before it looked")
    judge.equal([member.member_id], listed, "members after several session timeouts")
    judge.saw(heartbeats=beats, milliseconds=int(1000 * (last - start)))


@check("MEM-39")
async def test_removed_member_joins_again(env: Env, judge: Judge) -> None:
    timeout_ms = env.bounds.short_session
    queue = await hasty(env, timeout_ms)
    member = await env.member(queue.group, queue.topic)
    highest = member.epoch
    if await gone(env, member, timeout_ms / 1000 + WITHIN) is None:
        raise Undecided("a silent member was not removed, so it could not come back")

    again = await beat(member, member_epoch=0, subscribed_topic_names=[queue.topic.name])

    judge.equal(ErrorCode.NONE, again.error_code, "error of joining again")
    await risen(member, highest)
    judge.holds(member.epoch > highest, f"epoch {member.epoch} is not above the earlier {highest}")


@check("MEM-40")
async def test_session_timeout_changes_live(env: Env, judge: Judge) -> None:
    timeout_ms, longer_ms = env.bounds.session(4000), env.bounds.longest_session
    if timeout_ms == longer_ms:
        raise OutOfReach(f"session timeouts are {longer_ms} ms here and nothing else")
    queue = await hasty(env, timeout_ms)
    member = await env.member(queue.group, queue.topic)

    await env.admin.group_config(queue.group, {SESSION: str(longer_ms)})
    await good_beat(member)
    early = await gone(env, member, timeout_ms / 1000 + NOT_FOR)
    judge.holds(early is None, f"removed under a timeout of {longer_ms} ms, {timeout_ms} ms before")
    await env.admin.group_config(queue.group, {SESSION: str(timeout_ms)})
    await good_beat(member)
    # The longer one must not be over by then.
    within = min(timeout_ms + WITHIN * 1000, longer_ms * EARLY) / 1000
    at = await gone(env, member, within)

    still = f"still listed {within:g} s after a heartbeat under a timeout of {timeout_ms} ms"
    judge.holds(at is not None, still)
    after = await beat(member)
    judge.equal(ErrorCode.UNKNOWN_MEMBER_ID, after.error_code, "error of its next heartbeat")


@check("MEM-41")
async def test_partitions_of_a_removed_member(env: Env, judge: Judge) -> None:
    timeout_ms = env.bounds.session(3000)
    queue = await hasty(env, timeout_ms, partitions=4)
    stays, silent = [await env.member(queue.group) for _ in range(2)]
    for member in (stays, silent):
        await good_beat(member, member_epoch=0, subscribed_topic_names=[queue.topic.name])

    await beating([stays, silent], lambda: shared(queue, stays, silent))
    if not shared(queue, stays, silent):
        raise Undecided("the two members never shared the partitions, so there is nothing to take")
    listed = [stays.member_id, silent.member_id]
    async for _ in attempts(timeout_ms / 1000 + WITHIN):
        await good_beat(stays)
        listed = await member_ids(env, queue.group)
        if listed == [stays.member_id] and stays.assigned == every(queue.topic):
            break

    if listed != [stays.member_id]:
        raise Undecided(f"members when one had been silent: {listed}")
    judge.equal(every(queue.topic), stays.assigned, "assignment of who stays")


def shared(queue: Queue, *members: Member) -> bool:
    """Return whether each of the members has partitions and together they have all."""
    return all(member.assigned for member in members) and covered(members) == every(queue.topic)
