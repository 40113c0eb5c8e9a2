"""Rules about the life of one record in one group: its deliveries, one after the other.

Each rule is a function of a delivery's position in that life. It returns None where that does not
put the rule to the test, and otherwise whether the rule is broken.
"""

from collections.abc import Callable, Iterator, Sequence

from reports.oracle.deliveries import Delivery
from reports.oracle.evidence import Case, Evidence, Position
from spec.history import AckType, Outcome

SECOND, MS = 1_000_000_000, 1_000_000
SLACK = 15 * SECOND
AFTERMATH = 15 * SECOND
UNKNOWN_SERVER = -1
_FINAL = (AckType.ACCEPT, AckType.REJECT)
_ACKED = (*_FINAL, AckType.RELEASE)
_ANSWERED = (AckType.ACCEPT, AckType.RELEASE, AckType.REJECT, AckType.RENEW)


Rule = Callable[[Position], bool | None]


def one_holder(at: Position) -> bool | None:
    """INV-01: nobody else gets what its holder proves to have held."""
    after = at.after
    if at.now.kind not in _ACKED or not at.proven:
        return None
    if after is None or after.acquired >= at.now.ack_sent:
        return False
    # Where nobody knows which of two came first, both holders prove that they had it.
    both = at.next_proven(*_ACKED) and after.ack_sent > at.now.acquired
    known = at.no_load_between and (at.ordered or both) and not overtaken(at)
    return True if known else None


def _final(kind: AckType) -> Rule:
    def rule(at: Position) -> bool | None:
        now, after = at.now, at.after
        if now.kind != kind or not at.proven:
            return None
        if after is None or after.acquired <= now.ack_sent:
            return False
        if at.deposed:
            return None
        if after.sent >= now.ack_received:
            return True
        held = at.next_proven(AckType.RELEASE) and now.acquired < after.ack_sent
        again = after.count > now.count or at.next_proven(*_FINAL) or held
        return again if at.no_load_between and not overtaken(at) else None

    return rule


def came_again(at: Position) -> bool | None:
    """INV-06: what was let go below the limit comes again before the group is done."""
    now, share = at.now, at.share
    over = share.drained or now.offset < share.passed
    if not (over and now.present and now.offset >= share.log_start and now.crc >= 0):
        return None
    # What was refused may have been stored, and that is what is shown.
    again = at.after is not None or (at.earlier and not share.drained)
    if now.kind not in (AckType.NONE, AckType.RELEASE, AckType.CLOSED):
        return None
    if again or overtaken(at) or any(one.count > now.count for one in at.earlier):
        return False
    unseen = share.unseen_responses - now.unseen_before_fetch
    return not _attempted(now) and now.count + unseen < share.lowest_limit


def _attempted(one: Delivery) -> bool:
    """Tell whether its holder tried to accept or reject a record."""
    return one.attempts > int(one.kind == AckType.RELEASE)


def overtaken(at: Position) -> bool:
    """Tell whether a delivery that was seen earlier may have come later, or may end this one.

    An attempt without success may have been stored, which shows after a load, and one without a
    response may still come. A session may also have ended while the next delivery was on its way.
    """
    if at.after and (at.after.member, at.after.freed < at.after.acquired) == (at.now.member, True):
        return True
    last = max((load.until for load in at.share.loads), default=-1)
    return any(
        one.sent > at.now.sent
        or one.loaded > at.now.oldest
        or (_attempted(one) and last >= one.sent)
        or (one.attempts > 0 and one.outcome == Outcome.UNKNOWN)
        for one in at.earlier
    )


def no_other_effect(at: Position) -> bool | None:
    """INV-09: an acknowledgement that failed frees nothing."""
    now, after = at.now, at.after
    if after is None or now.kind not in _ACKED:
        return None
    lost = now.outcome == Outcome.UNKNOWN and now.kind in _FINAL and now.attempts == 1
    if not (lost or now.outcome == Outcome.FAILED):
        return None
    if not (at.no_load_between and at.ordered and after.acquired > now.ack_sent) or overtaken(at):
        return None
    return bool(after.acquired < at.locked_until)


def rising(at: Position) -> bool | None:
    """INV-11: the offsets of a response rise."""
    twice = at.after is not None and at.after.op == at.now.op
    return twice or bool(at.now.after >= at.now.offset)


def counted(at: Position) -> bool | None:
    """INV-12: counts begin with one and rise by one."""
    begins = not at.earlier
    if not begins and not at.no_load_between and at.now.count > 0:
        return None
    return at.now.count < 1 or (begins and _wrong_start(at)) or _wrong_step(at)


