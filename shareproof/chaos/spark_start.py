"""Spark starts before the last load of a chaos run drains, so that judging need not wait for it."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Lock, Timer

from fixtures.workload.load import DRAINING, PRODUCING
from fixtures.workload.plan import Load
from reports.analysis.request import Request
from reports.analysis.warm_up import Enough, warm

Log = Callable[[str], None]

# Seconds that starting and warming Spark takes beside a load and three brokers, at the lowest
# priority; draining may take none.
_TAKES = 45.0
_EVERY = 0.05


def starting(loads: Sequence[Load], request: Request, log: Log) -> tuple[Log, Callable[[], None]]:
    """Return a ``log`` that starts Spark near the end of the last load, and what waits for Spark.

    ``loads`` will be put on the target one after the other. The first run of ``request``, by which
    their histories are judged, is the one under way, or the place where all are.
    """
    begun, waits = 0, list[Callable[[], None]]()
    # One row for each record, and one for each of its deliveries; few come twice.
    rows = sum(int(load.rate * load.seconds) * (1 + len(load.groups)) for load in loads)
    lock = Lock()

    def start() -> None:
        with lock:
            if not waits:
                waits.append(warm(request, rows, partial(recorded, request.runs[0])))

    timer = Timer(max(0.0, loads[-1].seconds - _TAKES), start)
    timer.daemon = True

    def listen(text: str) -> None:
        nonlocal begun
        log(text)
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


def recorded(place: Path, run: Path, hurried: Event) -> bool:
    """Make a run of what the newest run at a place has recorded; tell whether there is any."""
    found = [journal.parent for journal in place.rglob("journal") if journal.is_dir()]
    if not found:
        return False
    history = max(found, key=lambda one: one.stat().st_mtime)
    command = [sys.executable, "-m", "fixtures.history.compaction", str(history), str(run)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as making:
        while making.poll() is None:
            if hurried.wait(_EVERY):
                making.kill()
                raise Enough
    return making.returncode == 0
