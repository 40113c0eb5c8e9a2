"""Which worker runs which check, and when: any check anywhere, but a stage stays on one worker.

A *stage* is a folder below ``suites/broker``: checks that share one cluster of their own, which
they break and mend (``failover``) or which is set up unlike the common one (``secure``). Whoever
runs one of them runs them all, one after the other; the folder's ``conftest.py`` starts the
cluster. Stages are the longest work there is, so they are handed out first. Next come the checks
that wait for a lock or a session to end: on a cluster that allows no short ones that is what takes
the time, and they wait together.

Stages may have to be *exclusive*: on somebody's cluster the ``failover`` stage moves what other
checks need where it is, and hooks take brokers away. They are handed out last, one after the other,
when every other worker is done.
"""

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

COMMON = PurePosixPath("suites/broker")

_WAITING = (
    "off_stored mem_timeout mem_no_fencing dlv_throttled lck_renew lck_expiry lck_duration "
    "lck_renew_refused lck_release dlv_count dlv_limit per_leader dlq_written off_examples "
    "coo_deaths acq_window acq_waiting cfg_in_force ack_holder lag_states"
)
LONGEST = _WAITING.split()
"""Modules whose checks wait for ends of locks and sessions, those that wait longest first."""


MOVING = ("suites/broker/failover", "suites/broker/restarted")
"""The stages that are exclusive where they have no cluster of their own."""


def stage_scheduler(config: Any, log: Any, exclusive: tuple[str, ...] = ()) -> Any:
    # Pytest wants to rewrite a plugin's assertions before anybody imports it.
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        _split_scope = staticmethod(scope)

        def remove_node(self, node: Any) -> str | None:
            """Give what a dead worker left to others; return the check that it died of, if any.

            Pytest-xdist would have that check run again, and kill the next worker.
            """
            left = self.assigned_work.pop(node)
            died = first_open(left)
            self.workqueue.update(left)
            for other in self.assigned_work:
                self._reschedule(other)
            return died

        def _assign_work_unit(self, node: Any) -> None:
            put_last(self.workqueue, *exclusive)
            if not self._hands_out_exclusive():
                super()._assign_work_unit(node)

        def _reschedule(self, node: Any) -> None:
            if not self._hands_out_exclusive():
                super()._reschedule(node)

        def _hands_out_exclusive(self) -> bool:
            if not self.workqueue or not set(self.workqueue) <= set(exclusive):
                return False
            left = {node: self._pending_of(work) for node, work in self.assigned_work.items()}
            if alone := last_at_work(left):
                super()._assign_work_unit(alone)
            return True

    return Scheduling(config, log)


def put_last(work: OrderedDict[str, Any], *names: str) -> None:
    for name in names:
        if name in work:
            work.move_to_end(name)


def last_at_work(left: Mapping[Any, int]) -> Any | None:
    """Let all workers but one end; return that one when it is the last with anything to do.

    A worker begins with a check when it knows what comes after it, or that nothing does: so this
    one keeps a last check in hand.
    """
    up = [node for node in left if not node.shutting_down]
    for node in up[1:]:
        node.shutdown()
    return up[0] if up and all(n <= (node is up[0]) for node, n in left.items()) else None


def wait(nodeid: str) -> int:
    module = PurePosixPath(nodeid.partition("::")[0]).stem.removeprefix("test_")
    return LONGEST.index(module) if module in LONGEST else len(LONGEST)


def first_open(work: dict[str, dict[str, bool]]) -> str | None:
    open_ones = [(unit, nodeid) for unit in work.values() for nodeid in unit if not unit[nodeid]]
    if open_ones:
        unit, nodeid = open_ones[0]
        unit[nodeid] = True
    for name in [name for name, unit in work.items() if all(unit.values())]:
        del work[name]
    return open_ones[0][1] if open_ones else None


def scope(nodeid: str) -> str:
    folder = PurePosixPath(nodeid.partition("::")[0]).parent
    staged = folder != COMMON and folder.is_relative_to(COMMON)
    return folder.as_posix() if staged else nodeid
