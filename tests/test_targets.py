"""The targets' pure parts and their faults, fakes, metrics, and the tools that suit a cluster."""

import asyncio
import contextlib
import http.server
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fixtures.clients.tools import CONSOLE_CONSUMER, GROUPS, SHARE_GROUPS, ToolRun, Tools
from fixtures.fakes.target import of_kfake
from fixtures.interface.names import FAKES, FakeName, parse_target, release_line
from fixtures.machine.cache import staged
from fixtures.machine.java import find_java, parse_major
from fixtures.machine.maven import Release, clients_jar, is_complete, kafka_release, store
from fixtures.machine.ports import free_ports, held_ports
from fixtures.targets import DEFAULT_TARGET, TargetOptions, UsageFault, doctor, open_target
from fixtures.targets.broker import last_error
from fixtures.targets.config import cluster_properties, render
from fixtures.targets.doctor import examine
from fixtures.targets.metrics import Sample
from fixtures.targets.metrics import parse as parse_metrics
from fixtures.wire.schema import Schemas
from spec.ledger import load_ledger, parse_ledger
from spec.releases import line_by_levels, newest
from spec.rule import SpecError
from spec.verdict import EnvironmentFault, OutOfReach, Undecided
from tests.release import cluster_info

# --- names -----------------------------------------------------------------------------------

NAMES = (
    "|kafka|kafka:|kafka:4.4|kafka:latest|external:|external:host|external:host:0"
    "|external:host:70000|external:a:1,,b:2|zookeeper:1|kfake:|kfake:latest one|librdkafka-mock:x"
)


@pytest.mark.parametrize("name", NAMES.split("|"))
def test_bad_names_are_usage_faults_in_one_line(name: str) -> None:
    with pytest.raises(UsageFault) as fault:
        parse_target(name)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("kafka:3.9.1", {}, r"begin with 4\.1"),
        ("container:apache/kafka:4.0.2", {}, "early access"),
        ("external:host:9092", {"properties": {"a": "b"}}, "not ours to configure"),
        *[(DEFAULT_TARGET, {"brokers": brokers}, "1 or 3") for brokers in (0, 2, 4)],
    ],
)
def test_targets_that_cannot_be_are_refused(name: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageFault, match=text):
        open_target(name, TargetOptions(**options))


# --- properties ------------------------------------------------------------------------------


def test_each_release_gets_only_keys_it_has_and_the_callers_wishes_win() -> None:
    interval = "group.share.assignment.interval.ms"
    having = [v for v in ("4.1.2", "4.2.1", "4.3.1", "4.4.0") if interval in cluster_properties(v)]
    assert having == ["4.3.1", "4.4.0"]
    key = "group.share.min.record.lock.duration.ms"
    assert cluster_properties("4.4.0", TargetOptions(properties={key: "5000"}))[key] == "5000"
    shipped = cluster_properties("4.4.0", TargetOptions(shipped=True))
    assert not [name for name in shipped if name.startswith(("group.", "auto.", "log.cleaner"))]
    assert shipped["log.retention.check.interval.ms"] == "300000"


def test_properties_are_escaped() -> None:
    assert render({"a b": "x=\\y\nü"}) == "a\\ b=x\\=\\\\y\\n\\u00fc\n"
    assert (release_line("4.3.1"), release_line("4.4.0-rc1")) == ((4, 3), (4, 4))
    name = "external:kafka.example:9092,[::1]:9093"
    assert open_target(name).name == name


# --- ports -----------------------------------------------------------------------------------


def test_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = free_ports(9)
    assert len(set(ports)) == 9
    assert max(ports) < 32768, "below the ephemeral range"
    with contextlib.ExitStack() as held:
        [port] = held_ports(1, held)
        socket.create_server(("127.0.0.1", port)).close()
        monkeypatch.setenv("SHAREPROOF_PORTS", f"{port}-{port}")
        with pytest.raises(EnvironmentFault, match="SHAREPROOF_PORTS=LOW-HIGH"):
            free_ports(1)
    for text in ("x", "20000", "30000-20000", "0-5", "1-70000"):
        monkeypatch.setenv("SHAREPROOF_PORTS", text)
        with pytest.raises(UsageFault, match="LOW-HIGH"):
            free_ports(1)


# --- cache and registry ----------------------------------------------------------------------


def test_a_stored_release_is_complete_until_a_jar_shrinks(tmp_path: Path) -> None:
    jar, home = tmp_path / "a.jar", tmp_path / "kafka-0"
    jar.write_bytes(b"12345")
    store(home, [jar])
    assert is_complete(home)
    (home / "jars" / "a.jar").unlink()
    (home / "jars" / "a.jar").write_bytes(b"1234")
    assert not is_complete(home)


def test_a_failed_build_leaves_the_old_directory(tmp_path: Path) -> None:
    final = tmp_path / "x"
    final.mkdir()
    (final / "old").touch()

    def build() -> None:
        with staged(final) as staging:
            (staging / "new").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (final / "old").exists()


