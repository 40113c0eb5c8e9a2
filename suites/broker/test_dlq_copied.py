"""What a dead letter holds of its source record: nothing by default, key and value on demand."""

from fixtures.clients.deadletters import NAME, DeadLetter
from fixtures.wire.records import Compression, TimestampType
from suites.broker.kit import *

pytestmark = pytest.mark.feature("dead-letters")

PAST = 1_000_000_000_000  # September 2001 in milliseconds.
RECORD_KEYS = (None, b"", b"key", bytes(range(256)))
VALUES = (None, b"", b"value", bytes(reversed(range(256))))
CONTENT = [(key, value) for key in RECORD_KEYS for value in VALUES]
OWN = (("own", b"header"), ("own", None), ("bare", b""))
FOREVER = {"retention.ms": "-1", "message.timestamp.before.max.ms": str(2**63 - 1)}
"""For records that say they are old."""


def _content(letters: list[DeadLetter]) -> dict[int, tuple[bytes | None, bytes | None]]:
    return {letter.offset: (letter.record.key, letter.record.value) for letter in letters}


async def _sources(box: DeadLetterSetup, *codecs: Compression) -> int:
    """Append one batch of every content for each codec; return how many records that makes."""
    admin, topic = box.queue.env.admin, box.queue.topic
    for codec in codecs:
        records = [
            Record(timestamp=PAST, key=key, value=value, headers=OWN) for key, value in CONTENT
        ]
        await admin.append(topic, encode_batch(records, compression=codec))
    return len(CONTENT) * len(codecs)


@check("DLQ-08", fast=True, crossed=AMONG)
async def test_no_copy_by_default(env: Env, judge: Judge) -> None:
    dead = await dead_topic(env)
    queue = await env.queue(group_config={NAME: dead.name}, topic_config=FOREVER)
    box = DeadLetterSetup(queue, dead)
    count = await _sources(box, Compression.NONE)
    await rejecting(box, count)

    content = _content(await box.due(range(count)))
    judge.equal(dict.fromkeys(range(count), (None, None)), content, "key and value of letters")


@check("DLQ-09", crossed=AMONG)
async def test_copies_are_exact(env: Env, judge: Judge) -> None:
    box = await boxed(env, copy=True, topic_config=FOREVER)
    count = await _sources(box, *Compression)
    consumer = await box.queue.holder(count)
    await consumer.acked(reject(0, count - 1))

    content = _content(await box.due(range(count)))
    judge.equal(dict(enumerate(CONTENT * len(Compression))), content, "key and value of letters")
    judge.saw(codecs=len(Compression), copies=count)


CODECS = (Compression.NONE, Compression.GZIP, Compression.ZSTD)
LARGE = [(codec, batches, (1_000, 0)) for codec in CODECS for batches in (1, 3)]
# Sources are larger than their letters by a header that is not copied; and a broker has to read
# more than once, as one read brings a megabyte at the most.
LARGE += [(Compression.NONE, 3, (1_000, 1_000)), (Compression.NONE, 3, (70_000, 0))]


@check("DLQ-09", crossed=AMONG)
@pytest.mark.parametrize("codec, batches, sizes", LARGE)
async def test_copies_of_a_large_batch(
    env: Env, judge: Judge, codec: Compression, batches: int, sizes: tuple[int, int]
) -> None:
    # A batch that was compressed well may hold more than the dead-letter topic takes in one go, and
    # of several batches the last that fits may fit in part.
    (each, own), size = sizes, 39
    limit = 20 * each
    dead = await dead_topic(env, configs={"max.message.bytes": str(limit)})
    box = await boxed(env, dead=dead, copy=True)
    values = [b"%d " % number + bytes(each) for number in range(size)]
    records = [Record(value=value, headers=(("own", bytes(own)),)) for value in values]
    count, sent = size // batches, 0
    for at in range(0, size, count):
        batch = encode_batch(records[at : at + count], compression=codec)
        await env.admin.append(box.queue.topic, batch)
        sent += len(batch)
    consumer = await box.queue.holder(size)
    await consumer.acked(reject(0, size - 1))

    letters = await box.due(range(size))
    content = {one.offset: one.record.value for one in letters}
    differing = sorted(o for o, value in enumerate(values) if content.get(o) != value)
    what = f"copies that are not their source's value, sent by {codec.name} in {sent} bytes"
    judge.equal([], differing, what)
    judge.saw(bytes_sent=sent, bytes_copied=size * each)


@check("DLQ-10", fast=True, crossed=AMONG)
async def test_copies_have_the_headers(env: Env, judge: Judge) -> None:
    box = await boxed(env, copy=True, topic_config=FOREVER)
    count = await _sources(box, Compression.NONE)
    await rejecting(box, count)

    letters = await box.due(range(count))
    without = [letter.offset for letter in letters if not {*OWN} <= {*letter.record.headers}]
    judge.equal([], without, "letters without the source's own header")


@check("DLQ-11", crossed=AMONG, timeout=CLEANED_WITHIN + 60)
async def test_source_that_is_gone(env: Env, judge: Judge) -> None:
    box = await boxed(env, copy=True, lock_ms=env.bounds.longest_lock, topic_config=COMPACTED)
    gapped = Compacted(box.queue)
    await gapped.write(*([name] for name in keys(*range(4))))
    consumer = await box.queue.holder(4)
    await gapped.write(keys(1, 2))
    await gapped.fresh()
    await gapped.until_gone((1, 2))
    await consumer.acked(reject(0, 3))

    content = _content(await box.arrived(range(4)))
    if {content.get(0), content.get(3)} & {None, (None, None)}:
        raise Undecided(f"what is still there is not copied: {content}")
    gone = {offset: content.get(offset) for offset in (1, 2)}
    judge.equal(dict.fromkeys((1, 2), (None, None)), gone, "key and value of letters, being gone")


@check("DLQ-13", fast=True, crossed=AMONG)
@pytest.mark.parametrize("copy", [False, True], ids=["plain", "copy"])
async def test_time_of_writing(env: Env, judge: Judge, copy: bool) -> None:
    box = await boxed(env, copy=copy, topic_config=FOREVER)
    # The broker that leads the source partition tells its time by what it stamps.
    stamped = {"message.timestamp.type": "LogAppendTime"}
    node = box.queue.topic.leaders[0]
    topic = await env.admin.create_topic(assignments=[[node]], configs=stamped)

    async def clock() -> int:
        await env.admin.produce(topic, 1)
        last = (await read_log(env, topic))[-1]
        if last.timestamp_type is not TimestampType.LOG_APPEND_TIME:
            raise Undecided("the broker does not stamp records")
        return last.max_timestamp

    count = await _sources(box, Compression.NONE)
    before = await clock()
    await rejecting(box, count)
    letters = await box.due(range(count))
    after = await clock()

    times = {letter.record.timestamp for letter in letters}
    within = before <= min(times) and max(times) <= after
    sentence = f"letters say {min(times)} to {max(times)}, written between {before} and {after}"
    judge.holds(within, sentence)
    judge.saw(letters=len(letters))
