"""Runs that are killed: what they leave behind, and that it can be removed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fixtures.clients.cluster import Cluster, attempts
from fixtures.interface.info import ClusterInfo
from fixtures.machine.loops import run_blocking
from fixtures.targets.leftovers import ANY_RUN, Found, find
from tests.fake import ROOT
from tests.shell import shareproof

SHOWN = 10.0  # seconds within which a broker shows what was removed
SHORT_SESSIONS = {"group.share.session.timeout.ms": "10000"}
"""Configurations of brokers that keep members that were killed for 10 s instead of 45 s."""


def left(info: ClusterInfo, may: set[str] | None = None) -> Found:
    """Return what runs left behind, in the eyes of one who sees everything.

    A broker shows a moment later what the controller has removed: so it is asked again for some
    seconds when there is more than there ``may`` be.
    """

    async def look() -> Found:
        async for _ in attempts(SHOWN):
            async with Cluster(info) as seen:
                found = (await find(seen, ANY_RUN))[0]
            if may is None or found.keys() <= may:
                break
        return found

    return run_blocking(look())


def kill_a_run(info: ClusterInfo, out: Path, kinds: set[str], *words: str) -> float:
    """Kill a run as soon as it has made all of some kinds; return until when to look further."""
    command = (sys.executable, "-m", "shareproof", "broker", *words, "--workers", "0", "--fast")
    running = subprocess.Popen(
        [*command, "--out", str(out)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while not kinds <= (made := left(info)).keys():
        assert running.poll() is None, f"the run ended by itself, and left {made}"
        assert time.monotonic() < deadline, f"the run made {made} only"
        time.sleep(0.2)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    return deadline


def clean(deadline: float, *config: str) -> None:
    """Clean up, again and again while the members that were killed are in their groups."""
    while (done := shareproof("clean", *config)).returncode or "left alone" in done.stdout:
        assert time.monotonic() < deadline, done.stdout + done.stderr
