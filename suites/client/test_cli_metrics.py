"""What a client reports of itself: metrics of requests, acknowledgements and heartbeats."""

from suites.client.kit import *

AGREES = 8.0  # Seconds within which metrics come to say what was on the wire.
LATE = "INVALID_RECORD_STATE"


def _totals(harness: Harness, consumer: Handle) -> dict[str, int]:
    def responded(*apis: str) -> list[Exchange]:
        return [one for one in harness.seen(consumer, *apis) if one.response is not None]

    acks = acked(responded(*SHARE))
    return {
        "heartbeat-total": len([o for o in harness.heartbeats(consumer) if o.response is not None]),
        "fetch-total": len(responded("ShareFetch")),
        "acknowledgements-send-total": len(acks),
        "acknowledgements-error-total": len([one for one in acks if one.error]),
    }


@check("CLI-109", needs=("metrics", "explicit|mixed", "commit-sync"))
async def test_metrics(hostile: Harness, judge: Judge) -> None:
    _, consumer, got = await hostile.holding(5)
    await consumer.acknowledge(got[:3])
    await hostile.settle(consumer)
    refused = {"when": {"has": "acks"}, "do": "partition-error", "code": LATE}
    hostile.play(
        {"on": "ShareAcknowledge", **refused},
        {"on": "ShareFetch", "level": "acknowledge", **refused},
    )
    await consumer.acknowledge(got[3:])
    await hostile.settle(consumer)
    told: dict[str, float] = {}
    wanted: dict[str, int] = {}

    async def agrees() -> bool:
        wanted.update(_totals(hostile, consumer))
        told.update(await consumer.metrics())
        return all(told.get(name) == value for name, value in wanted.items())

    await hostile.until(agrees, AGREES)
    judge.saw(refusals=wanted["acknowledgements-error-total"])
    for name, value in wanted.items():
        judge.equal(value, told.get(name), f"{name} after {AGREES:g} s without a poll")
    await consumer.close()
    left: dict[str, float] = {}
    try:
        left = await consumer.metrics()
    except Refused as error:
        judge.equal("closed", error.name, "how metrics of a closed client are refused")
    judge.equal([], sorted(left.keys() & wanted.keys()), "metrics of a closed client")
