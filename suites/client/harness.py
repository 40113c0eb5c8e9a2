"""What a check of a client works with: a cluster behind a tap, an adapter, queues, consumers."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import Any, TypeVar

from fixtures.clients.adapter import Adapter, AdapterFault, AdapterHang, Refused, Unsupported
from fixtures.clients.cluster import Topic, attempts
from fixtures.clients.handle import Delivery, Handle, Settled
from fixtures.hostile.script import ScriptStep
from fixtures.hostile.tap import Tap
from fixtures.interface.info import ClusterInfo
from fixtures.proxies.exchange import Exchange
from fixtures.wire.frame import Transcript
from fixtures.wire.schema import Schemas
from spec.adapter import Capability
from spec.verdict import Undecided
from suites.broker.share import Queue, Share, world
from suites.client.wire import HEARTBEAT, SHARE, acquired

T = TypeVar("T")

ARRIVES = 15.0
"""Seconds within which what must come to a client has to come; joining takes most of it."""

READY = 40.0
"""Seconds granted to what a check begins with and judges nothing by: slow machines need them."""

HASTE = 12
"""Attempts in a row, each sent as soon as the one before had failed, that show a loop."""

FLOOD = 60
"""Requests of one kind within a second that nobody who waits between attempts comes to.

A client that backs off by Kafka's default sends ten at most, one that spins sends thousands.
"""


class Harness:
    """A cluster seen through a tap, and the client under test in front of it."""

    def __init__(self, share: Share, tap: Tap, adapter: Adapter, rng: Random) -> None:
        self.share = share
        self.admin = share.admin
        self.tap = tap
        self.adapter = adapter
        self.rng = rng
        self._handles: list[Handle] = []

    # ------------------------------------------------------------------ making things

    async def queue(self, records: int | Sequence[bytes] = 0, **options: Any) -> Queue:
        """Return a topic with records, and a group that reads it from the beginning."""
        return await self.share.queue(records, **options)

    async def queue_of(self, topic: Topic, **group_config: str) -> Queue:
        """Return a new group that reads a topic from its beginning."""
        group = self.share.cluster.fresh_name("g")
        config = {"share.auto.offset.reset": "earliest", **group_config}
        await self.admin.group_config(group, config)
        return Queue(share=self.share, topic=topic, group=group)

    @property
    def acking(self) -> str:
        """The mode in which this client takes acknowledgements of single records."""
        return "explicit" if self.adapter.has(Capability.EXPLICIT) else "implicit"

    @property
    def has_implicit(self) -> bool:
        """Whether polling accepts what the last poll gave, for a client that is asked to."""
        return self.adapter.has(Capability.IMPLICIT) or self.adapter.has(Capability.MIXED)

    @property
    def has_explicit(self) -> bool:
        """Whether the client accepts nothing that it was not told to."""
        return self.adapter.has(Capability.EXPLICIT)

    def handle(self) -> Handle:
        """Return a consumer that is not open yet."""
        name = f"c-{self.rng.getrandbits(40):010x}"
        made = Handle(self.adapter, name)
        self._handles.append(made)
        return made

    async def consumer(
        self, queue: Queue | str, *topics: str, mode: str | None = None, **config: Any
    ) -> Handle:
        """Return an open consumer, subscribed to the queue's topic or to ``topics``."""
        made = self.handle()
        group = queue if isinstance(queue, str) else queue.group
        await made.open(self.config(made, group, mode=mode, **config))
        named = topics or ((queue.topic.name,) if isinstance(queue, Queue) else ())
        if named:
            await made.subscribe(*named)
        return made

    def config(self, handle: Handle, group: str | None, **config: Any) -> dict[str, Any]:
        """Return what to open a consumer with: what is None is left out."""
        chosen = {
            "bootstrap": self.tap.bootstrap,
            "client_id": handle.name,
            "max_wait_ms": 300,
            **config,
        }
        chosen["mode"] = chosen.get("mode") or self.acking
        if self.adapter.has(Capability.CALLBACK):
            chosen.setdefault("callback", "record")
        return {**{k: v for k, v in chosen.items() if v is not None}, "group": group}

    # ------------------------------------------------------------------ doing things

    async def take(
        self,
        handle: Handle,
        number: int,
        *,
        kind: str | None = None,
        within: float = READY,
        **options: Any,
    ) -> list[Delivery]:
        """Poll until at least ``number`` records came; acknowledge them if ``kind`` says how.

        Whoever holds records back in explicit mode may not poll again, so that ``kind`` is needed
        when the records come in several polls.

        Raises:
            Undecided: they did not come in time.
        """
        got: list[Delivery] = []
        async for _ in attempts(within):
            found = await handle.poll(0.5, **options)
            if found and kind:
                await handle.acknowledge(found, kind)
            got += found
            if len(got) >= number:
                return got
        raise Undecided(
            f"{len(got)} of {number} records reached the application within {within:g} s"
        )

    async def comes(
        self,
        handle: Handle,
        number: int,
        within: float = 8.0,
        kind: str | None = None,
        **options: Any,
    ) -> list[Delivery]:
        """Poll until so many records came, and return what did; the caller judges it."""
        got: list[Delivery] = []

        async def poll() -> bool:
            found = await handle.poll(0.5, **options)
            if found and kind:
                await handle.acknowledge(found, kind)
            got.extend(found)
            return len(got) >= number

        await self.eventually(poll, within)
        return got

    async def polls_until(
        self,
        handle: Handle,
        done: Callable[[], object],
        within: float = ARRIVES,
        got: list[Delivery] | None = None,
    ) -> list[Delivery]:
        """Poll and accept until ``done`` is true; the caller judges whether it became so.

        Errors that a poll passes on are the client's right, and it goes on. The records are added
        to ``got`` as they come.
        """
        got = [] if got is None else got
        async for _ in attempts(within):
            with contextlib.suppress(Refused):
                found = await handle.poll(0.3)
                got += found
                if found:
                    await handle.acknowledge(found)
            if done():
                break
        return got

    async def arrival(
        self,
        handle: Handle,
        enough: Callable[[Delivery], bool] = lambda _: True,
        within: float = ARRIVES,
    ) -> list[Delivery]:
        """Poll and accept until such a record came; return what came, the caller judges it."""
        got: list[Delivery] = []
        await self.polls_until(handle, lambda: any(map(enough, got)), within, got)
        return got

    async def polled_for(self, handle: Handle, seconds: float) -> tuple[list[Delivery], list[str]]:
        """Poll and accept for some time; return the records, and the names of the errors."""
        got: list[Delivery] = []
        errors: list[str] = []
        async for left in attempts(seconds):
            try:
                found = await handle.poll(min(0.3, left))
                if found:
                    got += found
                    await handle.acknowledge(found)
            except Refused as error:
                errors.append(error.name)
        return got, errors

    async def settle(self, handle: Handle, seconds: float = 10.0) -> None:
        """Get acknowledgements sent by whatever way the client has, and wait until they are."""
        if self.adapter.has(Capability.COMMIT_SYNC):
            await handle.commit_sync(seconds)
        else:
            await handle.commit_async()

    async def subscribing(self, handle: Handle, topic: str) -> str:
        """Subscribe; return the error of a client that joins then and there and is refused."""
        try:
            await handle.subscribe(topic)
        except Refused as error:
            return error.name
        return ""

    async def outcome(self, handle: Handle, since: int, within: float = 8.0) -> list[Settled]:
        """Get acknowledgements sent, and return what the client says became of them.

        The result of a synchronous commit counts, or else what the callback is told. ``since`` is
        how much it had been told before the acknowledging: some clients do not wait for a commit.
        """
        if self.adapter.has(Capability.COMMIT_SYNC):
            told = await handle.commit_sync(within)
            if told:
                return told
        elif self.adapter.has(Capability.COMMIT_ASYNC):
            await handle.commit_async()
        async for _ in attempts(within):
            told = handle.settled[since:]
            if told:
                return told
            with contextlib.suppress(Refused):
                found = await handle.poll(0.2)
                if found:
                    # They came again: what is told from here on is about another delivery.
                    told = handle.settled[since:]
                    await handle.acknowledge(found, "release")
                    return told
        return handle.settled[since:]

    @contextlib.asynccontextmanager
    async def meanwhile(self, work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
        """Do something beside the check, which takes it down with it if it ends early."""
        task = asyncio.create_task(work)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def play(self, *steps: Mapping[str, Any]) -> list[ScriptStep]:
        """Let the tap play steps of a script from now on."""
        return self.tap.script.add(*steps)

    # ------------------------------------------------------------------ seeing things

    def seen(self, handle: Handle | None = None, *apis: str) -> list[Exchange]:
        """Return a consumer's exchanges of some APIs, or all consumers'."""
        chosen = self.tap.of(*(apis or SHARE))
        if handle is None:
            return chosen
        groups = self.members(handle)
        return [one for one in chosen if one.request.get("member_id") in groups]

    @staticmethod
    def brought(*exchanges: Exchange) -> set[tuple[int, int]]:
        """Return partition and offset of everything that answers said was acquired."""
        return {(one.partition, one.offset) for one in acquired(exchanges)}

    def heartbeats(self, handle: Handle) -> list[Exchange]:
        """Return a consumer's heartbeats."""
        return self.seen(handle, HEARTBEAT)

    def members(self, handle: Handle) -> set[str]:
        """Return the member ids that a consumer has used."""
        return {
            str(one.request["member_id"])
            for one in self.tap.of(HEARTBEAT, *SHARE)
            if one.client_id == handle.name or one.client_id.startswith(f"{handle.name}-")
        }

    async def eventually(self, ask: Callable[[], Awaitable[bool]], within: float = ARRIVES) -> bool:
        """Do something until it says that it is done; return whether it came to that."""
        async for _ in attempts(within):
            if await ask():
                return True
        return False

    async def timed(self, work: Awaitable[Any]) -> float:
        """Return how many seconds something took, whether it failed, or was given up as hanging."""
        began = time.monotonic()
        with contextlib.suppress(Refused, AdapterHang):
            await work
        return time.monotonic() - began

    @property
    def strict(self) -> str | None:
        """The acquire mode that takes no more than asked for, if the client has it."""
        return "record_limit" if self.adapter.has(Capability.RECORD_LIMIT) else None

    async def until(self, look: Callable[[], object], within: float = ARRIVES) -> bool:
        """Return whether something came true within some seconds."""
        async for _ in attempts(within):
            if look():
                return True
        return bool(look())

    async def close(self) -> None:
        """Close what is open."""
        if not self.adapter.running:
            return
        for handle in self._handles:
            with contextlib.suppress(Refused, Unsupported, AdapterFault):
                limit = 2.0 if self.adapter.has(Capability.CLOSE_TIMEOUT) else None
                await handle.close(limit, within=10.0)


class Spoken(Transcript):
    """What was said to the adapter while a check ran, as one of its transcripts."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__()
        self._adapter = adapter
        self._from = len(adapter.lines)

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
    """Put a tap in front of a cluster for one check; its frames are kept in case it fails."""
    async with world(info, rng, [], schemas) as share:
        brokers = dict(share.cluster.brokers)
        tap = Tap(schemas=schemas, brokers=brokers, security=info.security)
        transcripts += [tap.transcript, Spoken(adapter)]
        await tap.start()
        try:
            harness = Harness(share, tap, adapter, rng)
            yield harness
            tap.script.clear()
            await harness.close()
        finally:
            await tap.stop()
