"""The invariants on other engines: ``python -m benchmarks.rivals duckdb|polars HISTORY``.

DuckDB gets our own SQL, every view and every invariant, translated by sqlglot and fused in the same
way. Polars gets the views over the large tables as expressions, because its SQL has no such
windows, and the invariants over them as SQL; what is left out reads small tables only. Both print
a line of JSON: for each rule its cases and its broken cases.
"""

import argparse
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from reports.analysis.queries import counts
from reports.analysis.relations import in_order
from reports.analysis.rules import Invariant, by_relation, load_invariants
from reports.analysis.tables import release_text
from spec.history import TABLES

MS100 = 100_000_000
Counts = dict[str, tuple[int, int]]


def duckdb(history: Path, threads: int, memory: str) -> Counts:
    import duckdb as engine  # noqa: PLC0415

    def ours(query: str) -> str:
        return sqlglot.transpile(query, read="spark", write="duckdb")[0]

    base = engine.connect(config={"threads": threads, "memory_limit": memory})
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
        found.update(_pairs(together, row))
    return found


def _pairs(rules: Sequence[Invariant], row: Sequence[int | None]) -> Counts:
    return {
        rule.id: (row[2 * number] or 0, row[2 * number + 1] or 0)
        for number, rule in enumerate(rules)
    }


def polars(history: Path, threads: int, memory: str) -> Counts:  # noqa: ARG001
    assert os.environ["POLARS_MAX_THREADS"] == str(threads)
    import polars as pl  # noqa: PLC0415

    tables = {name: pl.scan_parquet(history / name / "*.parquet") for name in TABLES}
    partitions = _partitions_of(pl, tables)
    views = {
        "delivery_pairs": _delivery_pairs(pl, tables, partitions),
        "records_of_logs": _records_of_logs(pl, tables, partitions),
        "in_flight": _in_flight(pl, tables, partitions),
    }
    found: Counts = {}
    for relation, rules in by_relation(load_invariants()).items():
        if relation.name in views:
            columns = [
                one.fill_null(value=False).sum().alias(f"{number}")
                for number, one in enumerate(_questions(pl, rules))
            ]
            row = views[relation.name].select(columns).collect(engine="streaming").row(0)
            found.update(_pairs(rules, row))
    return found


def _questions(pl: Any, rules: Sequence[Invariant]) -> list[Any]:
    questions: list[Any] = []
    for rule in rules:
        exercised, broken = (_asked(text) for text in (rule.cases, rule.breach))
        # A question that is always true would be one value, not one for each row.
        each = pl.sql_expr(exercised) & pl.first().is_not_null()
        questions += [each, each & pl.sql_expr(broken).fill_null(value=False)]
    return questions


def _asked(text: str) -> str:
    def without_not(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.BitwiseNot):
            return exp.Sub(
                this=exp.Neg(this=exp.Paren(this=node.this)), expression=exp.Literal.number(1)
            )
        return node

    return sqlglot.parse_one(text, read="spark").transform(without_not).sql(dialect="duckdb")


def _partitions_of(pl: Any, tables: dict[str, Any]) -> Any:
    offsets = (
        tables["offsets"]
        .group_by("share_partition")
        .agg(
            pl.col("log_start").max(),
            pl.col("spso").max().alias("passed"),
            (
                (pl.col("phase") == "quiet")
                & ((pl.col("spso") >= pl.col("log_end")) | (pl.col("lag") == 0))
            )
            .any()
            .alias("drained"),
        )
    )
    partitions = tables["share_partitions"].join(offsets, on="share_partition", how="left")
    for table in ("unseen_responses", "reloads"):
        counted = (
            tables[table].group_by("share_partition").agg(pl.len().cast(pl.Int64).alias(table))
        )
        partitions = partitions.join(counted, on="share_partition", how="left")
    limit = pl.col("delivery_limit")
    limits = (
        tables["limits"].group_by("share_partition").agg(lowest=limit.min(), highest=limit.max())
    )
    unseen = tables["unseen_responses"].select(
        "share_partition",
        unseen_until="until",
        place=pl.col("until")
        .rank("ordinal", descending=True)
        .over("share_partition")
        .cast(pl.Int64),
    )
    deleted = tables["deletions"].group_by("log").agg(pl.col("before").max())
    return (
        partitions.join(limits, on="share_partition", how="left")
        .join(deleted, on="log", how="left")
        .with_columns(
            pl.col("unseen_responses", "reloads").fill_null(0),
            pl.col("drained").fill_null(value=False),
            log_start=pl.max_horizontal(pl.col("log_start", "before").fill_null(0)),
            lowest_limit=pl.min_horizontal("delivery_limit", "lowest"),
            highest_limit=pl.max_horizontal("delivery_limit", "highest"),
            close_uncounted=pl.lit(value=False),
            throttling=pl.lit(value=True),
        )
        .join(
            unseen,
            left_on=["share_partition", pl.col("lowest_limit").cast(pl.Int64)],
            right_on=["share_partition", "place"],
            how="left",
        )
        .with_columns(pl.col("unseen_until").fill_null(-1))
    )


