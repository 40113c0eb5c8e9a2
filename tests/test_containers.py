"""Targets in containers: what can be told without an engine, and that nothing outlives a run."""

import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from chaos.fitting import OURS, TOXIPROXY, usual_proxies
from chaos.run import Chaos, check
from chaos.schedule import Schedule
from fixtures.interface.names import Address, ContainerName, parse_target
from fixtures.interface.target import Plugged
from fixtures.machine.ports import free_ports
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.targets.config import cluster_properties
from fixtures.targets.container import naming
from fixtures.targets.container.broker import ContainerBroker
from fixtures.targets.container.engine import Engine, answers
from fixtures.wire.schema import Schemas
from fixtures.workload.plan import Load
from spec.verdict import EnvironmentFault
from suites.chaos.scenarios import SCENARIOS, chosen
from tests.shell import until
from tools import contained
from tools.containers import dockerd
from tools.containers.images import RootFileSystem

CONTAINER = "container:apache/kafka:4.4.0"

# --- names and variables -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "image", "version"),
    [
        (CONTAINER, "apache/kafka:4.4.0", "4.4.0"),
        ("container:", "apache/kafka:4.4.0", "4.4.0"),
        ("container:localhost:5000/ours:4.2.1-b3", "localhost:5000/ours:4.2.1-b3", "4.2.1"),
    ],
)
def test_a_tag_tells_the_release(name: str, image: str, version: str) -> None:
    assert parse_target(name) == ContainerName(image=image, version=version)


def test_images_without_a_release_and_files_of_this_machine_are_refused() -> None:
    for name in ("container:apache/kafka", "container:apache/kafka:latest"):
        with pytest.raises(UsageFault, match="give a tag with the release"):
            parse_target(name)
    jvm = TargetOptions(jvm=("-javaagent:x.jar",))
    for options in (jvm, TargetOptions(listeners={"SECURE": "SASL_SSL"})):
        with pytest.raises(UsageFault, match="no files of this machine"):
            open_target(CONTAINER, options)


@pytest.mark.parametrize(
    "key", [*cluster_properties("4.4.0", TargetOptions(brokers=3)), "a.b-c_d.e"]
)
def test_variables_become_properties_again(key: str) -> None:
    name = naming.variable(key).removeprefix("KAFKA_").lower()
    assert name.replace("_", ".").replace("...", "-").replace("..", "_") == key


def test_brokers_find_each_other_by_name() -> None:
    variables = naming.environment(
        2,
        3,
        listeners=naming.ports(("DIRECT",)),
        advertised={"CLIENT": Address(host="127.0.0.1", port=12345)},
        properties={"min.insync.replicas": "2"},
        cluster_id="id",
    )

    voters = variables["KAFKA_CONTROLLER_QUORUM_VOTERS"]
    assert voters == "1@broker-1:9093,2@broker-2:9093,3@broker-3:9093"
    assert variables["KAFKA_NODE_ID"] == "2"
    assert variables["KAFKA_ADVERTISED_LISTENERS"] == "CLIENT://127.0.0.1:12345"
    assert "DIRECT://:9095" in variables["KAFKA_LISTENERS"]
    assert variables["KAFKA_MIN_INSYNC_REPLICAS"] == "2"


# --- what fits containers ----------------------------------------------------------------------


def test_which_proxies_stand_before_containers() -> None:
    assert usual_proxies(CONTAINER, ("kill-leader",)) == TOXIPROXY
    assert usual_proxies(CONTAINER, ("kill-leader", "lose-responses")) == OURS
    assert usual_proxies("kafka:4.4.0", ("kill-leader",)) == OURS
    asked = Chaos(
        target=f"altered:honest@{CONTAINER}",
        schedule=Schedule(seed=1, seconds=5),
        load=Load(seconds=5),
        proxies=TOXIPROXY,
    )
    with pytest.raises(UsageFault, match="give --proxies ours"):
        check(asked)


def test_all_scenarios_are_those_that_fit() -> None:
    inside = {one.name for one in chosen(["all"], CONTAINER)}
    outside = {one.name for one in chosen(["all"])}
    assert {name for name in SCENARIOS if "unplugged" in name} == inside - outside
    assert {"leader-out-of-space", "clocks-of-brokers"} <= outside - inside
    assert inside | outside == {name for name, one in SCENARIOS.items() if not one.release}


def test_no_engine_is_said_and_is_no_pass(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contained, "lacking", lambda: "docker.io")
    assert contained.main([]) == 0
    said = capsys.readouterr().out
    assert said.startswith("NOT RUN, and therefore not passed")
    assert "Missing: docker.io" in said


# --- files of an image -------------------------------------------------------------------------


