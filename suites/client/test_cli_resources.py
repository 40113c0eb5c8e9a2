"""What a client takes of its machine: processor and memory, in states that last."""

import math
from collections.abc import Mapping
from functools import partial

import psutil

from suites.client.kit import *

MEMORY = 300  # MiB by which a client may grow for a response of a few hundred bytes.
BUSY = 0.15  # Of a processor. Clients that wait take 0.02, those that spin 0.3 and more.
WARM = 3.0  # Seconds in which a runtime compiles what a client does all the time.
MEASURED = 6.0
WINDOWS = 3  # In one of them a runtime comes to rest that a busy machine kept from compiling.


SHAPES = ("backwards", "2^31", "2^32", "2^62", "16 of 2^28")
NUMBERS = {f"a range {shape} was acquired": {"do": "ranges", "shape": shape} for shape in SHAPES}
COUNTED = ("topics", "partitions", "ranges", "endpoints")
NUMBERS |= {f"2^31 - 1 {what}": {"do": "frame", "flaw": f"too many {what}"} for what in COUNTED}


@check("CLI-130", timeout=120)
@pytest.mark.parametrize("number", NUMBERS)
async def test_impossible_number(doomed: Harness, judge: Judge, number: str) -> None:
    queue, consumer = await doomed.consuming(1, settle=True)
    before, most, got = memory(doomed.adapter.pid), 0, set[int]()
    after = 0

    async def watch() -> None:
        nonlocal most
        async for _ in paced(0.02):
            most = max(most, memory(doomed.adapter.pid) - before)
            if most > MEMORY:
                await doomed.adapter.crash()

    said = f"{number}, by a response with one record"
    async with doomed.meanwhile(watch()):
        try:
            await _given(doomed, queue, consumer, NUMBERS[number])
            if doomed.adapter.has(Capability.COMMIT_SYNC):
                await refusal(doomed.settle(consumer, 3.0))
            after = await queue.produce([b"after"])
            for each in (consumer, await doomed.consumer(queue)) * 2:
                got |= {*(await doomed.arrival(each, after, within=6.0)).offsets}
                if after in got:
                    break
        except (AdapterDied, AdapterHang) as error:
            if isinstance(error, AdapterHang):
                doomed.excuse(f"{error}")
            judge.holds(most > MEMORY, f"{said}: {error}")
    judge.holds(most <= MEMORY, f"{said}: the client grew by {most} MiB, {MEMORY} at most")
    if not _is_told(doomed.seen(consumer)):
        raise Undecided(f"{number}: in no response that the client got")
    judge.holds(after in got, f"{said}: the next record did not come, also to another consumer")


async def _given(
    doomed: Harness, queue: Queue, consumer: Handle, number: Mapping[str, str]
) -> None:
    """Put a number into a response, of ranges into one that has a record."""
    times = 0 if number["do"] == "ranges" else 1  # some clients send acknowledgements by fetches
    for _ in range(3):
        (step,) = doomed.play(
            {"on": "ShareFetch", "when": {"min_epoch": 0}, "times": times, **number}
        )
        if not times:  # a fetch that is under way would take the record past the script
            await doomed.polls_until(consumer, partial(getattr, step, "taken"), 6.0)
        await queue.produce([b"odd"])
        told = await doomed.polls_until(consumer, lambda: _is_told(doomed.seen(consumer)), 6.0)
        doomed.tap.script.drop([step])
        if told:
            return


def _is_told(seen: Sequence[Exchange]) -> bool:
    """Tell whether a response with the number was sent: of ranges one that has a record."""
    told = [one for one in seen if one.scripted and one.responded < math.inf]
    parts = [
        p for o in told for t in (o.response or {}).get("responses", []) for p in t["partitions"]
    ]
    return any(o.scripted.startswith("frame") for o in told) or any(
        part["acquired_records"] for part in parts
    )


STATES: dict[str, list[str]] = {
    "nothing to do": [],
    "heartbeats unanswered": [HEARTBEAT],
    "fetches unanswered": list(SHARE),
    "metadata unanswered": ["Metadata", "FindCoordinator"],
    "all unanswered": [*SHARE, HEARTBEAT, "Metadata", "FindCoordinator"],
}


@check("CLI-131", timeout=90)
@pytest.mark.parametrize("state", [*STATES, "no brokers"])
async def test_waits_at_rest(doomed: Harness, judge: Judge, state: str) -> None:
    _, consumer = await doomed.consuming(3, settle=True)
    await doomed.polls(consumer, within=WARM)
    if state == "no brokers":
        doomed.tap.disappear()
    elif STATES[state]:
        doomed.play({"on": STATES[state], "do": "drop", "applied": False, "times": 0})
    process = psutil.Process(doomed.adapter.pid)
    await doomed.polls(consumer, within=1.5)
    for _ in range(WINDOWS):
        began, before = time.monotonic(), _seconds(process)
        await doomed.polls(consumer, within=MEASURED, seconds=1.0)
        used = (_seconds(process) - before) / (time.monotonic() - began)
        if used <= BUSY:
            break
    judge.holds(used <= BUSY, f"{state}: {used:.2f} of a processor, {BUSY} at most")


def _seconds(process: psutil.Process) -> float:
    told = process.cpu_times()
    return float(told.user + told.system)