def _wrong_start(at: Position) -> bool:
    now = at.now
    # One that was seen later may have been given out before, if this broker can know of it.
    others = (one for one in at.later if one.sent <= now.acquired)
    beside = (one for one in others if one.node == now.node or now.loads_by_acquire)
    explained = now.count <= 1 + now.unseen_meanwhile
    return not explained and all(one.count >= now.count for one in beside)


def _wrong_step(at: Position) -> bool:
    now, after = at.now, at.after
    if after is None or not at.no_load_between or after.op == now.op:
        return False
    taken_back = at.died or (at.close_uncounted and now.freed <= now.ends_by)
    if after.sent <= now.acquired:
        return False
    lowest = now.count + (0 if taken_back else 1)
    return after.count < lowest or at.skips


def counted_over_loads(at: Position) -> bool | None:
    """INV-13: a load raises no count, and keeps that of a release that was answered OK."""
    now, after = at.now, at.after
    if after is None or at.no_load_between:
        return None
    forgotten = (
        now.kind == AckType.RELEASE
        and at.proven
        and after.sent > now.ack_received
        and after.count <= now.count
        and not at.deposed
    )
    return bool(forgotten or (after.sent > now.acquired and at.skips))


def within_limit(at: Position) -> bool | None:
    """INV-14: no count is above the limit."""
    return bool(at.now.count > at.share.highest_limit)


def dying_counts(at: Position) -> bool | None:
    """INV-15: a delivery that ends with its session counts."""
    now, after = at.now, at.after
    if after is None or not (at.died and at.no_load_between):
        return None
    if after.sent <= now.acquired or after.op == now.op:
        return None
    return bool(after.count == now.count)


def lock_lasts(at: Position) -> bool | None:
    """INV-18: nothing is given out again while its lock lasts."""
    now, after = at.now, at.after
    if after is None:
        return None
    settled = now.outcome == Outcome.OK and now.ack_received < now.kept_until
    frees = not (now.kind in _FINAL and settled)
    early = after.acquired < at.locked_until and not (frees and after.acquired >= now.ack_sent)
    if not early or at.proven or after.op == now.op:
        return False
    if now.attempts > 1 and now.outcome != Outcome.FAILED:
        return False
    return True if at.no_load_between and at.ordered and not overtaken(at) else None


def comes_soon(at: Position) -> bool | None:
    """INV-23: what is free is given out again in time."""
    now, after = at.now, at.after
    if after is None or now.kind not in (AckType.NONE, AckType.RELEASE, AckType.CLOSED):
        return None
    received = now.outcome == Outcome.OK
    if now.kind == AckType.RELEASE and not received:
        return None
    free = _free_by(at)
    limit = now.lock_ms * MS + SLACK
    if after.sent - free > limit and _passed_over(at, free) * SECOND > limit:
        return True
    # Whatever was broken may have kept anybody from being served. A machine that hardly runs needs
    # long for a fetch, too: that has the limit for itself.
    waited = after.sent - free > limit or after.acquired - max(free, after.sent) > limit
    return bool(waited and _undisturbed(at))


def _free_by(at: Position) -> int:
    now = at.now
    if now.outcome == Outcome.OK and now.kind in (AckType.RELEASE, AckType.CLOSED):
        return int(now.ack_received if now.kind == AckType.RELEASE else now.ack_sent)
    return int(now.ends_by)


def _undisturbed(at: Position) -> bool:
    assert at.after is not None
    came = at.after.acquired
    since = min(_free_by(at), at.now.freed, came) - AFTERMATH
    return not _waits_in_turn(at, _free_by(at)) and not any(
        row.since < came and row.until > since for row in at.share.faults
    )


def _waits_in_turn(at: Position, free: int) -> bool:
    """Tell whether one before it came again, alone, so late that a record may have waited for it.

    Those that come for the last time come one by one.
    """
    assert at.after is not None
    limit, end, offset = at.now.lock_ms * MS + SLACK, at.after.sent, at.now.offset
    before = [came for one, came in at.share.came_alone if one < offset and free < came < end]
    return end - free > limit and bool(before) and end - max(before) <= limit


def _passed_over(at: Position, free: int) -> int:
    assert at.after is not None
    return len(
        {
            came // SECOND
            for offset, came in at.share.came
            if offset > at.now.offset and free < came < at.after.sent
        }
    )


