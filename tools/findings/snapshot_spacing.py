"""How many updates a share coordinator stores between two snapshots: finding 045.

One broker that is to store 3. Each line has what was asked of one share-partition and the records
that its state topic got. Exit code 1 if some are more than 3 apart.
"""

from __future__ import annotations

from fixtures.wire.state_records import SNAPSHOT
from spec.model.durable import StateBatch
from suites.broker.state import AVAILABLE, StateKey, Store
from tools.findings.program import Run

MOST = 3
"""What share.coordinator.snapshot.update.records.per.snapshot is set to."""

PLAYS = {
    "writes": "I" + 16 * "w",
    "a raised leader epoch first": "IR" + 15 * "w",
    "a raised leader epoch each time": "I" + 16 * "R",
    "in turns": "I" + 8 * "wR",
    "a raised state epoch between": "IwIwwwwwwwwwwww",
    "deleted and begun anew": "IwwwwwwwwwDIwwwwwwwww",
}
"""What is asked: Initialize with the next state epoch, write, Read with the next leader epoch,
Delete."""


async def played(key: StateKey, play: str) -> str:
    """Ask what a play says; return the records, S for a snapshot, u for an update, 0 for none."""
    trail = await key.trail()
    state, leader = -1, 0
    for number, what in enumerate(play):
        if what == "I":
            state += 1
            error = await key.initialize(state, 0)
        elif what == "w":
            batch = StateBatch(number, number, AVAILABLE, 1)
            error = await key.write(batch, state_epoch=state, leader_epoch=leader)
        elif what == "R":
            leader += 1
            error = (await key.read(leader_epoch=leader)).error_code or "NONE"
        else:
            error = await key.delete()
            leader = 0
        if error != "NONE":
            print(f"  {what} number {number} was answered {error}")
    kinds = (
        "0" if r.tombstone else "S" if r.kind == SNAPSHOT else "u" for r in await trail.records()
    )
    return "".join(kinds)


async def play(run: Run) -> bool:
    """Play all; tell whether updates too many were seen."""
    seen = False
    async with run.world() as share:
        store = Store(share)
        for what, asked in PLAYS.items():
            records = await played(await store.key(), asked)
            runs = [len(run) for run in records.replace("0", "S").split("S")]
            seen |= max(runs) > MOST
            print(f"{what}:\n  asked  {asked}\n  stored {records}, most updates {max(runs)}")
        await store.clear()
    return seen
