"""Spark is started while the last load of a chaos run drains, so that nobody waits for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fixtures.workload.load import DRAINING
from fixtures.workload.terms import Load
from reports.analysis.request import Request
from reports.analysis.warming import warm

Tell = Callable[[str], None]


def telling(loads: Sequence[Load], request: Request, tell: Tell) -> tuple[Tell, Callable[[], None]]:
    """Return a ``tell`` that starts Spark when the last load drains, and what waits for Spark.

    Args:
        loads: those that will be put on the target, one after the other.
        request: how their histories are judged.
        tell: what lines are told to.
    """
    drained, waits = 0, list[Callable[[], None]]()
    # One row for each record, and one for each of its deliveries; few come twice.
    rows = sum(int(load.rate * load.seconds) * (1 + len(load.groups)) for load in loads)

    def listen(text: str) -> None:
        nonlocal drained
        tell(text)
        if text == DRAINING:
            drained += 1
            if drained == len(loads):
                waits.append(warm(request, rows))

    def wait() -> None:
        for one in waits:
            one()

    return listen, wait