def freed_by_closing(at: Position) -> bool | None:
    """INV-26: the end of a session frees what it held."""
    now, after = at.now, at.after
    if after is None or now.kind != AckType.CLOSED or not at.no_load_between:
        return None
    if now.ack_received >= now.holds_until - 4 * SECOND or not _undisturbed(at):
        return None
    slow = after.acquired - after.sent >= 2 * SECOND
    return bool(after.acquired >= now.holds_until > after.sent and not slow)


def not_given_up(at: Position) -> bool | None:
    """INV-40: no acknowledgement fails at the first lost connection."""
    now = at.now
    if now.kind not in _ANSWERED or now.outcome not in (Outcome.OK, Outcome.FAILED):
        return None
    if now.ack_received > now.holds_until or now.loads_before_fetch != now.loads_by_ack:
        return None  # whatever it is refused by then, it is not given up
    return bool(now.error == UNKNOWN_SERVER and now.ack_received - now.ack_sent < 2 * SECOND)


def after_successor(at: Position) -> bool | None:
    """INV-42: a broker finishes nothing with OK once another one has loaded the state."""
    now = at.now
    if now.kind not in _FINAL or now.attempts != 1 or now.node < 0:
        return None
    if not (at.proven or now.outcome == Outcome.FAILED):
        return None
    own = [load for load in at.share.loads if load.node in (-1, now.node)]
    last = max((load.until for load in own if load.since <= now.ack_received), default=-1)
    succeeded = any(
        load.why == "read" and load.node not in (-1, now.node)
        for load in at.share.loads
        if load.since > last and load.until < now.ack_sent
    )
    return now.outcome == Outcome.OK if succeeded else None


def within_new_limit(at: Position) -> list[bool]:
    """INV-35: one response for each limit that was in force since before the delivery."""
    now, after = at.now, at.after
    if after is None or not (at.no_load_between and at.ordered):
        return []
    return [
        bool(after.count > limit.delivery_limit)
        for limit in at.share.limits
        if now.sent >= limit.until and after.acquired < limit.ends
    ]


def all_or_none(told: Sequence[Sequence[Position]]) -> list[bool]:
    """INV-08: one response for each acknowledgement without success of several records."""
    fates: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
    for at in (at for life in told for at in life):
        now, share, after = at.now, at.share, at.after
        failed = now.kind in _FINAL and now.outcome in (Outcome.FAILED, Outcome.UNKNOWN)
        kept = share.drained and now.present and now.crc >= 0 and now.offset >= share.log_start
        unseen = share.unseen_responses - now.unseen_before_fetch
        others = overtaken(at) or any(one.count >= now.count for one in at.earlier)
        late = after is not None and after.count <= now.count and after.sent <= now.acquired
        comes = now.count + unseen < share.lowest_limit and now.attempts == 1 and not others
        if failed and kept and comes and not (late or _before_a_load(at)):
            request = now.member, now.ack_sent, now.outcome
            fates.setdefault(request, ([], []))[after is None].append(now.offset)
    return [
        bool(again and gone and (outcome == Outcome.FAILED or min(gone) < max(again)))
        for (*_, outcome), (again, gone) in fates.items()
        if len(again + gone) > 1
    ]


def _before_a_load(at: Position) -> bool:
    """Tell whether a record came again before a load that may bring back what was stored."""
    loads, after = at.share.loads, at.after
    if after is None or all(load.until < at.now.ack_sent for load in loads):
        return False
    return after.oldest < max(load.since for load in loads) or after.count > at.now.count + 1


RULES: dict[str, Rule] = {
    "INV-01": one_holder,
    "INV-02": _final(AckType.ACCEPT),
    "INV-03": _final(AckType.REJECT),
    "INV-06": came_again,
    "INV-09": no_other_effect,
    "INV-11": rising,
    "INV-12": counted,
    "INV-13": counted_over_loads,
    "INV-14": within_limit,
    "INV-15": dying_counts,
    "INV-18": lock_lasts,
    "INV-23": comes_soon,
    "INV-26": freed_by_closing,
    "INV-40": not_given_up,
    "INV-42": after_successor,
}
"""The rules that a delivery puts to the test at most once."""


def cases(evidence: Evidence) -> Iterator[Case]:
    for share_partition, lives in evidence.lives.items():
        for torn in all_or_none(lives):
            yield "INV-08", share_partition, torn
    for at in evidence.positions:
        for name, rule in RULES.items():
            if (broken := rule(at)) is not None:
                yield name, at.now.share_partition, broken
        for broken in within_new_limit(at):
            yield "INV-35", at.now.share_partition, broken


CASES = (cases,)
