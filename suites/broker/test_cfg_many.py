"""Configuring many groups, and many keys of each, in one request, one of them wrongly."""

from suites.broker.kit import *

LEVEL = "share.isolation.level"
GOOD = {RESET: "latest", LEVEL: "read_committed"}
BAD = (RESET, "soonest"), ("share.no.such.key", "1")


@check("CFG-10", meets=IN_LISTS)
@AT
async def test_one_bad_group(env: Env, judge: Judge, position: str) -> None:
    # One group is refused for one of its many keys, wherever that stands.
    finer, other = GOOD | {LOCK: str(env.bounds.lock(20_002))}, {LOCK: str(env.bounds.lock(20_001))}
    groups = [env.cluster.fresh_name("g") for _ in range(MANY + 2)]
    *good, unset, wrong = groups
    before = {group: await everywhere(env, group) for group in groups}
    for bad, (name, value) in zip((unset, wrong), BAD, strict=True):
        others = [(key, kept) for key, kept in finer.items() if key != name]
        values = dict(
            among([*others, ("share.session.timeout.ms", "46000")], (name, value), position)
        )
        wanted = {group: values if group == bad else finer for group in among(good, bad, position)}
        told = await env.admin.try_group_configs(wanted)
        seen = {group: error_name(one.error_code) for group, one in told.items()}
        expected = dict.fromkeys(good, "NONE") | {bad: "INVALID_CONFIG"}
        judge.equal(expected, seen, f"errors, the {position} one asking for {name}={value}")

    # What comes after them is in force everywhere, so whatever they changed would be, too.
    await env.admin.group_config(groups[-1], other)
    for group in groups:
        change = finer if group in good else other if group == wrong else {}
        wished = {node: shown | change for node, shown in before[group].items()}
        judge.equal(wished, await everywhere(env, group), "configurations by broker")
