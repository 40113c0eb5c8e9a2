"""The user's settings for certificates, proxies and mirrors, and Kafka that was built here."""

import contextlib
import os
import re
import socket
import ssl
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest
import trustme

from fixtures.interface.names import KafkaName, UsageFault, parse_target
from fixtures.machine import network
from fixtures.machine.builds import run
from fixtures.machine.java import client_environment
from fixtures.machine.local import is_path, local_release
from fixtures.machine.maven import clients_jar, kafka_release
from fixtures.machine.ports import free_ports
from fixtures.targets.arguments import resolve_target
from spec.ledger import covers
from spec.releases import line_of, release_notice
from spec.verdict import EnvironmentFault
from tests.fake import ROOT

SETTINGS = """<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0"><mirrors>
<mirror><id>a</id><url>https://apache.example/</url><mirrorOf>apache</mirrorOf></mirror>
<mirror><id>b</id><url>https://${env.HOUSE}/maven</url><mirrorOf>*, !local</mirrorOf></mirror>
</mirrors></settings>"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in os.environ:
        if re.search("proxy|CERT|_CA_|CAINFO|MAVEN|M2_HOME|npm_config|JAVA", name, re.IGNORECASE):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", network.BUNDLES)
def test_one_bundle_of_certificates_serves_every_tool(name: str) -> None:
    found = network.fetching({name: "/ca.pem"})
    assert found == dict.fromkeys((*network.BUNDLES, network.EXTRA), "/ca.pem")


def test_what_is_set_stays_and_a_proxy_has_both_spellings(monkeypatch: pytest.MonkeyPatch) -> None:
    found = network.fetching({"PIP_CERT": "/pip.pem", "SSL_CERT_FILE": "/all.pem"})
    assert (found["PIP_CERT"], found["CURL_CA_BUNDLE"]) == ("/pip.pem", "/all.pem")
    assert network.fetching({network.EXTRA: "/x.pem"}) == {network.EXTRA: "/x.pem"}
    found = network.fetching({"HTTPS_PROXY": "http://p:1", "no_proxy": "a", "NO_PROXY": "b"})
    assert (found["https_proxy"], found["no_proxy"], found["NO_PROXY"]) == ("http://p:1", "a", "b")
    monkeypatch.setenv("SSL_CERT_FILE", "/ca.pem")
    with network.fetching_here():
        assert os.environ["REQUESTS_CA_BUNDLE"] == "/ca.pem"
    assert "REQUESTS_CA_BUNDLE" not in os.environ


def test_hosts_of_ours_are_reached_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    network.bypass("127.0.0.1")
    assert "no_proxy" not in os.environ
    monkeypatch.setenv("HTTP_PROXY", "http://p:1")
    monkeypatch.setenv("NO_PROXY", "house")
    monkeypatch.setenv("no_proxy", "")
    network.bypass("127.0.0.1")
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "house,127.0.0.1"


def test_the_mirror_of_mavens_settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert network.maven_mirror() is None
    (home / ".m2").mkdir()
    (home / ".m2" / "settings.xml").write_text(SETTINGS)
    monkeypatch.setenv("HOUSE", "mirror.example")
    assert network.maven_mirror() == "https://mirror.example/maven"
    monkeypatch.setenv(network.REPOSITORY_VARIABLE, "https://other.example")
    assert network.maven_mirror() == "https://other.example"


def test_the_registry_of_npms_settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert network.npm_registry() == ""
    npm = home / "npm"
    npm.write_text("#!/bin/sh\n[ \"$*\" = 'config get registry' ] && echo https://npm.default/\n")
    npm.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda _: str(npm))
    assert network.npm_registry() == "https://npm.default"
    (home / ".npmrc").write_text("fund=false\nregistry = https://npm.example/\n")
    assert network.npm_registry() == "https://npm.example"
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "https://other.example/")
    assert network.npm_registry() == "https://other.example"


def test_nobody_answers() -> None:
    port = free_ports(1)[0]
    why = network.unreachable(f"http://user:secret@127.0.0.1:{port}/x", within=5)
    assert why == "ConnectionError at 127.0.0.1"


def test_npms_own_certificates_are_tried(home: Path) -> None:
    authority = trustme.CA()
    bundle = home / "ca.pem"
    authority.cert_pem.write_to_path(str(bundle))
    with socket.create_server(("127.0.0.1", 0)) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("127.0.0.1").configure_cert(context)
        there = threading.Thread(target=_respond, args=(server, context, 3))
        there.start()
        url = f"https://127.0.0.1:{server.getsockname()[1]}"
        (home / ".npmrc").write_text(f"cafile={bundle}\n")

        assert network.unreachable(url, within=5) == "SSLError at 127.0.0.1"
        assert network.unreachable(url, within=5, trusted=network.npm_bundles()) == ""
        there.join(5)


def _respond(server: socket.socket, context: ssl.SSLContext, calls: int) -> None:
    for _ in range(calls):
        with contextlib.suppress(ssl.SSLError), server.accept()[0] as plain:
            secure = context.wrap_socket(plain, server_side=True)
            with secure:
                secure.recv(1000)
                secure.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")


def test_a_file_that_is_not_there_is_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CERT", str(home / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", f"{home / 'none'}{os.pathsep}{home}")
    assert network.wrong_bundles() == ["PIP_CERT"]
    assert network.named() == ["PIP_CERT", "SSL_CERT_DIR"]


@pytest.mark.parametrize("tool", ["pip", "Maven", "npm", "Go", "Cargo"])
def test_a_tools_settings_are_told(tool: str) -> None:
    sentence = network.advice(tool)
    handed_on = (ROOT / "tox.ini").read_text()
    assert re.fullmatch(r".* reads .*PROXY.*\.", sentence)
    for name in re.findall(r"\b[A-Za-z]+_[A-Z_]*[A-Z]\b|\bGO[A-Z]+\b", sentence):
        stem = re.match(r"SHAREPROOF|PIP|NODE|GO|CARGO|SSL_CERT|REQUESTS_CA_BUNDLE|HTTPS", name)
        assert stem, name
        assert f"    {stem[0]}" in handed_on or stem[0] == "HTTPS", name


def test_a_build_has_the_users_settings_and_says_what_its_tool_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/ca.pem")
    run("x", ["sh", "-c", 'test "$CARGO_HTTP_CAINFO$X" = /ca.pem1'], env={"X": "1"})
    fetch = ["sh", "-c", "echo 'x509: certificate signed by unknown authority.' >&2; exit 1"]
    with pytest.raises(EnvironmentFault, match=r"unknown authority\. Go reads GOPROXY"):
        run("kfake", fetch, fetcher="Go")
    with pytest.raises(EnvironmentFault, match=r"undefined: x\.$"):
        run("kfake", ["sh", "-c", "echo 'undefined: x' >&2; exit 1"], fetcher="Go")


def test_a_jvm_that_speaks_to_others_keeps_their_certificates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trusted = "-Djavax.net.ssl.trustStore=/a b"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Xmx9g '{trusted}' -Dhttps.proxyHost=p")
    kept = client_environment()["JAVA_TOOL_OPTIONS"]
    assert kept == f"'{trusted}' -Dhttps.proxyHost=p"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx9g")
    assert "JAVA_TOOL_OPTIONS" not in client_environment()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHAREPROOF_CACHE", str(tmp_path / "cache"))


def jars(folder: Path, *names: str, content: str = "x") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(content)
    return folder


def of(version: str) -> list[str]:
    return [jar.name for jar in kafka_release(version).jars]


def test_a_directory_of_jars(tmp_path: Path) -> None:
    folder = jars(tmp_path / "jars", "kafka-clients-4.3.1.jar", "kafka_2.13-4.3.1.jar")
    version = local_release(folder)
    assert version.startswith("4.3.1+")
    assert of(version) == ["kafka-clients-4.3.1.jar", "kafka_2.13-4.3.1.jar"]
    assert local_release(folder) == version
    jars(folder, "kafka_2.13-4.3.1.jar", content="y")
    assert local_release(folder) != version


@pytest.mark.parametrize("packed", [False, True])
def test_a_distribution(tmp_path: Path, *, packed: bool) -> None:
    home = tmp_path / "kafka_2.13-4.5.0-SNAPSHOT"
    jars(home / "libs", "kafka-clients-4.5.0-SNAPSHOT.jar", "core.jar")
    jars(home / "bin", "tool.jar")
    place = home
    if packed:
        place = tmp_path / "kafka.tgz"
        with tarfile.open(place, "w:gz") as archive:
            archive.add(home, home.name)

    version = local_release(place)

    assert version.startswith("4.5.0+")
    assert of(version) == ["core.jar", "kafka-clients-4.5.0-SNAPSHOT.jar"]
    assert clients_jar(version).name == "kafka-clients-4.5.0-SNAPSHOT.jar"
    assert kafka_release(version).clients_jar == clients_jar(version)


def test_a_source_tree(tmp_path: Path) -> None:
    jars(tmp_path / "tree" / "clients" / "build" / "libs",
         "kafka-clients-4.5.0.jar", "kafka-clients-4.5.0-sources.jar")  # fmt: skip
    jars(tmp_path / "tree" / "core" / "build" / "libs", "kafka_2.13-4.5.0.jar", "c-test.jar")
    jars(tmp_path / "tree" / "core" / "build" / "dependant-libs-2.13.18", "slf4j-api.jar")
    found = of(local_release(tmp_path / "tree"))
    assert found == ["kafka-clients-4.5.0.jar", "kafka_2.13-4.5.0.jar", "slf4j-api.jar"]


def compiled(module: Path, name: str, content: str, *, age: int) -> None:
    file = module / "build" / "classes" / "java" / "main" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    os.utime(file, (time.time() - age, time.time() - age))


def library(module: Path, name: str, **entries: str) -> Path:
    file = module / "build" / "libs" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as packed:
        for entry, content in entries.items():
            packed.writestr(f"{entry}.class", content)
    os.utime(file, (time.time() - 60, time.time() - 60))
    return file


def content(version: str, jar: str) -> dict[str, str]:
    with zipfile.ZipFile(next(p for p in kafka_release(version).jars if p.name == jar)) as packed:
        return {name: packed.read(name).decode() for name in packed.namelist()}


def test_newer_classes_take_the_place_of_a_jars(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (jars(tree) / "gradle.properties").write_text("version=4.5.0-SNAPSHOT\nscalaVersion=2.13.18\n")
    library(tree / "clients", "kafka-clients-4.5.0-SNAPSHOT.jar", A="old", Shaded="kept")
    library(tree / "clients", "kafka-clients-4.4.0-SNAPSHOT.jar", A="of another branch")
    library(tree / "server", "kafka-server-4.5.0-SNAPSHOT.jar", C="jarred")
    compiled(tree / "server", "C.class", "from before the jar", age=120)
    before = local_release(tree)
    compiled(tree / "clients", "A.class", "new", age=0)
    compiled(tree / "core", "B.class", "never jarred", age=0)

    version = local_release(tree)

    assert version != before
    assert version.startswith("4.5.0+")
    assert of(version) == [
        "kafka-clients-4.5.0-SNAPSHOT.jar",
        "kafka-server-4.5.0-SNAPSHOT.jar",
        "kafka_2.13-4.5.0-SNAPSHOT.jar",
    ]
    clients = content(version, "kafka-clients-4.5.0-SNAPSHOT.jar")
    assert clients == {"A.class": "new", "Shaded.class": "kept"}
    assert content(version, "kafka-server-4.5.0-SNAPSHOT.jar") == {"C.class": "jarred"}
    assert local_release(tree) == version


def test_old_copies_of_modules_are_left_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    library(tree / "clients", "kafka-clients-4.5.0.jar", A="of the module")
    libs = tree / "core" / "build" / "dependant-libs-2.13.18"
    jars(libs, "kafka-clients-4.5.0.jar", "kafka-raft-4.4.0.jar", "slf4j-api.jar", content="copy")
    version = local_release(tree)
    assert of(version) == ["kafka-clients-4.5.0.jar", "slf4j-api.jar"]
    assert content(version, "kafka-clients-4.5.0.jar") == {"A.class": "of the module"}


@pytest.mark.parametrize("place", ["nowhere", "empty", "file.tgz"])
def test_no_kafka_is_wrong_usage(tmp_path: Path, place: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.tgz").write_text("no archive")
    with pytest.raises(UsageFault, match=f"kafka:{tmp_path / place}: ") as fault:
        resolve_target(f"kafka:{tmp_path / place}")
    assert "\n" not in str(fault.value)


def test_a_local_version_is_of_its_line() -> None:
    places = ("4.4.0", "4.4.0:mutant", "./kafka", "/k", "..", "k.tgz")
    assert [is_path(text) for text in places] == [*(False, False, True, True, True, True)]
    assert resolve_target("kafka:4.4.0") == "kafka:4.4.0"
    name = parse_target("kafka:4.3.1+3f2a9c81")
    assert isinstance(name, KafkaName)
    assert line_of(name.version).name == "4.3"
    assert covers(">=4.3,<4.3.2", name.version)
    assert not covers("<4.3", name.version)
    assert "newer than this suite" in release_notice("4.9.0+3f2a9c81")
