"""What the suite knows of Kafka's releases and of their configurations."""

from pathlib import Path

import pytest

import spec.releases
from fixtures.interface.info import ClusterInfo
from fixtures.interface.names import DEFAULT_VERSION
from fixtures.targets.kafka import release_before
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
from spec.requirement import SpecError
from spec.verdict import OutOfReach

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


def info(version: str, unknown: str = "") -> ClusterInfo:
    return ClusterInfo(
        name=f"kafka:{version}",
        version=version,
        profile="apache-kafka",
        bootstrap=(),
        schema_jar="",
        prefix="",
        unknown=unknown,
    )


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
    assert info(version).notices == (notice,)


@pytest.mark.parametrize("version", ["4.0.1", "3.9.0"])
def test_an_older_release_is_judged_by_the_oldest(version: str) -> None:
    assert release_of(version) == RELEASES["4.1"]
    assert "older than this suite" in release_notice(version)
    assert release_notice(version).endswith("Kafka 4.1.")


@pytest.mark.parametrize("version", ["4.1.2", "4.2.9", "4.3", "4.4.0", "4.4.0-rc1", ""])
def test_known_releases_need_no_notice(version: str) -> None:
    assert release_notice(version) == ""
    assert info(version).notices == ()


def test_newer_levels_are_noticed() -> None:
    known = newest().levels["metadata.version"]
    assert levels_notice({"metadata.version": known}) == levels_notice({}) == ""
    said = levels_notice({"metadata.version": known + 1})
    assert f"metadata.version {known + 1}, which is newer than this suite" in said
    assert line_by_levels({"metadata.version": known + 1}, None) == newest().name
    assert info("4.4", said).notices == (said,)


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
    ("text", "said"),
    [
        ("default = '4.5.0'", "lacks tools"),
        ("default = '4.5.0'\ntools = '4.5.0'\nlevel = 1", "unknown keys"),
    ],
)
def test_a_malformed_file_is_refused(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=rf"4\.5\.toml.*{said}"):
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
