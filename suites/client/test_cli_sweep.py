"""Some cases of the sweep, one for each way in which its rules can break."""

from suites.client.kit import *
from suites.client.sweep.application import play
from suites.client.sweep.cases import all_cases
from suites.client.sweep.rules import judge as findings_of

CASES = {case.name: case for case in all_cases()}


async def _played(hostile: Harness, judge: Judge, name: str) -> None:
    found = findings_of(CASES[name], await play(hostile, CASES[name]))
    if not found:
        raise OutOfReach(f"the client sends no such request: {name.rpartition('/')[0]}")
    for one in found:
        if one.rule == judge.rule:
            judge.holds(not one.broken, one.broken, witness=one.witness, step=name)
            judge.saw(responses=one.responses)


@check("CLI-110", timeout=120)
@pytest.mark.parametrize(
    "name", ["ShareFetch/partition/UNKNOWN_SERVER_ERROR/with-data", "ShareFetch/top/9999/with-data"]
)
async def test_nothing_behind_the_application(hostile: Harness, judge: Judge, name: str) -> None:
    await _played(hostile, judge, name)


@check("CLI-111", timeout=120)
@pytest.mark.parametrize(
    "name",
    ["ShareFetch/acknowledge/KAFKA_STORAGE_ERROR/once", "ShareAcknowledge/partition/9999/once"],
)
async def test_nothing_lost(hostile: Harness, judge: Judge, name: str) -> None:
    await _played(hostile, judge, name)


@check("CLI-112", timeout=120)
@pytest.mark.parametrize(
    "name",
    [
        "ShareFetch/top/9999/lasting",
        "Metadata/topic/LEADER_NOT_AVAILABLE/lasting",
        "ShareGroupHeartbeat/staying/9999/lasting",
    ],
)
async def test_bounded_rate(hostile: Harness, judge: Judge, name: str) -> None:
    await _played(hostile, judge, name)


@check("CLI-113", timeout=120)
@pytest.mark.parametrize(
    "name",
    [
        "ShareFetch/partition/TOPIC_AUTHORIZATION_FAILED/lasting",
        "ShareFetch/top/GROUP_AUTHORIZATION_FAILED/lasting",
        "ShareGroupHeartbeat/joining/GROUP_AUTHORIZATION_FAILED/lasting",
        "ShareFetch/acknowledge/INVALID_RECORD_STATE/lasting",
    ],
)
async def test_told(hostile: Harness, judge: Judge, name: str) -> None:
    await _played(hostile, judge, name)


@check("CLI-114", timeout=120)
@pytest.mark.parametrize(
    "name", ["ShareFetch/top/KAFKA_STORAGE_ERROR/ten", "FindCoordinator/top/NOT_COORDINATOR/ten"]
)
async def test_recovers(hostile: Harness, judge: Judge, name: str) -> None:
    await _played(hostile, judge, name)
