"""A YARN cluster for tests: a resource manager and a node manager of Hadoop's mini cluster."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from fixtures.machine import registry
from fixtures.machine.cache import locked
from fixtures.machine.jvm import FAST_START
from fixtures.machine.ports import free_ports
from tests.storage import PATIENCE, configure, hadoop

_SERVERS = (
    "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
)
_LACKING = [f"org.bouncycastle:bc{part}-jdk18on:1.78.1" for part in ("prov", "pkix", "util")]
"""What the mini cluster's jar leaves out, though the resource manager needs it."""
_HERE = "127.0.0.1"


@contextlib.contextmanager
def yarn(folder: Path) -> Iterator[Path]:
    """Start the cluster; give the directory that HADOOP_CONF_DIR has to name."""
    ports = free_ports(8)
    conf = folder / "conf"
    conf.mkdir(parents=True)
    configure(conf, {"core-site.xml": {"hadoop.tmp.dir": folder / "data"}, **_sites(folder, ports)})
    with locked("maven"):
        further = [str(registry.artifact(one)) for one in _LACKING]
    jars = os.pathsep.join([str(conf), *hadoop(), *further])
    told = {**os.environ, "JAVA_TOOL_OPTIONS": " ".join(FAST_START)}  # containers have it, too
    with (folder / "log").open("wb") as log:
        servers = [
            subprocess.Popen(
                ["java", "-Xmx384m", "-cp", jars, name], stdout=log, stderr=log, env=told
            )
            for name in _SERVERS
        ]
        try:
            _await_node(ports[0], folder / "log")
            yield conf
        finally:
            for server in servers:
                server.kill()
                server.wait()


def _sites(folder: Path, ports: list[int]) -> dict[str, dict[str, object]]:
    web, calls, scheduler, tracker, admin, node, localizer, page = (
        f"{_HERE}:{port}" for port in ports
    )
    manager, worker = "yarn.resourcemanager", "yarn.nodemanager"
    scheduling = "org.apache.hadoop.yarn.server.resourcemanager.scheduler"
    return {
        "yarn-site.xml": {
            f"{manager}.webapp.address": web,
            f"{manager}.address": calls,
            f"{manager}.scheduler.address": scheduler,
            f"{manager}.resource-tracker.address": tracker,
            f"{manager}.admin.address": admin,
            f"{manager}.hostname": _HERE,
            f"{manager}.scheduler.class": f"{scheduling}.fifo.FifoScheduler",
            "yarn.scheduler.minimum-allocation-mb": 256,
            f"{worker}.hostname": _HERE,
            f"{worker}.address": node,
            f"{worker}.localizer.address": localizer,
            f"{worker}.webapp.address": page,
            f"{worker}.local-dirs": folder / "local",
            f"{worker}.log-dirs": folder / "logs",
            f"{worker}.resource.memory-mb": 4096,
            f"{worker}.resource.cpu-vcores": 4,
            f"{worker}.vmem-check-enabled": "false",
            f"{worker}.pmem-check-enabled": "false",
            f"{worker}.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
            f"{worker}.env-whitelist": "JAVA_HOME,PATH,JAVA_TOOL_OPTIONS",
        }
    }


def _await_node(port: int, log: Path) -> None:
    url = f"http://{_HERE}:{port}/ws/v1/cluster/metrics"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as said:
            if '"activeNodes":1' in said.read().decode():
                return
        time.sleep(0.2)
    raise AssertionError(f"YARN does not start: {log.read_text(encoding='utf-8')[-2000:]}")
