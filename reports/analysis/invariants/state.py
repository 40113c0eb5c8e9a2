"""What is stored, and dead letters: INV-21, 33, 37, 41 and 42."""

from reports.analysis.relations import DELIVERY_PAIRS, STORED_AS_FINAL, Relation
from reports.analysis.rules import UNWELL, Invariant, columns
from spec.history import NEVER

STORED_AVAILABLE = Relation(
    name="stored_available",
    # What was finished with proof, with the highest count at which it was stored as available, and
    # when.
    sql="""
        SELECT h.*, a.count AS stored_count, a.spso, a.available_at, a.finished_at, a.whole_at
        FROM (
          SELECT * FROM {delivery_pairs}
          WHERE kind IN (1, 3) AND proven
            AND share_partition IN (SELECT DISTINCT share_partition FROM {persisted})
        ) AS h
        LEFT JOIN (
          SELECT
            share_partition,
            offset,
            max(count) FILTER (WHERE state = 0) AS count,
            min(spso) FILTER (WHERE state = 0) AS spso,
            max(position) FILTER (WHERE state = 0) AS available_at,
            max(position) FILTER (WHERE state <> 0) AS finished_at,
            max(position) FILTER (WHERE state = 0 AND snapshot) AS whole_at
          FROM (
            SELECT
              share_partition, spso, count, state, position, snapshot,
              explode(sequence(first, last)) AS offset
            FROM {persisted}
            WHERE first >= 0 AND last >= first
          )
          GROUP BY share_partition, offset
        ) AS a ON a.share_partition = h.share_partition AND a.offset = h.offset
    """,
    uses=(DELIVERY_PAIRS,),
    over_records=True,
)

INV_21 = Invariant(
    id="INV-21",
    over=STORED_AVAILABLE,
    columns=columns(
        "share_partition log offset ack_sent ack_received count stored_count spso "
        "available_at finished_at whole_at"
    ),
    # Earlier it may have been: counts fall back when a share-partition is loaded. Of two updates
    # with the same count the one that finishes a record counts, in whichever order they came;
    # snapshots have what came of that.
    breach="""
        coalesce(
          available_at > coalesce(finished_at, -1)
            AND offset >= spso
            AND (
              stored_count > count
              OR (stored_count = count AND (finished_at IS NULL OR whole_at > finished_at))
            ),
          false
        )
    """,
    since="ack_sent",
    until="ack_received",
    detail="""
        concat('finished at count ', count, ', stored as available with count ', stored_count)
    """,
    about="persisted",
)

OWED_DEAD_LETTERS = Relation(
    name="owed_dead_letters",
    # What ended so that it has a dead letter for certain, or has none, with what is there.
    sql="""
        SELECT h.*, l.kinds, f.windows
        FROM (
          SELECT * FROM {delivery_pairs}
          WHERE
            present
            AND offset >= log_start
            AND (
              (kind IN (1, 3) AND proven)
              OR (
                -- Had for the last time, and let go or let run out.
                next_op IS NULL
                AND drained
                AND count >= highest_limit
                AND ((kind = 2 AND proven) OR (kind IN (0, 5) AND attempts = 0))
              )
            )
            AND share_partition IN (
              SELECT share_partition FROM {share_partitions} WHERE dead_letters
            )
            AND run IN (SELECT run FROM {phases} WHERE phase = 'dead letters read')
        ) AS h
        LEFT JOIN (
          SELECT share_partition, offset, count(DISTINCT count, crc) AS kinds
          FROM {dead_letters}
          GROUP BY share_partition, offset
        ) AS l ON l.share_partition = h.share_partition AND l.offset = h.offset
        LEFT JOIN (
          SELECT run, collect_list(struct(since, until)) AS windows FROM {faults} GROUP BY run
        ) AS f ON f.run = h.run
    """,
    uses=(DELIVERY_PAIRS,),
    over_records=True,
)

_WRONG_LETTERS = "CASE WHEN kind = 1 THEN kinds IS NOT NULL ELSE kinds IS NULL OR kinds > 1 END"
# Not "exists", which other engines take for a question to a query. Where a load forgot an earlier
# delivery of an accepted record, that one may have been its last, with a letter, at a leader that
# could store nothing any more.
_BROKEN = """
    (kind = 1 AND coalesce(highest_before >= count, false))
    OR coalesce(
      size(
        filter(
          windows,
          w -> w.since < least(ack_received, ends_by) + 10000000000L
            AND w.until > acquired - 5000000000L
        )
      ) > 0,
      false
    )
"""

