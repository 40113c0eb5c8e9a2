"""Alterations of who got a record, when and how often: INV-01 to 03, 09, 12 to 15 and others."""

from collections.abc import Callable

from spec.history import NEVER, AckType, Outcome
from tests.altered.alteration import (
    MS,
    SECOND,
    Copy,
    Row,
    acknowledged,
    breaks,
    ended_as,
    is_proven,
    keeps,
)

FINAL = (AckType.ACCEPT, AckType.REJECT)
_OPEN = (AckType.NONE, AckType.CLOSED)


def once(life: list[Row]) -> bool:
    """Tell whether a record came once and was finished with proof."""
    row = life[-1]
    held = row["ack_sent"] - row["acquired"] > 10_000
    return len(life) == 1 and row["kind"] in FINAL and is_proven(row) and held


def _accepted(life: list[Row]) -> bool:
    return once(life) and life[0]["kind"] == AckType.ACCEPT


def _rejected(life: list[Row]) -> bool:
    return once(life) and life[0]["kind"] == AckType.REJECT


Chosen = tuple[Callable[[list[Row]], bool], *tuple[str, ...]]
"""What a record must have met, and the groups that it is looked for in."""

ACCEPTED: Chosen = (_accepted,)
REJECTED: Chosen = (_rejected, "odd", "dead")


def _released_then_came(life: list[Row]) -> bool:
    if len(life) < 2:
        return False
    row, after = life[-2:]
    later = bool(after["sent"] > row["acquired"])
    return row["kind"] == AckType.RELEASE and is_proven(row) and later


def _crashed_then_came(life: list[Row]) -> bool:
    if len(life) < 2:
        return False
    row, after = life[-2:]
    died = row["kind"] == AckType.CLOSED and row["freed"] < row["holds_until"] - 4 * SECOND
    return bool(died and after["sent"] > row["acquired"])


def shift(row: Row, to: int, *, sent: int | None = None) -> None:
    by = to - row["acquired"]
    for name in ("acquired", "ack_sent", "ack_received", "freed", "ends_by"):
        if 0 <= row[name] < NEVER:
            row[name] += by
    row["sent"] = row["sent"] + by if sent is None else sent
    row["holds_until"] = row["sent"] + row["lock_ms"] * MS
    if by > SECOND and row["kind"] in FINAL:
        # What the start offset passed meanwhile cannot have been held with proof.
        row.update(acknowledged(AckType(row["kind"]), row["ack_sent"], NEVER, Outcome.UNKNOWN))


def _dropped_then_came(copy: Copy) -> tuple[Row, Row]:
    """Return two deliveries of a record, of which the first was never acknowledged."""
    row, after = copy.choose(_released_then_came)[-2:]
    row.update(copy.unacknowledged())
    shift(after, row["ends_by"] + MS)
    return row, after


def _late(copy: Copy, row: Row) -> Row:
    """Deliver a record once more, asked for and given after its lock had to have ended."""
    at = max(row["ends_by"], row["ack_sent"] if row["ack_sent"] < NEVER else 0) + MS
    return copy.again(row, sent=at, acquired=at + MS, count=row["count"] + 1)


@breaks("INV-01")
def _a_second_member_has_it_before_the_first_lets_go(copy: Copy) -> None:
    (row,) = copy.choose(once)
    copy.again(row, sent=row["acquired"] + 1, acquired=row["ack_sent"] - 1, count=2)


@breaks("INV-01")
def _a_second_member_that_waited_before_has_it_with_the_next_count(copy: Copy) -> None:
    (row,) = copy.choose(once)
    copy.again(row, sent=row["sent"] - SECOND, acquired=row["acquired"] + 1, count=2)


@keeps("INV-01")
def _a_second_member_has_it_after_a_load(copy: Copy) -> None:
    (row,) = copy.choose(once)
    copy.reload(row["share_partition"], row["acquired"] + 1, row["acquired"] + 2)
    copy.again(row, sent=row["acquired"] + 3, acquired=row["ack_sent"] - 1, count=1)


