"""Records that were deleted while somebody held them stay in the lag: finding 054.

A member holds one record and says nothing about it; all others of the log are accepted. The records
up to some of the accepted ones are deleted, and the lock ends. Another member fetches all the
while. Exit code 1 if the lag is not 0 ten seconds after the lock.
"""

from __future__ import annotations

import time

from fixtures.clients.member import Ack
from suites.broker.share import Queue
from suites.broker.state import Store, shown
from tools.findings.program import Run, say

RECORDS, HELD, BEFORE = 20, 3, 15
LOCK = 3.0
WAITS = 10.0
ACCEPT = (1,)


async def seen(queue: Queue) -> str:
    """Return what an admin is shown, and what the share coordinator has."""
    found = await queue.offsets()
    key = Store(queue.share).of(queue)
    epoch = (await key.summary()).leader_epoch
    _, _, start, batches = shown(await key.read(leader_epoch=epoch))
    told = f"start offset {found.start}, lag {found.lag}"
    return f"{told}; stored: start offset {start}, {[tuple(one) for one in batches]}"


async def play(run: Run) -> bool:
    """Play; tell whether a lag stays."""
    async with run.world() as share:
        queue = await share.queue(0, lock_ms=int(LOCK * 1000))
        await queue.produce(RECORDS)
        holder, other = await queue.consumer(), await queue.consumer()
        got = await holder.acquire(RECORDS)
        await holder.acked(Ack(0, HELD - 1, ACCEPT), Ack(HELD + 1, RECORDS - 1, ACCEPT))
        say(f"given {got.offsets}; all but {HELD} are accepted;", await seen(queue))
        start = await share.admin.delete_records(queue.topic, BEFORE)
        say(f"the log begins at {start} now;", await seen(queue))
        end = time.monotonic() + LOCK + WAITS
        before = ""
        while time.monotonic() < end:
            other.sound(await other.fetch(max_wait_ms=500))
            if (now := await seen(queue)) != before:
                say(now)
            before = now
        stays = (await queue.offsets()).lag != 0
        await queue.produce(1)
        last = (await other.acquire(1)).offsets
        await other.acked(Ack(last[0], last[-1], ACCEPT))
        say(f"{last} is produced and accepted;", await seen(queue))
        await share.disband()
    return stays
