"""What a check of a client works with: a cluster behind a tap, an adapter, queues, consumers."""

import asyncio
import contextlib
import inspect
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

import psutil

from fixtures.clients.adapter import Adapter, AdapterFault, AdapterHang, Refused, Unsupported
from fixtures.clients.cluster import Topic, attempts
from fixtures.clients.handle import Delivery, Handle, Settled
from fixtures.clients.member import AckType
from fixtures.hostile.script import ScriptStep
from fixtures.hostile.tap import Tap
from fixtures.interface.info import ClusterInfo
from fixtures.machine.loops import LoopDelay
from fixtures.proxies.exchange import Exchange
from fixtures.targets import Target, TargetOptions, open_target, started
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.adapter import Capability
from spec.verdict import Undecided
from suites.broker.env import Env, Queue, open_env
from suites.client.account import Account, account
from suites.client.wire import HEARTBEAT, SHARE, Acked, acked

T = TypeVar("T")
ARRIVES = 15.0  # Seconds within which what must come has to come; joining takes most of it.
READY = 40.0  # Seconds for what a check begins with, and judges nothing by: machines are slow.
STARVED = 0.1  # More of the time on a busy machine excuses what did not come in time.
HASTE = 12  # Attempts in a row, each sent as soon as the one before had failed, that show a loop.

# Requests of one kind within a second that nobody who waits between attempts comes to. A client
# that backs off by Kafka's default sends ten at most, one that spins sends thousands.
FLOOD = 60

# Options of a queue that a check asks for together with its consumer.
QUEUE_OPTIONS = ("batches", "group_config", "lock_ms", "partitions", "reset")

# The highest delivery count limit that the hostile broker may allow a group. Behind a scripted
# error brokers have acquired records, of which the client does not hear. One that opens a new
# session after each error uses up a delivery of them each time.
MOST_DELIVERIES = 25


def hostile_target() -> Target:
    allowed = {"group.share.max.delivery.count.limit": str(MOST_DELIVERIES)}
    return open_target("reference", TargetOptions(brokers=3, properties=allowed))


@contextlib.contextmanager
def hostile_broker() -> Iterator[tuple[ClusterInfo, Schemas]]:
    with started(hostile_target()) as target:
        yield target.info, Schemas.from_jar(target.info.schema_jar)


