"""Single records and all that happened to them: those that break a rule, and those that came most.

A story is told of one record in one group, as those saw it who asked: what was sent, and what was
answered. Times are seconds since the run began.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from reports.analysis.queries import at_places
from reports.analysis.session import by_runs, fetched
from reports.analysis.witnesses import Hit
from spec.history import NEVER, AckType, Outcome

MOST_OF_HITS = 12
MOST_OFTEN = 3
MOST_DELIVERIES = 60
_SECOND, _MS = 1e9, 1e6

DONE = {
    AckType.ACCEPT: "accepted",
    AckType.RELEASE: "released",
    AckType.REJECT: "rejected",
    AckType.RENEW: "renewed",
}


@dataclass(frozen=True, slots=True)
class Record:
    """A record as one group sees it, and the rules that it breaks."""

    log: int
    offset: int
    share_partition: int
    rules: tuple[str, ...] = ()


def stories(
    spark: SparkSession, hits: Sequence[Sequence[Hit]], began: Sequence[int]
) -> list[list[dict[str, Any]]]:
    """Return for each run the stories of records that break a rule, and of a few delivered most."""
    often = _often(spark, len(hits))
    chosen: list[list[Record]] = []
    for mine, most in zip(hits, often, strict=True):
        rules: dict[tuple[int, int, int], list[str]] = {}
        for hit in mine:
            if hit.log >= 0 and hit.offset >= 0 and hit.share_partition >= 0:
                rules.setdefault((hit.log, hit.offset, hit.share_partition), []).append(hit.rule)
        every = [Record(*place, tuple(dict.fromkeys(broken))) for place, broken in rules.items()]
        some = every[:MOST_OF_HITS]
        known = {(one.log, one.offset, one.share_partition) for one in some}
        more = [one for one in most if (one.log, one.offset, one.share_partition) not in known]
        chosen.append([*some, *more])
    if not any(chosen):
        return [[] for _ in hits]
    found = _found(spark, chosen)
    of_runs = {name: by_runs(rows, len(began)) for name, rows in found.items()}
    return [
        list(_told({name: rows[run] for name, rows in of_runs.items()}, chosen[run], at))
        for run, at in enumerate(began)
    ]


def _often(spark: SparkSession, runs: int) -> list[list[Record]]:
    """Return the records that were delivered most often, one of a share-partition."""
    rows = spark.sql(f"""
        SELECT *
        FROM (
          SELECT *,
            row_number() OVER (PARTITION BY run ORDER BY times DESC, share_partition) AS place
          FROM (
            SELECT run, share_partition, max_by(struct(log, offset), times) AS record,
              max(times) AS times
            FROM (
              SELECT run, share_partition, log, offset, count(*) AS times FROM deliveries
              WHERE highest_before IS NOT NULL GROUP BY run, share_partition, log, offset
            )
            GROUP BY run, share_partition
          )
        )
        WHERE place <= {MOST_OFTEN} ORDER BY run, place LIMIT {MOST_OFTEN * runs}
    """).collect()  # noqa: S608
    found: list[list[Record]] = [[] for _ in range(runs)]
    for row in rows:
        place = row["record"]
        found[row["run"]].append(Record(place["log"], place["offset"], row["share_partition"]))
    return found


def _found(spark: SparkSession, chosen: Sequence[Sequence[Record]]) -> dict[str, list[Any]]:
    """Return what the tables say of some records in each run, and of the runs."""
    where = at_places((run, one.log, one.offset) for run, some in enumerate(chosen) for one in some)
    most = MOST_DELIVERIES * sum(map(len, chosen))
    queries = {
        "produced": f"SELECT * FROM produced WHERE {where}",  # noqa: S608 - numbers
        "delivered": f"""
            SELECT d.*, m.behaviour FROM (SELECT * FROM deliveries WHERE {where}) AS d
            LEFT JOIN (
              SELECT run, member, any_value(behaviour) AS behaviour FROM members
              GROUP BY run, member
            ) AS m ON m.run = d.run AND m.member = d.member
            ORDER BY acquired LIMIT {most}
        """,  # noqa: S608
        "names": "SELECT * FROM share_partitions",
        "loads": "SELECT * FROM reloads ORDER BY run, since LIMIT 100000",
        "faults": "SELECT * FROM faults ORDER BY run, since LIMIT 10000",
    }
    return dict(zip(queries, fetched(spark, queries.values()), strict=True))


def _told(
    found: Mapping[str, Sequence[Any]], chosen: Sequence[Record], began: int
) -> Iterator[dict[str, Any]]:
    names = {row["share_partition"]: row for row in found["names"]}
    loads, faults = found["loads"], found["faults"]
    for one in chosen:
        steps = [
            *_births([row for row in found["produced"] if _is(row, one)]),
            *_lives(
                [
                    row
                    for row in found["delivered"]
                    if _is(row, one) and row["share_partition"] == one.share_partition
                ]
            ),
        ]
        if not steps:
            continue
        first, last = min(at for at, _ in steps), max(at for at, _ in steps)
        steps += _loads(
            [row for row in loads if row["share_partition"] == one.share_partition], first, last
        )
        steps += _faults(faults, first, last)
        name = names[one.share_partition]
        yield {
            "record": f"{name['topic']}-{name['partition']} offset {one.offset}",
            "group": name["group"],
            "rules": list(one.rules),
            "steps": [[round((at - began) / _SECOND, 3), text] for at, text in sorted(steps)],
        }


def _is(row: Any, one: Record) -> bool:
    return bool(row["log"] == one.log and row["offset"] == one.offset)


def _births(rows: Sequence[Any]) -> Iterator[tuple[int, str]]:
    for row in rows:
        response = _response(row["outcome"], row["error"], row["sent"], row["received"])
        yield row["sent"], f"produced by producer {row['producer']}, {response}"


def _lives(rows: Sequence[Any]) -> Iterator[tuple[int, str]]:
    for row in rows:
        kind = f" ({row['behaviour']})" if row["behaviour"] else ""
        member = f"m{row['member']}{kind}"
        lock = f", locked for {row['lock_ms']} ms" if row["lock_ms"] > 0 else ""
        yield row["acquired"], f"acquired by {member}, delivery {row['count']}{lock}"
        if row["renewals"]:
            yield row["acquired"] + 1, f"its lock was renewed {_times(row['renewals'])} by {member}"
        if row["kind"] in DONE:
            done = DONE[AckType(row["kind"])]
            sent, received = row["ack_sent"], row["ack_received"]
            said = _response(row["outcome"], row["error"], sent, received)
            again = f", tried {_times(row['attempts'])}" if row["attempts"] > 1 else ""
            yield sent, f"{done} by {member}{again}, {said}"
            if sent > row["ends_by"]:
                yield row["ends_by"], f"the lock of {member} has run out by now"
        elif row["kind"] == AckType.CLOSED:
            yield row["ack_sent"], f"given back with the session of {member}"
        elif row["freed"] < NEVER and row["freed"] <= row["ends_by"]:
            yield row["freed"], f"the session of {member} begins to end"
        elif row["ends_by"] < NEVER:
            yield row["ends_by"], f"the lock of {member} has run out by now, unacknowledged"


def _loads(rows: Sequence[Any], first: int, last: int) -> Iterator[tuple[int, str]]:
    for row in rows:
        if row["since"] <= last and row["until"] >= first:
            spent = f"within {(row['until'] - row['since']) / _SECOND:.1f} s from here"
            yield row["since"], f"the share-partition is reloaded {spent} ({row['why']})"


def _faults(rows: Sequence[Any], first: int, last: int) -> Iterator[tuple[int, str]]:
    for row in rows:
        if row["since"] <= last and row["until"] >= first:
            yield row["since"], f"fault: {row['kind']} of {row['subject']} begins"
            yield row["until"], f"fault: {row['kind']} is healed"


def _response(outcome: int, error: int, sent: int, received: int) -> str:
    if outcome == Outcome.OK:
        return f"response OK after {(received - sent) / _MS:.0f} ms"
    if outcome == Outcome.FAILED:
        return f"refused with error {error}"
    return "no response"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
