"""What is delivered, and what never is: INV-04, 05, 06, 08, 11, 34, 36 and 43."""

from reports.analysis.relations import DELIVERY_PAIRS, RECORDS_OF_LOGS, Relation
from reports.analysis.rules import LOG_START, Invariant, columns
from spec.history import NEVER

INV_04 = Invariant(
    id="INV-04",
    clock_error=NEVER,
    over=RECORDS_OF_LOGS,
    columns=columns(
        "share_partition log offset was_produced was_delivered present may_be_stored producer "
        "sequence crc low_producer high_producer low_sequence high_sequence low_crc high_crc "
        "first_sent last_acquired"
    ),
    # Byte for byte where the batch is still the one that was sealed.
    cases="was_delivered AND present",
    breach="""
        CASE
          WHEN NOT was_produced THEN NOT may_be_stored
          ELSE low_producer <> producer
            OR high_producer <> producer
            OR low_sequence <> sequence
            OR high_sequence <> sequence
            OR (crc >= 0 AND (low_crc <> crc OR high_crc <> crc))
        END
    """,
    since="first_sent",
    until="last_acquired",
    detail="""
        CASE
          WHEN NOT was_produced
            THEN concat('record ', low_sequence, ' of producer ', low_producer,
              ' was stored by nobody')
          ELSE concat(
            'record ', sequence, ' of producer ', producer, ' was stored, ', low_sequence, ' of ',
            low_producer, ' to ', high_sequence, ' of ', high_producer, ' delivered'
          )
        END
    """,
    needs_whole=True,
)

INV_05 = Invariant(
    id="INV-05",
    clock_error=NEVER,
    over=RECORDS_OF_LOGS,
    columns=columns(
        "share_partition log offset was_produced transaction owed seen producer sequence "
        "produced_sent produced_received"
    ),
    cases="was_produced AND transaction IN (0, 1) AND owed <> 0",
    breach="(owed & ~seen) <> 0",
    since="produced_sent",
    until="produced_received",
    detail="""
        concat('record ', sequence, ' of producer ', producer, ' never came to ',
          bit_count(owed & ~seen), ' of ', bit_count(owed), ' groups')
    """,
    needs_whole=True,
)

INV_06 = Invariant(
    id="INV-06",
    over=DELIVERY_PAIRS,
    columns=columns(
        "share_partition log offset acquired ends_by kind attempts count present crc "
        "drained passed log_start unseen_responses unseen_before_fetch lowest_limit highest_before "
        "overtaken next_op"
    ),
    # What was last released, with whatever outcome, dropped or let run out below the limit must
    # come again before the group is done, or a start offset beyond it is shown. What was deleted
    # need not, nor what compaction may have taken, whose batch has no CRC to be known by.
    cases="""
        (drained OR offset < passed)
        AND present AND kind IN (0, 2, 5) AND crc >= 0 AND offset >= log_start
    """,
    # A start offset that is shown is stored, and that may be what was refused before.
    breach="""
        next_op IS NULL
        AND (drained OR highest_before IS NULL)
        AND NOT overtaken
        AND NOT coalesce(highest_before > count, false)
        AND attempts <= CASE WHEN kind = 2 THEN 1 ELSE 0 END
        AND count + unseen_responses - unseen_before_fetch < lowest_limit
    """,
    since="acquired",
    until="ends_by",
    detail="concat('count ', count, ' was last, and ended without being finished')",
    needs_whole=True,
)

FAILED_ACKNOWLEDGEMENTS = Relation(
    name="failed_acknowledgements",
    # Acceptances and rejections that failed or were never answered: how many of their records came
    # again. Records that may have ended in another way tell nothing, nor do those of which an
    # earlier delivery was seen later, or that came again before a load, which shows what is stored.
    sql="""
        SELECT
          share_partition,
          any_value(run) AS run,
          any_value(log) AS log,
          min(CASE WHEN next_op IS NULL THEN offset END) AS offset,
          ack_sent, outcome,
          max(CASE WHEN next_op IS NOT NULL THEN offset END) AS highest,
          max(next_acquired) AS last_acquired,
          count_if(next_op IS NOT NULL) AS again,
          count_if(next_op IS NULL) AS gone
        FROM {delivery_pairs}
        WHERE
          kind IN (1, 3)
          AND outcome IN (2, 3)
          AND attempts = 1
          AND drained
          AND present
          AND crc >= 0
          AND offset >= log_start
          AND count + unseen_responses - unseen_before_fetch < lowest_limit
          AND NOT overtaken
          AND NOT coalesce(highest_before >= count, false)
          AND NOT coalesce(next_count <= count AND next_sent <= acquired, false)
          AND (
            next_op IS NULL OR last_load_over < ack_sent
            OR (next_loaded >= last_load_begun AND next_count <= count + 1)
          )
        GROUP BY share_partition, member, ack_sent, outcome
    """,
    uses=(DELIVERY_PAIRS,),
    over_records=True,
)

