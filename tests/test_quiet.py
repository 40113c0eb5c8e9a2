"""What is on a console: Spark's chatter is not, and where no terminal is, lines are whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reports.analysis.quiet import without_chatter
from reports.console import UNWRAPPED, screen
from tests.shell import python, shareproof

SAID = """WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/22 22:59:01 WARN NativeCodeLoader: Unable to load native-hadoop library
Setting default log level to "WARN".
26/11/22 22:59:02 ERROR SparkContext: Error initializing SparkContext.
Error: Could not find or load main class
"""


def test_chatter_is_dropped_and_errors_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError), without_chatter():
        subprocess.run(["sh", "-c", "cat; exit 1"], input=SAID.encode(), stdout=2, check=True)
    print("ours", file=sys.stderr)

    assert capfd.readouterr().err.splitlines() == [*SAID.splitlines()[-2:], "ours"]


def test_spark_starts_without_a_word() -> None:
    pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")
    work = "from reports.analysis.session import open_session as o; s = o(); s.range(9).count()"
    done = python("-c", f"{work}; s.stop()")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["broker", "chaos", "doctor", ""])
def test_help_is_not_wrapped_for_a_pipe(command: str) -> None:
    said = shareproof(*filter(None, (command, "--help")), environment={"COLUMNS": "40"}).stdout
    options = said.split("Options:")[1].split("\n\n")[0].strip().splitlines()

    assert [line for line in options if not line.strip().startswith("-")] == []
    assert "--help" in options[-1]


def test_a_table_is_not_wrapped_for_a_pipe() -> None:
    head, *lines = shareproof(
        "list", "--only", "ACK", environment={"COLUMNS": "40"}
    ).stdout.splitlines()

    assert head.split() == ["rule", "level", "since", "reached", "text"]
    assert {line.strip()[:4] for line in lines} == {"ACK-"}
    assert max(map(len, lines)) > 100


def test_a_screen_that_is_no_terminal_is_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert (screen().width, screen(stderr=True).width) == (UNWRAPPED, UNWRAPPED)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert screen().width == 40
