"""Records whose segments are in remote storage only (KIP-405), which a plug-in of ours plays."""

from pathlib import Path

from suites.broker.brokers import plugged
from suites.broker.kit import *

EARLIEST_LOCAL = -4
"""What ListOffsets calls the first offset that is still on the leader's own disk."""

MOVED_WITHIN = 40.0  # Seconds until old segments are copied and their local files are gone.
RECORDS = 12
PLUGIN = "RemoteMemory"
PROPERTIES = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": PLUGIN,
    "remote.log.metadata.manager.listener.name": "INTERNAL",
    "remote.log.manager.task.interval.ms": "300",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "1",
    "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
    "log.retention.check.interval.ms": "500",
    # A flush that comes later than this after its segment went takes the whole broker down, and on
    # a crowded machine flushes come late. Segments go here as soon as they are copied.
    "log.segment.delete.delay.ms": "120000",
    # Longer than a slow read, and than a fetch waits that brings nothing.
    "remote.fetch.max.wait.ms": "10000",
}
TIERED = {
    "remote.storage.enable": "true",
    "segment.ms": "100",
    "retention.ms": "-1",
    "local.retention.ms": "500",
}


@pytest.fixture
async def tiered(
    run_options: RunOptions, rng: Random, transcripts: list[Transcript], tmp_path: Path
) -> AsyncIterator[Env]:
    """A world of its own on one broker with remote storage, with its switches in ``tmp_path``."""
    properties = PROPERTIES | {"rsm.config.switches": str(tmp_path)}
    async with plugged(run_options, PLUGIN, properties, rng, transcripts) as env:
        yield env


async def _tiered(queue: Queue) -> tuple[Compacted, int]:
    """Write segments until old ones are remote only; return the first offset that is local."""
    written, local = Compacted(queue), 0
    names = keys(*range(RECORDS))
    await written.write(*(names[at : at + 2] for at in range(0, RECORDS, 2)))
    admin = queue.env.admin
    look = partial(admin.log_offset, queue.topic, EARLIEST_LOCAL)
    local = await poll(look, lambda local: local > 4, MOVED_WITHIN, pause=0.1)
    if local <= 4 or await admin.log_offset(queue.topic, EARLIEST):
        raise Undecided(f"only the records below {local} were moved to remote storage")
    return written, local


@check("ACQ-71", meets=ACROSS_BATCHES, solo={}, timeout=120)
async def test_remote_records_are_acquired(tiered: Env, judge: Judge) -> None:
    queue = await tiered.queue(topic_config=TIERED, lock_ms=60_000)
    written, local = await _tiered(queue)

    consumer = await queue.consumer()
    caught = await written.next_catch(consumer)
    judge.equal(list(range(RECORDS)), caught.offsets, f"offsets acquired, remote below {local}")
    parts = [part for response in caught.responses for part in response.parts]
    came = [record for part in parts for record in part.acquired_records()]
    values = {record.offset: record.value for record in came if record.offset < RECORDS}
    judge.equal(dict(enumerate(keys(*range(RECORDS)))), values, "values that came along")
    await consumer.acked(accept(0, RECORDS - 1))
    await rewritten(consumer, await written.fresh())
    judge.equal(RECORDS, await queue.spso(RECORDS), "start offset with all accepted")
    judge.saw(remote=local)


@check("DLQ-12", feature="dead-letters", meets=ACROSS_BATCHES, solo={}, timeout=120)
async def test_remote_records_are_copied(tiered: Env, judge: Judge) -> None:
    box = await boxed(tiered, copy=True, topic_config=TIERED, lock_ms=60_000)
    _, local = await _tiered(box.queue)

    consumer = await box.queue.holder(RECORDS)
    await consumer.acked(reject(0, RECORDS - 1))
    letters = await box.arrived(range(RECORDS))
    content = {letter.offset: (letter.record.key, letter.record.value) for letter in letters}
    expected = {offset: (name, name) for offset, name in enumerate(keys(*range(RECORDS)))}
    if content.get(RECORDS - 1) != expected[RECORDS - 1]:
        raise Undecided("not even a record that is local, the last one, was copied")
    judge.equal(expected, content, f"key and value of letters, remote below {local}")
    judge.saw(remote=local)


@check("ACQ-72", meets=ACROSS_BATCHES, solo={}, timeout=180)
async def test_remote_reads_that_fail(tiered: Env, tmp_path: Path, judge: Judge) -> None:
    down = await tiered.queue(topic_config=TIERED, lock_ms=60_000)
    slow = replace(down, topic=await tiered.admin.create_topic(configs=TIERED))
    near = replace(down, topic=await tiered.admin.create_topic())
    await gather_all(_tiered(queue) for queue in (down, slow))
    await near.produce(RECORDS)
    (off := tmp_path / f"{down.topic.name}.down").touch()
    (tmp_path / f"{slow.topic.name}.slow").touch()

    topics = [queue.topic for queue in (down, slow, near)]
    member = await tiered.member(down.group, *topics)
    session = await member.session(down.topic.leaders[0])
    got = {topic.id: Counter[int]() for topic in topics}
    named = [(topic, 0) for topic in topics]
    expected = dict.fromkeys(range(RECORDS), 1)

    async def until(*complete: Topic) -> None:
        async for _ in attempts(3 * WITHIN):
            response = await session.fetch(*named, max_wait_ms=300)
            named.clear()
            judge.equal("NONE", error_name(response.error), "error of the whole fetch")
            for part in response.parts:
                got[part.topic_id].update(part.counts)
            if all(len(got[topic.id]) >= RECORDS for topic in complete):
                break
        else:
            await demand_bystander(tiered.cluster, near.topic.leaders[0], f"only {got} came")
        for topic in complete:
            counts = {o: count for o, count in got[topic.id].items() if o < RECORDS}
            what = f"counts where {off.name} is {off.exists()}"
            await judge_counted(tiered, judge, expected, counts, what)

    await until(slow.topic, near.topic)
    judge.equal({}, got[down.topic.id], "acquired while remote reads fail")
    off.unlink()
    await until(down.topic)
