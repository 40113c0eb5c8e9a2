"""The table of configurations: whole for every release, and refused when it is malformed."""

from __future__ import annotations

import pytest

from spec.configs import Scope, configs_of, load_configs
from spec.releases import lines, parse
from spec.requirement import SpecError

RELEASES = tuple(lines())
HEAD = "default = '4.4.0'\ntools = '4.4.0'\n"


@pytest.mark.parametrize(("release", "group", "total"), [("4.1", 5, 34), ("4.4", 12, 54)])
def test_table_is_whole(release: str, group: int, total: int) -> None:
    assert total == len(load_configs(release))
    assert group == len(load_configs(release, Scope.GROUP))


@pytest.mark.parametrize("release", RELEASES)
def test_keys_that_are_named_exist(release: str) -> None:
    broker = load_configs(release, Scope.BROKER)
    for config in load_configs(release, Scope.GROUP).values():
        named = {*config.bounds, config.broker} - {""}
        assert named <= broker.keys() or release < "4.3", config.name


@pytest.mark.parametrize("release", RELEASES)
def test_defaults_are_within_their_ranges(release: str) -> None:
    for config in load_configs(release).values():
        if config.type in {"INT", "SHORT"}:
            value = int(config.default)
            assert config.low is None or config.low <= value, config.name
            assert config.high is None or value <= config.high, config.name


def test_values_change_with_the_release() -> None:
    linger, updates = "share.coordinator.append.linger.ms", "snapshot.update.records.per.snapshot"
    assert tuple(load_configs(r)[linger].default for r in RELEASES[:3]) == ("5", "-1", "-1")
    name = f"share.coordinator.{updates}"
    assert (load_configs("4.2")[name].high, load_configs("4.3.1")[name].high) == (None, 500)


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


def test_a_release_has_to_be_one() -> None:
    with pytest.raises(SpecError, match="no release"):
        load_configs("newest")