INV_08 = Invariant(
    id="INV-08",
    over=FAILED_ACKNOWLEDGEMENTS,
    columns=columns("share_partition log offset ack_sent outcome highest last_acquired again gone"),
    # It took effect for all of them or for none: where some come again, the others do too. One that
    # nobody answered may come late, and changes nothing of what is below the start offset by then.
    cases="again + gone > 1",
    breach="again > 0 AND gone > 0 AND (outcome = 2 OR offset < highest)",
    since="ack_sent",
    until="last_acquired",
    detail="""
        concat(gone, ' of ', gone + again,
          ' records of one acknowledgement without success never came again')
    """,
    needs_whole=True,
)

INV_11 = Invariant(
    id="INV-11",
    clock_error=NEVER,
    over=DELIVERY_PAIRS,
    columns=columns("share_partition log offset op sent acquired after next_op"),
    breach="coalesce(next_op = op, false) OR after >= offset",
    since="sent",
    until="acquired",
    detail="""
        CASE WHEN next_op = op THEN 'listed twice in one response'
          ELSE concat('listed after offset ', after, ' in one response') END
    """,
)

INV_34 = Invariant(
    id="INV-34",
    clock_error=NEVER,
    over=RECORDS_OF_LOGS,
    columns=columns(
        "share_partition log offset was_produced transaction seen_committed producer sequence "
        "first_sent last_acquired"
    ),
    cases="was_produced AND transaction = 2",
    breach="seen_committed <> 0",
    since="first_sent",
    until="last_acquired",
    detail="concat('record ', sequence, ' of producer ', producer, ' was aborted and came')",
)

AFTER_DELETIONS = Relation(
    name="after_deletions",
    # Deliveries of logs of which records were deleted, each with the highest offset below which
    # all were before its fetch was sent. "cut" says that the log began inside the record's batch:
    # the first record that was left was produced by the same request. That is known by the numbers
    # in the records, as nobody may have heard at which offsets they are.
    sql="""
        SELECT r.*, first.log IS NOT NULL AS cut
        FROM (
          SELECT
            d.run, d.share_partition, d.log, d.offset, d.sent, d.acquired,
            any_value(d.producer) AS producer, any_value(d.sequence) AS sequence,
            max(x.before) AS deleted_before
          FROM (
            SELECT * FROM {deliveries}
            WHERE present AND (run, log) IN (SELECT run, log FROM {deletions})
          ) AS d
          JOIN (SELECT * FROM {deletions} WHERE outcome = 1) AS x
            ON x.run = d.run AND x.log = d.log AND d.sent > x.received
          GROUP BY d.run, d.share_partition, d.log, d.offset, d.op, d.sent, d.acquired
        ) AS r
        LEFT JOIN {produced} AS mine
          ON mine.run = r.run AND mine.log = r.log AND mine.producer = r.producer
          AND mine.sequence = r.sequence
        LEFT JOIN {produced} AS first
          ON first.run = r.run AND first.log = r.log AND first.producer = r.producer
          AND first.sequence = r.sequence + r.deleted_before - r.offset
          AND first.sent = mine.sent
    """,
    over_records=True,
)

INV_36 = Invariant(
    id="INV-36",
    over=AFTER_DELETIONS,
    columns=columns("share_partition log offset sent acquired deleted_before cut"),
    breach="offset < deleted_before",
    since="sent",
    until="acquired",
    detail="""
        concat(
          'delivered though the log began at ', deleted_before,
          if(cut, ', in the batch in which it begins', ', in a batch below')
        )
    """,
    about="deletions",
)

INV_43 = Invariant(
    id="INV-43",
    over=DELIVERY_PAIRS,
    columns=columns(
        "share_partition log offset acquired count explained close_uncounted highest_before "
        "kept_until next_acquired"
    ),
    # Where the end of a session takes a count back, orders are not looked at.
    cases="explained IS NOT NULL AND NOT close_uncounted",
    breach="NOT explained",
    excuses=(
        (LOG_START, f"highest_before IS NULL AND kept_until < {NEVER}"),
        ("nobody knows who loaded it, or its payload did not come", "highest_before IS NULL"),
    ),
    since="acquired",
    until="coalesce(next_acquired, acquired)",
    detail="""
        concat('first delivered with count ', count,
          ', and no order of its deliveries, acknowledgements and loads is legal')
    """,
)

INVARIANTS = (INV_04, INV_05, INV_06, INV_08, INV_11, INV_34, INV_36, INV_43)
