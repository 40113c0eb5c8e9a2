"""A group's session timeout against a heartbeat interval that only the broker has."""

from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *


@check("CFG-12")
async def test_session_within_the_brokers_heartbeat(lone: SingleBroker, judge: Judge) -> None:
    env = lone.env
    broker = await broker_values(env)
    beat = int(broker["group.share.heartbeat.interval.ms"])
    if int(broker[f"group.{SESSION}".replace("share.", "share.min.", 1)]) > beat:
        raise Undecided("the broker's bounds keep every session above its heartbeat")
    group = env.cluster.fresh_name("g")
    for value, expected in ((beat, ErrorCode.INVALID_CONFIG.name), (beat + 1, "NONE")):
        response = await env.admin.try_group_config(group, {SESSION: str(value)})
        code = error_name(response.error_code)
        judge.equal(expected, code, f"response to a session of {value} ms, heartbeat {beat}")
