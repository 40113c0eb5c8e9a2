"""Real servers that keep runs, for tests: HDFS by Maven, and an S3 server by Go."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fixtures.machine import registry
from fixtures.machine.cache import locked
from fixtures.machine.golang import built
from fixtures.machine.jvm import FAST_START
from fixtures.machine.ports import free_ports

S3_SERVER = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
KEY, SECRET = "tester", "a-secret-of-3141"
BUCKET = "runs"
PATIENCE = 300.0
_NAMENODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
_DATANODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server under way: the URI of an empty place on it, and how to end it."""

    uri: str
    processes: tuple[subprocess.Popen[bytes], ...]

    def end(self) -> None:
        """Kill it."""
        for process in self.processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def hdfs(folder: Path) -> Iterator[Server]:
    """Start a name node and a data node."""
    ports = free_ports(5)
    conf = _configured(folder, ports)
    command = ["java", *FAST_START, "-Xmx256m", "-cp", os.pathsep.join([str(conf), *hadoop()])]
    log = (folder / "log").open("wb")
    subprocess.run([*command, _NAMENODE, "-format"], stdout=log, stderr=log, check=True)
    server = Server(
        uri=f"hdfs://127.0.0.1:{ports[0]}/a/run",
        processes=tuple(
            subprocess.Popen([*command, node], stdout=log, stderr=log)
            for node in (_NAMENODE, _DATANODE)
        ),
    )
    try:
        _await_nodes(ports[1], folder / "log")
        yield server
    finally:
        server.end()
        log.close()


@contextlib.contextmanager
def s3(folder: Path) -> Iterator[Server]:
    """Start an S3 server with one bucket; its credentials are those of the environment."""
    program = built("versitygw", S3_SERVER, "put Go of version 1.26 or later on the PATH, or")
    (port,) = free_ports(1)
    (folder / BUCKET).mkdir(parents=True)
    environment = {**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "--port", f"127.0.0.1:{port}", "posix", str(folder)],
            stdout=log,
            stderr=log,
            env=environment,
        )
        try:
            _await_answers(port, process, folder / "log")
            yield Server(uri=f"http://127.0.0.1:{port}", processes=(process,))
        finally:
            process.kill()
            process.wait()


def _await_answers(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > deadline:
            said = log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise AssertionError(f"the S3 server did not start:\n{said}")
        time.sleep(0.05)


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def hadoop() -> list[str]:
    """Return the jars of which Hadoop's servers consist, of the release that Spark has."""
    spark = importlib.util.find_spec("pyspark")
    assert spark is not None
    jars = Path(spark.origin or "").parent / "jars"
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
    """Write files as Hadoop wants its configuration."""
    for name, properties in files.items():
        entries = (
            f"<property><name>{key}</name><value>{value}</value></property>"
            for key, value in properties.items()
        )
        text = f"<configuration>{''.join(entries)}</configuration>"
        (conf / name).write_text(text, encoding="utf-8")


def _await_nodes(port: int, log: Path) -> None:
    """Wait until the name node has a data node to write to, and has left its safe mode."""
    url = f"http://127.0.0.1:{port}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as said:
            text = said.read().decode()
            if '"NumLiveDataNodes" : 1' in text and '"FSState" : "Operational"' in text:
                return
        time.sleep(0.2)
    raise AssertionError(f"HDFS does not start: {log.read_text(encoding='utf-8')[-2000:]}")
