"""Which worker runs which check: any check anywhere, but a stage stays in one pair of hands.

A *stage* is a folder below ``suites/broker``: checks that share one cluster of their own, which
they break and mend (``failover``) or which is set up unlike the common one (``secure``). Whoever
runs one of them runs them all, one after the other; the folder's ``conftest.py`` starts the
cluster. Stages are the longest work there is, so they are handed out first.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

COMMON = PurePosixPath("suites/broker")


def stage_scheduler(config: Any, log: Any) -> Any:
    """Return pytest-xdist's scheduler by scope, where a scope is a stage or a single check."""
    # Pytest wants to rewrite a plugin's assertions before anybody imports it.
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415

    class StageScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return scope(nodeid)

    return StageScheduling(config, log)


def scope(nodeid: str) -> str:
    """Return the stage of a check, or the check itself where it needs none."""
    folder = PurePosixPath(nodeid.partition("::")[0]).parent
    staged = folder != COMMON and folder.is_relative_to(COMMON)
    return folder.as_posix() if staged else nodeid
