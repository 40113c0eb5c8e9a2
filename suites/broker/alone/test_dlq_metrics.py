"""What a broker counts of the dead letters that it writes (KIP-1191 §Metrics)."""

from suites.broker.alone.single_broker import SingleBroker
from suites.broker.kit import *

BEAN = "ShareGroupMetrics"
LETTERS, REQUESTS, FAILED = (
    "DeadLetterQueueRecordCount",
    "DeadLetterQueueTotalProduceRequestsPerSec",
    "DeadLetterQueueFailedProduceRequestsPerSec",
)


async def _counted(lone: SingleBroker, box: DeadLetterSetup, name: str) -> float:
    return await lone.number(BEAN, "Count", group=box.queue.group, name=name)


@check("DLQ-41", feature="dead-letters", timeout=90)
async def test_letters_are_counted(lone: SingleBroker, judge: Judge) -> None:
    env = lone.env
    tight = await dead_topic(env, configs={"max.message.bytes": "1"})
    written = {count: await boxed(env, count) for count in (3, 2)}
    refused = await boxed(env, 2, dead=tight)
    for count, box in {**written, 0: refused}.items():
        consumer = await box.queue.consumer()
        held = await consumer.acquire(count or 2)
        await consumer.acked(*map(reject, held.offsets))
        await box.due(held.offsets if count else ())

    for count, box in written.items():
        what = {"group": box.queue.group, "name": LETTERS}
        seen = await lone.until(count, BEAN, "Count", **what)
        judge.equal(count, seen, f"letters counted for a group with {count}")
        requests = await _counted(lone, box, REQUESTS)
        judge.holds(requests >= 1, f"{requests} requests are counted for {count} letters")
        failed = await _counted(lone, box, FAILED)
        judge.holds(failed < requests, f"{failed} of {requests} failed, and {count} letters came")
    failed = await poll(lambda: _counted(lone, refused, FAILED), bool, pause=0.1)
    judge.holds(failed >= 1, f"{failed} failed requests are counted, all were refused")
    seen = await _counted(lone, refused, LETTERS)
    judge.equal(0, seen, "letters counted for a group whose letters were refused")
