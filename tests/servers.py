"""Servers for tests: Spark and YARN clusters, hosts with wrong clocks, HDFS and an object store."""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from subprocess import Popen
from typing import Any

from fixtures.clocks import Clocks
from fixtures.machine import registry
from fixtures.machine.cache import locked
from fixtures.machine.java import FAST_START
from fixtures.machine.ports import free_ports
from tests.fake import ROOT
from tests.shell import shareproof

SPARK = Path(importlib.util.find_spec("pyspark").origin or "").parent  # type: ignore[union-attr]
PATIENCE = 600.0


@contextlib.contextmanager
def standalone(folder: Path, workers: Sequence[Mapping[str, str]] = ({}, {})) -> Iterator[str]:
    port, page = free_ports(2)
    address, file = f"spark://127.0.0.1:{port}", folder / "spark.log"
    host = ("--host", "127.0.0.1")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(file.open("w+"))
        ports = ("--port", str(port), "--webui-port", str(page))
        stack.enter_context(_daemon("master.Master", log, {}, *host, *ports))
        for variables in workers:
            room = ("--cores", "1", "--memory", "600m", "--work-dir", str(folder / "work"))
            stack.enter_context(_daemon("worker.Worker", log, variables, *host, *room, address))
        _until(lambda: file.read_text("utf-8").count("Registering worker") >= len(workers), file)
        yield address


