"""The scheduler keeps a stage together and lets everything else go anywhere."""

from __future__ import annotations

import pytest

from suites.scheduling import scope


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("suites/broker/test_x.py::test_y[a/b]", "suites/broker/test_x.py::test_y[a/b]"),
        ("suites/broker/failover/test_x.py::test_y[a]", "suites/broker/failover"),
        ("suites/broker/failover/test_z.py::test_w", "suites/broker/failover"),
        ("suites/self/test_x.py::test_y", "suites/self/test_x.py::test_y"),
    ],
)
def test_scope(nodeid: str, expected: str) -> None:
    """Checks of one stage have one scope, every other test has its own."""
    assert scope(nodeid) == expected
