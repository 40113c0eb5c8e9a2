"""What the suite knows of releases, and the rules that name what changed between two."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import spec.releases
from fixtures.definitions.changes import Change, _parsed, changes, configs_in, messages_in
from fixtures.interface.names import DEFAULT_VERSION
from fixtures.machine.maven import kafka_release
from fixtures.targets import DEFAULT_TARGET, UsageFault
from fixtures.targets.kafka import release_before
from shareproof.definitions import _naming_config, _naming_message, compare
from spec.configs import Scope, configs_of, load_configs
from spec.model.release import RELEASES, release_of
from spec.releases import (
    levels_notice,
    line_by_levels,
    line_of,
    lines,
    newest,
    parse,
    release_notice,
)
from spec.rule import SpecError, load_rules
from spec.verdict import OutOfReach
from tests.release import cluster_info

FOLDER = Path(spec.releases.__file__).parent
NEXT = """
default = "4.5.0"
tools = "4.5.0"
upgrade_from = "4.4.0"
removed_configs = ["group.share.max.size"]
[levels]
"metadata.version" = 35
[behaviour]
throttling = false
[configs.broker]
"group.share.delivery.count.limit" = { default = "6" }
"group.share.new" = { type = "INT", default = "1" }
"""


MAJOR, MINOR = newest().numbers


@pytest.mark.parametrize(
    "version", [f"{MAJOR}.{MINOR + 1}.0", f"{MAJOR}.{MINOR + 1}", f"{MAJOR}.99.1", f"{MAJOR + 1}.0"]
)
def test_a_newer_release_is_judged_by_the_newest(version: str) -> None:
    assert line_of(version) == newest()
    assert release_of(version) == RELEASES[newest().name]
    notice = release_notice(version)
    assert "newer than this suite" in notice
    assert notice.endswith(f"Kafka {newest().name}.")
    assert cluster_info(version).notices == (notice,)


@pytest.mark.parametrize("version", ["4.0.1", "3.9.0"])
def test_an_older_release_is_judged_by_the_oldest(version: str) -> None:
    assert release_of(version) == RELEASES["4.1"]
    assert "older than this suite" in release_notice(version)
    assert release_notice(version).endswith("Kafka 4.1.")


@pytest.mark.parametrize("version", ["4.1.2", "4.2.9", "4.3", "4.4.0", "4.4.0-rc1", ""])
def test_known_releases_need_no_notice(version: str) -> None:
    assert release_notice(version) == ""
    assert cluster_info(version).notices == ()


def test_newer_levels_are_noticed() -> None:
    known = newest().levels["metadata.version"]
    assert levels_notice({"metadata.version": known}) == levels_notice({}) == ""
    notice = levels_notice({"metadata.version": known + 1})
    assert f"metadata.version {known + 1}, which is newer than this suite" in notice
    assert line_by_levels({"metadata.version": known + 1}, None) == newest().name
    assert cluster_info("4.4", unknown=notice).notices == (notice,)


def test_one_file_adds_a_release() -> None:
    texts = {file.stem: file.read_text(encoding="utf-8") for file in FOLDER.glob("4.[1-4].toml")}
    found = parse({**texts, "4.5": NEXT})
    before, line = found["4.4"], found["4.5"]
    assert list(found)[-1] == "4.5"
    assert line.behaviour == {**before.behaviour, "throttling": False}
    assert line.levels == {**before.levels, "metadata.version": 35}
    assert line.apis == before.apis
    old, new = configs_of(before), configs_of(line)
    assert old.keys() ^ new.keys() == {"group.share.max.size", "group.share.new"}
    limit = "group.share.delivery.count.limit"
    assert (old[limit].default, new[limit].default) == ("5", "6")
    assert (old[limit].low, old[limit].high) == (new[limit].low, new[limit].high)
    assert configs_of(line, Scope.GROUP) == configs_of(before, Scope.GROUP)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("default = '4.5.0'", "lacks tools"),
        ("default = '4.5.0'\ntools = '4.5.0'\nlevel = 1", "unknown keys"),
    ],
)
def test_a_malformed_file_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(SpecError, match=rf"4\.5\.toml.*{sentence}"):
        parse({"4.5": text})


def test_lines_are_whole() -> None:
    levels = [line.levels["metadata.version"] for line in lines().values()]
    assert levels == sorted(set(levels))
    assert newest().default == DEFAULT_VERSION
    for line in lines().values():
        assert line_of(line.default) == line
        assert line.default not in line.without_tools or line.tools != line.default


def test_what_one_upgrades_from() -> None:
    assert release_before("4.2.0") == "4.1.2"
    assert release_before("4.4.0") == "4.2.1"
    assert release_before(f"{MAJOR + 1}.0.0") == newest().upgrade_from
    with pytest.raises(OutOfReach, match=r"upgrade to 4\.1\.0"):
        release_before("4.1.0")


# --- Configurations ---------------------------------------------------------------------------

LINES = tuple(lines())
HEAD = "default = '4.4.0'\ntools = '4.4.0'\n"


@pytest.mark.parametrize(("release", "group", "total"), [("4.1", 5, 34), ("4.4", 12, 54)])
def test_table_is_whole(release: str, group: int, total: int) -> None:
    assert total == len(load_configs(release))
    assert group == len(load_configs(release, Scope.GROUP))


@pytest.mark.parametrize("release", LINES)
def test_keys_that_are_named_exist_and_defaults_are_in_range(release: str) -> None:
    broker = load_configs(release, Scope.BROKER)
    for config in load_configs(release, Scope.GROUP).values():
        named = {*config.bounds, config.broker} - {""}
        assert named <= broker.keys() or release < "4.3", config.name
    for config in load_configs(release).values():
        if config.type in {"INT", "SHORT"}:
            value = int(config.default)
            assert config.low is None or config.low <= value, config.name
            assert config.high is None or value <= config.high, config.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[configs.nowhere.x]\ntype = 'INT'\ndefault = '1'", "no scope"),
        ("[configs.group.x]\ntype = 'INT'", "default is missing"),
        ("[configs.group.x]\ntype = 'INT'\ndefault = '1'\nlowest = 1", "unknown keys"),
        ("[configs.group.x]\ntype = 'INT'\ndefault = '1'\nlow = '1'", "must be a number"),
    ],
)
def test_a_malformed_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        configs_of(parse({"4.4": HEAD + text})["4.4"])


def test_values_change_with_the_release() -> None:
    linger, updates = "share.coordinator.append.linger.ms", "snapshot.update.records.per.snapshot"
    assert tuple(load_configs(r)[linger].default for r in LINES[:3]) == ("5", "-1", "-1")
    name = f"share.coordinator.{updates}"
    assert (load_configs("4.2")[name].high, load_configs("4.3.1")[name].high) == (None, 500)
    with pytest.raises(SpecError, match="no release"):
        load_configs("newest")


# --- Definitions of two releases ---------------------------------------------------------------

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


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (
            "// Licensed to the Apache Software Foundation\n//\n// Version 1 is first.",
            "// Version 0 was early access.\n//\n// Version 1 is\n// first.",
            ["comment added: Version 0 was early access."],
        ),
        (
            "// Supported errors:\n// - INVALID_REQUEST (version 0+)",
            "// Supported errors:\n// - INVALID_REQUEST (version 0-1)\n"
            "// - CORRUPT_MESSAGE (version 2+) - only\n//   for records",
            [
                "error INVALID_REQUEST: (version 0+) -> (version 0-1)",
                "error CORRUPT_MESSAGE added: (version 2+) - only for records",
            ],
        ),
    ],
)
def test_comments_and_errors_are_told_one_by_one(
    tmp_path: Path, before: str, after: str, changes: list[str]
) -> None:
    assert found(tmp_path, (before, after)) == [f"ShareFetchRequest: {one}" for one in changes]


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
    ("old", "new", "short"),
    [
        ("a b c d e f", "a b c d e f g", "x: ... d e f -> ... d e f g"),
        ("a b", "c", "x: a b -> c"),
        ("k a b c d", "l a b c d", "x: k a b c ... -> l a b c ..."),
        ("a a", "a a a", "x: a a -> a a a"),
    ],
)
def test_long_texts_are_told_where_they_differ(old: str, new: str, short: str) -> None:
    assert Change(definition="D", part="", what="x", old=old, new=new).short == short


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
    definitions = iter([{"ShareFetchRequest": {"": {}}}, field])
    monkeypatch.setattr("shareproof.definitions._jars", lambda _: [])
    monkeypatch.setattr("shareproof.definitions.messages_in", lambda _: next(definitions))
    configs = iter([{}, key])
    monkeypatch.setattr("shareproof.definitions.configs_in", lambda _: next(configs))

    work = compare("4.1.2", "4.3.1", load_rules(), everything=False)

    assert [one.change.part or one.change.definition for one in work] == [
        "ShareAcquireMode",
        "GroupConfig share.delivery.count.limit",
    ]
    assert "ACQ-43" in work[0].rules
    assert "CFG-19" in work[1].rules


def test_rules_rest_on_what_changed() -> None:
    rules = load_rules()

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
