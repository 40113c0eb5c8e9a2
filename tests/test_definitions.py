"""What changed between two releases' definitions, and the rules that name it."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from fixtures.definitions.changes import Change, changes, messages_in
from fixtures.definitions.configs import _parsed, configs_in
from fixtures.machine.maven import kafka_release
from fixtures.targets import DEFAULT_TARGET, UsageFault
from shareproof.definitions import _naming_config, _naming_message, compare
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
    file = folder / name
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr(
            "common/message/ShareFetchRequest.json", f"{comments}\n{json.dumps(OLD | definition)}"
        )
        packed.writestr("other/data.json", "{}")
    return file


def found(folder: Path, comments: tuple[str, str] = ("", ""), **newer: Any) -> list[str]:
    old, new = jar(folder, "old.jar", comments[0]), jar(folder, "new.jar", comments[1], **newer)
    return [str(change) for change in changes(messages_in([old]), messages_in([new]))]


LICENCE = """\
// Licensed to the Apache Software Foundation (ASF) under one or more
// contributor license agreements.
//
//    http://www.apache.org/licenses/LICENSE-2.0
//
// See the License for the specific language governing permissions and
// limitations under the License.

"""


def test_a_licence_that_came_is_no_change(tmp_path: Path) -> None:
    assert found(tmp_path) == []
    errors = "// Supported errors:\n// - INVALID_REQUEST (version 0+)"
    assert found(tmp_path, (errors, LICENCE + errors)) == []


def test_versions_and_fields(tmp_path: Path) -> None:
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
    before = "// Licensed to the Apache Software Foundation\n//\n// Version 1 is first."
    after = "// Version 0 was early access.\n//\n// Version 1 is\n// first."
    assert found(tmp_path, (before, after)) == [
        "ShareFetchRequest: comment added: Version 0 was early access."
    ]


def test_errors_are_told_one_by_one(tmp_path: Path) -> None:
    before = "// Supported errors:\n// - INVALID_REQUEST (version 0+)"
    after = (
        "// Supported errors:\n// - INVALID_REQUEST (version 0-1)\n"
        "// - CORRUPT_MESSAGE (version 2+) - only\n//   for records"
    )
    assert found(tmp_path, (before, after)) == [
        "ShareFetchRequest: error INVALID_REQUEST: (version 0+) -> (version 0-1)",
        "ShareFetchRequest: error CORRUPT_MESSAGE added: (version 2+) - only for records",
    ]


def test_a_reworded_comment_is_one_change(tmp_path: Path) -> None:
    before = "// Version 0 was used for early access of KIP-932 in Apacke Kafka 4.0."
    after = before.replace("Apacke", "Apache")
    old, new = (jar(tmp_path, f"{at}.jar", text) for at, text in enumerate((before, after)))
    (change,) = changes(messages_in([old]), messages_in([new]))
    assert (
        change.short
        == "comment: ... of KIP-932 in Apacke Kafka 4.0. -> ... of KIP-932 in Apache Kafka 4.0."
    )


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("a b c d e f", "a b c d e f g", "x: ... d e f -> ... d e f g"),
        ("a b", "c", "x: a b -> c"),
        ("k a b c d", "l a b c d", "x: k a b c ... -> l a b c ..."),
        ("a a", "a a a", "x: a a -> a a a"),
    ],
)
def test_long_texts_are_told_where_they_differ(old: str, new: str, told: str) -> None:
    assert Change(definition="D", part="", what="x", old=old, new=new).short == told


def test_a_definition_and_a_key_that_came_are_one_change(tmp_path: Path) -> None:
    new = messages_in([jar(tmp_path, "new.jar", "")])
    assert [str(change) for change in changes({}, new)] == [
        "ShareFetchRequest: definition added: apiKey 78, type request, validVersions 1"
    ]
    facts = "INT\t5\t[1,...]\tLOW\tHow many."
    printed = f"a.KafkaConfig\tshare.x\t{facts}\na.ShareGroupConfig\tshare.x\t{facts}\n"
    assert list(_parsed(printed)) == ["ShareGroupConfig share.x"]


def test_a_release_is_asked_for_its_configs() -> None:
    facts = configs_in(kafka_release(VERSION).jars)["GroupConfig share.isolation.level"][""]
    assert facts["type"] == "STRING"
    assert facts["default"] == "read_uncommitted"


def test_rules_that_name_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_rules_rest_on_what_changed() -> None:
    rules = load_requirements()

    def change(definition: str, what: str, old: str, new: str) -> Change:
        return Change(definition=definition, part="", what=what, old=old, new=new)

    error = "error GROUP_ID_NOT_FOUND"
    named = _naming_message(change("ShareGroupHeartbeatResponse", error, "", "(version 0+)"), rules)
    assert ("MEM-03" in named, "MEM-01" in named) == (True, False)
    named = _naming_message(change("ShareFetchRequest", "validVersions", "1", "1-2"), rules)
    assert ("CFG-24" in named, "ACQ-43" in named) == (True, False)
    # A word is no key.
    named = _naming_config(change("SocketServerConfigs listeners", "type", "a", "b"), rules)
    assert "ADM-41" not in named
    assert all(any("listeners" in str(source) for source in rules[one].source) for one in named)
    with pytest.raises(UsageFault, match="is no Kafka release"):
        compare("reference", "4.4.0", {}, everything=False)
