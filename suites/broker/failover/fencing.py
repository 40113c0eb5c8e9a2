"""Leader epochs that were raised, and what they are worth after a fail-over."""

from __future__ import annotations

from spec.verdict import Undecided
from suites.broker.share import Queue
from suites.broker.statestore import StateKey
from suites.judge import Judge

START = 7
"""The start offset in the state of :func:`raised`."""


async def raised(queue: Queue) -> StateKey:
    """Return the state of a queue that nobody consumes, its leader epoch raised to 5 by reading.

    Raises:
        Undecided: that did not come about.
    """
    key = StateKey(queue.share, queue.group, queue.topic.id)
    if (error := await key.initialize(start=START)) != "NONE":
        raise Undecided(f"Initialize answered {error}")
    await key.read(leader_epoch=5)
    if await key.write(leader_epoch=4) != "FENCED_LEADER_EPOCH":
        raise Undecided("the leader epoch could not be raised")
    return key


async def judge_raised(judge: Judge, key: StateKey) -> None:
    """Demand that the next coordinator knows the epoch, too."""
    judge.equal("FENCED_LEADER_EPOCH", await key.write(leader_epoch=4), "older Write")
    judge.equal("NONE", await key.write(leader_epoch=5), "Write with the raised epoch")