@keeps("INV-01")
def _a_second_member_has_it_after_a_lock_whose_holder_speaks_too_late(copy: Copy) -> None:
    (row,) = copy.choose(once)
    at = row["ends_by"]
    row.update(acknowledged(AckType.ACCEPT, at + 3 * MS, at + 4 * MS))
    copy.again(row, sent=at + 1, acquired=at + MS, count=2)


@breaks("INV-02", "an accepted record comes again at once", of=ACCEPTED)
@breaks("INV-03", "a rejected record comes again at once", of=REJECTED)
def _comes_again_at_once(copy: Copy, of: Chosen) -> None:
    (row,) = copy.choose(*of)
    copy.again(row, sent=row["ack_received"], acquired=row["ack_received"] + MS, count=2)


@breaks("INV-02")
def _an_accepted_record_comes_to_a_member_that_waited(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    copy.again(row, sent=row["sent"] - MS, acquired=row["ack_sent"] + 1, count=2)


@breaks("INV-02", "an accepted record comes after a load", of=ACCEPTED)
@breaks("INV-03", "a rejected record comes after a load", of=REJECTED)
def _comes_after_a_load(copy: Copy, of: Chosen) -> None:
    (row,) = copy.choose(*of)
    at = row["ack_received"]
    copy.reload(row["share_partition"], at + 1, at + 2)
    copy.again(row, sent=at + 3, acquired=at + MS, count=1)


@breaks("INV-02", "a record accepted at the last moment of its lock comes again", of=ACCEPTED)
@breaks("INV-03", "a record rejected at the last moment of its lock comes again", of=REJECTED)
def _was_finished_at_the_last_moment(copy: Copy, of: Chosen) -> None:
    (row,) = copy.choose(*of)
    row["ack_received"] = row["holds_until"]
    _late(copy, row)


@breaks("INV-02")
def _an_acceptance_that_is_answered_a_moment_late_was_made_all_the_same(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    row["ack_received"] = row["holds_until"] + 1
    _late(copy, row)


@keeps("INV-02", "an acceptance that was refused is none", outcome=Outcome.FAILED)
@keeps(
    "INV-03", "a rejection that was refused is none", outcome=Outcome.FAILED, of=(_rejected, "odd")
)
@keeps("INV-02", "an acceptance without an answer may not have happened", outcome=Outcome.UNKNOWN)
def _is_none(copy: Copy, outcome: Outcome, of: Chosen = ACCEPTED) -> None:
    (row,) = copy.choose(*of)
    row.update(ended_as(row, outcome))
    _late(copy, row)


@keeps("INV-02")
def _an_acceptance_during_a_load_may_be_forgotten(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    copy.reload(row["share_partition"], row["ack_sent"], row["ack_received"])
    at = row["ack_received"] + 1
    copy.again(row, sent=at, acquired=at + MS, count=1)


@breaks("INV-02")
def _an_acceptance_from_a_session_that_was_ending_was_made_all_the_same(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    row["freed"] = row["ack_received"] - 1
    _late(copy, row)


@keeps("INV-02", partition=1)
def _a_deleted_record_is_accepted_by_nobody_in_particular(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    at = row["ack_sent"] - MS
    told = {"log": copy.log, "before": row["offset"] + 1, "sent": at, "outcome": int(Outcome.OK)}
    copy.tables["deletions"].append({**told, "received": row["ack_received"] + MS})
    below = row["offset"]
    copy.drop("deliveries", lambda one: one["offset"] <= below and one["sent"] > at)
    copy.again(row, sent=row["ack_received"], acquired=row["ack_received"] + MS, count=2)


@breaks("INV-09")
def _a_refused_acceptance_frees_its_record(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    at = row["ack_received"]
    row.update(acknowledged(AckType.ACCEPT, row["ack_sent"], at, Outcome.FAILED))
    copy.again(row, sent=at, acquired=at + 1, count=2)


@breaks("INV-09")
def _an_unanswered_acceptance_frees_its_record_a_moment_too_early(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    row.update(ended_as(row, Outcome.UNKNOWN))
    copy.again(row, sent=row["acquired"] + 1, acquired=row["holds_until"] - 1, count=2)


@keeps("INV-09")
def _a_refused_acceptance_leaves_a_lock_that_ends_at_the_very_moment(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    row.update(ended_as(row, Outcome.FAILED))
    copy.again(row, sent=row["ack_received"], acquired=row["holds_until"], count=2)


@keeps("INV-09")
def _a_refused_acceptance_is_followed_by_the_end_of_its_session(copy: Copy) -> None:
    (row,) = copy.choose(_accepted)
    at = row["ack_received"]
    row.update(acknowledged(AckType.ACCEPT, row["ack_sent"], at, Outcome.FAILED))
    row["freed"] = at + 1
    copy.again(row, sent=at + 2, acquired=at + MS, count=2)


@breaks("INV-15")
def _a_member_dies_and_its_delivery_does_not_count(copy: Copy) -> None:
    row, after = copy.choose(_crashed_then_came)[-2:]
    after["count"] = row["count"]


@keeps("INV-15")
def _a_member_dies_and_a_load_takes_the_count_back(copy: Copy) -> None:
    row, after = copy.choose(_crashed_then_came)[-2:]
    copy.reload(row["share_partition"], row["freed"], after["acquired"])
    after["count"] = row["count"]


@breaks("INV-18", "a record comes again a moment before its lock ended", after=-1)
@keeps("INV-18", "a record comes again as its lock ends", after=0)
def _comes_again_as_its_lock_ends(copy: Copy, after: int) -> None:
    row, later = _dropped_then_came(copy)
    shift(later, row["holds_until"] + after, sent=row["acquired"] + 1)


@breaks("INV-18")
def _a_record_comes_again_while_its_silent_holder_has_it(copy: Copy) -> None:
    row, after = _dropped_then_came(copy)
    shift(after, row["acquired"] + 2 * MS, sent=row["acquired"] + MS)


@keeps("INV-18")
def _a_record_comes_again_within_its_lock_after_a_load(copy: Copy) -> None:
    row, after = _dropped_then_came(copy)
    shift(after, row["acquired"] + 4 * MS, sent=row["acquired"] + 3 * MS)
    copy.reload(row["share_partition"], row["acquired"] + MS, row["acquired"] + 2 * MS)


@keeps("INV-18")
def _a_record_comes_again_after_its_holder_was_refused_letting_it_go_twice(copy: Copy) -> None:
    row, after = _dropped_then_came(copy)
    at = row["acquired"] + MS
    row.update(acknowledged(AckType.RELEASE, at, at + MS, Outcome.UNKNOWN) | {"attempts": 2})
    shift(after, at + 3 * MS, sent=at + 2 * MS)


@breaks("INV-23", "a released record is kept back", after=1)
@keeps("INV-23", "a released record comes at the last moment", after=0)
def _is_kept_back(copy: Copy, after: int) -> None:
    row, later = copy.choose(_released_then_came)[-2:]
    at = row["ack_received"] + row["lock_ms"] * MS + 15 * SECOND + after
    shift(later, at, sent=at)


@breaks("INV-23", "a fetch waits for a released record", after=1)
@keeps("INV-23", "a fetch waits for a released record until the last moment", after=0)
def _a_fetch_waits(copy: Copy, after: int) -> None:
    row, later = copy.choose(_released_then_came)[-2:]
    sent = row["ack_received"] + SECOND
    shift(later, sent + row["lock_ms"] * MS + 15 * SECOND + after, sent=sent)


@breaks("INV-23")
def _a_record_whose_lock_ended_is_kept_back(copy: Copy) -> None:
    row, after = _dropped_then_came(copy)
    at = row["ends_by"] + row["lock_ms"] * MS + 15 * SECOND + 1
    shift(after, at, sent=at)


@keeps("INV-23")
def _a_record_whose_release_was_refused_takes_its_time(copy: Copy) -> None:
    row, after = copy.choose(_released_then_came)[-2:]
    row.update(acknowledged(AckType.RELEASE, row["ack_sent"], row["ack_received"], Outcome.FAILED))
    shift(after, row["ends_by"] + 40 * SECOND)


@breaks("INV-26", "the end of a session frees nothing", after=-1)
@keeps("INV-26", "nobody asked until the lock of a dead member had ended", after=0)
def _comes_when_the_lock_has_ended(copy: Copy, after: int) -> None:
    row, later = copy.choose(_crashed_then_came)[-2:]
    shift(later, row["holds_until"] + MS, sent=row["holds_until"] + after)


@breaks("INV-26", "a fetch of less than two seconds brings it", lasts=2 * SECOND - 1)
@keeps("INV-26", "a fetch of two seconds brings it", lasts=2 * SECOND)
def _comes_by_a_fetch(copy: Copy, lasts: int) -> None:
    row, later = copy.choose(_crashed_then_came)[-2:]
    shift(later, row["holds_until"], sent=row["holds_until"] - lasts)


@keeps("INV-26")
def _a_load_made_what_a_dead_member_held_wait(copy: Copy) -> None:
    row, after = copy.choose(_crashed_then_came)[-2:]
    copy.reload(row["share_partition"], row["freed"], row["freed"] + 1)
    shift(after, row["holds_until"], sent=row["holds_until"] - 1)


def _twice(life: list[Row]) -> bool:
    """Tell whether a record came twice, the second time certainly later than the first."""
    if len(life) != 2:
        return False
    row, after = life
    return bool(row["kind"] != AckType.CLOSED and after["sent"] > row["acquired"])


def _let_go(life: list[Row]) -> bool:
    if not _twice(life) or life[0]["kind"] not in (AckType.NONE, AckType.RELEASE):
        return False
    return bool(life[0]["next_unseen_by_acquire"] == life[0]["unseen_before_fetch"])


def _run_out(copy: Copy, row: Row, upto: int) -> None:
    copy.store_start_only(row["share_partition"])
    row.update(copy.unacknowledged())
    for count in range(row["count"] + 1, upto + 1):
        at = row["ends_by"] + MS
        row = copy.again(row, sent=at, acquired=at + MS, count=count, **copy.unacknowledged())


@breaks("INV-12", "a record comes with two at first", count=2)
@breaks("INV-12", "a record comes with none at first", count=0)
def _a_record_comes_with(copy: Copy, count: int) -> None:
    copy.choose(once)[0]["count"] = count


@breaks("INV-12", "a count stays", by=0)
@breaks("INV-12", "a count skips one", by=2)
def _a_count_rises(copy: Copy, by: int) -> None:
    row, after = copy.choose(_let_go)
    after["count"] = row["count"] + by


@breaks("INV-12")
def _a_count_falls(copy: Copy) -> None:
    row, after = copy.choose(_let_go)
    row["count"], after["count"] = 2, 1
    copy.unseen_response(row["share_partition"], 0, 1)


@keeps("INV-12")
def _a_record_comes_with_two_after_an_answer_that_nobody_saw(copy: Copy) -> None:
    (row,) = copy.choose(once)
    copy.unseen_response(row["share_partition"], row["sent"] - 2 * SECOND, row["sent"] - SECOND)
    row["count"] = 2


@keeps("INV-12")
def _a_count_skips_one_for_an_answer_that_nobody_saw(copy: Copy) -> None:
    row, after = copy.choose(_let_go)
    copy.unseen_response(row["share_partition"], row["acquired"] + 1, after["acquired"])
    after["count"] = row["count"] + 2


@keeps("INV-12 INV-18")
def _answers_are_seen_in_another_order_than_they_were_made(copy: Copy) -> None:
    row, after = copy.choose(_let_go)
    row["count"], after["count"] = 2, 1
    after["sent"] = row["sent"] - 1


@keeps("INV-12", "a load takes a count back", by=0)
@breaks("INV-13", "a load raises a count", by=2)
def _a_load_changes_a_count(copy: Copy, by: int) -> None:
    row, after = copy.choose(_let_go)
    copy.reload(row["share_partition"], row["acquired"] + 1, after["acquired"])
    after["count"] = row["count"] + by


@breaks("INV-13")
def _a_load_raises_the_count_of_a_record_that_comes_far_later(copy: Copy) -> None:
    (row,) = copy.choose(once)
    _run_out(copy, row, 1)
    copy.reload(row["share_partition"], row["ends_by"] - SECOND, row["ends_by"])
    at = row["ends_by"] + SECOND
    copy.again(row, sent=at, acquired=at + MS, count=3)


@keeps("INV-13")
def _an_unseen_answer_raises_a_count_across_a_load(copy: Copy) -> None:
    row, after = copy.choose(_let_go)
    copy.reload(row["share_partition"], row["acquired"] + 1, after["acquired"])
    copy.unseen_response(row["share_partition"], row["acquired"] + 1, after["acquired"])
    after["count"] = row["count"] + 2


@breaks("INV-14", "a record comes once more than it may", more=1)
@keeps("INV-14", "a record comes as often as it may", more=0)
def _a_record_comes_often(copy: Copy, more: int) -> None:
    (row,) = copy.choose(once)
    _run_out(copy, row, copy.share(row["share_partition"])["delivery_limit"] + more)


@breaks("INV-14 INV-12 INV-39")
def _a_record_comes_far_more_often_than_it_may(copy: Copy) -> None:
    (row,) = copy.choose(once)
    row["count"] = 30_000


@breaks("INV-35", "a record comes beyond a limit that was lowered before")
@keeps("INV-35", "a record comes once more after its limit was lowered", until=1)
@keeps("INV-35", "a limit was raised again before a record came", ends=1)
def _limited(copy: Copy, until: int = 0, ends: int = NEVER) -> None:
    """Lower the limit to one, and deliver a record for the second time after that."""
    (row,) = copy.choose(lambda life: once(life) and life[0]["count"] == 1, "calm")
    told = {"share_partition": row["share_partition"], "since": 0, "delivery_limit": 1}
    copy.tables["limits"].append({**told, "until": row["sent"] + until, "ends": ends})
    row.update(copy.unacknowledged())
    at = row["ends_by"] + MS
    copy.again(row, sent=at, acquired=at + MS, count=2)


def _accompanied(life: list[Row]) -> bool:
    return once(life) and life[0]["others_in_response"] > 0


def _last_with_others(copy: Copy) -> Row:
    (row,) = copy.choose(_accompanied)
    row["count"] = copy.share(row["share_partition"])["delivery_limit"]
    for _ in range(row["count"] - 1):
        copy.unseen_response(row["share_partition"], row["sent"], row["acquired"])
    return row


@breaks("INV-39")
def _a_record_comes_for_the_last_time_among_others(copy: Copy) -> None:
    _last_with_others(copy)


@keeps("INV-39")
def _a_record_comes_for_the_last_time_alone(copy: Copy) -> None:
    row = _last_with_others(copy)
    row["op"] += 1 << 46


@keeps("INV-39")
def _a_limit_that_changes_leaves_open_which_delivery_is_the_last(copy: Copy) -> None:
    row = _last_with_others(copy)
    told = {
        "share_partition": row["share_partition"],
        "since": NEVER - 2,
        "until": NEVER - 1,
        "ends": NEVER,
    }
    copy.tables["limits"].append({**told, "delivery_limit": row["count"] + 1})