@pytest.mark.usefixtures("empty_cache")
def test_an_unwritable_cache_and_an_unreachable_registry_are_environment_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHAREPROOF_MAVEN_REPOSITORY", f"http://127.0.0.1:{free_ports(1)[0]}")
    with pytest.raises(EnvironmentFault, match="registry cannot be reached"):
        kafka_release("4.4.0")
    (tmp_path / "file").touch()
    monkeypatch.setenv("SHAREPROOF_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(EnvironmentFault, match="set SHAREPROOF_CACHE"):
        kafka_release("4.4.0")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAREPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


class _ListsReleases(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        listing = self.path.endswith("maven-metadata.xml")
        versions = "<version>4.3.1</version><version>4.4.0</version>"
        body = f"<metadata><versioning><versions>{versions}</versions></versioning></metadata>"
        self.send_response(200 if listing else 404)
        self.end_headers()
        self.wfile.write(body.encode() if listing else b"")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.usefixtures("empty_cache")
def test_an_unknown_release_is_named_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _ListsReleases) as registry:
        threading.Thread(target=registry.serve_forever, args=(0.02,)).start()
        monkeypatch.setenv(
            "SHAREPROOF_MAVEN_REPOSITORY", f"http://127.0.0.1:{registry.server_port}"
        )
        try:
            with pytest.raises(EnvironmentFault, match=r"Kafka 9\.9\.9 was not found.*4\.4\.0"):
                kafka_release("9.9.9")
        finally:
            registry.shutdown()


# --- Java and the machine --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "major"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_402"', 8),
     ('openjdk version "25" 2025-09-16', 25), ("bash: java: not found", None)],
)  # fmt: skip
def test_java_versions(text: str, major: int | None) -> None:
    assert major == parse_major(text)


def test_a_missing_or_old_java_is_an_environment_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentFault, match=r"No Java was found: install .* 17"):
        find_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="is Java 11, and Kafka 4 needs 17"):
        find_java()


def test_the_doctor_reports_what_fails_and_goes_on() -> None:
    def broken() -> str:
        raise EnvironmentFault("nothing there")

    first, second = examine([("a", broken, "do this"), ("b", lambda: "fine", "")])

    assert (first.ok, first.detail, first.remedy) == (False, "nothing there", "do this")
    assert (second.ok, second.detail) == (True, "fine")


# --- logs and features -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        ("", None),
        ("2026-01-01T00:00:00,000 WARN all is well (kafka.X)", None),
        ("2026-01-01T00:00:00,000 ERROR it broke (kafka.X)", "it broke"),
        (
            "2026-01-01T00:00:00,000 ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)\n"
            "org.apache.kafka.common.KafkaException: outer\n"
            "\tat kafka.X.y(X.scala:1)\n"
            "Caused by: java.net.BindException: Address already in use\n"
            "\tat java.base/sun.nio.ch.Net.bind0(Native Method)\n"
            "2026-01-01T00:00:00,001 WARN shutting down (kafka.X)\n",
            "Address already in use",
        ),
    ],
)
def test_the_last_error_is_its_root_cause(log: str, sentence: str | None) -> None:
    assert sentence == last_error(log)


@pytest.mark.parametrize(
    ("features", "share_fetch", "line"),
    [({"metadata.version": 25}, (0, 0), "4.0"), ({"metadata.version": 27}, (1, 1), "4.1"),
     ({"metadata.version": 28}, (1, 2), "4.2"), ({"metadata.version": 30}, (1, 2), "4.3"),
     ({"metadata.version": 33}, (1, 2), "4.4"), ({"metadata.version": 99}, (1, 2), newest().name),
     ({"metadata.version": 21}, None, ""), ({}, (1, 1), "4.1"), ({}, (1, 2), "4.2"),
     ({"metadata.version": 25}, (1, 2), "4.2"), ({"metadata.version": 7}, (1, 1), "4.1"),
     ({}, None, "")],
)  # fmt: skip
def test_the_closest_release_line(
    features: dict[str, int], share_fetch: tuple[int, int] | None, line: str
) -> None:
    assert line == line_by_levels(features, share_fetch)


# --- Fakes ------------------------------------------------------------------------------------

HEAD = """[ledger]
name = "p"
[[absent]]
feature = "f"
versions = ""
probe = "b"
reason = "r"
"""


@pytest.mark.parametrize("fake", sorted(FAKES))
def test_a_fake_has_a_newest_edition_and_a_ledger(fake: str) -> None:
    named = parse_target(fake)
    assert isinstance(named, FakeName)
    assert (named.edition, named.version) == FAKES[fake]
    assert load_ledger(fake).name == fake


def test_what_a_fake_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OutOfReach, match=r"does not know share[.]nothing"):
        open_target("kfake", TargetOptions(properties={"share.nothing": "1"})).start()
    with pytest.raises(OutOfReach, match="plain listener"):
        open_target("kfake", TargetOptions(listeners={"SECURE": "SSL"})).start()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentFault, match=r"no go on PATH: kfake is a library of Go"):
        open_target("kfake").start()


