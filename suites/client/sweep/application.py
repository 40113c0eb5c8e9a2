"""An application that works while the hostile broker has the script of a case, and afterwards."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isinf

from fixtures.clients.adapter import DEADLINE, AdapterHang, Refused
from fixtures.clients.handle import Handle, Settled
from fixtures.hostile.script import ScriptStep
from fixtures.proxies.exchange import Exchange
from spec.adapter import Capability
from spec.verdict import Undecided
from suites.broker.env import Queue
from suites.client.harness import MOST_DELIVERIES, Harness, refusal
from suites.client.sweep.cases import Case
from suites.client.wire import SHARE

PARTITIONS = 2
LOCK_MS = 5000  # A short lock: what a failed fetch acquired comes again when it is over.
SESSION_MS = 8000  # A short session: what a member had that ended by an error goes to others.
REQUEST_MS = 5000  # How long a client waits for a response, where that can be set.
BEGINS = 40.0  # Seconds within which a client has to get going before anything happens to it.
LASTS = 5.0  # Seconds that a lasting error lasts; one that is to be told: until it is, or TOLD.
TOLD = 10.0  # Seconds within which an error has to be told that does not pass by itself.
RHYTHM = 8.0  # Seconds after which a script that has not been taken whole is taken away.

# Seconds within which all records have to be accepted when the error is over: a back-off of
# retry.backoff.max.ms (1 s), a lock, and a session fit in several times.
BACK = 40.0
PATIENCE = 4.0  # Seconds after which who was told of an error by a call makes another consumer.
CLOSES = 15.0  # Seconds within which a consumer has to close that was given two.
_LATE = "INVALID_RECORD_STATE"  # What an acknowledgement meets when its lock has run out.
At = tuple[int, int]  # Partition and offset.


@dataclass(slots=True)
class CaseRun:
    accepted: dict[At, float] = field(default_factory=dict)  # When it first accepted each record.
    delivered: set[At] = field(default_factory=set)  # The records that it was given.
    produced: set[At] = field(default_factory=set)  # The records that there are.
    told: list[tuple[float, str]] = field(default_factory=list)  # Errors while the script ran.
    settled: list[Settled] = field(default_factory=list)  # What became of acknowledgements.
    began: float = 0.0  # When the script began.
    ended: float = 0.0  # When the script was taken away.
    recovered: float | None = None  # Seconds from then until every record was accepted.
    left: str = ""  # What was missing then, in words.
    stuck: str = ""  # The call that did not return, or nothing.
    exchanges: list[Exchange] = field(default_factory=list)  # What went over the wire, all of it.

    @property
    def met(self) -> list[Exchange]:
        return [one for one in self.exchanges if one.scripted and one.scripted != "pass"]

    @property
    def shared(self) -> list[Exchange]:
        return [one for one in self.exchanges if one.api in SHARE]


async def play(harness: Harness, case: Case) -> CaseRun:
    group_config = {
        "share.delivery.count.limit": str(MOST_DELIVERIES),
        "share.session.timeout.ms": str(SESSION_MS),
    }
    queue = await harness.queue(partitions=PARTITIONS, lock_ms=LOCK_MS, group_config=group_config)
    application = _Application(harness, case, queue)
    run = application.run
    try:
        await application.play()
    except AdapterHang as hang:
        harness.excuse(f"{hang}")
        run.stuck = str(hang)
    run.exchanges = list(harness.tap.exchanges)
    run.settled = [one for handle in application.handles for one in handle.settled]
    return run


class _Application:
    def __init__(self, harness: Harness, case: Case, queue: Queue) -> None:
        self.harness, self.case, self.queue = harness, case, queue
        self.run = CaseRun()
        self.handles: list[Handle] = []
        has = harness.adapter.has
        can_commit = has(Capability.COMMIT_SYNC) or has(Capability.COMMIT_ASYNC)
        self.commits = case.commits and can_commit
        # Whether the client takes anything but accept for single records.
        self.chooses = harness.acking == "explicit" or has(Capability.MIXED)
        self._thrown = False

    async def play(self) -> None:
        await self._produce(2)
        if not self.case.joining:
            await self._open()
            async for _ in self.harness.attempts(BEGINS):
                await self._work()
                if await self._all_accepted():
                    break
            else:
                said = f"the consumer did not get going within {BEGINS:g} s"
                raise Undecided(f"{said}, and no script had begun")
        await self._meet_script()
        await self._produce(1)
        await self._recover()
        await refusal(self.harness.end(self.handles[-1], CLOSES))

    async def _meet_script(self) -> None:
        """Let the client meet the script until it is over.

        A call may wait for that end, such as one that makes a consumer and looks for the
        coordinator first. So the script ends in the middle of a call, too, if that is long.
        """
        case = self.case
        limit = (TOLD if case.owed else LASTS) if case.lasting else RHYTHM
        self.run.began = time.monotonic()
        steps = self.harness.play(*case.steps)
        end = asyncio.get_running_loop().call_later(2 * limit, self._end, steps)
        try:
            if case.joining:
                # A library may join, and fail, before there is a poll.
                self._note(await refusal(self._open(2 * limit + BACK)), thrown=True)
            else:
                await self._produce(2)
            async for left in self.harness.attempts(limit):
                if self.run.ended:
                    return
                await self._work()
                if self._is_enough(steps, limit - left):
                    break
        finally:
            end.cancel()
            self._end(steps)

    def _is_enough(self, steps: Sequence[ScriptStep], seconds: float) -> bool:
        if self.case.lasting:
            failed = any(one.error for handle in self.handles for one in handle.settled)
            return self.case.owed and (bool(self.run.told) or failed) and seconds > LASTS
        wanted = sum(step.times for step in steps)
        exchanges = self.harness.tap.exchanges
        under_way = any(one.scripted and isinf(one.responded) for one in exchanges)
        return sum(step.taken for step in steps) >= wanted and not under_way

    def _end(self, steps: Sequence[ScriptStep]) -> None:
        if not self.run.ended:
            self.harness.tap.script.drop(steps)
            self.run.ended = now = time.monotonic()
            settled = (one for handle in self.handles for one in handle.settled)
            self.run.told += [(now, one.error) for one in settled if one.error]

    async def _open(self, within: float = DEADLINE) -> None:
        handle = self.harness.handle()
        self.handles.append(handle)
        config = self.harness.config(handle, self.queue.group, request_timeout_ms=REQUEST_MS)
        often = {"metadata_max_age_ms": 1000} if self.case.api == "Metadata" else {}
        try:
            await handle.open(config | often, within=within)
        except Refused:  # some ask for metadata more seldom
            await handle.open(config, within=within)
        await handle.subscribe(self.queue.topic.name)

    async def _produce(self, number: int) -> None:
        for partition in range(PARTITIONS):
            first = await self.queue.produce(number, partition)
            self.run.produced |= {(partition, first + n) for n in range(number)}

    async def _work(self) -> None:
        handle, run = self.handles[-1], self.run
        try:
            found = await handle.poll(0.3)
        except Refused as error:
            self._note(error.name, thrown=True)
            return
        before, now = run.delivered, time.monotonic()
        run.delivered = before | {(one.partition, one.offset) for one in found}
        new = [one for one in found if (one.partition, one.offset) not in before]
        released = [one for one in new if self.chooses and one.offset % 2]
        accepted = [one for one in found if one not in released]
        for one in accepted:
            run.accepted.setdefault((one.partition, one.offset), now)
        for kind, records in (("accept", accepted), ("release", released)):
            for record in records:
                await refusal(handle.acknowledge([record], kind))
        if found and self.commits:
            try:
                if self.harness.adapter.has(Capability.COMMIT_SYNC):
                    for result in await handle.commit_sync(2.0):
                        self._note(result.error)
                else:
                    await handle.commit_async()
            except Refused as error:
                self._note(error.name)

    def _note(self, error: str | None, *, thrown: bool = False) -> None:
        if error:
            self._thrown = self._thrown or thrown
            if self.run.began:
                self.run.told.append((time.monotonic(), error))

    async def _all_accepted(self) -> bool:
        produced = self.run.produced
        if not (self.case.unreadable or produced <= self.run.accepted.keys()):
            return False
        ends = {p: max(offset for q, offset in produced if q == p) + 1 for p in range(PARTITIONS)}
        return await self.harness.starts(self.queue) == ends

    async def _recover(self) -> None:
        run, began, again = self.run, time.monotonic(), False
        async for left in self.harness.attempts(BACK):
            await self._work()
            if await self._all_accepted():
                run.recovered = time.monotonic() - began
                return
            if not again and self._thrown and BACK - left > PATIENCE:
                again = True
                await refusal(self.harness.end(self.handles[-1], CLOSES))
                await self._open()
        if any(name == _LATE for at, name in run.told if at > run.ended):
            raise Undecided("locks ran out before records were acknowledged: the machine is slow")
        missing = sorted(run.produced - run.accepted.keys())
        starts = await self.harness.starts(self.queue)
        run.left = f"never delivered or accepted: {missing}; start offsets {starts}"
