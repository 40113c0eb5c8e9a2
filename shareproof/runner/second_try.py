"""The second try of a check that could not decide: alone, when all other checks are done.

An ``unknown`` often says no more than that the machine was too busy for a deadline. Alone the check
has the machine to itself, so an ``unknown`` that is left is one to look at. The same goes for a
check that was broken into, or whose worker died. ``fail`` is never retried, nor what the ledger
expects.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

import pytest

from shareproof.runner.outcome import HUNG
from spec.verdict import Observation, Verdict

AGAIN = "shareproof-again"  # name of the report property of a check that is to be played once more
CHOSEN = pytest.StashKey[frozenset[str]]()
"""The checks that are played once more, as soon as the first tries are over."""

NOTE = "undecided; played once more when the other checks are done"


def wanted(config: pytest.Config, troubled: Iterable[Observation]) -> bool:
    """Tell whether a check's trouble may be the machine's, and this was its first try."""
    first = CHOSEN not in config.stash and not config.getoption("once")
    open_ = [one.verdict is Verdict.UNKNOWN or HUNG in one.reason for one in troubled]
    return first and bool(open_) and all(open_)


def merged(first: Observation, second: Observation) -> Observation:
    reason = second.reason
    if second.verdict is Verdict.PASS:
        reason = f"passed on the second try; the first was {first.verdict}: {first.reason}"
    return replace(second, reason=reason, first=first)


def play(session: pytest.Session, chosen: Collection[str]) -> None:
    """Play some checks again, one after the other: in this process, or on a single new worker."""
    session.config.stash[CHOSEN] = frozenset(chosen)
    distributed = session.config.pluginmanager.getplugin("dsession")
    if distributed:
        # Have pytest-xdist begin once more, with one worker; a check that kills it kills not us.
        session.config.option.tx = ["popen"]
        distributed.nodemanager.teardown_nodes()
        distributed.shuttingdown = False
        distributed.pytest_sessionstart(session)
        distributed.pytest_runtestloop()
        return
    items = [item for item in session.items if item.nodeid in chosen]
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
