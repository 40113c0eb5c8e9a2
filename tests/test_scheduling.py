"""The scheduler keeps a stage together and lets everything else go anywhere."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

import pytest

from shareproof.runner.scheduling import (
    LONGEST,
    MOVING,
    first_open,
    last_at_work,
    put_last,
    scope,
    wait,
)


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("suites/broker/test_x.py::test_y[a/b]", "suites/broker/test_x.py::test_y[a/b]"),
        ("suites/broker/failover/test_x.py::test_y[a]", "suites/broker/failover"),
        ("suites/broker/failover/test_z.py::test_w", "suites/broker/failover"),
        ("tests/test_x.py::test_y", "tests/test_x.py::test_y"),
    ],
)
def test_scope(nodeid: str, expected: str) -> None:
    assert scope(nodeid) == expected


def test_modules_that_wait_longest() -> None:
    folder = Path(__file__).parents[1] / "suites" / "broker"
    assert all((folder / f"test_{name}.py").is_file() for name in LONGEST)

    checks = [f"suites/broker/test_{name}.py::test_x" for name in ("ack_gaps", *LONGEST)]
    assert sorted(checks, key=wait) == [*checks[1:], checks[0]]


@dataclass(eq=False)
class Worker:
    """What the scheduler knows of a worker."""

    shutting_down: bool = False

    def shutdown(self) -> None:
        """Take no more checks."""
        self.shutting_down = True


def test_the_exclusive_stage_waits_for_all_others() -> None:
    first, second, third = Worker(), Worker(), Worker()

    assert last_at_work({first: 3, second: 2, third: 0}) is None
    assert (first.shutting_down, second.shutting_down, third.shutting_down) == (False, True, True)
    assert last_at_work({first: 1, second: 1}) is None
    assert last_at_work({first: 2}) is None
    assert last_at_work({first: 1, second: 0}) is first
    assert last_at_work({second: 0}) is None


def test_exclusive_stages_come_last() -> None:
    work = OrderedDict.fromkeys((MOVING[0], "a", MOVING[1], "b"))
    put_last(work, *MOVING, "not there")
    assert list(work) == ["a", "b", *MOVING]


def test_work_of_a_dead_worker() -> None:
    work = {
        "a": {"a1": True},
        "b": {"b1": True, "b2": False, "b3": False},
        "c": {"c1": False},
    }

    assert first_open(work) == "b2"
    assert work == {"b": {"b1": True, "b2": True, "b3": False}, "c": {"c1": False}}
    assert (first_open({"a": {"a1": True}}), first_open({})) == (None, None)
