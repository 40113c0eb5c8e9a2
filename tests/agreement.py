"""What Spark and the oracle say about one history, place by place, and where they differ.

``python -m tests.agreement DIR...`` compares them on the histories of runs.
"""

import argparse
from pathlib import Path

from reports.analysis.session import SMALL, open_session
from reports.oracle.judge import Verdicts
from tools.histories.judges import compare


def broken_at(found: Verdicts, place: int) -> set[str]:
    return {rule for rule, places in found.items() if places.get(place, (0, 0))[1]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="directories of runs to compare on")
    spark = open_session("local[2]", "1g", SMALL)
    wrong = 0
    for number, run in enumerate(parser.parse_args().runs):
        _, differing = compare(spark, run, f"run_{number}")
        print(f"{run}: {len(differing)} differences", *differing[:20], sep="\n  ")
        wrong += len(differing)
    spark.stop()
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
