"""What both judges say about one history, place by place, and where they differ.

``python -m tools.histories.judges DIR...`` compares them on the histories of runs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fixtures.history.compaction import compact
from reports.analysis import queries
from reports.analysis.files import open_history
from reports.analysis.rules import Invariant, by_relation, load_invariants
from reports.oracle.judge import Verdicts, judge
from tools.histories.small import History, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def by_spark(spark: SparkSession, rules: Sequence[Invariant]) -> Verdicts:
    found: Verdicts = {}
    for some in by_relation(rules).values():
        counts = [f"count_if(x{n}) AS x{n}, count_if(b{n}) AS b{n}" for n in range(len(some))]
        each = queries.asked(some[0].over.name, some, f"{queries.place(some[0])} AS place")
        sql = f"SELECT place, {', '.join(counts)} FROM ({each}) GROUP BY place"  # noqa: S608
        rows = spark.sql(sql).collect()
        for n, rule in enumerate(some):
            seen = {row.place: (row[f"x{n}"], row[f"b{n}"]) for row in rows if row[f"x{n}"]}
            found |= {rule.id: seen} if seen else {}
    return found


def differences(spark: Verdicts, oracle: Verdicts) -> Iterator[str]:
    for rule in sorted({*spark, *oracle}):
        theirs, ours = spark.get(rule, {}), oracle.get(rule, {})
        for place in sorted({*theirs, *ours}):
            if theirs.get(place) != ours.get(place):
                said = f"Spark (tested, broken) {theirs.get(place)}, oracle {ours.get(place)}"
                yield f"{rule} at {place}: {said}"


def accused(histories: Sequence[History]) -> list[tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="shareproof-histories-") as room:
        write(Path(room), histories)
        found = judge(Path(room))
    broken: list[list[str]] = [[] for _ in histories]
    for rule in sorted(found):
        for place, (_, wrong) in found[rule].items():
            if wrong:
                broken[place].append(rule)
    return [tuple(rules) for rules in broken]


def compare(spark: SparkSession, folder: Path, name: str) -> tuple[Verdicts, list[str]]:
    from reports.analysis.tables import register, unregister  # noqa: PLC0415 - with the extra

    history, rules = open_history(folder), load_invariants()
    register(spark, [history], name).need(rule.over for rule in rules)
    try:
        found = by_spark(spark, rules)
    finally:
        unregister(spark, name)
    return found, list(differences(found, judge(history.folder)))


def disagreements(histories: Sequence[History]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="shareproof-histories-") as room:
        write(Path(room), histories)
        compact(Path(room))
        return differing([Path(room)])


def differing(folders: Sequence[Path]) -> list[str]:
    from reports.analysis.session import SMALL, open_session  # noqa: PLC0415 - with the extra

    spark = open_session("local[2]", "1g", SMALL)
    try:
        found = [compare(spark, folder, f"run_{n}")[1] for n, folder in enumerate(folders)]
    finally:
        spark.stop()
    return [f"{folder}: {one}" for folder, some in zip(folders, found, strict=True) for one in some]


def main() -> int:
    lines = differing([Path(name) for name in sys.argv[1:]])
    print(f"{len(lines)} differences", *lines, sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
