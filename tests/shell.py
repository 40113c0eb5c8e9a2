"""The command line in this process, and other Python in a process of its own."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from shareproof import cli
from tests.fake import ROOT


def python(
    *words: str,
    cwd: Path = ROOT,
    given: str | None = None,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run our Python to its end; it finds our packages from any directory."""
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
    """Call the main function of a module of ours, as if none of the extras were installed."""
    none = "sys.modules.update(dict.fromkeys(['numpy', 'pyarrow', 'pyspark']))"
    return python("-c", f"import sys; {none}; from {program} import main; main()", *words)


def until(condition: Callable[[], bool], seconds: float = 15.0, *, every: float = 0.02) -> bool:
    """Wait for something to be so; return whether it came to be in time."""
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
    """Run checks of brokers; return how the run ended, and each rule's verdict and reason."""
    options = ("--seed", "1", "--out", str(out))
    done = shareproof("broker", *words, *options, environment=environment)
    assert (out / "results.json").exists(), done.stdout + done.stderr
    document = json.loads((out / "results.json").read_text(encoding="utf-8"))
    found = {rule["id"]: (rule["verdict"], rule["reason"]) for rule in document["rules"]}
    return done, found


class Shell:
    """Calls the command line in this process."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._patch.setattr(sys, "argv", ["shareproof", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = self._capture.readouterr()
        return int(ended.value.code or 0), out, err
