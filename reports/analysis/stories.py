"""Single records and all that happened to them: those that break a rule, and those that came most.

The first witnesses of a broken rule are one sentence each, with the faults that it overlaps. A
story is told of one record in one group, as those saw it who asked: what was sent, and what was
answered. Times are seconds since the run began.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from reports.analysis.files import History, span
from reports.analysis.queries import at_places, breaches
from reports.analysis.rules import Invariant, by_relation
from reports.analysis.session import by_runs, fetched
from reports.analysis.tables import narrowed
from spec.history import NEVER, AckType, Outcome

WITNESSES = 3
_MOST_HITS = 10_000
_ORDER = "since, offset, log, share_partition"
"""The first of several cases is the same one, whatever is judged beside them."""

Place = tuple[int, int]
"""A log and an offset in it."""
Broken = Mapping[str, Mapping[int, Sequence[Place]]]
"""In which runs each rule is broken, and some places, of rules over records."""
Window = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    began: int
    windows: Sequence[Window]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A case that breaks a rule. Numbers are -1, and times 0, where it has none."""

    rule: str
    log: int
    offset: int
    share_partition: int
    since: int
    sentence: str


def witnesses(
    spark: SparkSession, histories: Sequence[History], rules: Sequence[Invariant], broken: Broken
) -> list[dict[str, tuple[Hit, ...]]]:
    """Return up to ``WITNESSES`` cases for each rule and run over the registered histories.

    Only the records where each is ``broken`` are read again, whatever the size of the histories.
    """
    rows = spark.sql("SELECT * FROM faults ORDER BY run, since LIMIT 100000").collect()
    windows = [row.asDict() for row in rows]
    contexts = [
        Context(span(history)[0], [window for window in windows if window["run"] == run])
        for run, history in enumerate(histories)
    ]
    found: list[dict[str, tuple[Hit, ...]]] = [{} for _ in histories]
    wanted = {(run, rule) for rule, runs in broken.items() for run in runs}
    for relation, together in by_relation(rules).items():
        if relation.by_record:
            at = {
                (run, *place)
                for rule in together
                for run, places in broken[rule.id].items()
                for place in places
            }
            few = f"few_{relation.name}"
            narrowed(spark, relation, at).createOrReplaceTempView(few)
            said = _sentences(spark, breaches(few, together, "run"), contexts)
            _add(found, said, wanted)
        if missing := [rule for rule in together if rule.id in {name for _, name in wanted}]:
            said = _sentences(spark, _earliest(breaches(relation, missing, "run")), contexts)
            _add(found, said, wanted)
    return found


def _add(
    found: Sequence[dict[str, tuple[Hit, ...]]],
    said: Mapping[tuple[int, str], tuple[Hit, ...]],
    wanted: set[tuple[int, str]],
) -> None:
    for run, rule in wanted & said.keys():
        found[run][rule] = said[run, rule]
    wanted.difference_update(said)  # `-=` with keys would make another set


def _earliest(hits: str) -> str:
    return f"""
        SELECT * FROM (
          SELECT *, row_number() OVER (PARTITION BY run, rule ORDER BY {_ORDER}) AS place
          FROM ({hits})
        )
        WHERE place <= {WITNESSES}
    """  # noqa: S608


def _sentences(
    spark: SparkSession, hits: str, contexts: Sequence[Context]
) -> dict[tuple[int, str], tuple[Hit, ...]]:
    query = f"""
        SELECT w.*, s.`group`, s.topic, s.partition
        FROM ({hits}) AS w
        LEFT JOIN partitions AS s ON s.share_partition = w.share_partition
        LIMIT {_MOST_HITS * len(contexts)}
    """  # noqa: S608
    found: dict[tuple[int, str], tuple[Hit, ...]] = {}
    rows = spark.sql(query).collect()
    for row in sorted(rows, key=lambda row: [int(row[name] or 0) for name in _ORDER.split(", ")]):
        told = found.get((row.run, row.rule), ())
        if len(told) < WITNESSES:
            found[row.run, row.rule] = (*told, _hit(row.asDict(), contexts[row.run]))
    return found


def _hit(row: Mapping[str, Any], context: Context) -> Hit:
    log, offset, share_partition = (
        -1 if row[name] is None else int(row[name]) for name in ("log", "offset", "share_partition")
    )
    where = f"{row['topic']}-{row['partition']} " if row["topic"] else ""
    group = f" in group {row['group']}" if row["group"] else ""
    since, until = row["since"] or 0, row["until"] or row["since"] or 0
    head = f"{where}offset {row['offset']}{group}: {row['detail']}"
    during = ", ".join(
        f"{window['kind']} of {window['subject']}"
        for window in context.windows
        if window["since"] <= until and window["until"] >= since
    )
    first, last = (max(0, at - context.began) / 1e9 for at in (since, until))
    when = f"from {first:.3f} s to {last:.3f} s of the run"
    return Hit(
        rule=row["rule"],
        log=log,
        offset=offset,
        share_partition=share_partition,
        since=row["since"] or 0,
        sentence=f"{head} ({when}{f'; during {during}' if during else ''})",
    )


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
    log: int
    offset: int
    share_partition: int
    rules: tuple[str, ...] = ()


def stories(
    spark: SparkSession, hits: Sequence[Sequence[Hit]], began: Sequence[int]
) -> list[list[dict[str, Any]]]:
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
