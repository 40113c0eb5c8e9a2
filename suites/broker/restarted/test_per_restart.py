"""What the durable state of share-partitions is worth: the broker dies, and what it said holds."""

from spec.model.durable import Coordinator, Durable
from suites.broker.kit import *
from suites.broker.restarted.restarts import Restarts, prunes_soon

LEADER = 5  # The leader epoch that every key was last read with.
IDLE_BATCH = StateBatch(3, 5, ACKNOWLEDGED, 1)
"""The state of a share-partition that nobody writes to any more."""

WRITES = 60  # Writes of each key before the broker dies at the earliest.


@dataclass(slots=True)
class Writer:
    """Writes to one key until the broker dies, and knows what may be stored by then."""

    key: StateKey
    model: Coordinator
    rng: Random
    start: int = 0
    writes: int = 0
    possible: list[Durable] = field(default_factory=list)

    async def begin(self) -> None:
        self.model.initialize(0, 0)
        self.model.read(LEADER)
        await self.key.begun()
        await self.key.read(leader_epoch=LEADER)
        self._certain()

    async def write_on(self) -> None:
        """Write at random for ever; ends with the connection."""
        while True:
            goes_to = self.start + self.rng.choice([0, 0, 1, 3])
            # Of rising counts, so that the last write stands whichever way they are combined.
            batches = rising_batches(self.rng, self.start, self.writes + 1)
            self.model.write(state_epoch=0, leader_epoch=LEADER, start=goes_to, batches=batches)
            if self.model.state is not None:
                self.possible.append(self.model.state)
            await self.key.written(*batches, leader_epoch=LEADER, start=goes_to)
            self.start = goes_to
            self.writes += 1
            self._certain()

    def _certain(self) -> None:
        """Take what was answered for the only thing that may be stored."""
        self.possible = [self.model.state] if self.model.state is not None else []

    def stored(self) -> dict[tuple[str, int, tuple[StateBatch, ...]], str]:
        """Return what may be read: no error, start offset and batches; and why."""
        source = "order: a write without a response may have been stored before the crash, or not"
        return {("NONE", state.start, state.batches): source for state in self.possible}


async def _log_starts(env: Env, key: StateKey) -> list[int]:
    topic, _ = await key.home()
    return [await env.admin.log_offset(topic, EARLIEST, index) for index in topic.partitions]


async def _busy_until_pruned(env: Env, writers: Sequence[Writer], lives: Restarts) -> None:
    """Write to all keys at once until much is written and some pruned; then kill the broker."""
    before = await _log_starts(env, writers[0].key)
    tasks = [asyncio.create_task(writer.write_on()) for writer in writers]
    pruned = False
    async for _ in attempts():
        now = await _log_starts(env, writers[0].key)
        pruned = pruned or any(a > b for a, b in zip(now, before, strict=True))
        enough = all(writer.writes >= WRITES for writer in writers)
        if (pruned and enough) or any(task.done() for task in tasks):
            break
    await lives.die()
    for end in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(end, BaseException) and not isinstance(end, (CallFailed, Undecided)):
            raise end
    if not pruned:
        raise Undecided("nothing was pruned before the crash")


async def _again(env: Env, key: StateKey) -> StateKey:
    """Return the key as the world after the crash knows it, once its coordinator knows the topic.

    In 4.1 a coordinator that has just loaded knows no topic for half a second (finding 042).
    """
    same = StateKey(env, key.group, key.topic_id, key.partition)
    async for _ in attempts():
        if (await same.read()).error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            break
    return same


def _found(part: Struct) -> tuple[str, int, tuple[StateBatch, ...]]:
    return error_name(part.error_code), part.start_offset, joined(part)


@check("PER-07", "PER-37", "PER-44", meets="reload", timeout=120)
async def test_crash_under_load(lives: Restarts, judge: Judge) -> None:
    async with lives.life() as env:
        await prunes_soon(env)
        store = Store(env)
        idle, *busy = await store.keys(6)
        await idle.begun(start=2)
        await idle.written(IDLE_BATCH)
        writers = [Writer(key, Coordinator(store.release), env.rng) for key in busy]
        await asyncio.gather(*(writer.begin() for writer in writers))
        await _busy_until_pruned(env, writers, lives)
    await lives.rise()

    async with lives.life() as env:
        for writer in writers:
            key = await _again(env, writer.key)
            late = await key.write(leader_epoch=LEADER - 1)
            raised = (await key.summary(LEADER)).leader_epoch  # as the Read may raise it again
            seen = _found(await key.read(leader_epoch=LEADER))
            what = f"error, start offset and batches after {writer.writes} writes and a crash"
            judge["PER-44"].one_of(writer.stored(), seen, what)
            judge["PER-37"].one_of(writer.stored(), seen, f"{what}, just after pruning")
            judge["PER-44"].saw(writes=writer.writes)
            fenced = late == "FENCED_LEADER_EPOCH" or raised == LEADER  # else PER-10 is broken
            judge["PER-07"].holds(fenced, f"a former leader's Write after the crash got {late}")
        seen = _found(await (await _again(env, idle)).read())
        judge["PER-37"].equal(("NONE", 2, (IDLE_BATCH,)), seen, "an idle one's state after pruning")


async def _mixed(env: Env) -> tuple[Queue, dict[int, int]]:
    """Return a queue with every kind of record, and what is left of it with delivery counts."""
    queue, consumer = await env.with_holder(24, batches=env.rng.choice([1, 6, 24]))
    prefix = env.rng.randint(1, 4)
    fates = {o: env.rng.choice([accept, reject, release]) for o in range(prefix, 24)}
    fates |= {prefix: release}
    await consumer.acked(accept(0, prefix - 1), *(fate(o) for o, fate in sorted(fates.items())))
    return queue, {offset: 2 for offset, fate in fates.items() if fate is release}


@check("PER-42", meets="reload", timeout=120)
@pytest.mark.parametrize("orderly", [True, False], ids=["shutdown", "crash"])
async def test_restart_keeps_records(lives: Restarts, judge: Judge, orderly: bool) -> None:
    async with lives.life() as env:
        worlds = [await _mixed(env) for _ in range(3)]
        before = [_found(await read_state(queue)) for queue, _ in worlds]
        await lives.die(orderly=orderly)
    await lives.rise()

    async with lives.life() as env:
        for (old, left), kept in zip(worlds, before, strict=True):
            topic = await env.cluster.topic(old.topic.name, 1)
            queue = Queue(env=env, topic=topic, group=old.group)
            last = await queue.produce(1)
            seen = await watch(await queue.consumer(join=False), [*left, last], WITHIN)
            judge.equal(left | {last: 1}, {o: s.count for o, s in seen.items()}, "delivered then")
            judge.equal(kept, _found(await read_state(queue)), "stored state")
