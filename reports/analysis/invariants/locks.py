"""Who has a record when: INV-01, 02, 03, 09, 15, 18, 23, 26 and 40."""

from reports.analysis.relations import DELIVERY_PAIRS
from reports.analysis.rules import DEPOSED, LOAD, LOG_START, ORDER, Invariant, columns
from spec.history import NEVER

_PLACE = "share_partition log offset"
_REDELIVERED = "next_sent >= ack_received OR next_count > count"
_BOTH_FINAL = """
    (
      no_load_between
      AND next_op <> op
      AND (next_proven_kind IN (1, 3) OR (next_proven_kind = 2 AND acquired < next_ack_sent))
    )
"""


def _unproven(kinds: str) -> tuple[tuple[str, str], ...]:
    return (
        (LOAD, f"{kinds} AND in_lock AND loads_before_fetch <> loads_by_ack"),
        (LOG_START, f"{kinds} AND in_lock AND ack_received >= kept_until"),
    )


# In whichever order two deliveries were made: each holder proves that it held while the other did.
_BOTH_HELD = """
    coalesce(
      no_load_between
        AND next_op <> op
        AND next_proven_kind IN (1, 2, 3)
        AND next_ack_sent > acquired,
      false
    )
"""
_TOO_SOON = """
    NOT proven
    AND next_op <> op
    AND next_acquired < least(holds_until, freed)
    AND (
      next_acquired < ack_sent
      OR (kind IN (1, 3) AND outcome = 1 AND ack_received < kept_until)
    )
    AND (attempts <= 1 OR outcome = 2)
"""
_SOON = "1000000L * lock_ms + 15000000000L"

INV_01 = Invariant(
    id="INV-01",
    over=DELIVERY_PAIRS,
    columns=columns(
        f"{_PLACE} kind in_lock proven loads_before_fetch loads_by_ack kept_until "
        "no_load_between order_known overtaken acquired ack_sent ack_received count op next_op "
        "next_acquired next_count next_proven_kind next_ack_sent"
    ),
    # The holder proves that it had the lock: its acknowledgement was sent after the other had the
    # record, and was answered OK inside the lock. Where nobody knows which of two came first, both
    # holders prove it. An acknowledgement of an earlier delivery that nobody answered may have let
    # the record go, to be finished by somebody else (random history 1300239).
    cases=f"""
        kind IN (1, 2, 3) AND proven
        AND (
          coalesce(next_acquired >= ack_sent, true)
          OR (NOT overtaken AND ((no_load_between AND order_known) OR {_BOTH_HELD}))
        )
    """,
    breach="next_acquired < ack_sent",
    excuses=(
        *_unproven("kind IN (1, 2, 3)"),
        (ORDER, "kind IN (1, 2, 3) AND proven AND no_load_between"),
        (LOAD, "kind IN (1, 2, 3) AND proven"),
    ),
    since="acquired",
    until="ack_received",
    detail="concat('held with count ', count, ' and given out again with count ', next_count)",
)


def _stays_away(rule: str, kind: int, how: str) -> Invariant:
    return Invariant(
        id=rule,
        over=DELIVERY_PAIRS,
        columns=columns(
            f"{_PLACE} kind in_lock proven loads_before_fetch loads_by_ack kept_until "
            "no_load_between overtaken op acquired ack_sent ack_received count deposed "
            "next_op next_sent next_acquired next_count next_proven_kind next_ack_sent"
        ),
        # Of two that overlap, the one with the higher count was the later one, if one state in
        # memory gave both. Of two that were both finished with proof either was delivered again.
        cases=f"""
            kind = {kind}
            AND proven
            AND (
              coalesce(next_acquired <= ack_sent OR next_sent >= ack_received, true)
              OR (no_load_between AND NOT overtaken)
            )
            AND NOT (deposed AND coalesce(next_acquired > ack_sent, false))
        """,
        breach=f"next_acquired > ack_sent AND ({_REDELIVERED} OR {_BOTH_FINAL})",
        excuses=(
            *_unproven(f"kind = {kind}"),
            (DEPOSED, f"kind = {kind} AND proven AND deposed"),
            (ORDER, f"kind = {kind} AND proven"),
        ),
        since="ack_sent",
        until="next_acquired",
        detail=f"concat('{how} at count ', count, ', delivered again with count ', next_count)",
    )


INV_02 = _stays_away("INV-02", 1, "accepted")
INV_03 = _stays_away("INV-03", 3, "rejected")

INV_09 = Invariant(
    id="INV-09",
    over=DELIVERY_PAIRS,
    columns=columns(
        f"{_PLACE} kind outcome error attempts no_load_between order_known overtaken ack_sent "
        "holds_until freed next_acquired"
    ),
    # What was refused had no effect at all, and what nobody answered at most that of an acceptance.
    # One of an earlier delivery that nobody answered may still come, and let the record go.
    cases="""
        (
          (kind IN (1, 2, 3) AND outcome = 2)
          OR (kind IN (1, 3) AND outcome = 3 AND attempts = 1)
        )
        AND no_load_between
        AND order_known
        AND NOT overtaken
        AND next_acquired > ack_sent
    """,
    breach="next_acquired < least(holds_until, freed)",
    since="ack_sent",
    until="next_acquired",
    detail="""
        concat('acknowledged with error ', error, ' and given out again ',
          (least(holds_until, freed) - next_acquired) DIV 1000000,
          ' ms before its lock can have ended')
    """,
)

