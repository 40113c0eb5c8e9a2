"""The invariants on DuckDB: ``python -m benchmarks.rivals HISTORY``.

It gets our own SQL, every view and every invariant, translated by sqlglot and fused in the same
way, and prints a line of JSON: for each rule its cases and its broken cases.
"""

import argparse
import json
from pathlib import Path

import duckdb
import sqlglot

from reports.analysis.queries import counts
from reports.analysis.relations import in_order
from reports.analysis.rules import by_relation, load_invariants
from reports.analysis.tables import release_text
from spec.history import TABLES

Counts = dict[str, tuple[int, int]]


def ours(query: str) -> str:
    return sqlglot.transpile(query, read="spark", write="duckdb")[0]


def count(history: Path, threads: int, memory: str) -> Counts:
    base = duckdb.connect(config={"threads": threads, "memory_limit": memory})
    base.execute(f"SET temp_directory = '{history / 'spilled'}'")
    for name in TABLES:
        files = f"{history.absolute()}/{name}/*.parquet"
        base.read_parquet(files).project("*, 0 AS run").create_view(name)
    base.execute(f"CREATE VIEW release AS {release_text()}")
    rules = load_invariants()
    for relation in in_order(rule.over for rule in rules):
        base.execute(f"CREATE VIEW {relation.name} AS {ours(relation.query())}")
    found: Counts = {}
    for together in by_relation(rules).values():
        # There is no row where there is nothing to ask.
        row = base.execute(ours(counts(together))).fetchone() or [0] * (2 * len(together))
        for number, rule in enumerate(together):
            found[rule.id] = row[2 * number] or 0, row[2 * number + 1] or 0
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("history", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="6GB")
    options = parser.parse_args()
    print(json.dumps(count(options.history, options.threads, options.memory)))


if __name__ == "__main__":
    main()
