"""``python -m tests.altered.record DIR``: a small run against real Kafka with all there is.

Two partitions, of one of which records are deleted; six groups, of which one accepts only, one
releases, rejects and forgets, one dies now and then, one reads committed records, one has a limit
that changes, and one has dead letters.
"""

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

from fixtures.targets import TargetOptions, open_target, started
from fixtures.workload import background
from fixtures.workload.load import run_load
from fixtures.workload.plan import KINDS, PLAIN, Behaviour, Group, Load

PICKY = Behaviour(name="picky", accept=0.4, release=0.2, reject=0.15, none=0.25, max_records=6)
DYING = Behaviour(
    name="dying", accept=0.5, none=0.35, release=0.15, crash_s=1.5, hold_ms=50, max_records=8
)
GROUPS = (
    Group(name="calm", members=(PLAIN, PLAIN)),
    Group(name="odd", members=(PICKY, replace(KINDS["renewing"], max_records=5))),
    Group(name="rough", members=(DYING, PLAIN)),
    Group(name="committed", members=(PLAIN,), committed_only=True),
    Group(name="limited", members=(KINDS["wavering"],), limits_change=True),
    Group(name="dead", members=(KINDS["refusing"],), dead_letters=True),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="directory for the run")
    out = parser.parse_args().out
    load = Load(seconds=12, partitions=2, rate=14, batch=4, size=60, groups=GROUPS, seed=6)
    # The history is copied for every alteration, so it must not have more than it takes.
    background._TRANSACTION_EVERY, background._DELETION_EVERY = 1.5, 3.0
    background.MOST_RECORDS = 8
    with started(open_target("kafka:4.4.0", TargetOptions(brokers=1))) as cluster:
        asyncio.run(run_load(load, cluster.info, out, print))


if __name__ == "__main__":
    main()
