"""How long a check may take, and what is done to one that takes longer.

A check that overruns must cost nothing but itself. So limits follow one another. The first ends a
coroutine in an orderly way, and the check is undecided. The next ones break into a phase of the
check that hangs all the same, fixtures included, which says nothing about the target. The last one
ends the process, for code that cannot be broken into: pytest-xdist replaces the worker, and the
report says that it died.

pytest-timeout, which has the same marker, breaks in between two phases as well, where pytest takes
it for a failure of its own, and no more once a phase has failed. So the limits here are of each
phase, and ours.
"""

import asyncio
import contextlib
import faulthandler
import functools
import gc
import os
import signal
import threading
from collections.abc import Iterator
from inspect import iscoroutinefunction
from typing import Any

import pytest
from anyio import pytest_plugin

from fixtures.wire.connection import CallFailed
from shareproof.runner.outcome import HUNG, cause_of
from spec.verdict import OutOfReach, Stalled, Undecided
from suites.judge import IN_VAIN, PATIENCE

TIME_LIMIT = 60.0
"""Seconds after which a check is undecided; a check may ask for more with ``timeout(seconds)``."""

GRACE = 60.0
"""Seconds beyond the limit after which a phase is broken into, and from one time to the next."""

BREAK_INS = 3  # how often a phase is broken into before the process is ended
BREAK_IN = pytest.StashKey[float]()  # seconds after which one phase of a check is broken into
STACKS = pytest.StashKey[int]()
"""Where a worker says what it was doing when its process was ended: a file descriptor."""


def open_stacks(config: pytest.Config) -> None:
    """Have a worker tell its stacks on standard error, as it is before pytest captures it."""
    # Only workers have someone who goes on without them.
    config.stash[STACKS] = os.dup(2)


def limit_time(item: pytest.Item) -> None:
    mark = item.get_closest_marker("timeout")
    limit = float(mark.args[0]) if mark and mark.args else TIME_LIMIT
    item.stash[BREAK_IN] = limit + GRACE
    if not isinstance(item, pytest.Function) or not iscoroutinefunction(item.obj):
        return
    check = item.obj

    @functools.wraps(check)
    async def within(**fixtures: Any) -> None:
        patient = limit + item.stash.get(PATIENCE, 0.0)
        try:
            async with asyncio.timeout(patient) as budget:
                await check(**fixtures)
        except TimeoutError as error:
            if not budget.expired():
                raise
            late = Undecided(f"no verdict within {patient:g} s")
            raise await _hang(item, error) or late from None
        except Exception as error:
            if hang := await _hang(item, error):
                raise hang from error
            raise

    item.obj = within


async def _hang(item: pytest.Item, error: Exception) -> Stalled | None:
    cause = cause_of(error)
    waited = isinstance(cause, TimeoutError | Undecided | CallFailed)
    known = isinstance(cause, OutOfReach | Stalled)
    look = item.stash.get(IN_VAIN, None)
    return await look() if look and waited and not known else None


@contextlib.contextmanager
def watched(item: pytest.Item) -> Iterator[None]:
    """Break into what runs inside when its time is up, and end the process if that is in vain."""
    limit = item.stash.get(BREAK_IN, 0.0) + item.stash.get(PATIENCE, 0.0)
    if BREAK_IN not in item.stash or threading.current_thread() is not threading.main_thread():
        yield
        return

    def break_in(*_: object) -> None:
        pytest.fail(f"{HUNG} after {limit:g} s")

    before = signal.signal(signal.SIGALRM, break_in)
    if stacks := item.config.stash.get(STACKS, 0):
        end = limit + BREAK_INS * GRACE
        faulthandler.dump_traceback_later(end, exit=True, file=stacks)
    signal.setitimer(signal.ITIMER_REAL, limit, GRACE)
    try:
        yield
    finally:
        if stacks:
            faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        # Have anyio open a new event loop if the one that nobody needs any more was not closed: it
        # would give the next check a loop that was broken into while it closed. We keep that one,
        # or its warnings would be blamed on whoever runs when it is collected.
        if pytest_plugin._current_runner and not pytest_plugin._runner_leases:
            _BROKEN_LOOPS.append(pytest_plugin._current_runner)
            pytest_plugin._runner_stack = pytest_plugin._current_runner = None


_BROKEN_LOOPS: list[object] = []


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Keep the garbage collector away from what runs inside.

    To render a failure pytest parses source. In Python 3.11 a parser that runs within another one,
    as a finalizer may have it, makes the outer one fail with ``SystemError: AST constructor
    recursion depth mismatch`` (python/cpython#106905), which ends the whole run.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