def test_an_image_is_made_of_files(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with RootFileSystem(tmp_path / "root.tar") as root:
        root.file("bin/program", program)
        root.file("bin/program", program)
        root.link("bin/other", "program")
        root.text("etc/run", "x", 0o700)

    with tarfile.open(tmp_path / "root.tar") as archive:
        names = archive.getnames()
        assert names.count("bin/program") == 1
        assert archive.getmember("bin/program").mode == 0o755
        assert archive.getmember("bin/other").linkname == "program"
        assert archive.getmember("etc/run").mode == 0o700
        assert archive.getmember("tmp").mode == 0o1777


# --- nothing outlives a run --------------------------------------------------------------------

RUN = """
import sys, tempfile
from pathlib import Path
from fixtures.targets.container.engine import Engine
from tools.containers import dockerd
from tools.containers.images import RootFileSystem
with dockerd.engine():
    engine = Engine()
    engine.start()
    archive = Path(tempfile.mkdtemp()) / "root.tar"
    with RootFileSystem(archive) as root:
        root.shell()
    api = engine.client.api
    command = ['CMD ["sleep", "600"]']
    api.import_image_from_file(str(archive), repository="sleeper", tag="1", changes=command)
    engine.renew_network()
    engine.run("sleeper:1", "sleeper", ports={})
    print(engine.network.id[:12], flush=True)
    sys.stdin.read()
    engine.stop()
"""


@dataclass(frozen=True, slots=True)
class Running:
    """A run with a private engine and a container in it."""

    process: subprocess.Popen[str]
    network: str

    def traces(self) -> list[str]:
        found = [
            " ".join(process.info["cmdline"] or ())
            for process in psutil.process_iter(["cmdline", "status"])
            if process.info["status"] != psutil.STATUS_ZOMBIE
        ]
        ours = [line for line in found if dockerd.PREFIX in line or line == "sleep 600"]
        device = Path("/sys/class/net") / f"br-{self.network}"
        return [*ours, *([str(device)] if device.exists() else [])]

    def ended(self) -> bool:
        return until(lambda: not any("/sys/" not in one for one in self.traces()), 30, every=0.1)


@pytest.fixture
def running() -> Iterator[Running]:
    if answers() or dockerd.lacking():
        pytest.skip("a container engine for one run alone: dockerd, unshare, ip and root")
    process = subprocess.Popen(
        [sys.executable, "-c", RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    with process:
        yield Running(process, process.stdout.readline().strip())
        process.kill()


def test_an_orderly_end_leaves_nothing(running: Running) -> None:
    assert any("sleep" in line for line in running.traces())
    running.process.communicate("")
    assert running.process.returncode == 0
    assert running.ended()
    assert running.traces() == []


def test_the_next_start_clears_what_a_killed_run_left(running: Running) -> None:
    running.process.kill()
    running.process.wait()
    assert running.ended()
    dockerd.sweep()
    assert running.traces() == []


# --- what an engine does to a broker -----------------------------------------------------------


@pytest.fixture
def somebody(tmp_path: Path) -> Iterator[ContainerBroker]:
    """A handle on a container that greets whoever comes, as a broker's would be."""
    if answers() or dockerd.lacking():
        pytest.skip("a container engine for one run alone: dockerd, unshare, ip and root")
    with dockerd.engine(), Engine() as engine:
        with RootFileSystem(tmp_path / "root.tar") as root:
            root.shell()
        greet = "while true; do echo hello | nc -l -p 9092; done"
        engine.client.api.import_image_from_file(
            str(tmp_path / "root.tar"),
            repository="greeter",
            tag="1",
            changes=[f'CMD ["sh", "-c", "{greet}"]'],
        )
        engine.renew_network()
        at = engine.published(free_ports(1)[0])
        container = engine.run("greeter:1", naming.alias(1), ports={9092: at})
        yield ContainerBroker(
            node_id=1,
            container=container,
            network=engine.network,
            listeners={naming.CLIENT: at},
            ready_at=at,
            schemas=Schemas(texts={}),
        )


def _greets(broker: ContainerBroker) -> bool:
    at = broker.listener(naming.CLIENT)
    try:
        with socket.create_connection((at.host, at.port), timeout=1) as connection:
            return connection.recv(5) == b"hello"
    except OSError:
        return False


def _comes_back(broker: ContainerBroker) -> bool:
    return until(lambda: _greets(broker), 20, every=0.1)


def test_engines_freeze_unplug_and_kill(somebody: ContainerBroker) -> None:
    assert isinstance(somebody, Plugged)
    assert _comes_back(somebody)

    somebody.pause()
    assert (somebody.is_frozen, somebody.is_alive, _greets(somebody)) == (True, True, False)
    somebody.resume()
    assert _comes_back(somebody)

    somebody.disconnect()
    assert (somebody.is_connected, somebody.is_alive, _greets(somebody)) == (False, True, False)
    somebody.connect()
    assert somebody.is_connected
    assert _comes_back(somebody)

    somebody.pause()
    somebody.kill()
    assert (somebody.is_alive, somebody.exit_code) == (False, -signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match="Broker 1 ended with exit code -9"):
        somebody.check_alive()
