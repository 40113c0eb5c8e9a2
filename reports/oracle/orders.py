"""INV-43: whether any order of all that is known of a record is legal, as ``spec.model`` finds."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from reports.oracle.deliveries import MS, Delivery
from reports.oracle.evidence import Case, Evidence, Share, grouped
from reports.oracle.journals import Row
from spec.history import NEVER, AckType, Outcome
from spec.model.orders import FETCH, LOAD, SHOWN, UNSEEN, Event, Record


def orders(evidence: Evidence) -> Iterator[Case]:
    unseen = grouped(evidence.rows["unseen_responses"], "share_partition")
    locks = grouped(evidence.rows["locks"], "share_partition")
    if evidence.release.close_uncounted:
        return  # the end of a session takes a count back
    for share_partition, lives in evidence.lives.items():
        for life in lives:
            deliveries, share = [at.now for at in life], life[0].share
            if _is_told(deliveries, share.loads):
                mine = [row.lock_ms for row in (*deliveries, *locks[share_partition])]
                kept = deliveries[0].kept_until == NEVER and all(d.crc >= 0 for d in deliveries)
                record = Record.of(
                    list(_events(deliveries, share, unseen[share_partition])),
                    deliveries=tuple((d.member, d.sent, d.count) for d in deliveries),
                    lock=min(mine) * MS,
                    limits=(share.lowest_limit, share.highest_limit),
                    drained=share.drained and kept,
                )
                yield "INV-43", share_partition, not record.has_legal_order()


def _is_told(life: Sequence[Delivery], loads: Sequence[Row]) -> bool:
    if any(load.node < 0 for load in loads) or (loads and any(one.node < 0 for one in life)):
        return False
    twice = any(a.op == b.op for a, b in pairwise(life))
    return all(one.present for one in life) and life[0].acquired < life[0].kept_until and not twice


def _events(life: Sequence[Delivery], share: Share, unseen: Sequence[Row]) -> Iterator[Event]:
    first = life[0]
    for row in share.loads:
        yield Event(row.until, row.since, LOAD, row.node, must=row.why == "read")
    for row in unseen:
        if row.until >= first.produced:
            yield Event(row.until, row.since, UNSEEN, must=False)
    looks = (look for look in share.looks if look.spso > first.offset)
    shown = min(looks, key=lambda look: (look.received, look.sent), default=None)
    if shown is not None and shown.received < first.kept_until:
        yield Event(shown.received, shown.sent, SHOWN)
    for turn, one in enumerate(life):
        must = one.acquired < one.kept_until
        yield Event(one.acquired, one.sent, FETCH, one.node, turn, one.count, must)
        if one.died < NEVER:
            yield Event(NEVER, one.died, AckType.CLOSED, one.node, turn, must=False)
        for act in one.acts:
            heard = act.kind != AckType.CLOSED and act.outcome != Outcome.UNKNOWN
            end = act.received if heard else NEVER
            sure = act.outcome == Outcome.OK and end < one.kept_until
            yield Event(end, act.sent, act.kind, one.node, turn, act.outcome, must=sure)


CASES = (orders,)
