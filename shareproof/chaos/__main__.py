"""The nightly swarm, and the shrinking of what failed.

``python -m shareproof.chaos --hours 8`` judges the latest runs of an archive again, draws one
schedule after the other from rising seeds, each with a few kinds of fault, judges and keeps each
run, shrinks those that broke a rule unexpectedly, and builds a site over the archive.
``python -m shareproof.chaos --shrink RUN`` plays smaller and smaller schedules until nothing can be
left out, and reports how reliably what is left fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fixtures.targets import DEFAULT_TARGET, UsageFault
from reports.verdicts import FAULT, USAGE
from shareproof.chaos.night import Night, whole_night
from shareproof.chaos.swarm import Swarm, shrink_run
from spec.verdict import EnvironmentFault
from suites.options import new_seed


def _night(asked: argparse.Namespace, archive: Path) -> Night:
    site = asked.site or archive.with_name(f"{archive.name}-site")
    return Night(
        hours=asked.hours,
        seed=new_seed() if asked.seed is None else asked.seed,
        site=site.absolute(),
        again=asked.again,
        shrunk=asked.shrunk,
        tries=asked.tries,
        replays=asked.replays,
        most=asked.most,
    )


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m shareproof.chaos", description=__doc__)
    parser.add_argument("--target", default=DEFAULT_TARGET)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--hours", type=float, default=8.0)
    parser.add_argument("--minutes", type=float, default=2.0, help="of each run")
    parser.add_argument("--rate", type=float, default=1000.0, help="records a second")
    parser.add_argument("--seed", type=int, default=None, help="of the first run")
    parser.add_argument("--archive", type=Path, default=Path("out/nightly"))
    parser.add_argument("--site", type=Path, help="where the site goes; ARCHIVE-site if not given")
    parser.add_argument("--again", type=int, default=10, help="earlier runs to judge again")
    parser.add_argument("--shrunk", type=int, default=3, help="runs that failed to shrink")
    parser.add_argument("--shrink", type=Path, metavar="RUN", help="a run that failed")
    parser.add_argument("--tries", type=int, default=3, help="plays of a smaller schedule")
    parser.add_argument("--replays", type=int, default=20, help="plays of the smallest")
    parser.add_argument("--most", type=int, default=60, help="plays of smaller schedules in all")
    asked = parser.parse_args(arguments)
    swarm = Swarm(
        target=asked.target,
        brokers=asked.brokers,
        seconds=asked.minutes * 60,
        rate=asked.rate,
        archive=asked.archive.absolute(),
    )
    try:
        if asked.shrink:
            run = asked.shrink.absolute()
            return shrink_run(swarm, run, tries=asked.tries, replays=asked.replays, most=asked.most)
        return whole_night(swarm, _night(asked, swarm.archive))
    except (UsageFault, ValueError, OSError) as fault:
        print(f"shareproof.chaos: {fault}", file=sys.stderr)
        return USAGE
    except EnvironmentFault as fault:
        print(f"shareproof.chaos: {fault}", file=sys.stderr)
        return FAULT


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
