"""Tables of settings are whole, and the judge of a trial tells silence from a refusal."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest

from fixtures.adapters.model.settings import NAMED, STRANGE
from spec.settings import Setting, settings_of
from suites.client.settings import (
    EFFECTS,
    FOREIGN,
    REFUSED,
    TAKES_EFFECT,
    Outcome,
    Trial,
    broken,
    trials,
)
from suites.client.sweep.cases import chosen

TABLES = sorted(
    one.name.removesuffix(".toml")
    for one in resources.files("spec.settings").iterdir()
    if one.name.endswith(".toml")
)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_whole(name: str) -> None:
    found = settings_of(name)
    assert found is not None
    mine = trials(found)
    assert len({trial.name for trial in mine}) == len(mine) > 5
    assert all(chosen(mine, [trial.name.replace("[", "[[]")], "=") for trial in mine)
    for setting in found.settings:
        assert setting.shows in EFFECTS or "." in setting.shows or not setting.values
        assert not set(setting.values) & set(setting.refused)
    assert found.documentation
    text = (resources.files("spec.settings") / f"{name}.toml").read_text(encoding="utf-8")
    assert {"setting", "foreign", "untested", "documentation", "like"} >= tomllib.loads(text).keys()


def test_the_models_table_has_all_of_its_settings() -> None:
    found = settings_of("model")
    assert found is not None
    named = {one.name for one in found.settings} | found.untested.keys()
    assert NAMED.keys() | STRANGE <= named


def test_a_version_leaves_out_what_came_later() -> None:
    older, newer = settings_of("kafka-clients", "4.1.2"), settings_of("kafka-clients", "4.4.0")
    assert older
    assert newer
    assert {s.name for s in newer.settings} - {s.name for s in older.settings} == {
        "share.acquire.mode"
    }
    assert settings_of("nobody") is None


SETTING = Setting(name="fetch.max.wait.ms", shows="ShareFetch.max_wait_ms")


@pytest.mark.parametrize(
    ("trial", "outcome", "said"),
    [
        ({"wanted": 7}, {"works": True}, ""),
        ({"wanted": 7}, {"shown": "it was 500"}, "no effect; it was 500"),
        ({"wanted": 7}, {"refusals": ("config: fetch.max.wait.ms",)}, "although it is documented"),
        ({"wanted": 7, "may_refuse": True}, {"refusals": ("config: Fetch max wait ms",)}, ""),
        ({"wanted": 7, "may_refuse": True}, {"shown": "it was 500"}, "no effect"),
        ({}, {"refusals": ("config: fetchMaxWaitMs is no number",)}, ""),
        ({}, {"refusals": ("other: bad",)}, "does not name the setting"),
        ({}, {"shown": "it was 500"}, "not refused; it was 500"),
        ({}, {"works": True, "shown": "it was 7"}, "not refused; it was 7"),
    ],
)
def test_the_judge_of_a_trial(
    trial: dict[str, object], outcome: dict[str, object], said: str
) -> None:
    rule = TAKES_EFFECT if "wanted" in trial else REFUSED
    found = broken(
        Trial(setting=SETTING, value="7", rule=rule, **trial),  # type: ignore[arg-type]
        Outcome(**outcome),  # type: ignore[arg-type]
    )
    assert said in found
    assert bool(found) == bool(said)


def test_foreign_settings_have_their_own_rule() -> None:
    found = settings_of("model")
    assert found is not None
    foreign = [trial for trial in trials(found) if trial.rule == FOREIGN]
    assert {trial.setting.name for trial in foreign} == STRANGE
