"""Kafka that was built here: which jars are taken of a place, and the version that they get."""

import os
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from fixtures.interface.names import KafkaName, UsageFault, parse_target
from fixtures.machine.local import is_path, local_release
from fixtures.machine.maven import clients_jar, kafka_release
from fixtures.targets.arguments import resolve_target
from spec.ledger import covers
from spec.releases import line_of, release_notice


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
