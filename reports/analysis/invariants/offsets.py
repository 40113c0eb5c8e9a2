"""What is shown of a share-partition, how long requests take: INV-17, 19, 20, 22, 24, 25, 38."""

from reports.analysis.relations import (
    EPOCHS,
    IN_FLIGHT,
    LAST_SAMPLES,
    OFFSET_SAMPLES,
    OPERATIONS,
    Relation,
)
from reports.analysis.rules import Invariant, columns
from spec.history import NEVER

INV_17 = Invariant(
    id="INV-17",
    over=IN_FLIGHT,
    columns=columns("share_partition log tick high low window batch"),
    # The limit holds for whole batches: the last may be acquired to its end.
    cases="high >= low",
    breach="high - low + 1 > window + batch",
    since="tick * 100000000",
    until="(tick + 1) * 100000000",
    detail="""
        concat(high - low + 1, ' offsets from ', low, ' on are in flight, the limit is ', window)
    """,
    offset="high",
)

INV_19 = Invariant(
    id="INV-19",
    clock_error=NEVER,
    over=OFFSET_SAMPLES,
    columns=columns("share_partition log spso before sent since received"),
    cases="spso >= 0 AND before >= 0 AND sent >= since",
    breach="spso < before",
    since="since",
    until="received",
    detail="concat('start offset ', before, ' was shown, then ', spso)",
    offset="spso",
)

INV_20 = Invariant(
    id="INV-20",
    over=IN_FLIGHT,
    columns=columns("share_partition log tick shown first_low"),
    # None below it, but what was refused before, is acknowledged with proof after it was shown.
    cases="shown > 0 AND first_low IS NOT NULL",
    breach="first_low < shown",
    since="tick * 100000000",
    until="(tick + 1) * 100000000",
    detail="concat('start offset ', shown, ' was shown while ', first_low, ' was held')",
    offset="first_low",
)

INV_22 = Invariant(
    id="INV-22",
    clock_error=NEVER,
    over=EPOCHS,
    columns=columns("share_partition log offset since until what epoch before"),
    cases="before IS NOT NULL",
    breach="epoch < before",
    since="since",
    until="until",
    detail="concat(what, ' ', before, ' was followed by ', epoch)",
)

INV_24 = Invariant(
    id="INV-24",
    clock_error=NEVER,
    over=LAST_SAMPLES,
    columns=columns(
        "share_partition log spso lag log_start log_end sent received stands_since times lock_ms"
    ),
    # The start offset that is shown may be one write behind, so where there is a lag to see, that
    # decides. One that went down lately, or was hardly looked at, tells of the machine.
    cases="""
        lag = 0 OR (lag < 0 AND spso >= log_end)
        OR (lag > 0 AND times >= 5 AND received - stands_since > 1000000L * lock_ms + 30000000000L)
    """,
    breach="lag > 0",
    since="sent",
    until="received",
    # Where all of the lag was deleted, or its first records, it says so.
    detail="""
        concat('start offset ', spso, ' of ', log_end, ', lag ', lag, ' at the end',
          CASE WHEN lag <= 0 OR log_start <= spso THEN ''
          WHEN log_start - spso >= lag THEN concat(', the log begins at ', log_start)
          ELSE concat(', the first ', log_start - spso, ' records deleted') END)
    """,
    offset="spso",
)

INV_25 = Invariant(
    id="INV-25",
    clock_error=NEVER,
    over=OPERATIONS,
    columns=columns("op api node sent received max_wait_ms answering"),
    cases="received >= 0",
    # A minute on a slow machine says nothing: seconds count in which the broker answered others.
    # Members of a load give up earlier and record no response: this is for more patient clients.
    breach="""
        received - sent > 1000000L * max_wait_ms + 60000000000L
        AND answering * 1000L >= max_wait_ms + 60000L
    """,
    since="sent",
    until="received",
    detail="""
        concat(api, ' to broker ', node, ' took ', (received - sent) DIV 1000000, ' ms, and in ',
          answering, ' seconds meanwhile the broker answered others of the same process')
    """,
    share_partition="CAST(NULL AS INT)",
    log="CAST(NULL AS INT)",
    offset="op",
)

LAGS = Relation(
    name="lags",
    # What was shown, with the highest offset that was acquired by then.
    sql="""
        SELECT o.*, t.highest AS high
        FROM {offset_samples} AS o
        LEFT JOIN (SELECT * FROM {in_flight} WHERE is_sample) AS t
          ON t.share_partition = o.share_partition AND t.tick = o.received DIV 100000000
    """,
    uses=(OFFSET_SAMPLES, IN_FLIGHT),
    over_records=True,
)

INV_38 = Invariant(
    id="INV-38",
    clock_error=0,
    over=LAGS,
    columns=columns(
        "share_partition log spso lag sent received log_end end_after high unseen_responses "
        "committed_only"
    ),
    cases="lag >= 0 AND spso >= 0 AND end_after IS NOT NULL",
    breach="""
        lag > end_after - spso
        OR (
          high IS NOT NULL
          AND unseen_responses = 0
          AND NOT committed_only
          AND lag < log_end - greatest(high + 1, spso)
        )
    """,
    since="sent",
    until="received",
    detail="""
        concat('lag ', lag, ' with start offset ', spso, ', highest acquired ', high,
          ', log end from ', log_end, ' to ', end_after)
    """,
    offset="spso",
)

INVARIANTS = (INV_17, INV_19, INV_20, INV_22, INV_24, INV_25, INV_38)
