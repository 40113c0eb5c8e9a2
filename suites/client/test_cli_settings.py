"""Some settings at their values, in other capitals, at their edges, and almost right."""

from spec.settings import settings_of
from suites.client.kit import *
from suites.client.settings import broken, play, trials

# What is seen within a poll; the sweep of settings tries the others, too.
SHOWN = (
    "ShareFetch.max_records",
    "ShareFetch.max_wait_ms",
    "ShareFetch.min_bytes",
    "ShareFetch.max_bytes",
    "ShareFetch.share_acquire_mode",
    "client id",
    "acknowledges",
)


# A check for each share of a client's trials, so that they can be played side by side.
PARTS = range(7)


async def _tried(hostile: Harness, judge: Judge, part: int) -> None:
    hello = hostile.adapter.hello
    found = settings_of(hello.name, hello.version)
    if found is None:
        raise OutOfReach(f"there is no table of the settings of {hello.name} in spec/settings")
    shown = [one for one in trials(found) if one.setting.shows in SHOWN and one.rule == judge.rule]
    if not shown:
        raise OutOfReach(f"the table of {hello.name}'s settings has no value for {judge.rule}")
    # Every seventh trial of the rule, or one if there are fewer.
    mine = shown[part :: len(PARTS)] or [shown[part % len(shown)]]
    for trial in mine:
        sentence = broken(trial, await play(hostile, trial))
        judge.holds(not sentence, sentence, step=trial.name)
    judge.saw(values=len(mine))


@check("CLI-124", timeout=120)
@pytest.mark.parametrize("part", PARTS)
async def test_values(hostile: Harness, judge: Judge, part: int) -> None:
    await _tried(hostile, judge, part)


@check("CLI-125", timeout=120)
@pytest.mark.parametrize("part", PARTS)
async def test_wrong_values(hostile: Harness, judge: Judge, part: int) -> None:
    await _tried(hostile, judge, part)
