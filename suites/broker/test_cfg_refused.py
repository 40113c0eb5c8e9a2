"""Group configurations that are refused, and what is left of them: nothing."""

from suites.broker.kit import *

INVALID = ErrorCode.INVALID_CONFIG.name
GOOD_RESETS = (
    *("earliest", "latest", "by_duration:PT0S", "by_duration:PT1.5S"),
    *("by_duration:P3DT4H30M", "by_duration:P0D"),
)
BAD_RESETS = (
    *("none", "by_duration", "by_duration:", "by_duration:-PT1H", "by_duration:PT-1S"),
    *("by_duration:1h", "by_duration:P1Y", "soonest"),
)


async def _response(env: Env, group: str, **values: str) -> str:
    return error_name((await env.admin.try_group_config(group, values)).error_code)


@check("CFG-10", fast=True)
async def test_wrong_values(env: Env, judge: Judge) -> None:
    group = env.cluster.fresh_name("g")
    await env.admin.group_config(group, {RESET: "earliest"})
    before = await everywhere(env, group)
    broker = await broker_values(env)
    tried = 0
    for name, config in table(env, Scope.GROUP).items():
        for value in wrong(config, bounds(config, broker)):
            code = await _response(env, group, **{name: value, RESET: "latest"})
            judge.equal(INVALID, code, f"response to {name}={value}")
            tried += 1
    code = await _response(env, group, **{"share.no.such.key": "1", RESET: "latest"})
    judge.equal(INVALID, code, "response to a key that does not exist")

    # What comes after them is in force everywhere, so whatever they changed would be, too.
    await env.admin.group_config(group, {LOCK: "20001"})
    after = await everywhere(env, group)
    expected = {node: seen | {LOCK: "20001"} for node, seen in before.items()}
    judge.equal(expected, after, "configurations by broker after the refusals")
    judge.saw(refusals=tried + 1)


@check("CFG-11", fast=True)
async def test_offset_reset(env: Env, judge: Judge) -> None:
    group = env.cluster.fresh_name("g")
    for value in GOOD_RESETS:
        judge.equal("NONE", await _response(env, group, **{RESET: value}), f"response to {value}")
    last = env.rng.choice(GOOD_RESETS)
    await env.admin.group_config(group, {RESET: last})
    for value in BAD_RESETS:
        code = await _response(env, group, **{RESET: value})
        judge.equal(INVALID, code, f"response to {value!r}")

    await env.admin.group_config(group, {LOCK: "20001"})
    shown = {seen[RESET] for seen in (await everywhere(env, group)).values()}
    judge.equal({last}, shown, "offset reset in force after the refusals")


@check("CFG-12", fast=True)
async def test_session_within_the_heartbeat(env: Env, judge: Judge) -> None:
    broker = await broker_values(env)
    keys = table(env, Scope.GROUP)
    beat, session = bounds(keys[HEARTBEAT], broker), bounds(keys[SESSION], broker)
    low, high = max(beat.low, session.low), beat.high or session.low
    if low >= high:
        raise OutOfReach("the broker's own bounds keep every session above every heartbeat")
    both = env.rng.randint(low, high - 1)

    group = env.cluster.fresh_name("g")
    code = await _response(env, group, **{HEARTBEAT: str(both), SESSION: str(both)})
    judge.equal(INVALID, code, f"response to both at {both} ms")
    await env.admin.group_config(group, {HEARTBEAT: str(both)})
    code = await _response(env, group, **{SESSION: str(both)})
    judge.equal(INVALID, code, f"response to a session of {both} ms after the heartbeat")
    code = await _response(env, group, **{SESSION: str(both + 1)})
    judge.equal("NONE", code, "response to a session of one millisecond more")
    code = await _response(env, group, **{HEARTBEAT: str(both + 1)})
    judge.equal(INVALID, code, "response to a heartbeat of as much, after the session")

    await env.admin.group_config(group, {RESET: "earliest"})
    shown = {(seen[HEARTBEAT], seen[SESSION]) for seen in (await everywhere(env, group)).values()}
    judge.equal({(str(both), str(both + 1))}, shown, "heartbeat and session in force")
