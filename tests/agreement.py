"""What Spark and the oracle say about one history, place by place, and where they differ.

``python -m tests.agreement --model-runs 200`` compares them on histories that the model made,
valid ones and such with one fault in them, and says how many faults were noticed. With directories
of runs it compares them on these.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import count, islice
from pathlib import Path

from pyspark.sql import SparkSession

from fixtures.history.compaction import compact
from reports.analysis.files import open_history
from reports.analysis.rules import load_invariants
from reports.analysis.session import SMALL, open_session
from reports.analysis.tables import register, unregister
from reports.oracle.judging import Verdicts, judge
from spec.history import log_numbers
from spec.model.release import RELEASES, Release
from tests.stories import EDITS, ModelRun, make_runs, never_came, write
from tools.histories.judges import by_spark, differences

FAULTS = (*EDITS, never_came)


def broken_at(found: Verdicts, place: int) -> set[str]:
    return {rule for rule, places in found.items() if places.get(place, (0, 0))[1]}


def known(release: Release) -> frozenset[str]:
    return frozenset({"INV-15"} if release.close_uncounted else ())


def runs(release: Release, seeds: Sequence[int], start: int = 0) -> list[ModelRun]:
    numbers = zip(count(start), islice(log_numbers(), start, None), strict=False)
    return [told for seed in seeds for told in make_runs(seed, release, numbers, FAULTS)]


def compare(spark: SparkSession, run: Path, name: str) -> tuple[Verdicts, list[str]]:
    history = open_history(run)
    rules = load_invariants()
    register(spark, [history], name).need(rule.over for rule in rules)
    try:
        found = by_spark(spark, rules)
    finally:
        unregister(spark, name)
    return found, list(differences(found, judge(history.folder)))


def _compare_runs(spark: SparkSession, release: Release, seeds: Sequence[int]) -> int:
    told = runs(release, seeds)
    with tempfile.TemporaryDirectory(prefix="shareproof-model-runs-") as room:
        write(Path(room), told)
        compact(Path(room))
        found, differing = compare(
            spark, Path(room), f"model_runs_{release.name.replace('.', '_')}"
        )
    noticed: Counter[str] = Counter()
    for one in told:
        noticed[one.fault] += bool(broken_at(found, one.share_partition) - known(release))
    tried = Counter(one.fault for one in told)
    print(f"{release.name}: {len(told)} histories, {len(differing)} differences", *differing[:20])
    for fault in sorted(tried):
        print(f"  {fault or 'valid'}: {noticed[fault]} of {tried[fault]} break a rule")
    for one in told:
        if not one.fault and (rules := broken_at(found, one.share_partition) - known(release)):
            print(f"  valid share-partition {one.share_partition} breaks", *sorted(rules))
    tested = {rule: sum(tested for tested, _ in places.values()) for rule, places in found.items()}
    print("  cases:", ", ".join(f"{rule} {cases}" for rule, cases in sorted(tested.items())))
    return len(differing) + noticed[""]


def main() -> int:
    """Compare; exit code 1 when the two differ or a valid history breaks a rule."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="*", help="directories of runs to compare on")
    parser.add_argument("--model-runs", type=int, default=0, help="how many seeds for each release")
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    options = parser.parse_args()
    spark = open_session("local[2]", "1g", SMALL)
    wrong = 0
    for number, run in enumerate(options.runs):
        _, differing = compare(spark, run, f"run_{number}")
        print(f"{run}: {len(differing)} differences", *differing[:20], sep="\n  ")
        wrong += len(differing)
    if options.model_runs:
        seeds = range(options.seed, options.seed + options.model_runs)
        wrong += sum(_compare_runs(spark, release, seeds) for release in RELEASES.values())
    spark.stop()
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
