"""The tools that consume as members of share groups, and the one that prints the share state."""

import json

from fixtures.clients.tools import *
from suites.broker.kit import *

pytestmark = pytest.mark.programs

FORMATTER = "org.apache.kafka.tools.consumer.group.share.ShareGroupStateMessageFormatter"
COUNT = 9  # Records for a tool to consume.
KINDS = ("ShareSnapshot", "ShareUpdate")  # By the number that stands in the key of a state record.


async def _pinned(env: Env) -> tuple[Queue, float]:
    """Return a queue whose record 0 is held by a consumer of ours, and since when (monotonic).

    Above a start offset that cannot move the store keeps what became of each record: the others
    were released once. Once the lock has run out, record 0 is anybody's.
    """
    lock = env.bounds.longest_lock  # by its end a tool has to be through with everything
    queue, consumer = await env.with_consumer(COUNT + 1, batches=COUNT + 1, lock_ms=lock)
    since = time.monotonic()
    await consumer.acquire(COUNT + 1)
    await consumer.acked(release(1, COUNT))
    return queue, since


async def _states(queue: Queue) -> set[tuple[int, int]]:
    """Return delivery state and count of what is stored of the records above the pin."""
    state = await read_state(queue)
    return {(b.delivery_state, b.delivery_count) for b in state.state_batches}


def _json(run: ToolRun) -> list[dict[str, Any]]:
    """Return the objects that a tool printed, which may stand on one line."""
    found, text = [], "".join(run.lines)
    while (start := text.find("{")) >= 0:
        value, end = json.JSONDecoder().raw_decode(text, start)
        found.append(value)
        text = text[end:]
    return found


@check("ADM-44", timeout=400)
@pytest.mark.parametrize("how", ["accept", "release", "reject"])
async def test_console_share_consumer(env: Env, judge: Judge, how: str) -> None:
    tools = await Tools.of(env.cluster.info)
    queue, since = await _pinned(env)
    told = [] if how == "accept" else [f"--{how}"]
    common = ["--topic", queue.topic.name, "--max-messages", str(COUNT), "--timeout-ms", "60000"]
    common += ["--property", "print.delivery=true"]

    run = await tools.run(CONSOLE_SHARE_CONSUMER, *common, "--group", queue.group, *told)

    if not run.lines:
        raise Undecided(f"nothing came of {run}")
    expected = [f"Delivery:2\trecord {number}" for number in range(1, COUNT + 1)]
    if (printed := [line for line in run.lines if "deprecated" not in line]) != expected:
        in_time(since, env.bounds.longest_lock)
    judge.equal(expected, printed, f"records printed by {tools.version}")
    state = {"accept": ACKNOWLEDGED, "release": AVAILABLE, "reject": ARCHIVED}[how]
    seen: set[tuple[int, int]] = set()
    async for _ in attempts():
        seen = await _states(queue)
        if seen == {(state, 2)}:
            break
        in_time(since, env.bounds.longest_lock)
    judge.equal({(state, 2)}, seen, f"states and counts stored after {how}")


@check("ADM-44", timeout=400)
async def test_counting_consumers(env: Env, judge: Judge) -> None:
    tools = await Tools.of(env.cluster.info)
    (fast, since), (sure, _) = await _pinned(env), await _pinned(env)

    perf, verifiable = await asyncio.gather(
        tools.run(
            SHARE_CONSUMER_PERF,
            *("--topic", fast.topic.name, "--group", fast.group),
            *("--messages", str(COUNT), "--timeout", "60000"),
        ),
        tools.run(
            VERIFIABLE_SHARE_CONSUMER,
            *("--topic", sure.topic.name, "--group-id", sure.group),
            *("--max-messages", str(COUNT), "--acknowledgement-mode", "sync"),
        ),
    )

    events = _json(verifiable)
    if not events or not perf.lines:
        raise Undecided(f"nothing came of {verifiable} or of {perf}")
    states = await _states(sure)
    consumed = sum(e["count"] for e in events if e["name"] == "records_consumed")
    acked = sum(e["count"] for e in events if e["name"] == "offsets_acknowledged" and e["success"])
    columns = [line.split(",") for line in perf.lines]
    counts = [row[5].strip() for row in columns if len(row) > 5 and row[5].strip().isdigit()]
    twice = {(ACKNOWLEDGED, 2)}
    if (consumed, acked, states, counts) != (COUNT, COUNT, twice, [str(COUNT)]):
        in_time(since, env.bounds.longest_lock)
    judge.equal(COUNT, consumed, f"records consumed by {verifiable}")
    judge.equal(COUNT, acked, f"records acknowledged by {verifiable}")
    judge.equal(twice, states, "stored by the verifiable one")
    judge.equal([str(COUNT)], counts, f"records counted by {perf}")


@check("ADM-45", timeout=400)
async def test_state_formatter(env: Env, judge: Judge) -> None:
    tools = await Tools.of(env.cluster.info)
    queue = await env.queue()
    trail = await Store(env).of(queue).trail()
    await use(queue)
    await delete_group(env, queue.group)
    async for _ in attempts():
        if any(record.tombstone for record in await trail.records()):
            break
    end = await env.admin.log_offset(trail.topic, partition=trail.partition)

    run = await tools.run(
        CONSOLE_CONSUMER,
        *("--topic", trail.topic.name, "--partition", str(trail.partition)),
        *("--offset", str(trail.since), "--max-messages", str(end - trail.since)),
        *("--timeout-ms", "60000"),
        *("--formatter", FORMATTER),
    )

    if not run.lines:
        raise Undecided(f"nothing came of {run}")
    records = [record for record in await trail.records() if record.offset < end]
    expected = [(record.kind, _plain(record.value)) for record in records]
    printed = [
        (KINDS[found["key"].get("type", found["key"].get("version"))], found["value"])
        for found in _json(run)
        if found["key"]["data"]["groupId"] == queue.group
    ]
    judge.equal([k for k, _ in expected], [k for k, _ in printed], f"kinds, by {run}")
    for (_, value), (kind, said) in zip(expected, printed, strict=True):
        seen = None if said is None else {k: said["data"].get(k) for k in value or {}}
        judge.equal(value, seen, f"value of a {kind}")


def _plain(value: Any) -> dict[str, int] | None:
    """Return the plain fields of a state record's value under the names the formatter has."""
    if value is None:
        return None
    names = {
        "snapshotEpoch": "snapshot_epoch",
        "leaderEpoch": "leader_epoch",
        "startOffset": "start_offset",
    }
    return {name: int(getattr(value, field)) for name, field in names.items()}
