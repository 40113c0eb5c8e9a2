"""The command line in this process, other Python in one of its own, and runs that are killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from fixtures.clients.cluster import Cluster, attempts
from fixtures.interface.info import ClusterInfo
from fixtures.machine.loops import run_blocking
from fixtures.targets.leftovers import ANY_RUN, Found, find
from shareproof import cli
from tests.fake import ROOT


def python(
    *words: str,
    cwd: Path = ROOT,
    given: str | None = None,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        input=given,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def without_extras(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    none = "sys.modules.update(dict.fromkeys(['numpy', 'pyarrow', 'pyspark']))"
    return python("-c", f"import sys; {none}; from {program} import main; main()", *words)


def until(condition: Callable[[], bool], seconds: float = 15.0, *, every: float = 0.02) -> bool:
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(every)
    return met


def shareproof(
    *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return python("-m", "shareproof", *words, environment=environment)


def judged(
    out: Path, *words: str, environment: Mapping[str, str] | None = None
) -> tuple[subprocess.CompletedProcess[str], dict[str, tuple[str, str]]]:
    options = ("--seed", "1", "--out", str(out))
    done = shareproof("broker", *words, *options, environment=environment)
    assert (out / "results.json").exists(), done.stdout + done.stderr
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    found = {rule["id"]: (rule["verdict"], rule["reason"]) for rule in document["rules"]}
    return done, found


class Shell:
    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._patch.setattr(sys, "argv", ["shareproof", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = self._capture.readouterr()
        return int(ended.value.code or 0), out, err


SHOWN = 10.0  # seconds within which a broker shows what was removed
SHORT_SESSIONS = {"group.share.session.timeout.ms": "10000"}
"""Configurations of brokers that keep members that were killed for 10 s instead of 45 s."""


def left(info: ClusterInfo, may: set[str] | None = None) -> Found:
    """Return what runs left behind, asked again while it is more than there ``may`` be."""

    async def look() -> Found:
        async for _ in attempts(SHOWN):
            async with Cluster(info) as seen:
                found = (await find(seen, ANY_RUN))[0]
            if may is None or found.keys() <= may:
                break
        return found

    return run_blocking(look())


def kill_a_run(info: ClusterInfo, out: Path, kinds: set[str], *words: str) -> float:
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
    while (done := shareproof("clean", *config)).returncode or "left alone" in done.stdout:
        assert time.monotonic() < deadline, done.stdout + done.stderr
