"""A walk through an adapter: every request of the protocol once, before any rule is judged.

``shareproof walk java confluent --target reference`` lets each client consume and settle
some records, asks it for what it says it lacks, and says what went otherwise than the protocol has.
``--record DIRECTORY`` keeps what was said, one file for each client.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Iterable
from pathlib import Path
from random import Random
from typing import Any

from fixtures.adapters.shipped import command_of
from fixtures.clients.adapter import Adapter, Refused, Unsupported
from fixtures.clients.admin import Admin
from fixtures.clients.cluster import Cluster, Topic, attempts, eventually
from fixtures.clients.handle import Delivery, Handle
from fixtures.targets import open_target, started
from fixtures.targets.arguments import resolve_target
from fixtures.wire.records import Record, encode_batch
from spec.adapter import Capability
from spec.verdict import EnvironmentFault, Undecided

_RECORDS = 5
_WITHIN = 30.0  # seconds for a few records
_NOW = round(time.time() * 1000)  # the records are of now: a broker may delete older ones
_LACKED: dict[Capability, tuple[str, dict[str, Any]]] = {
    Capability.RENEW: ("acknowledge", {"type": "renew", "records": []}),
    Capability.ACK_OFFSET: ("acknowledge", {"type": "accept", "by": "offset", "records": []}),
    Capability.WAKEUP: ("wakeup", {}),
    Capability.LOCK_DURATION: ("lock_duration", {}),
    Capability.INSTANCE_ID: ("instance_id", {"timeout_ms": 100}),
    Capability.UNSUBSCRIBE: ("unsubscribe", {}),
    Capability.CLOSE_TIMEOUT: ("close", {"timeout_ms": 1000}),
}
"""What asks for a capability and, if that is lacking, does nothing."""


class Walk:
    def __init__(self, adapter: Adapter, admin: Admin) -> None:
        self.adapter, self.admin, self.cluster = adapter, admin, admin.cluster
        self.wrong: list[str] = []
        self.mode = "explicit" if adapter.has(Capability.EXPLICIT) else "implicit"

    async def go(self) -> None:
        group, topic = self.cluster.fresh_name("g"), await self.admin.create_topic(1)
        await self.admin.group_config(group, {"share.auto.offset.reset": "earliest"})
        for partition in topic.partitions:
            await self.admin.append(topic, encode_batch(_records(partition)), partition)
        consumer = Handle(self.adapter, "one")
        config = {"bootstrap": list(self.cluster.info.bootstrap), "group": group}
        await consumer.open({**config, "mode": self.mode, "callback": "record"})
        await self.call_lacking(consumer)
        await consumer.subscribe(topic.name)
        if self.adapter.has(Capability.SUBSCRIPTION):
            self.expect("subscription", [topic.name], await consumer.subscription())
        await self.settle(consumer, topic)
        if self.adapter.has(Capability.WAKEUP):
            await consumer.wakeup()
            self.expect("a poll that is woken", "wakeup", await _refusal(consumer.poll(10)))
        await consumer.close()
        self.expect("poll of a closed consumer", "closed", await _refusal(consumer.poll(0.1)))

        async def finished() -> bool | None:
            found = await self.admin.share_offsets(group, topic)
            return True if all(found[p].start == _RECORDS for p in topic.partitions) else None

        await eventually("every record being finished", finished)

    async def settle(self, consumer: Handle, topic: Topic) -> None:
        """Consume what is there: release one record, reject one, accept the others."""
        records = await _polled(consumer, _RECORDS)
        self.compare(records, topic)
        released, rejected, *others = records
        if self.adapter.has(Capability.LOCK_DURATION):
            self.expect("the lock's duration is told", True, (await consumer.lock_ms() or 0) > 0)
        await consumer.acknowledge([released], "release")
        await consumer.acknowledge([rejected], "reject")
        await consumer.acknowledge(others[:-1])
        by = {"by": "offset"} if self.adapter.has(Capability.ACK_OFFSET) else {}
        await consumer.acknowledge(others[-1:], **by)
        settled = await consumer.commit_sync()
        self.expect("errors of the commit", set(), {each.error for each in settled} - {None})
        (again,) = await _polled(consumer, 1)
        self.expect("what comes again", (released.place, 2), (again.place, again.count))
        if renews := self.adapter.has(Capability.RENEW):
            await consumer.acknowledge([again], "renew")
        if renews and self.adapter.has(Capability.EXPLICIT):
            await consumer.commit_sync()
            with contextlib.suppress(Refused):  # Java gives renewed records once more, krafka waits
                await consumer.poll(0.1)
        await consumer.acknowledge([again])
        if self.adapter.has(Capability.COMMIT_ASYNC):
            await consumer.commit_async()
        await consumer.poll(0.2)
        await consumer.commit_sync()

    def compare(self, records: list[Delivery], topic: Topic) -> None:
        for partition in topic.partitions:
            for record, delivered in zip(
                _records(partition),
                sorted((r for r in records if r.partition == partition), key=lambda r: r.offset),
                strict=True,
            ):
                seen = (delivered.offset, delivered.key, delivered.value, delivered.headers)
                headers = tuple((name, value) for name, value in record.headers)
                written = (record.offset, record.key, record.value, headers)
                self.expect(f"record {partition}/{record.offset}", written, seen)
                self.expect(f"time of {record.offset}", record.timestamp, delivered.timestamp)
                self.expect(f"count of {record.offset}", 1, delivered.count)

    async def call_lacking(self, consumer: Handle) -> None:
        """Ask for what the library lacks; it has to be refused, and to do nothing."""
        for capability, (op, fields) in _LACKED.items():
            if not self.adapter.has(capability):
                self.expect(capability, capability, await _refusal(consumer.call(op, **fields)))

    def expect(self, what: str, expected: object, seen: object) -> None:
        if expected != seen:
            self.wrong.append(f"{what}: {expected!r} was expected, and {seen!r} came")


def _records(partition: int) -> list[Record]:
    return [
        Record(
            offset=number,
            timestamp=_NOW + number,
            key=None if number == 0 else b"key %d" % number,
            value=None if number == 1 else bytes(range(partition, partition + 5 * number)),
            headers=(("h", b"1"), ("h", None)) if number == 2 else (),
        )
        for number in range(_RECORDS)
    ]


async def _polled(consumer: Handle, count: int) -> list[Delivery]:
    records: list[Delivery] = []
    async for _ in attempts(_WITHIN):
        records += await consumer.poll(0.5, payload="full")
        if len(records) >= count:
            return records
    raise Undecided(f"{len(records)} of {count} records came within {_WITHIN:g} s")


async def _refusal(call: Awaitable[object]) -> str:
    try:
        return f"no refusal, but {await call!r}"
    except Refused as refused:
        return refused.name
    except Unsupported as lacking:
        return lacking.capability


async def walk(client: str, cluster: Cluster, record: Path | None) -> list[str]:
    adapter = Adapter(await asyncio.to_thread(command_of, client))
    try:
        hello = await adapter.start()
        print(f"{client}: {hello.name} {hello.version} ({hello.language} {hello.runtime})")
        steps = Walk(adapter, Admin(cluster))
        await steps.go()
        await adapter.call("exit")
    except (EnvironmentFault, Undecided, Refused, Unsupported) as fault:
        print(adapter.transcript())
        return [f"{type(fault).__name__}: {fault}"]
    finally:
        await adapter.stop()
        if record:
            kept = [line[2:] for line in adapter.lines if line.startswith("< ")]
            (record / f"{client.replace(':', '-')}.jsonl").write_text("\n".join(kept) + "\n")
    return steps.wrong


async def walk_all(clients: Iterable[str], name: str, record: Path | None) -> int:
    failed = 0
    with started(open_target(resolve_target(name))) as target:
        async with Cluster(target.info, rng=Random()) as cluster:
            for client in clients:
                wrong = await walk(client, cluster, record)
                failed += bool(wrong)
                print("\n".join(f"  {each}" for each in wrong) or "  as the protocol has it")
    return 1 if failed else 0
