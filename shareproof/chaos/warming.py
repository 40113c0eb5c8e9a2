"""Spark is started before the last load of a chaos run drains, so that nobody waits for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock, Timer

from fixtures.workload.load import DRAINING, PRODUCING
from fixtures.workload.terms import Load
from reports.analysis.request import Request
from reports.analysis.warming import warm

Tell = Callable[[str], None]

_TAKES = 45.0
"""Seconds that starting and warming Spark takes beside a load and three brokers, at the lowest
priority; draining may take none."""


def telling(loads: Sequence[Load], request: Request, tell: Tell) -> tuple[Tell, Callable[[], None]]:
    """Return a ``tell`` that starts Spark near the end of the last load, and what waits for Spark.

    Args:
        loads: those that will be put on the target, one after the other.
        request: how their histories are judged.
        tell: what lines are told to.
    """
    begun, waits = 0, list[Callable[[], None]]()
    # One row for each record, and one for each of its deliveries; few come twice.
    rows = sum(int(load.rate * load.seconds) * (1 + len(load.groups)) for load in loads)
    lock = Lock()

    def start() -> None:
        with lock:
            if not waits:
                waits.append(warm(request, rows))

    timer = Timer(max(0.0, loads[-1].seconds - _TAKES), start)
    timer.daemon = True

    def listen(text: str) -> None:
        nonlocal begun
        tell(text)
        if text.startswith(PRODUCING):
            begun += 1
            if begun == len(loads):
                timer.start()
        elif text == DRAINING and begun == len(loads):
            timer.cancel()
            start()

    def wait() -> None:
        timer.cancel()
        with lock:
            for one in waits:
                one()

    return listen, wait
