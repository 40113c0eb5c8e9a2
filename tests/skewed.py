"""Hosts whose clocks are wrong, on one machine: a Spark cluster whose workers have their own time.

The Python of each worker runs in a time namespace, so that its monotonic clock is minutes off ours,
and with libraries in front of the clocks that set its wall clock off, and let both drift.

``python -m tests.skewed RUNS OUT`` records that many loads of 8 s of the reference broker on such
hosts and judges them; its exit code is that of the verdicts.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fixtures.clocks import Clocks
from tests.fake import ROOT
from tests.shell import shareproof
from tests.standalone import standalone

SOURCE = Path(__file__).with_name("drift.c")
SECONDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """How wrong a host's clocks are; ``drift`` is in parts in a million."""

    monotonic: int
    wall: float
    drift: int


SKEWS = (Skew(monotonic=120, wall=-200.0, drift=400), Skew(monotonic=420, wall=330.0, drift=-900))


def lacking() -> str:
    """Return what this machine lacks for hosts with clocks of their own, or nothing."""
    if shutil.which("cc") is None:
        return "a C compiler"
    done = subprocess.run(
        ["unshare", "--time", "--monotonic", "1", "true"], capture_output=True, check=False
    )
    return "time namespaces" if done.returncode else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A Spark cluster of skewed hosts."""

    master: str
    python: Path

    def load(self, target: str, out: Path | str, *more: str) -> subprocess.CompletedProcess[str]:
        """Record a load of a target whose processes are on these hosts."""
        on = ("--workers-on", self.master, "--conf", f"spark.pyspark.python={self.python}")
        asked = ("--target", target, "--brokers", "1", "--seconds", str(SECONDS))
        return shareproof("load", *asked, "--rate", "400", "--out", str(out), *on, *more)


@contextlib.contextmanager
def skewed(folder: Path) -> Iterator[Cluster]:
    """Start a cluster with a worker for each of ``SKEWS``."""
    library, python = folder / "drift.so", folder / "python"
    compiled = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(compiled, check=True)
    python.write_text(
        "#!/bin/sh\n"
        'exec unshare --time --monotonic "$HOST_AHEAD" '
        f'env LD_PRELOAD="$HOST_LIBRARIES" {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    with Clocks() as clocks:
        workers = []
        for number, skew in enumerate(SKEWS):
            wall = clocks.environment(str(number))
            clocks.move(str(number), skew.wall)
            workers.append(
                {
                    "HOST_AHEAD": str(skew.monotonic),
                    "HOST_LIBRARIES": f"{library} {wall['LD_PRELOAD']}",
                    "SHAREPROOF_CLOCK": wall["SHAREPROOF_CLOCK"],
                    "SHAREPROOF_DRIFT": str(skew.drift),
                    "PYTHONPATH": str(ROOT),
                }
            )
        with standalone(folder, workers) as master:
            yield Cluster(master=master, python=python)


def main(runs: int, out: Path) -> int:
    """Record and judge loads; return the exit code of the verdicts."""
    done: list[str] = []
    with tempfile.TemporaryDirectory() as folder, skewed(Path(folder)) as cluster:
        for number in range(runs):
            loaded = cluster.load("reference", out / str(number), "--seed", str(number))
            print(number, loaded.returncode, " ".join(loaded.stdout.split()), flush=True)
            if loaded.returncode:
                print(loaded.stderr)
                return loaded.returncode
            done.append(str(out / str(number)))
    judged = shareproof("analyse", *done, "--brief", "--out", str(out / "analysis"))
    print(judged.stdout)
    return judged.returncode


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), Path(sys.argv[2]).absolute()))
