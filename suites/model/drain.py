"""The end of every example: one member accepts whatever comes until nothing is left.

What the judge cannot say from any one response is said here: that records do come again, and that
the start offset does move. The others leave as they are, so that what they hold comes when its
locks end.
"""

from __future__ import annotations

from spec.model.table import State
from spec.verdict import Violation
from suites.model.actions import Action, Do
from suites.model.player import LOCK_MS, Player

_MOST = 500
_PAUSES = (20.0, 250.0)
"""The shortest and the longest pause between two looks, in milliseconds."""


async def drain(player: Player, patience: float) -> None:
    """Fetch and accept until the start offset has passed what there is now.

    Args:
        player: whose queue is drained.
        patience: milliseconds for which nothing may happen, beyond the length of a lock.

    Raises:
        Violation: a response is not allowed, or nothing happened for so long: records whose locks
            have ended never came (LCK-01), others did not (ACQ-25), or all came and the start
            offset stays behind (INV-24).
    """
    wanted = player.end
    since, before, pause = player.time.now(), -1, _PAUSES[0]
    while True:
        # The view is that of the last state write, so each look is preceded by one more.
        await player.act(Action(do=Do.PRODUCE, n=1))
        await player.act(Action(do=Do.FETCH, n=_MOST))
        held = player.seats[0].held
        came = any(offset < wanted for offset in held)
        await player.act(Action(do=Do.ACK, types=(1,) * len(held)))
        seen = await player.start()
        if seen >= wanted:
            return
        now = player.time.now()
        if came or seen > before:
            since, before, pause = now, seen, _PAUSES[0]
        elif now - since > patience + LOCK_MS:
            raise _stuck(player, seen, now - since)
        await player.time.pass_by(pause)
        pause = min(pause * 1.5, _PAUSES[1])


def _stuck(player: Player, seen: int, waited: float) -> Violation:
    late = player.judge.overdue(player.time.now())
    for_ = f"in {waited / 1000:.1f} s of fetching"
    if not late:
        sentence = f"the start offset stays at {seen}, all before {player.end} being accepted"
        return Violation("INV-24", sentence)
    first, last = late[0]
    held = any(
        cell.state is State.ACQUIRED for cell in player.judge.cells(player.time.now(), first)
    )
    if held:
        return Violation("LCK-01", f"{first}-{last} did not come {for_}, their locks having ended")
    return Violation("ACQ-25", f"{first}-{last} did not come {for_}, being available")