@contextlib.contextmanager
def _daemon(name: str, log: Any, variables: Mapping[str, str], *arguments: str) -> Iterator[None]:
    process = Popen(
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


def _until(ready: Callable[[], bool], log: Path, process: Popen[bytes] | None = None) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline or (process and process.poll() is not None):
            end = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise AssertionError(f"a server does not start:\n{end}")
        time.sleep(0.1)


def _page(url: str) -> str:
    with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as response:  # noqa: S310 - ours
        return str(response.read().decode())
    return ""


_AWS = ("s3", "aws-core", "sdk-core", "http-client-spi", "checksums", "checksums-spi", "utils")
_S3_PROXY = (
    *("org.gaul:s3proxy:4.1.0", "args4j:args4j:2.37", "jakarta.servlet:jakarta.servlet-api:6.1.0"),
    *("org.slf4j:slf4j-api:2.0.18", "ch.qos.logback:logback-classic:1.6.3"),
    *("ch.qos.logback:logback-core:1.6.3", "com.google.guava:guava:33.7.1-jre"),
    *("com.google.guava:failureaccess:1.0.3", "com.fasterxml.woodstox:woodstox-core:7.1.1"),
    *("tools.jackson.core:jackson-core:3.2.2", "tools.jackson.core:jackson-databind:3.2.2"),
    "tools.jackson.dataformat:jackson-dataformat-xml:3.2.2",
    "org.codehaus.woodstox:stax2-api:4.2.2",
    "com.fasterxml.jackson.core:jackson-annotations:2.22",
    *(f"io.opentelemetry:opentelemetry-{part}:1.65.0" for part in ("api", "context", "common")),
    *(f"software.amazon.awssdk:{part}:2.54.2" for part in (*_AWS, "annotations", "identity-spi")),
)
"""S3Proxy, and what it needs to keep buckets in a directory, which is a tenth of what it brings."""
KEY, SECRET = "tester", "a-secret-of-3141"
BUCKET = "runs"
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    uri: str
    processes: tuple[Popen[bytes], ...] = ()

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _serving(
    server: Server,
    log: Path,
    commands: Sequence[Sequence[str]],
    ready: Callable[[], bool],
    **more: str,
) -> Iterator[Server]:
    with log.open("ab") as output:
        env = {**os.environ, **more}
        processes = tuple(Popen(each, stdout=output, stderr=output, env=env) for each in commands)
        running = replace(server, processes=processes)
        try:
            _until(ready, log, processes[0] if len(processes) == 1 else None)
            yield running
        finally:
            running.end()


@contextlib.contextmanager
def hdfs(folder: Path) -> Iterator[Server]:
    ports = free_ports(5)
    conf, log = _configured(folder, ports), folder / "log"
    command = ["java", *FAST_START, "-Xmx256m", "-cp", os.pathsep.join([str(conf), *hadoop()])]
    page = f"http://127.0.0.1:{ports[1]}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    shown = ('"NumLiveDataNodes" : 1', '"FSState" : "Operational"')
    with log.open("wb") as output:
        subprocess.run([*command, _NAMENODE, "-format"], stdout=output, stderr=output, check=True)
    nodes = [[*command, node] for node in (_NAMENODE, _DATANODE)]
    server = Server(uri=f"hdfs://127.0.0.1:{ports[0]}/a/run")
    with _serving(server, log, nodes, lambda: all(word in _page(page) for word in shown)) as found:
        yield found


@contextlib.contextmanager
def s3(folder: Path) -> Iterator[Server]:
    (port,) = free_ports(1)
    (folder / "buckets" / BUCKET).mkdir(parents=True)
    server = Server(uri=f"http://127.0.0.1:{port}")
    settings = {
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.endpoint": server.uri,
        "s3proxy.identity": KEY,
        "s3proxy.credential": SECRET,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": folder / "buckets",
    }
    file = folder / "s3proxy.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), "utf-8")
    quiet = folder / "logback.xml"
    quiet.write_text('<configuration><root level="OFF"/></configuration>', "utf-8")
    with locked("maven"):
        jars = os.pathsep.join(str(registry.artifact(each)) for each in _S3_PROXY)
    # Verifying a class loads the exceptions of all other stores that it may catch.
    unverified = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
    command = ["java", *FAST_START, *unverified, "-Xmx256m", f"-Dlogback.configurationFile={quiet}"]
    command += ["-cp", jars, "org.gaul.s3proxy.Main", "--properties", str(file)]
    with _serving(server, folder / "log", [command], lambda: _answers(port)) as found:
        yield found


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def hadoop() -> list[str]:
    jars = SPARK / "jars"
    wanted = ("hadoop-client-", "slf4j-api", "log4j-", "jcl-over-slf4j")
    beside = [str(jar) for jar in sorted(jars.glob("*.jar")) if jar.name.startswith(wanted)]
    version = next(jars.glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
    with locked("maven"):
        cluster = registry.artifact(f"org.apache.hadoop:hadoop-client-minicluster:{version}")
    return [str(cluster), *beside]


def _configured(folder: Path, ports: list[int]) -> Path:
    names, web, data, data_web, data_calls = (f"127.0.0.1:{port}" for port in ports)
    conf = folder / "conf"
    conf.mkdir(parents=True)
    files = {
        "core-site.xml": {
            "fs.defaultFS": f"hdfs://{names}",
            "hadoop.tmp.dir": str(folder / "data"),
        },
        "hdfs-site.xml": {
            "dfs.replication": "1",
            "dfs.permissions.enabled": "false",
            "dfs.namenode.http-address": web,
            "dfs.datanode.address": data,
            "dfs.datanode.http.address": data_web,
            "dfs.datanode.ipc.address": data_calls,
        },
    }
    configure(conf, files)
    return conf


def configure(conf: Path, files: Mapping[str, Mapping[str, object]]) -> None:
    for name, properties in files.items():
        entries = (
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in properties.items()
        )
        text = f"<configuration>{''.join(entries)}</configuration>"
        (conf / name).write_text(text, encoding="utf-8")


_SERVERS = (
    "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager",
    "org.apache.hadoop.yarn.server.nodemanager.NodeManager",
)
_LACKING = [f"org.bouncycastle:bc{part}-jdk18on:1.78.1" for part in ("prov", "pkix", "util")]
"""What the mini cluster's jar leaves out, though the resource manager needs it."""
_HERE = "127.0.0.1"


@contextlib.contextmanager
def yarn(folder: Path) -> Iterator[Path]:
    ports = free_ports(8)
    conf = folder / "conf"
    conf.mkdir(parents=True)
    configure(conf, {"core-site.xml": {"hadoop.tmp.dir": folder / "data"}, **_sites(folder, ports)})
    with locked("maven"):
        further = [str(registry.artifact(one)) for one in _LACKING]
    command = ["java", "-Xmx384m", "-cp", os.pathsep.join([str(conf), *hadoop(), *further])]
    options = {"JAVA_TOOL_OPTIONS": " ".join(FAST_START)}  # containers have it, too
    page = f"http://{_HERE}:{ports[0]}/ws/v1/cluster/metrics"
    servers = [[*command, name] for name in _SERVERS]
    ready = lambda: '"activeNodes":1' in _page(page)  # noqa: E731
    with _serving(Server(uri="yarn"), folder / "log", servers, ready, **options):
        yield conf


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
    if shutil.which("cc") is None:
        return "a C compiler"
    done = subprocess.run(
        ["unshare", "--time", "--monotonic", "1", "true"], capture_output=True, check=False
    )
    return "time namespaces" if done.returncode else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    master: str
    python: Path

    def load(self, target: str, out: Path | str, *more: str) -> subprocess.CompletedProcess[str]:
        on = ("--workers-on", self.master, "--conf", f"spark.pyspark.python={self.python}")
        options = ("--target", target, "--brokers", "1", "--seconds", str(SECONDS))
        return shareproof("load", *options, "--rate", "100", "--out", str(out), *on, *more)


@contextlib.contextmanager
def skewed(folder: Path) -> Iterator[Cluster]:
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
