"""How long judging takes and how much memory: ``python -m benchmarks.analysis --events 1e6 1e7``.

Each history is made, judged by the command line in a process of its own, and checked: every planted
violation must be found by its rule, and no other rule may be broken. Memory is the highest sum of
what the process and its children had in use.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.histories import write_history


def judged(folder: Path, master: str, memory: str) -> tuple[dict[str, Any], float, float, float]:
    """Judge a history; return the results, seconds, CPU seconds, and the peak of memory in GiB."""
    began, peak, spent = time.monotonic(), 0, 0.0
    command = [sys.executable, "-m", "shareproof", "analyse", str(folder), "--json"]
    process = subprocess.Popen(
        [*command, "--master", master, "--memory", memory, "--out", str(folder / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    root = psutil.Process(process.pid)
    while process.poll() is None and not (folder / "out" / "results.json").exists():
        used, cpu = 0, 0.0
        with contextlib.suppress(psutil.Error):
            for one in [root, *root.children(recursive=True)]:
                used += one.memory_info().rss
                cpu += sum(one.cpu_times()[:2])
        peak, spent = max(peak, used), max(spent, cpu)
        time.sleep(0.2)
    output, _ = process.communicate()
    return json.loads(output), time.monotonic() - began, spent, peak / 2**30


def main() -> None:
    """Measure, and print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=float, nargs="+", default=[1e6])
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="2g")
    options = parser.parse_args()
    for events in options.events:
        with tempfile.TemporaryDirectory(prefix="shareproof-bench-") as room:
            folder = Path(room) / "history"
            planted = write_history(folder, int(events))
            results, seconds, cpu, peak = judged(folder, options.master, options.memory)
        broken = {
            rule["id"]: rule["reason"].split()[0]
            for rule in results["requirements"]
            if rule["verdict"] == "fail"
        }
        expected = {rule: str(count) for rule, count in sorted(planted.items()) if count}
        found = "all planted found" if broken == expected else f"{broken} for {expected}"
        inside = results["run"]["seconds"]
        print(
            f"{events:.0e} events: {seconds:.1f} s ({inside:.1f} s inside, {cpu:.0f} s of CPU), "
            f"{peak:.2f} GiB, {events / seconds:,.0f} events/s, {found}",
            flush=True,
        )


if __name__ == "__main__":
    main()