@pytest.mark.skipif(bool(doctor.missing("Go")), reason=doctor.missing("Go"))
def test_kfake_shows_its_brokers_and_ends_with_its_input() -> None:
    target = open_target("kfake", TargetOptions(brokers=3))
    target.start()
    process = target._process  # type: ignore[attr-defined]
    try:
        assert len(target.info.bootstrap) == 3
        assert target.info.properties["share.record.lock.sweep.interval.ms"] == "100"
    finally:
        target.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    with pytest.raises(EnvironmentFault, match="is not running"):
        _ = target.info


def test_only_the_records_of_a_share_fetch_may_be_null() -> None:
    jar = clients_jar("4.4.0")
    ours, theirs = (Schemas.from_jar(path).texts for path in (of_kfake(jar), jar))
    changed = [name for name in theirs if ours[name] != theirs[name]]
    assert ours.keys() == theirs.keys()
    assert changed == ["ShareFetchResponse"]


def test_an_absence_can_name_rules_areas_or_all() -> None:
    entry = parse_ledger(HEAD + 'rules = ["PER", "ACK-01"]', "p.toml").absent[0]
    every = parse_ledger(HEAD + 'rules = ["*"]', "p.toml").absent[0]
    none = parse_ledger(HEAD, "p.toml").absent[0]
    concerned = [rule for rule in ("PER-07", "ACK-01", "ACK-02") if entry.concerns(rule)]
    assert concerned == ["PER-07", "ACK-01"]
    assert every.concerns("ACK-02")
    assert not none.concerns("ACK-02")
    with pytest.raises(SpecError, match="rules must be a list"):
        parse_ledger(HEAD + 'rules = "PER"', "p.toml")


# --- Metrics ----------------------------------------------------------------------------------

PAGE = """\
# HELP kafka_server_SharePartitionMetrics_Value Attribute exposed for management
# TYPE kafka_server_SharePartitionMetrics_Value untyped
kafka_server_SharePartitionMetrics_Value{group="g",name="InFlight",partition="0",topic="a\\"b"} 3.0
kafka_server_group_coordinator_metrics_share_group_count{state="stable",} 1.0
jvm_threads_current 22.0
kafka_server_KafkaServer_BrokerState 3.0
"""


def test_samples_of_a_page() -> None:
    first, second = parse_metrics(PAGE)
    assert (first.bean, first.attribute, first.value) == ("SharePartitionMetrics", "Value", 3.0)
    assert first.labels == {"group": "g", "name": "InFlight", "partition": "0", "topic": 'a\\"b'}
    assert second == Sample(
        bean="group-coordinator-metrics",
        attribute="share_group_count",
        labels={"state": "stable"},
        value=1.0,
    )


# --- Command line tools -----------------------------------------------------------------------


def registry(published: set[str], versions: list[str]) -> Callable[[str], Release]:

    def jars(version: str) -> Release:
        versions.append(version)
        if version not in published:
            raise EnvironmentFault(f"no tools of {version}")
        return Release(version=version, home=Path(), jars=())

    return jars


@pytest.mark.parametrize(
    ("version", "published", "expected"),
    [
        pytest.param("4.3.0", {"4.3.0", "4.3.1"}, ["4.3.0"], id="its own"),
        pytest.param("4.3", {"4.3.0", "4.3.1"}, ["4.3.1"], id="the last of the line it shows"),
        pytest.param("4.2.2", {"4.2.1", "4.2.2"}, ["4.2.1"], id="known to have none"),
        pytest.param("4.4.0", {"4.3.1"}, ["4.3.1"], id="a line that has none"),
        pytest.param("4.2.9", {"4.2.1"}, ["4.2.9", "4.2.1"], id="found to have none"),
    ],
)
def test_tools_that_suit_a_cluster(version: str, published: set[str], expected: list[str]) -> None:
    versions: list[str] = []
    tools = asyncio.run(Tools.of(cluster_info(version), registry(published, versions)))
    assert versions == expected
    assert tools.version == expected[-1]


@pytest.mark.parametrize(
    ("version", "why"), [("4.2.9", "no tools of 4.2.1"), ("9.0.0", "no tools of 9.0.0"), ("", "''")]
)
def test_no_tools_are_out_of_reach(version: str, why: str) -> None:
    with pytest.raises(OutOfReach, match=why):
        asyncio.run(Tools.of(cluster_info(version), registry(set(), [])))


@pytest.mark.parametrize(
    ("main", "gives_up"), [(SHARE_GROUPS, True), (GROUPS, True), (CONSOLE_CONSUMER, False)]
)
def test_a_tool_that_gave_up_shows_nothing(
    main: str, gives_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = "Error: org.apache.kafka.common.errors.TimeoutException: Call(callName=listGroups)"

    async def ended(_self: Tools, command: str, _arguments: tuple[str, ...]) -> ToolRun:
        return ToolRun(command=command, status=1, out=output, err="")

    monkeypatch.setattr(Tools, "_run", ended)
    tools = asyncio.run(Tools.of(cluster_info("4.3.1"), registry({"4.3.1"}, [])))

    if gives_up:
        with pytest.raises(Undecided, match="gave up waiting for the cluster: TimeoutException"):
            asyncio.run(tools.run(main, "--list"))
    else:
        assert asyncio.run(tools.run(main)).out == output
