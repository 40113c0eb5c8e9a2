"""How often a record is delivered: INV-12, 13, 14, 35 and 39."""

from reports.analysis.relations import DELIVERY_PAIRS, Relation
from reports.analysis.rules import LOAD, Invariant, columns
from spec.history import NEVER

_SKIPS = """
    next_count > count + 1 + next_unseen_by_acquire
      - IF(coalesce(highest_before >= count, false), 0, unseen_before_fetch)
    AND lowest_after >= next_count
    AND NOT coalesce(highest_before >= next_count - 1, false)
"""
"""More counts are skipped than responses were lost, and none seen early or late explains that.

Behind a delivery whose count was there before, a leader that was deposed may have given the record
out: it knows nothing of the responses that were lost since.
"""

INV_12 = Invariant(
    id="INV-12",
    over=DELIVERY_PAIRS,
    columns=columns(
        "share_partition log offset op acquired kind count is_first no_load_between "
        "unseen_before_fetch next_unseen_by_acquire unseen_meanwhile freed holds_until ends_by "
        "close_uncounted lowest_after lowest_beside highest_before next_op next_sent "
        "next_acquired next_count"
    ),
    # Each response that got lost explains one count more. That a delivery counts that ended with a
    # session is INV-15; where a release takes such a count back, no end of a session raises one.
    # Responses overtake each other, so the first that was seen need not be the first there was. A
    # load raises no count, so what was never delivered comes with 1 after it, too.
    cases="is_first OR no_load_between OR count < 1",
    breach=f"""
        count < 1
        OR (
          is_first
          AND count > 1 + unseen_meanwhile
          AND NOT coalesce(lowest_beside < count, false)
        )
        OR (
          coalesce(no_load_between, false)
          AND next_op <> op
          AND next_sent > acquired
          AND (
            next_count < count
            OR ({_SKIPS})
            OR (
              next_count = count
              AND NOT (kind = 5 AND freed < holds_until)
              AND NOT (close_uncounted AND freed <= ends_by)
            )
          )
        )
    """,
    excuses=((LOAD, "next_op IS NOT NULL"),),
    since="acquired",
    until="coalesce(next_acquired, acquired)",
    detail="""
        CASE
          WHEN is_first AND count <> 1 THEN
            concat('first delivered with count ', count, ', and ', unseen_meanwhile, ' unseen')
          ELSE concat('delivered with count ', count, ' and then with count ', next_count)
        END
    """,
)

INV_13 = Invariant(
    id="INV-13",
    over=DELIVERY_PAIRS,
    columns=columns(
        "share_partition log offset acquired kind proven ack_received count deposed "
        "no_load_between unseen_before_fetch next_unseen_by_acquire lowest_after highest_before "
        "next_op next_sent next_acquired next_count"
    ),
    # A count may fall back to what was stored, but never rises by more than one. One that seems to
    # be skipped may have been seen before, where the response to the earlier delivery was the one
    # that was read late. A release that was answered OK is stored with its count; a leader that was
    # deposed does not know it.
    cases="next_op IS NOT NULL AND NOT no_load_between",
    breach=f"""
        (next_sent > acquired AND {_SKIPS})
        OR (
          kind = 2
          AND proven
          AND next_sent > ack_received
          AND next_count <= count
          AND NOT deposed
        )
    """,
    since="acquired",
    until="next_acquired",
    detail="concat('count ', count, ' before the load, ', next_count, ' after it')",
)

INV_14 = Invariant(
    id="INV-14",
    clock_error=NEVER,
    over=DELIVERY_PAIRS,
    columns=columns("share_partition log offset sent acquired count highest_limit"),
    breach="count > highest_limit",
    since="sent",
    until="acquired",
    detail="concat('count ', count, ', the limit is ', highest_limit)",
)

CHANGED_LIMITS = Relation(
    name="changed_limits",
    # Deliveries, each with every changed limit that was in force since before it, and is until the
    # next one.
    sql="""
        SELECT h.*, l.delivery_limit
        FROM (
          SELECT * FROM {delivery_pairs}
          WHERE next_op IS NOT NULL AND no_load_between AND order_known
            AND share_partition IN (SELECT share_partition FROM {limits})
        ) AS h
        JOIN {limits} AS l
          ON l.share_partition = h.share_partition
          AND h.sent >= l.until AND h.next_acquired < l.ends
    """,
    uses=(DELIVERY_PAIRS,),
    over_records=True,
)

INV_35 = Invariant(
    id="INV-35",
    over=CHANGED_LIMITS,
    columns=columns("share_partition log offset acquired delivery_limit next_acquired next_count"),
    breach="next_count > delivery_limit",
    since="acquired",
    until="next_acquired",
    detail="""
        concat('count ', next_count, ', the limit has been ', delivery_limit,
          ' since before the last delivery')
    """,
    about="limits",
)

INV_39 = Invariant(
    id="INV-39",
    clock_error=NEVER,
    over=DELIVERY_PAIRS,
    columns=columns(
        "share_partition log offset sent acquired count others_in_response throttling "
        "highest_limit lowest_limit"
    ),
    # Releases without throttling do otherwise, and so may groups whose limit is two or changes.
    cases="""
        throttling AND count >= highest_limit AND highest_limit > 2
        AND lowest_limit = highest_limit
    """,
    breach="others_in_response > 0",
    since="sent",
    until="acquired",
    detail="""
        concat('delivered for the last time in one response with ', others_in_response, ' others')
    """,
)

INVARIANTS = (INV_12, INV_13, INV_14, INV_35, INV_39)
