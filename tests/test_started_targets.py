"""Targets with a real broker: what runs, and what is left of it."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import Address, ExternalName, KafkaName
from fixtures.machine.loops import run_blocking
from fixtures.machine.ports import free_ports
from fixtures.targets import DEFAULT_TARGET, TargetOptions, broker, open_target
from fixtures.targets.external import ExternalTarget
from fixtures.targets.kafka import KafkaTarget
from fixtures.wire.codec import Struct
from fixtures.wire.connection import CallFailed, CallTimeout, Connection
from fixtures.wire.schema import Schemas
from spec.verdict import EnvironmentFault
from tests.shell import until

ROOT = Path(__file__).parents[1]
VERSION = DEFAULT_TARGET.partition(":")[2]


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaTarget]:
    target = KafkaTarget(
        KafkaName(version=VERSION), TargetOptions(properties={"broker.session.timeout.ms": "1500"})
    )
    target.start()
    yield target
    target.stop()


def _call(info: ClusterInfo, api: str, timeout: float = 10.0, **body: Any) -> Struct:
    async def call() -> Struct:
        host, _, port = info.bootstrap[0].rpartition(":")
        schemas = Schemas.from_jar(info.schema_jar)
        connection = await Connection.open(host, int(port), schemas=schemas, timeout=timeout)
        async with connection:
            return await connection.call(api, timeout=timeout, **body)

    return run_blocking(call())


def _topics(info: ClusterInfo) -> set[str]:
    return {topic.name for topic in _call(info, "Metadata", topics=None).topics}


def _create_topic(info: ClusterInfo, name: str) -> None:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    answer = _call(info, "CreateTopics", topics=[topic], timeout_ms=10_000)
    assert answer.topics[0].error_code == 0


def _heartbeat(info: ClusterInfo, group: str, member: str, epoch: int) -> Struct:
    return _call(
        info,
        "ShareGroupHeartbeat",
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        subscribed_topic_names=["t"] if epoch == 0 else None,
    )


def _groups(info: ClusterInfo) -> set[str]:
    answer = _call(info, "ListGroups", states_filter=[], types_filter=[])
    return {group.group_id for group in answer.groups}


def test_a_started_cluster_serves_share_groups(kafka: KafkaTarget) -> None:
    answer = _heartbeat(kafka.info, "g", str(uuid.uuid4()), 0)
    assert answer.error_code == 0
    assert answer.heartbeat_interval_ms == 500


def test_a_killed_broker_comes_back_with_its_data(kafka: KafkaTarget) -> None:
    _create_topic(kafka.info, "survivor")
    broker = kafka.brokers[0]
    address, pid = broker.address, broker.pid
    broker.kill()

    assert broker.pid is None
    assert broker.exit_code == -signal.SIGKILL

    broker.start()

    assert address == broker.address
    assert pid != broker.pid
    assert "survivor" in _topics(kafka.info)


def test_a_paused_broker_is_silent_until_resumed(kafka: KafkaTarget) -> None:
    broker = kafka.brokers[0]
    broker.pause()
    try:
        with pytest.raises(CallTimeout):
            _call(kafka.info, "Metadata", timeout=0.2, topics=[])
    finally:
        broker.resume()
    assert [each.node_id for each in _call(kafka.info, "Metadata", topics=[]).brokers] == [1]


def test_an_external_cluster_is_recognised_and_left_clean(kafka: KafkaTarget) -> None:
    guest = open_target(f"external:{kafka.info.bootstrap[0]}")
    guest.start()
    member = str(uuid.uuid4())
    mine, somebodys = f"{guest.info.prefix}mine", "somebodys"
    for name in (mine, somebodys):
        _create_topic(kafka.info, name)
        for epoch in (0, -1):  # the group stays, without members
            _heartbeat(kafka.info, name, member, epoch)

    assert guest.version == "4.4"
    assert {mine, somebodys} <= _groups(kafka.info)

    guest.stop()

    assert {mine, somebodys} & _topics(kafka.info) == {somebodys}
    assert {mine, somebodys} & _groups(kafka.info) == {somebodys}


def test_an_unreachable_cluster_is_an_environment_fault(kafka: KafkaTarget) -> None:
    assert kafka.info.schema_jar  # the definitions are in the cache
    nobody = Address(host="127.0.0.1", port=free_ports(1)[0])
    with pytest.raises(EnvironmentFault, match=f"No Kafka broker answers at {nobody}"):
        ExternalTarget(ExternalName(addresses=(nobody,))).start(timeout=1.0)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [("num.partitions", "many", "Invalid value many"),
     ("group.share.max.share.sessions", "1", "must be greater than or equal to")],
)  # fmt: skip
def test_a_broker_that_refuses_its_properties_is_quoted(key: str, value: str, words: str) -> None:
    target = KafkaTarget(KafkaName(version=VERSION), TargetOptions(properties={key: value}))
    with pytest.raises(EnvironmentFault, match=f"did not start: .*{words}.*its log: "):
        target.start()
    assert target.brokers == ()


# --- the reaper ------------------------------------------------------------------------------

_SUITE = """
import sys
from fixtures.targets import open_target
target = open_target(sys.argv[1])
target.start()
print("running", flush=True)
sys.stdin.read()
"""


def _brokers_of(suite: subprocess.Popen[str]) -> list[psutil.Process]:
    children = psutil.Process(suite.pid).children()
    return [child for child in children if any("shareproof.run" in a for a in _command(child))]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


@pytest.mark.parametrize("moment", ["starting", "running"])
@pytest.mark.usefixtures("kafka")  # all that is made only once has been made
def test_kill_9_of_the_suite_leaves_nothing(moment: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SUITE, DEFAULT_TARGET],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as suite:
        assert suite.stdout
        assert moment == "starting" or suite.stdout.readline() == "running\n"
        assert until(lambda: bool(_brokers_of(suite)))
        brokers = _brokers_of(suite)
        assert any(tmp_path.iterdir())
        suite.kill()

    assert until(lambda: not any(broker.is_running() for broker in brokers))
    assert until(lambda: not any(tmp_path.iterdir()))


def test_a_stopped_cluster_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    target = KafkaTarget(KafkaName(version=VERSION))
    target.start()
    info, pids = target.info, [broker.pid for broker in target.brokers]
    target.stop()
    assert not any(psutil.pid_exists(pid) for pid in pids if pid)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CallFailed):
        _call(info, "Metadata", timeout=1.0, topics=[])


# --- A frozen process -------------------------------------------------------------------------

BUSY = """
import threading
def spin():
    while True: pass
for _ in range(8): threading.Thread(target=spin, daemon=True).start()
print("busy", flush=True)
spin()
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="only Linux tells of threads")
def test_no_thread_runs_on() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            tasks = Path(f"/proc/{process.pid}/task")
            assert not broker._is_still(tasks)

            process.send_signal(signal.SIGSTOP)
            broker._until_still(process.pid)

            assert broker._is_still(tasks)
        finally:
            process.kill()
