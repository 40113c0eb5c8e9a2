"""An undecided check is played once more, alone, and both tries are told; nothing else is."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from reports.console import render_text
from reports.html import render
from reports.reading import read
from tests.fake import FakeHouse

CHECKS = """
def played(name):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(name + "\\n")
    with open(os.environ["SEEN"]) as seen:
        return seen.read().split().count(name)

def undecided_at_first(name):
    if played(name) == 1:
        raise Undecided(f"{name} was slow")

@requirement("ACK-01", "ACK-02")
async def test_slow(judge, transcripts):
    transcripts.append("frame")
    undecided_at_first("slow")
    judge["ACK-01"].holds(True, "fine")
    judge["ACK-02"].holds(True, "fine")

@requirement("ACK-03")
def test_never(judge, transcripts, rng):
    transcripts.append(f"frame {played('never')}")
    raise Undecided(f"nobody knows {rng.random()}")

@requirement("ACK-04")
def test_worse(judge):
    undecided_at_first("worse")
    judge.holds(False, "it came back")

@requirement("ACK-05", "ACK-06")
def test_broken(judge):
    played("broken")
    judge["ACK-05"].holds(False, "broken")

@requirement("ACK-07")
def test_harness():
    played("harness")
    raise RuntimeError("we broke")

@requirement("ACK-08")
def test_known():
    played("known")
    raise Undecided("as the ledger says")

@requirement("ACK-09")
def test_far():
    played("far")
    raise OutOfReach("needs a cluster of its own")

@pytest.fixture
async def dirty():
    yield
    raise RuntimeError("cannot clean up")

@requirement("ACK-10")
async def test_dirty(dirty):
    played("dirty")
    raise Undecided("nobody knows")

@requirement("ACK-11")
@pytest.mark.parametrize("number", range(20))
def test_fine(judge, number):
    played("fine")
    judge.holds(True, "fine")
"""

KNOWN = """
[[known]]
reason = "it is never decided"
versions = ""
bug = "KAFKA-1"
expires = 2099-01-01
failures = [{ rule = "ACK-08", verdict = "unknown", match = "as the ledger says" }]
"""

DYING = """
@pytest.mark.requirement("ACK-01")
def test_deadly(judge):
    if not os.path.exists(os.environ["SEEN"]):
        open(os.environ["SEEN"], "w").close()
        os._exit(9)
    judge.holds(True, "fine")

@pytest.mark.requirement("ACK-02")
@pytest.mark.parametrize("number", range(6))
def test_fine(judge, number):
    judge.holds(True, "fine")
"""


@pytest.fixture
def house(tmp_path: Path) -> FakeHouse:
    """An empty house."""
    return FakeHouse(tmp_path)


@pytest.mark.parametrize("workers", ["0", "2"])
def test_undecided_checks_are_played_again(house: FakeHouse, workers: str) -> None:
    house.checks(CHECKS)
    house.ledger(KNOWN)
    seen = house.folder / "seen"

    ran = house.run("-n", workers, SEEN=str(seen))

    tries = seen.read_text(encoding="utf-8").split()
    again = {"slow", "never", "worse"}
    assert {name for name in tries if tries.count(name) > 1} == again | {"fine"}, ran.output
    assert (set(tries[-3:]), len(tries)) == (again, 8 + 20 + 3)
    found = {rule: ran.verdicts[rule] for rule in ("01", "02", "03", "04", "05", "06", "08", "11")}
    assert found == {
        "01": "pass",
        "02": "pass",
        "03": "unknown",
        "04": "fail",
        "05": "fail",
        "06": "unknown",
        "08": "unknown",
        "11": "pass",
    }
    assert ran.rules["08"]["problem"] == ""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_both_tries_are_told(house: FakeHouse, workers: str) -> None:
    house.checks(CHECKS)
    house.ledger(KNOWN)

    ran = house.run("-n", workers, SEEN=str(house.folder / "seen"))

    first = ran.rules["01"]["checks"][0]["first_try"]
    assert (first["verdict"], first["reason"]) == ("unknown", "slow was slow")
    assert ran.rules["01"]["reason"].startswith("passed on the second try; the first was unknown")
    assert "first_try" not in ran.rules["11"]["checks"][0]
    never = ran.rules["03"]["checks"][0]
    assert never["first_try"]["reason"] != never["reason"], "the second try draws its own names"
    frames = [never["first_try"]["transcript"], never["transcript"]]
    assert [(house.out / name).read_text("utf-8") for name in frames] == ["frame 1\n", "frame 2\n"]
    results = read(house.out)
    assert results.second_tries == 3
    assert "3 played twice" in render_text(results)
    assert "on the second try; the first:" in render(results)
    junit = ElementTree.parse(house.out / "junit.xml").getroot()  # noqa: S314 - our own
    slow = [case for case in junit.iter("testcase") if case.get("name") == "test_slow"]
    assert [case.find("failure") for case in slow] == [None, None]


def test_a_pass_on_the_second_try_is_a_pass(house: FakeHouse) -> None:
    house.checks(CHECKS.partition('@requirement("ACK-03")')[0])

    assert house.run(SEEN=str(house.folder / "seen")).code == 0


def test_played_once_if_asked(house: FakeHouse) -> None:
    house.checks(CHECKS.partition('@requirement("ACK-03")')[0])

    ran = house.run("--once", SEEN=str(house.folder / "seen"))

    assert (ran.code, ran.verdicts["01"], ran.rules["01"]["reason"]) == (
        1,
        "unknown",
        "slow was slow",
    )


def test_a_check_whose_worker_died_is_played_again(house: FakeHouse) -> None:
    house.checks(DYING)

    ran = house.run("-n", "2", SEEN=str(house.folder / "seen"))

    assert (ran.code, ran.verdicts["01"], ran.verdicts["02"]) == (0, "pass", "pass"), ran.output
    first = ran.rules["01"]["checks"][0]["first_try"]
    assert first["verdict"] == "error"
    assert "the worker process died" in first["reason"]