def _delivery_pairs(pl: Any, tables: dict[str, Any], partitions: Any) -> Any:
    rows = tables["deliveries"].with_columns(is_first=pl.col("highest_before").is_null())
    named = (
        "share_partition",
        "lowest_limit",
        "highest_limit",
        "log_start",
        "drained",
        "passed",
        "unseen_responses",
        "committed_only",
        "slot",
        "reloads",
        "close_uncounted",
        "throttling",
    )
    again = pl.col("next_op").is_not_null()
    same = (pl.col("next_node") == pl.col("node")) & (
        pl.col("next_loads_by_acquire") == pl.col("loads_before_fetch")
    )
    return rows.join(partitions.select(named), on="share_partition").with_columns(
        (again & same).alias("no_load_between"),
        (same & (pl.col("next_loads_before_fetch") == pl.col("loads_before_fetch")))
        .fill_null(value=False)
        .alias("same_state"),
        ((pl.col("next_node") != pl.col("node")) & (pl.col("next_loaded") < pl.col("loaded")))
        .fill_null(value=False)
        .alias("deposed"),
        (
            again
            & (
                (pl.col("next_sent") > pl.col("acquired"))
                | (same & (pl.col("next_count") > pl.col("count")))
            )
        ).alias("order_known"),
        pl.when((pl.col("kind") == 2) & (pl.col("outcome") == 1))
        .then("ack_received")
        .when((pl.col("kind") == 5) & (pl.col("outcome") == 1))
        .then("ack_sent")
        .otherwise("ends_by")
        .alias("free_by"),
    )


def _records_of_logs(pl: Any, tables: dict[str, Any], partitions: Any) -> Any:
    bit = pl.lit(1, pl.Int64) * 2 ** pl.col("slot").cast(pl.Int64)
    marked = tables["deliveries"].join(
        partitions.select("share_partition", bit.alias("bit")), on="share_partition"
    )
    here, sealed = pl.col("present"), pl.col("crc") >= 0
    delivered = marked.group_by("log", "offset").agg(
        pl.col("producer").filter(here).min().alias("low_producer"),
        pl.col("producer").filter(here).max().alias("high_producer"),
        pl.col("sequence").filter(here).min().alias("low_sequence"),
        pl.col("sequence").filter(here).max().alias("high_sequence"),
        pl.col("crc").filter(sealed).min().alias("low_crc"),
        pl.col("crc").filter(sealed).max().alias("high_crc"),
        here.any(),
        pl.col("bit").bitwise_or().alias("listed"),
        pl.when(here).then(pl.col("bit")).otherwise(0).bitwise_or().alias("came"),
        pl.lit(value=True).first().alias("was_delivered"),
    )
    produced = (
        tables["produced"]
        .filter(pl.col("offset") >= 0)
        .select("log", "offset", "producer", "sequence", "crc", "transaction", "sent")
        .with_columns(pl.lit(value=True).alias("was_produced"))
    )
    few = pl.col("unseen_until") < 0
    logs = partitions.group_by("log").agg(
        pl.when(pl.col("drained") & few).then(bit).otherwise(0).bitwise_or().alias("owed"),
        pl.when(pl.col("drained") & ~few).then(bit).otherwise(0).bitwise_or().alias("owed_after"),
        pl.col("unseen_until").max(),
        pl.when("committed_only").then(bit).otherwise(0).bitwise_or().alias("committed"),
        pl.max_horizontal("first", "log_start").max().alias("owed_from"),
    )
    doubtful = (
        tables["produced"]
        .filter(pl.col("offset") < 0)
        .select("log", low_producer="producer", low_sequence="sequence", may_be_stored=True)
        .unique()
    )
    return (
        produced.join(delivered, on=["log", "offset"], how="full", coalesce=True)
        .join(logs, on="log", how="left")
        .join(doubtful, on=["log", "low_producer", "low_sequence"], how="left")
        .with_columns(
            pl.col("was_produced", "was_delivered", "present", "may_be_stored").fill_null(
                value=False
            ),
            pl.when(pl.col("crc") >= 0).then("came").otherwise("listed").fill_null(0).alias("seen"),
            (pl.col("came") & pl.col("committed")).fill_null(0).alias("seen_committed"),
            pl.when(pl.col("was_produced") & (pl.col("offset") >= pl.col("owed_from")))
            .then(
                pl.col("owed")
                | pl.when(pl.col("sent") > pl.col("unseen_until")).then("owed_after").otherwise(0)
            )
            .otherwise(0)
            .alias("owed"),
        )
    )


def _in_flight(pl: Any, tables: dict[str, Any], partitions: Any) -> Any:
    rows = tables["deliveries"]
    proven = rows.filter(pl.col("kind").is_in([1, 3]) & pl.col("proven"))
    parts = [
        rows.group_by("share_partition", tick=pl.col("acquired") // MS100).agg(
            acquired_to=pl.col("offset").max()
        ),
        proven.group_by("share_partition", tick=pl.col("ack_sent") // MS100).agg(
            proved=pl.col("offset").min()
        ),
        tables["offsets"]
        .group_by("share_partition", tick=pl.col("received") // MS100)
        .agg(shown=pl.col("spso").max()),
    ]
    named = partitions.filter(pl.col("reloads") == 0).select("share_partition", "window", "batch")
    ticks = (
        pl.concat(parts, how="diagonal")
        .group_by("share_partition", "tick")
        .agg(pl.col("acquired_to").max(), pl.col("proved").min(), pl.col("shown").max())
        .join(named, on="share_partition")
        .sort("share_partition", "tick")
    )
    return ticks.with_columns(
        high=pl.col("acquired_to").fill_null(-1).cum_max().over("share_partition"),
        low=pl.col("proved")
        .fill_null(2**62)
        .cum_min(reverse=True)
        .shift(-1)
        .over("share_partition"),
    ).with_columns(
        high=pl.when(pl.col("high") >= 0).then("high"),
        low=pl.when(pl.col("low") < 2**62).then("low"),
    )


ENGINES: dict[str, Callable[[Path, int, str], Counts]] = {"duckdb": duckdb, "polars": polars}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("history", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", default="6GB")
    options = parser.parse_args()
    print(json.dumps(ENGINES[options.engine](options.history, options.threads, options.memory)))


if __name__ == "__main__":
    main()
