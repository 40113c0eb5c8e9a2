"""Fakes as targets: how they are named, started and refused."""

from __future__ import annotations

import os

import pytest

from fixtures.fakes.target import of_kfake
from fixtures.interface.names import FAKES, FakeName, parse_target
from fixtures.machine.maven import clients_jar
from fixtures.targets import TargetOptions, UsageFault, open_target, optional
from fixtures.wire.schema import Schemas
from spec.profile import load_profile, parse_profile
from spec.requirement import SpecError
from spec.verdict import EnvironmentFault, OutOfReach

HEAD = """[profile]
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
    assert load_profile(fake).name == fake


@pytest.mark.parametrize("name", ["kfake:", "kfake:latest one", "librdkafka-mock:x"])
def test_an_edition_is_a_version(name: str) -> None:
    with pytest.raises(UsageFault, match="kfake"):
        parse_target(name)


def test_a_fake_says_which_properties_it_does_not_know() -> None:
    with pytest.raises(OutOfReach, match=r"does not know share[.]nothing"):
        open_target("kfake", TargetOptions(properties={"share.nothing": "1"})).start()


def test_a_fake_has_one_listener() -> None:
    with pytest.raises(OutOfReach, match="plain listener"):
        open_target("kfake", TargetOptions(listeners={"SECURE": "SSL"})).start()


def test_without_go_there_is_no_kfake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentFault, match=r"no go on PATH: kfake is a library of Go"):
        open_target("kfake").start()


@pytest.mark.skipif(bool(optional.missing("Go")), reason=optional.missing("Go"))
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
    entry = parse_profile(HEAD + 'rules = ["PER", "ACK-01"]', "p.toml").absent[0]
    every = parse_profile(HEAD + 'rules = ["*"]', "p.toml").absent[0]
    none = parse_profile(HEAD, "p.toml").absent[0]

    concerned = [rule for rule in ("PER-07", "ACK-01", "ACK-02") if entry.concerns(rule)]
    assert concerned == ["PER-07", "ACK-01"]
    assert every.concerns("ACK-02")
    assert not none.concerns("ACK-02")
    with pytest.raises(SpecError, match="rules must be a list"):
        parse_profile(HEAD + 'rules = "PER"', "p.toml")
