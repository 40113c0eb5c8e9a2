"""A check that hangs costs nothing but itself, wherever it hangs and whatever it swallows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake import FakeHouse

HANGING = """
import time

pytestmark = pytest.mark.timeout(0.2)

async def swallow():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

def sleep():
    while True:
        time.sleep(0.05)

@pytest.mark.requirement("ACK-01")
async def test_blocking_the_loop(judge):
    sleep()

@pytest.mark.requirement("ACK-02")
async def test_swallowing_cancellation(judge):
    await swallow()

@pytest.mark.requirement("ACK-03")
async def test_waiting_for_a_thread(judge):
    await asyncio.to_thread(time.sleep, 3)

@pytest.mark.requirement("ACK-04")
def test_no_coroutine(judge):
    sleep()

@pytest.fixture
async def waits():
    await asyncio.Event().wait()

@pytest.mark.requirement("ACK-05")
async def test_before(waits, judge):
    judge.holds(True, "never reached")

@pytest.fixture
async def never_done():
    yield
    await swallow()

@pytest.mark.requirement("ACK-06")
async def test_after(never_done, judge):
    judge.holds(True, "fine")

@pytest.mark.requirement("ACK-07")
async def test_after_a_failure(never_done, judge):
    judge.holds(False, "broken")

@pytest.mark.requirement("ACK-08")
@pytest.mark.parametrize("number", range(6))
async def test_fine(judge, number):
    await asyncio.sleep(0.01)
    judge.holds(True, "fine")
"""

GARBAGE = """
import ast, gc

class Again:
    def __init__(self):
        self.me = self
    def __del__(self):
        if ON:
            ast.parse("1 + 1")
            Again()

ON = []

@pytest.fixture
def littered():
    ON.append(True)
    Again()
    before = gc.get_threshold()
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)
    ON.clear()

@pytest.mark.requirement("ACK-01")
def test_broken(littered, judge):
    judge.holds(False, "broken")

@pytest.mark.requirement("ACK-02")
def test_fine(judge):
    judge.holds(True, "fine")
"""


@pytest.fixture
def house(tmp_path: Path) -> FakeHouse:
    """An empty house."""
    return FakeHouse(tmp_path)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_hangs_is_broken_into(house: FakeHouse, workers: str) -> None:
    house.checks(HANGING)

    ran = house.run("-n", workers, FAKE_GRACE="0.5")

    hung = {f"0{number}": "error" for number in range(1, 8)}
    judged = {rule: found for rule, found in ran.verdicts.items() if rule != "40"}
    assert judged == {**hung, "08": "pass"}, ran.output
    assert "broken into after 0.7 s" in ran.rules["01"]["reason"]
    assert (ran.code, ran.document["run"]["partial"]) == (3, False)


def test_what_cannot_be_broken_into_ends_with_its_worker(house: FakeHouse) -> None:
    house.checks(
        """
@pytest.mark.requirement("ACK-01")
@pytest.mark.timeout(0.1)
def test_deaf(judge):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write("x")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    signal.sigwait({signal.SIGUSR1})

@pytest.mark.requirement("ACK-02")
@pytest.mark.parametrize("number", range(6))
def test_fine(judge, number):
    judge.holds(True, "fine")
"""
    )
    seen = house.folder / "seen"

    ran = house.run("-n", "2", FAKE_GRACE="0.3", SEEN=str(seen))

    assert (ran.verdicts["01"], ran.verdicts["02"]) == ("error", "pass"), ran.output
    assert "the worker process died" in ran.rules["01"]["reason"]
    assert "in test_deaf" in ran.output
    assert seen.read_text(encoding="utf-8") == "xx"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_garbage_does_not_spoil_a_failure(house: FakeHouse, workers: str) -> None:
    house.checks(GARBAGE)

    ran = house.run("-n", workers)

    assert (ran.code, ran.verdicts["01"], ran.verdicts["02"]) == (1, "fail", "pass"), ran.output
