"""Subscribing to many topics at once, one of which does not exist."""

from suites.broker.check import MANY
from suites.broker.kit import *
from suites.broker.many import AT, among
from suites.broker.many import MANY as THREE
from suites.broker.membership import every


@check("MEM-16", meets=MANY)
@AT
async def test_one_unknown_topic(share: Share, judge: Judge, position: str) -> None:
    topics = await gather_all(share.admin.create_topic(THREE) for _ in range(THREE))
    alone = await share.member(share.cluster.fresh_name("g"))
    names = [topic.name for topic in topics]
    wanted = among(names, share.cluster.fresh_name("t"), position)

    await good_beat(alone, member_epoch=0, subscribed_topic_names=wanted)
    await beating([alone], lambda: alone.assigned >= every(*topics))

    judge.equal(every(*topics), alone.assigned, "partitions assigned")
