"""A Spark standalone cluster on loopback for tests, by the classes that come with PySpark."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fixtures.machine.jvm import FAST_START
from fixtures.machine.ports import free_ports

SPARK = Path(importlib.util.find_spec("pyspark").origin or "").parent  # type: ignore[union-attr]
PATIENCE = 600.0


@contextlib.contextmanager
def standalone(folder: Path, workers: Sequence[Mapping[str, str]] = ({}, {})) -> Iterator[str]:
    """Start a master and workers of one core each; give the master's address.

    Args:
        folder: for logs and what executors write.
        workers: the further environment variables of each worker and of its executors.
    """
    port, page = free_ports(2)
    address = f"spark://127.0.0.1:{port}"
    host = ("--host", "127.0.0.1")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((folder / "spark.log").open("w+"))
        ports = ("--port", str(port), "--webui-port", str(page))
        stack.enter_context(_daemon("master.Master", log, {}, *host, *ports))
        for variables in workers:
            room = ("--cores", "1", "--memory", "600m", "--work-dir", str(folder / "work"))
            stack.enter_context(_daemon("worker.Worker", log, variables, *host, *room, address))
        _wait_for(folder / "spark.log", "Registering worker", len(workers))
        yield address


@contextlib.contextmanager
def _daemon(name: str, log: Any, variables: Mapping[str, str], *arguments: str) -> Iterator[None]:
    process = subprocess.Popen(
        [str(SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *arguments],
        stdout=log,
        stderr=subprocess.STDOUT,
        env={
            **os.environ,
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "PYSPARK_PYTHON": sys.executable,
            "JAVA_TOOL_OPTIONS": " ".join(FAST_START),  # for executors, too
            **variables,
        },
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _wait_for(file: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if len(re.findall(text, file.read_text(encoding="utf-8"))) >= times:
            return
        time.sleep(0.1)
    raise AssertionError(f"{text!r} was not logged: {file.read_text(encoding='utf-8')[-2000:]}")
