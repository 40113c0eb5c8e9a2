"""Opening Spark: without a word, on a machine without a name, and where its JVM does not start."""

import os
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest

pytest.importorskip("pyspark", reason="the extra 'judge' is not installed")

from pyspark.errors import PySparkRuntimeError

from fixtures.machine.java import find_java
from reports.analysis import session
from reports.analysis.session import without_chatter
from shareproof.chaos import verdicts
from spec.verdict import EnvironmentFault
from tests.shell import python

PLACES = ("SPARK_LOCAL_IP", "SPARK_LOCAL_HOSTNAME")


class Unstartable:
    def __getattr__(self, name: str) -> object:
        return lambda *_: self

    def getOrCreate(self) -> object:  # noqa: N802 - pyspark's name
        raise PySparkRuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited")


@pytest.fixture(autouse=True)
def spark(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = type("SparkSession", (), {"builder": Unstartable()})
    monkeypatch.setattr(session, "SparkSession", stand_in)
    for name in PLACES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_java_that_does_not_start_is_no_verdict() -> None:
    with pytest.raises(EnvironmentFault, match="Spark does not start"):
        session.open_session()


def test_the_name_of_a_machine_needs_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark on this machine looks up no host name unless one is set; a cluster's Spark may.

    In a container the name of the machine is often known to nobody, and Spark's JVM ended there.
    """
    monkeypatch.setenv("SPARK_LOCAL_IP", "192.0.2.7")
    for master, expected in (
        ("spark://elsewhere:7077", ["192.0.2.7", None]),
        ("local[2]", ["192.0.2.7", "localhost"]),
    ):
        with pytest.raises(EnvironmentFault):
            session.open_session(master)
        assert [os.environ.get(name) for name in PLACES] == expected


def test_java_compiles_branches_that_no_row_has_taken_where_that_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    java = find_java()
    for major, expected in ((17, True), (21, False), (25, False)):
        monkeypatch.setattr(verdicts, "find_java", lambda major=major: replace(java, major=major))
        options = verdicts.spark_settings([])["spark.driver.defaultJavaOptions"]
        assert ("TrapLimit" in options) == expected

    def without() -> object:
        raise EnvironmentFault("No Java was found.")

    monkeypatch.setattr(verdicts, "find_java", without)
    assert "TrapLimit" not in verdicts.spark_settings([])["spark.driver.defaultJavaOptions"]


def test_the_compiler_is_told_what_to_leave_to_the_quick_one() -> None:
    options = shlex.split(session.LARGE["spark.driver.extraJavaOptions"])
    java = str(find_java().path)
    for more, expected in (((), False), (("-XX:+DisplayVMOutput",), True)):
        done = subprocess.run(
            [java, *options, *more, "-version"], capture_output=True, text=True, check=True
        )
        assert ("1 compiler directives added" in done.stdout) == expected
        assert bool(done.stdout) == expected


STDERR = """WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
26/11/22 22:59:01 WARN NativeCodeLoader: Unable to load native-hadoop library
Setting default log level to "WARN".
26/11/22 22:59:02 ERROR SparkContext: Error initializing SparkContext.
Error: Could not find or load main class
"""


def test_chatter_is_dropped_and_errors_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError), without_chatter():
        subprocess.run(["sh", "-c", "cat; exit 1"], input=STDERR.encode(), stdout=2, check=True)
    print("ours", file=sys.stderr)
    assert capfd.readouterr().err.splitlines() == [*STDERR.splitlines()[-2:], "ours"]


def test_spark_starts_without_a_word() -> None:
    work = "from reports.analysis.session import open_session as o; s = o(); s.range(9).count()"
    done = python("-c", f"{work}; s.stop()")
    assert (done.returncode, done.stderr) == (0, "")