INV_33 = Invariant(
    id="INV-33",
    over=OWED_DEAD_LETTERS,
    columns=columns(
        "share_partition log offset acquired ack_received kind kinds windows ends_by count "
        "highest_before"
    ),
    # Writes of dead letters are given up after some attempts, and then the record is archived
    # without one (KIP-1191). A leader that does not know that it was deposed writes some of records
    # that its successor gives to somebody else.
    cases=f"NOT ({_WRONG_LETTERS}) OR NOT ({_BROKEN})",
    excuses=((UNWELL, "true"),),
    breach=_WRONG_LETTERS,
    since="acquired",
    until="ack_received",
    detail="""
        CASE
          WHEN kind = 1 THEN 'accepted, and with a dead letter'
          WHEN kinds IS NULL AND kind = 3 THEN 'rejected, and without a dead letter'
          WHEN kinds IS NULL THEN 'exhausted, and without a dead letter'
          ELSE concat(kinds, ' different dead letters')
        END
    """,
    needs_whole=True,
    about="phases",
)

INV_37 = Invariant(
    id="INV-37",
    clock_error=NEVER,
    over=STORED_AS_FINAL,
    columns=columns("share_partition log offset since until state own"),
    breach="NOT own",
    since="since",
    until="until",
    detail="concat('stored in state ', state, ', and nobody of its group finished it')",
    needs_whole=True,
    about="persisted",
)

LAST_STORED = Relation(
    name="last_stored",
    # What was finished with proof before the whole state topic was read, with the last start offset
    # that is stored there, and whether the record is stored as finished.
    sql="""
        SELECT h.*, s.spso, f.offset IS NOT NULL AS stored
        FROM (
          SELECT * FROM {delivery_pairs}
          WHERE kind IN (1, 3) AND proven
        ) AS h
        JOIN (
          SELECT run, max(since) AS since FROM {phases} WHERE phase = 'state read' GROUP BY run
        ) AS r ON r.run = h.run AND h.ack_received <= r.since
        LEFT JOIN (
          SELECT share_partition, max(spso) AS spso FROM {persisted} GROUP BY share_partition
        ) AS s ON s.share_partition = h.share_partition
        LEFT JOIN (
          SELECT DISTINCT share_partition, offset
          FROM (
            -- Few are beyond the last start offset.
            SELECT p.share_partition, explode(sequence(greatest(p.first, t.spso), p.last)) AS offset
            FROM {persisted} AS p
            JOIN (
              SELECT share_partition, max(spso) AS spso FROM {persisted} GROUP BY share_partition
            ) AS t ON t.share_partition = p.share_partition
            WHERE p.state IN (2, 3, 4) AND p.first >= 0 AND p.last >= greatest(p.first, t.spso)
          )
        ) AS f ON f.share_partition = h.share_partition AND f.offset = h.offset
    """,
    uses=(DELIVERY_PAIRS,),
    over_records=True,
)

INV_41 = Invariant(
    id="INV-41",
    over=LAST_STORED,
    columns=columns("share_partition log offset ack_sent ack_received count spso stored"),
    breach="offset >= coalesce(spso, -1) AND NOT stored",
    since="ack_sent",
    until="ack_received",
    detail="""
        concat('finished with a response of OK at count ', count, ', and no stored state says so')
    """,
    needs_whole=True,
    about="phases",
)

AFTER_SUCCESSOR = Relation(
    name="after_successor",
    # What a broker was asked to finish after another one had certainly loaded the share-partition,
    # with no load by the first since. What lies below the start offset in the first one's memory it
    # may answer with OK, so its lock has to be proven. "succeeded" is when the last such load was
    # over.
    sql="""
        SELECT *, array_max(transform(later, l -> l.until)) AS succeeded
        FROM (
          SELECT
            *,
            filter(
              loads,
              l -> l.exact AND l.node >= 0 AND l.node <> node AND l.until < ack_sent
                AND l.since > coalesce(own, -1L)
            ) AS later
          FROM (
            SELECT
              d.*,
              r.loads,
              array_max(
                transform(
                  filter(r.loads, l -> l.node IN (-1, d.node) AND l.since <= d.ack_received),
                  l -> l.until
                )
              ) AS own
            FROM {delivery_pairs} AS d
            JOIN (
              SELECT
                share_partition,
                collect_list(struct(node, since, until, why = 'read' AS exact)) AS loads
              FROM {reloads}
              GROUP BY share_partition
            ) AS r ON r.share_partition = d.share_partition
            WHERE d.kind IN (1, 3)
              AND d.attempts = 1
              AND d.node >= 0
              AND (d.outcome = 2 OR d.proven)
          )
        )
        WHERE size(later) > 0
    """,
    uses=(DELIVERY_PAIRS,),
    over_records=True,
)

INV_42 = Invariant(
    id="INV-42",
    over=AFTER_SUCCESSOR,
    columns=columns("share_partition log offset outcome succeeded ack_sent ack_received count"),
    # The successor's read has raised the stored leader epoch, which fences what others write.
    breach="outcome = 1",
    since="ack_sent",
    until="ack_received",
    detail="""
        concat('finished with a response of OK at count ', count, ', ',
          (ack_sent - succeeded) DIV 1000000, ' ms after another broker had loaded the state')
    """,
)

INVARIANTS = (INV_21, INV_33, INV_37, INV_41, INV_42)
