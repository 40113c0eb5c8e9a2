"""Subscribing to many topics at once, one of which does not exist."""

from suites.broker.kit import *


@check("MEM-16", meets=IN_LISTS)
@AT
async def test_one_unknown_topic(env: Env, judge: Judge, position: str) -> None:
    topics = await gather_all(env.admin.create_topic(MANY) for _ in range(MANY))
    alone = await env.member(env.cluster.fresh_name("g"))
    names = [topic.name for topic in topics]
    wanted = among(names, env.cluster.fresh_name("t"), position)

    await good_beat(alone, member_epoch=0, subscribed_topic_names=wanted)
    await beating([alone], lambda: alone.assigned >= every(*topics))

    judge.equal(every(*topics), alone.assigned, "partitions assigned")
