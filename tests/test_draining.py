"""What a load waits for while it drains."""

import asyncio
import itertools
from pathlib import Path

from fixtures.clients.admin import ShareOffset
from fixtures.targets import TargetOptions, open_target
from fixtures.workload.load import run_load
from fixtures.workload.observer import Progress
from fixtures.workload.terms import Load


def shown(start: int, lag: int) -> ShareOffset:
    return ShareOffset(start=start, lag=lag, leader_epoch=0, error=0)


def test_what_comes_nearer_does_not_stand_still() -> None:
    progress = Progress()
    times = []
    for start, lag in ((5, 90), (5, 90), (5, 80), (7, 85), (6, 81), (7, 79)):
        progress.note(1, shown(start, lag), done=False)
        times.append(progress.standing[1])
    assert [later > earlier for earlier, later in itertools.pairwise(times)] == [
        *(False, True, True, False, True)
    ]


def test_a_lag_that_is_not_shown_is_no_progress() -> None:
    progress = Progress()
    progress.note(1, shown(5, -1), done=False)
    since = progress.standing[1]
    progress.note(1, shown(5, -1), done=False)
    assert progress.standing == {1: since}
    progress.note(1, shown(9, -1), done=True)
    assert not progress.standing


def test_an_empty_partition_is_not_waited_for(tmp_path: Path) -> None:
    load = Load(seconds=1, rate=20, partitions=6, processes=1, drain=30, background=False)
    target = open_target("reference", TargetOptions())
    target.start()
    try:
        loaded = asyncio.run(run_load(load, target.info, tmp_path))
    finally:
        target.stop()
    assert loaded.drained
