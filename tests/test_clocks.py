"""Clocks that can be moved: the wall clock goes where it is put, and the monotonic one goes on."""

import os
import subprocess
import sys
import time

import pytest

from chaos.fitting import fitting, offered
from fixtures.clocks import Clocks, lacking
from fixtures.interface.capability import Capability
from fixtures.targets import DEFAULT_TARGET, UsageFault
from tests.shell import python

LOOK = "import time; print(time.time() - float(input()), time.monotonic() - float(input()))"
needs_compiler = pytest.mark.skipif(bool(lacking()), reason=lacking())


def _off(clock: Clocks) -> tuple[float, float]:
    now = f"{time.time()}\n{time.monotonic()}\n"
    done = python("-c", LOOK, given=now, environment=clock.environment("x"))
    wall, monotonic = map(float, done.stdout.split())
    return wall, monotonic


@needs_compiler
def test_a_right_clock() -> None:
    with Clocks() as clock:
        assert all(0 <= ahead < 30 for ahead in _off(clock))


@needs_compiler
@pytest.mark.parametrize("seconds", [3600.0, -3000.0, 100.25])
def test_a_moved_clock(seconds: float) -> None:
    with Clocks() as clock:
        look = f"import time; print('ready', flush=True); input(); {LOOK}"
        process = subprocess.Popen(
            [sys.executable, "-c", look],
            env={**os.environ, **clock.environment("x")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        clock.move("x", seconds)
        assert clock.applied("x") == 0
        said, _ = process.communicate(f"\n{time.time()}\n{time.monotonic()}\n", timeout=60)
        assert clock.applied("x") == seconds
    wall, monotonic = map(float, said.split())
    assert seconds <= wall < seconds + 30
    assert 0 <= monotonic < 30


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fixtures.clocks._compiler", lambda: None)
    with pytest.raises(UsageFault, match=r"shift-leader needs .*C compiler"):
        fitting(("shift-leader",), offered(DEFAULT_TARGET))
    assert not any(
        Capability.CLOCKS in fault.needs for fault in fitting((), offered(DEFAULT_TARGET))
    )