INV_15 = Invariant(
    id="INV-15",
    over=DELIVERY_PAIRS,
    columns=columns(
        f"{_PLACE} kind op acquired freed holds_until no_load_between count next_op next_sent "
        "next_acquired next_count"
    ),
    # A client that dies of a record must not get it for ever.
    cases="""
        kind = 5
        AND freed < holds_until
        AND no_load_between
        AND next_sent > acquired
        AND next_op <> op
    """,
    breach="next_count = count",
    since="freed",
    until="next_acquired",
    detail="""
        concat('its holder was gone after the delivery with count ', count,
          ', and it came again with count ', next_count)
    """,
)

INV_18 = Invariant(
    id="INV-18",
    over=DELIVERY_PAIRS,
    columns=columns(
        f"{_PLACE} op kind outcome acquired lock_ms ack_sent attempts proven no_load_between "
        "order_known overtaken holds_until freed kept_until ack_received next_op next_acquired"
    ),
    # Unless its holder let it go, its session ended or the share-partition was reloaded.
    cases=f"""
        next_op IS NOT NULL
        AND (NOT ({_TOO_SOON}) OR (no_load_between AND order_known AND NOT overtaken))
    """,
    breach=_TOO_SOON,
    excuses=((LOAD, "next_op IS NOT NULL AND NOT no_load_between"), (ORDER, "next_op IS NOT NULL")),
    since="acquired",
    until="next_acquired",
    detail="""
        concat('given out again ', (least(holds_until, freed) - next_acquired) DIV 1000000,
          ' ms before its lock of ', lock_ms, ' ms can have ended')
    """,
)

INV_23 = Invariant(
    id="INV-23",
    over=DELIVERY_PAIRS,
    columns=columns(
        f"{_PLACE} kind outcome acquired lock_ms free_by undisturbed passed_over_s next_op "
        "next_sent next_acquired"
    ),
    cases="next_op IS NOT NULL AND (kind IN (0, 5) OR (kind = 2 AND outcome = 1))",
    # Whatever was broken may have kept anybody from being served, so that near faults only those
    # seconds count in which the share-partition gave others what lies behind the record.
    # On a machine that hardly runs a fetch takes many seconds: the time before the fetch that
    # brought the record, and the time of that fetch, have the limit each.
    breach=f"""
        passed_over_s * 1000000000L > {_SOON}
        OR (
          undisturbed
          AND (
            next_sent - free_by > {_SOON}
            OR (next_acquired - free_by > {_SOON} AND next_acquired - next_sent > {_SOON})
          )
        )
    """,
    since="acquired",
    until="next_acquired",
    detail="concat('came again ', (next_acquired - free_by) DIV 1000000, ' ms after it was free')",
)

INV_26 = Invariant(
    id="INV-26",
    clock_error=0,
    over=DELIVERY_PAIRS,
    columns=columns(
        f"{_PLACE} kind ack_received holds_until no_load_between undisturbed next_op next_sent "
        "next_acquired"
    ),
    # Letting go is stored first, so that it may take long where something is broken. A connection
    # may be lost long before its client notices: then it is over by what is its ack_received.
    cases="""
        kind = 5
        AND next_op IS NOT NULL
        AND ack_received < holds_until - 4000000000L
        AND no_load_between
        AND undisturbed
    """,
    # A fetch that takes longer than it may wait tells of the machine.
    breach="""
        next_acquired >= holds_until
        AND next_sent < holds_until
        AND next_acquired - next_sent < 2000000000L
    """,
    since="ack_received",
    until="next_acquired",
    detail="""
        concat('freed by the end of its session, but only given out ',
          (next_acquired - ack_received) DIV 1000000, ' ms later, after its lock')
    """,
)

INV_40 = Invariant(
    id="INV-40",
    clock_error=NEVER,
    over=DELIVERY_PAIRS,
    columns=columns(
        f"{_PLACE} kind outcome error ack_sent ack_received holds_until loads_before_fetch "
        "loads_by_ack"
    ),
    # What is refused because the lock is over, or its state was loaded again, is not given up.
    cases="""
        kind BETWEEN 1 AND 4 AND outcome BETWEEN 1 AND 2 AND ack_received <= holds_until
        AND loads_before_fetch = loads_by_ack
    """,
    breach="error = -1 AND ack_received - ack_sent < 2000000000L",
    since="ack_sent",
    until="ack_received",
    detail="""
        concat('an acknowledgement was answered with UNKNOWN_SERVER_ERROR after ',
          (ack_received - ack_sent) DIV 1000000, ' ms')
    """,
)

INVARIANTS = (INV_01, INV_02, INV_03, INV_09, INV_15, INV_18, INV_23, INV_26, INV_40)
