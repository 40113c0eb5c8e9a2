"""What changed between two releases' definitions, and the rules that name it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fixtures.definitions.changes import changes, messages_in
from fixtures.definitions.configs import _parsed, configs_in
from fixtures.machine.maven import kafka_release
from fixtures.targets import DEFAULT_TARGET, UsageFault
from shareproof.definitions import compare
from spec.requirement import load_requirements

VERSION = DEFAULT_TARGET.partition(":")[2]
OLD: dict[str, Any] = {
    "apiKey": 78,
    "type": "request",
    "name": "ShareFetchRequest",
    "validVersions": "1",
    "fields": [
        {"name": "MaxWaitMs", "type": "int32", "versions": "0+", "about": "How long to wait."},
        {"name": "Topics", "type": "[]FetchTopic", "versions": "0+", "fields": [
            {"name": "TopicId", "type": "uuid", "versions": "0+"}]},
    ],
}  # fmt: skip


def jar(folder: Path, name: str, comments: str, **definition: Any) -> Path:
    """Return a jar with one definition."""
    file = folder / name
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(
            "common/message/ShareFetchRequest.json", f"{comments}\n{json.dumps(OLD | definition)}"
        )
        packed.writestr("other/data.json", "{}")
    return file


def found(folder: Path, comments: tuple[str, str] = ("", ""), **newer: Any) -> list[str]:
    """Return the changes from the old definition to a newer one, a line each."""
    old, new = jar(folder, "old.jar", comments[0]), jar(folder, "new.jar", comments[1], **newer)
    return [str(change) for change in changes(messages_in([old]), messages_in([new]))]


def test_nothing_changed(tmp_path: Path) -> None:
    """The same definition differs in nothing."""
    assert found(tmp_path) == []


def test_versions_and_fields(tmp_path: Path) -> None:
    """A raised version, a field that came, one that went and one of another type are told."""
    topics = {
        **OLD["fields"][1],
        "fields": [{"name": "TopicId", "type": "int64", "versions": "0+"}],
    }
    limit = {"name": "MaxRecords", "type": "int32", "versions": "1+"}

    assert found(tmp_path, validVersions="1-2", fields=[topics, limit]) == [
        "ShareFetchRequest: validVersions: 1 -> 1-2",
        "ShareFetchRequest MaxWaitMs: field removed: "
        "type int32, versions 0+, about How long to wait.",
        "ShareFetchRequest Topics.TopicId: type: uuid -> int64",
        "ShareFetchRequest MaxRecords: field added: type int32, versions 1+",
    ]


def test_comments_are_part_of_the_contract(tmp_path: Path) -> None:
    """A new paragraph is one change, wherever it stands; the licence is none."""
    before = "// Licensed to the Apache Software Foundation\n//\n// Version 1 is first."
    after = "// Version 0 was early access.\n//\n// Version 1 is\n// first."

    assert found(tmp_path, (before, after)) == [
        "ShareFetchRequest: comment added: Version 0 was early access."
    ]


def test_a_definition_that_came_is_one_change(tmp_path: Path) -> None:
    """All facts of a new definition are told together."""
    new = messages_in([jar(tmp_path, "new.jar", "")])

    assert [str(change) for change in changes({}, new)] == [
        "ShareFetchRequest: definition added: apiKey 78, type request, validVersions 1"
    ]


def test_a_key_is_told_once() -> None:
    """What the whole broker's class repeats is told by the class that it is about."""
    facts = "INT\t5\t[1,...]\tLOW\tHow many."
    printed = f"a.KafkaConfig\tshare.x\t{facts}\na.ShareGroupConfig\tshare.x\t{facts}\n"

    assert list(_parsed(printed)) == ["ShareGroupConfig share.x"]


def test_a_release_is_asked_for_its_configs() -> None:
    """The group configurations of the default release are there, with what they are."""
    facts = configs_in(kafka_release(VERSION).jars)["GroupConfig share.isolation.level"][""]

    assert facts["type"] == "STRING"
    assert facts["default"] == "read_uncommitted"


def test_rules_that_name_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed field and a changed key lead to the rules whose sources or sentences name them."""
    field = {"ShareFetchRequest": {"": {}, "ShareAcquireMode": {"type": "int8"}}}
    key = {"GroupConfig share.delivery.count.limit": {"": {"type": "INT"}}}
    told = iter([{"ShareFetchRequest": {"": {}}}, field])
    monkeypatch.setattr("shareproof.definitions._jars", lambda _: [])
    monkeypatch.setattr("shareproof.definitions.messages_in", lambda _: next(told))
    configs = iter([{}, key])
    monkeypatch.setattr("shareproof.definitions.configs_in", lambda _: next(configs))

    work = compare("4.1.2", "4.3.1", load_requirements(), everything=False)

    assert [one.change.part or one.change.definition for one in work] == [
        "ShareAcquireMode",
        "GroupConfig share.delivery.count.limit",
    ]
    assert "ACQ-43" in work[0].rules
    assert "CFG-19" in work[1].rules


def test_what_is_no_release_is_wrong_usage() -> None:
    """A name that is no release is refused in one sentence."""
    with pytest.raises(UsageFault, match="is no Kafka release"):
        compare("reference", "4.4.0", {}, everything=False)