class AdapterProcess:
    """The adapter of a client; another process takes its place when it is gone."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self._starting = asyncio.Lock()
        self._current: Adapter | None = None

    async def running(self) -> Adapter:
        async with self._starting:
            if self._current is None or not self._current.running:
                await self.stop()
                made = Adapter(self.command)
                try:
                    await made.start()
                except BaseException:
                    # No check may judge a client that did not say who it is and what it can do.
                    await made.stop()
                    raise
                self._current = made
            return self._current

    async def stop(self) -> None:
        if self._current is not None:
            await self._current.stop()
            self._current = None


async def refusal(call: Awaitable[object]) -> str:
    try:
        await call
    except Refused as error:
        return error.name
    return ""


class Records(list[Delivery]):
    @property
    def offsets(self) -> list[int]:
        return [record.offset for record in self]


@dataclass(slots=True)
class Polled:
    records: Records = field(default_factory=Records)
    errors: list[Refused] = field(default_factory=list)

    @property
    def offsets(self) -> list[int]:
        return self.records.offsets

    @property
    def error_names(self) -> list[str]:
        return [error.name for error in self.errors]


class Harness:
    def __init__(self, env: Env, tap: Tap, adapter: Adapter, rng: Random) -> None:
        self.env, self.admin, self.tap = env, env.admin, tap
        self.adapter, self.rng = adapter, rng
        self.delay = LoopDelay()
        self._handles: list[Handle] = []

    # ------------------------------------------------------------------ making things

    async def queue(self, records: int | Sequence[bytes] = 0, **options: Any) -> Queue:
        return await self.env.queue(records, **options)

    async def queue_of(self, topic: Topic, records: int) -> Queue:
        group = self.env.cluster.fresh_name("g")
        await self.admin.group_config(group, {"share.auto.offset.reset": "earliest"})
        queue = Queue(env=self.env, topic=topic, group=group)
        await queue.produce(records)
        return queue

    @property
    def acking(self) -> str:
        return "explicit" if self.adapter.has(Capability.EXPLICIT) else "implicit"

    @property
    def has_implicit(self) -> bool:
        return self.adapter.has(Capability.IMPLICIT) or self.adapter.has(Capability.MIXED)

    @property
    def strict(self) -> str | None:
        return "record_limit" if self.adapter.has(Capability.RECORD_LIMIT) else None

    @property
    def close_limit(self) -> float | None:
        return 2.0 if self.adapter.has(Capability.CLOSE_TIMEOUT) else None

    def handle(self) -> Handle:
        made = Handle(self.adapter, f"c-{self.rng.getrandbits(40):010x}")
        self._handles.append(made)
        return made

    def config(self, handle: Handle, group: str | None, **config: Any) -> dict[str, Any]:
        usual = {"bootstrap": self.tap.bootstrap, "client_id": handle.name, "max_wait_ms": 300}
        chosen = usual | config
        chosen["mode"] = chosen.get("mode") or self.acking
        if self.adapter.has(Capability.CALLBACK):
            chosen.setdefault("callback", "record")
        return {**{k: v for k, v in chosen.items() if v is not None}, "group": group}

    async def consumer(
        self, queue: Queue | str, *topics: str, mode: str | None = None, **config: Any
    ) -> Handle:
        made = self.handle()
        group = queue if isinstance(queue, str) else queue.group
        await made.open(self.config(made, group, mode=mode, **config))
        named = topics or ((queue.topic.name,) if isinstance(queue, Queue) else ())
        if named:
            await made.subscribe(*named)
        return made

    async def reading(
        self, records: int | Sequence[bytes] | Queue = 0, **options: Any
    ) -> tuple[Queue, Handle]:
        of_queue = {name: options.pop(name) for name in QUEUE_OPTIONS if name in options}
        if not isinstance(records, Queue):
            records = await self.queue(records, **of_queue)
        return records, await self.consumer(records, **options)

    async def ready(self, queue: Queue) -> Handle:
        """Return one more consumer, which fetches: what another lets go of comes to it at once."""
        made = await self.consumer(queue)
        if await self.polls_until(made, lambda: self.seen(made, "ShareFetch"), READY):
            return made
        raise Undecided(f"one more consumer did not come to fetch within {READY:g} s")

    async def holding(
        self,
        records: int | Sequence[bytes] | Queue,
        number: int | None = None,
        kind: str | None = None,
        **options: Any,
    ) -> tuple[Queue, Handle, Records]:
        """Return a queue, a consumer, and records that it took: all that a new queue has.

        Or as many as ``number`` says; ``kind`` says how they are acknowledged, if they are.
        """
        queue, consumer = await self.reading(records, **options)
        all_of_them = records if isinstance(records, int) else 1
        return queue, consumer, await self.take(consumer, number or all_of_them, kind=kind)

    async def consuming(
        self,
        records: int | Sequence[bytes] | Queue,
        number: int | None = None,
        *,
        settle: bool = False,
        **options: Any,
    ) -> tuple[Queue, Handle]:
        queue, consumer, _ = await self.holding(records, number, "accept", **options)
        if settle:
            await self.settle(consumer)
        return queue, consumer

    # ------------------------------------------------------------------ time

    @property
    def now(self) -> float:
        """Seconds, without those that this machine kept us waiting: so it does a client."""
        return time.monotonic() - self.delay.late

    async def attempts(self, within: float) -> AsyncIterator[float]:
        end = self.now + within
        async for _ in attempts(3600.0):
            if (left := end - self.now) <= 0:
                return
            yield left

    def excuse(self, what: str) -> None:
        """Raise Undecided if this machine was so busy that what did not happen may yet."""
        if self.delay.part > STARVED:
            raise Undecided(f"this machine was busy with something else: {what}")

    # ------------------------------------------------------------------ doing things

    async def polls(
        self,
        handle: Handle,
        done: Callable[[Polled], object] = lambda _: False,
        within: float = ARRIVES,
        *,
        kind: str | None = "accept",
        seconds: float = 0.3,
        **options: Any,
    ) -> Polled:
        """Poll until ``done`` is true of what came, or the time is over; the caller judges it.

        What came is acknowledged as ``kind`` says. Errors that a poll passes on are the client's
        right: they are kept, and it goes on.
        """
        polled = Polled()
        async for left in self.attempts(within):
            try:
                found = await handle.poll(min(seconds, left), **options)
                polled.records += found
                if found and kind:
                    await handle.acknowledge(found, kind)
            except Refused as error:
                polled.errors.append(error)
            if done(polled):
                break
        return polled

    async def take(
        self,
        handle: Handle,
        number: int,
        *,
        kind: str | None = None,
        within: float = READY,
        **options: Any,
    ) -> Records:
        """Poll until at least ``number`` records came; acknowledge them if ``kind`` says how.

        Whoever holds records back in explicit mode may not poll again, so that ``kind`` is needed
        when the records come in several polls. It is Undecided if they do not come in time.
        """
        polled = await self.comes(handle, number, within, kind, **options)
        if len(polled) < number:
            came = f"{len(polled)} of {number} records"
            raise Undecided(f"{came} reached the application within {within:g} s")
        return polled

    async def comes(
        self,
        handle: Handle,
        number: int,
        within: float = 8.0,
        kind: str | None = None,
        *,
        seconds: float = 0.5,
        **options: Any,
    ) -> Records:
        def done(seen: Polled) -> bool:
            return bool(seen.errors) or len(seen.records) >= number

        polled = await self.polls(handle, done, within, kind=kind, seconds=seconds, **options)
        for error in polled.errors:
            raise error
        return polled.records

    async def arrival(
        self, handle: Handle, offset: int | None = None, within: float = ARRIVES
    ) -> Polled:
        return await self.polls(
            handle, lambda seen: seen.records if offset is None else offset in seen.offsets, within
        )

    async def polls_until(self, handle: Handle, ask: Callable[[], T], within: float = ARRIVES) -> T:
        await self.polls(handle, lambda _: ask(), within)
        return ask()

    async def meets(self, handle: Handle, *apis: str, since: int = 0) -> list[Exchange]:
        if found := await self.polls_until(
            handle, lambda: [one for one in self.seen(handle, *apis)[since:] if one.scripted]
        ):
            return found
        raise Undecided(f"the client met no scripted response within {ARRIVES:g} s")

    async def starts(self, queue: Queue) -> dict[int, int]:
        try:
            found = await self.admin.share_offsets(queue.group, queue.topic)
        except Undecided:
            return {}
        return {partition: one.start for partition, one in sorted(found.items())}

    async def end(self, handle: Handle, within: float) -> None:
        limit = self.close_limit
        await handle.close(limit, within=within if limit else 60.0)

    async def settle(self, handle: Handle, seconds: float = 10.0) -> None:
        if self.adapter.has(Capability.COMMIT_SYNC):
            await handle.commit_sync(seconds)
        else:
            await handle.commit_async()

    async def outcome(
        self, handle: Handle, records: Sequence[Delivery], within: float = 8.0
    ) -> list[Settled]:
        """Accept records, get that sent, and return what the client says became of it.

        The result of a synchronous commit counts, or else what the callback is told from the
        acknowledging on: some clients do not wait for a commit.
        """
        since, owed = len(handle.settled), {one.partition for one in records}
        await handle.acknowledge(records)
        if self.adapter.has(Capability.COMMIT_SYNC):
            if said := await handle.commit_sync(within):
                return said
        elif self.adapter.has(Capability.COMMIT_ASYNC):
            await handle.commit_async()
        async for _ in self.attempts(within):
            said = handle.settled[since:]
            if owed <= {one.partition for one in said}:
                return said
            with contextlib.suppress(Refused):
                if found := await handle.poll(0.2):
                    said = handle.settled[since:]
                    await handle.acknowledge(found, "release")
                    # What is told from here on would be about another delivery. Others may come
                    # late, and some clients send nothing before all of a fetch is acknowledged.
                    if any(one.place == mine.place for one in found for mine in records):
                        return said
        return handle.settled[since:]

    @contextlib.asynccontextmanager
    async def meanwhile(self, work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        """Do something beside the check, which takes it down with it if it ends early.

        What went wrong with it is raised, where nothing else is.
        """
        task = asyncio.create_task(work)
        try:
            yield task
        finally:
            task.cancel()
            (ended,) = await asyncio.gather(task, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def timed(self, work: Awaitable[T]) -> tuple[float, T | None]:
        """Return the seconds that something took, and its result: None if refused, or hanging."""
        began, result = self.now, None
        with contextlib.suppress(Refused, AdapterHang):
            result = await work
        return self.now - began, result

    async def until(
        self, look: Callable[[], object | Awaitable[object]], within: float = ARRIVES
    ) -> bool:
        async for _ in self.attempts(within):
            seen = look()
            if await seen if inspect.isawaitable(seen) else seen:
                return True
        seen = look()
        return bool(await seen if inspect.isawaitable(seen) else seen)

    def play(self, *steps: Mapping[str, Any]) -> list[ScriptStep]:
        return self.tap.script.add(*steps)

    # ------------------------------------------------------------------ seeing things

    def seen(self, handle: Handle | None = None, *apis: str) -> list[Exchange]:
        chosen = self.tap.of(*(apis or SHARE))
        if handle is None:
            return chosen
        ids = {
            str(one.request["member_id"])
            for one in self.tap.of(HEARTBEAT, *SHARE)
            if f"{one.client_id}-".startswith(f"{handle.name}-")
        }
        return [one for one in chosen if one.request.get("member_id") in ids]

    def heartbeats(self, handle: Handle) -> list[Exchange]:
        return self.seen(handle, HEARTBEAT)

    def leaves(self, handle: Handle) -> list[Exchange]:
        return [one for one in self.heartbeats(handle) if one.request["member_epoch"] == -1]

    def acks(self, handle: Handle, kind: AckType | None = None) -> list[Acked]:
        return [one for one in acked(self.seen(handle)) if kind in (None, one.kind)]

    @property
    def account(self) -> Account:
        return account(self._handles, [*self.tap.exchanges], self.tap.gone, self.delay.late)

    async def close(self) -> None:
        if not self.adapter.running:
            return
        for handle in self._handles:
            with contextlib.suppress(Refused, Unsupported, AdapterFault):
                await handle.close(self.close_limit, within=10.0)


def memory(pid: int) -> int:
    """Return the MiB that a process has in memory; 0 where the machine does not tell."""
    with contextlib.suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss) >> 20
    return 0


class AdapterTranscript(Transcript):
    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self._adapter, self._from = adapter, len(adapter.lines)

    def __str__(self) -> str:
        return self._adapter.transcript(self._from)


@contextlib.asynccontextmanager
async def harness_on(
    info: ClusterInfo,
    schemas: Schemas,
    adapter: Adapter,
    rng: Random,
    transcripts: list[Transcript],
) -> AsyncIterator[Harness]:
    async with open_env(info, rng, [], schemas) as env:
        tap = Tap(schemas=schemas, brokers=dict(env.cluster.brokers), security=info.security)
        transcripts += [tap.transcript, AdapterTranscript(adapter)]
        await tap.start()
        harness = Harness(env, tap, adapter, rng)
        try:
            yield harness
            tap.script.clear()
            await harness.close()
        finally:
            harness.delay.stop()
            await tap.stop()
