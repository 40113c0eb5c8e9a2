"""Share groups switched off and on again while a group is at work (KIP-932 §Compatibility)."""

from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *

APIS = ("ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge")
OFFSETS = ("DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets")


async def _until_refused(queue: Queue, consumer: Consumer) -> dict[str, str]:
    seen: dict[str, str] = {}
    async for _ in attempts(WITHIN):
        heartbeat = await consumer.member.heartbeat()
        described = await queue.env.admin.describe_group(queue.group)
        fetched = await consumer.session.fetch(epoch=consumer.session.epoch, max_wait_ms=0)
        acked = await consumer.session.acknowledge({consumer.where: PROBE})
        codes = (heartbeat.error_code, described.error_code, fetched.error, acked.error)
        seen = dict(zip(APIS, map(error_name, codes), strict=True))
        shown = (await described_offsets(queue.env, {queue.group: None}))[queue.group]
        name, told = queue.topic.name, [{error_name(shown.error_code)}]
        told.append(refusals(await alter_offsets(queue.env, queue.group, {(name, 0): 0})))
        told.append(refusals(await delete_offsets(queue.env, queue.group, name)))
        seen |= {api: ",".join(sorted(one)) for api, one in zip(OFFSETS, told, strict=True)}
        if set(seen.values()) == {ErrorCode.UNSUPPORTED_VERSION.name}:
            break
    return seen


@check("CFG-01", "CFG-04", "CFG-05", timeout=90)
async def test_switched_off_and_on(lone: SingleBroker, judge: Judge) -> None:
    queue, consumer = await lone.env.with_holder(10, lock_ms=60_000)
    await consumer.acked(accept(0, 2), release(3))
    level = await lone.level()
    require_ok("lowering share.version to 0", await lone.set_level(0))

    refused = dict.fromkeys((*APIS, *OFFSETS), ErrorCode.UNSUPPORTED_VERSION.name)
    seen = await _until_refused(queue, consumer)
    judge["CFG-01"].equal(refused, seen, "responses with share groups switched off")

    require_ok(f"raising share.version to {level}", await lone.set_level(level))
    code = ErrorCode.UNSUPPORTED_VERSION
    async for _ in attempts(WITHIN):
        code = ErrorCode((await consumer.fetch(epoch=consumer.session.epoch, max_wait_ms=0)).error)
        if code != ErrorCode.UNSUPPORTED_VERSION:
            break
    refuses = code == ErrorCode.UNSUPPORTED_VERSION
    judge["CFG-04"].holds(not refuses, f"fetches are still refused at level {level}")
    try:
        anew = await queue.consumer()
    except Undecided as reason:
        barred = ErrorCode.UNSUPPORTED_VERSION.name in str(reason)
        judge["CFG-04"].holds(not barred, f"no member could join at level {level}: {reason}")
        raise
    came = await watch(anew, range(3, 10), WITHIN)
    judge["CFG-04"].equal(True, bool(came), "whether a member gets records with no restart")
    lost = ErrorCode.SHARE_SESSION_NOT_FOUND.name
    judge["CFG-05"].equal(lost, code.name, "response to the session of before")
    judge["CFG-05"].equal(list(range(3, 10)), sorted(came), "offsets that are open in the state")
    judge["CFG-05"].delivered({3: 2}, {3: came[3].count}, "the record released before")
