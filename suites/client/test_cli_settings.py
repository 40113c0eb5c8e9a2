"""Some settings at their values, in other capitals, at their edges, and almost right."""

from __future__ import annotations

import pytest

from spec.settings import settings_of
from spec.verdict import OutOfReach
from suites.client.harness import Harness
from suites.client.settings.trials import Trial, trials
from suites.client.settings.trying import broken, tried
from suites.judge import Judge

SHOWN = [
    "ShareFetch.max_records",
    "ShareFetch.max_wait_ms",
    "ShareFetch.min_bytes",
    "ShareFetch.max_bytes",
    "ShareFetch.share_acquire_mode",
    "client id",
    "acknowledges",
]


def _of(hostile: Harness, shows: str) -> list[Trial]:
    """Return the trials of the settings that something shows."""
    hello = hostile.adapter.hello
    found = settings_of(hello.name, hello.version)
    if found is None:
        raise OutOfReach(f"there is no table of the settings of {hello.name} in spec/settings")
    return [trial for trial in trials(found) if trial.setting.shows == shows]


async def _tried(hostile: Harness, judge: Judge, rule: str, shows: str) -> None:
    mine = [trial for trial in _of(hostile, shows) if trial.rule == rule]
    if not mine:
        raise OutOfReach(f"{hostile.adapter.hello.name} has no such setting: {shows}")
    for trial in mine:
        sentence = broken(trial, await tried(hostile, trial))
        judge.holds(rule, not sentence, sentence, step=trial.name)
    judge.saw(rule, values=len(mine))


@pytest.mark.requirement("CLI-124")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("shows", SHOWN)
async def test_values(hostile: Harness, judge: Judge, shows: str) -> None:
    """CLI-124: A documented value takes effect on the wire."""
    await _tried(hostile, judge, "CLI-124", shows)


@pytest.mark.requirement("CLI-125")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("shows", SHOWN)
async def test_wrong_values(hostile: Harness, judge: Judge, shows: str) -> None:
    """CLI-125: A value that is not allowed is refused by an error that names the setting."""
    await _tried(hostile, judge, "CLI-125", shows)
