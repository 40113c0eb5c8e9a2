"""A frozen process: it stands still when freezing it returns, however many threads it has."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fixtures.targets import broker

BUSY = """
import threading
def spin():
    while True: pass
for _ in range(8): threading.Thread(target=spin, daemon=True).start()
print("busy", flush=True)
spin()
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux tells of threads")
def test_no_thread_runs_on() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            tasks = Path(f"/proc/{process.pid}/task")
            assert not broker._is_still(tasks)

            process.send_signal(signal.SIGSTOP)
            broker._until_still(process.pid)

            assert broker._is_still(tasks)
        finally:
            process.kill()
