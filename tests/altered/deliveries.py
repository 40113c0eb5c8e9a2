"""Alterations of who got a record, when and how often: INV-01 to 03, 09, 12 to 15 and others."""

from typing import Any

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
    life_of,
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


def _dropped_then_came(copy: Copy) -> list[Row]:
    """Return two deliveries of a record, of which the first was never acknowledged."""
    row, after = copy.choose(_released_then_came)[-2:]
    row.update(copy.unacknowledged())
    shift(after, row["ends_by"] + MS)
    return [row, after]


ONCE, ACCEPTED = life_of(once), life_of(_accepted)
REJECTED, REJECTED_ODDLY = life_of(_rejected, "odd", "dead"), life_of(_rejected, "odd")
RELEASED, CRASHED = life_of(_released_then_came, last=2), life_of(_crashed_then_came, last=2)
DROPPED = _dropped_then_came

Moment = tuple[str, int]
"""A column with a time of the first delivery, and how much later it is."""


def _at(row: Row, *moments: Moment) -> list[int]:
    return [int(row[column]) + more for column, more in moments]


LATE: dict[str, Any] = {"sent": ("ends_by", MS), "acquired": ("ends_by", 2 * MS)}
LOADED: dict[str, Any] = {
    "load": (("ack_received", 1), ("ack_received", 2)),
    "sent": ("ack_received", 3),
    "acquired": ("ack_received", MS),
    "count": 1,
}
AT_ONCE: dict[str, Any] = {"sent": ("ack_received", 0), "acquired": ("ack_received", MS)}


def _comes_again(
    copy: Copy, row: Row, *, load: tuple[Moment, ...] = (), count: int = 2, **when: Any
) -> None:
    """Deliver a record once more, at some moments of the first delivery, which may end otherwise.

    Args:
        copy: the copy.
        row: the first delivery.
        load: between which moments the share-partition is loaded.
        count: that of the second delivery.
        when: when this is ``sent`` and ``acquired``; other columns are what the first has there,
            and ``outcome`` is what became of its acknowledgement.
    """
    outcome = when.pop("outcome", Outcome.OK)
    sent, acquired, *moments = _at(
        row, when.pop("sent"), when.pop("acquired"), *load, *when.values()
    )
    if outcome is not Outcome.OK:
        row.update(ended_as(row, outcome))
    row.update(zip(when, moments[len(load) :], strict=True))
    if load:
        copy.reload(row["share_partition"], *moments[:2])
    copy.again(row, sent=sent, acquired=acquired, count=count)


# fmt: off
for declare, rule, of, name, fields in (
    (breaks, "INV-01", ONCE, "a second member has it before the first lets go",
     {"sent": ("acquired", 1), "acquired": ("ack_sent", -1)}),
    (breaks, "INV-01", ONCE, "a second member that waited before has it with the next count",
     {"sent": ("sent", -SECOND), "acquired": ("acquired", 1)}),
    (keeps, "INV-01", ONCE, "a second member has it after a load",
     {"load": (("acquired", 1), ("acquired", 2)), "sent": ("acquired", 3),
      "acquired": ("ack_sent", -1), "count": 1}),
    (keeps, "INV-01", ACCEPTED, "a second member has it after a lock whose holder speaks too late",
     {"ack_sent": ("ends_by", 3 * MS), "ack_received": ("ends_by", 4 * MS),
      "sent": ("ends_by", 1), "acquired": ("ends_by", MS)}),
    (breaks, "INV-02", ACCEPTED, "an accepted record comes again at once", AT_ONCE),
    (breaks, "INV-03", REJECTED, "a rejected record comes again at once", AT_ONCE),
    (breaks, "INV-02", ACCEPTED, "an accepted record comes to a member that waited",
     {"sent": ("sent", -MS), "acquired": ("ack_sent", 1)}),
    (breaks, "INV-02", ACCEPTED, "an accepted record comes after a load", LOADED),
    (breaks, "INV-03", REJECTED, "a rejected record comes after a load", LOADED),
    (breaks, "INV-02", ACCEPTED, "a record accepted at the last moment of its lock comes again",
     {**LATE, "ack_received": ("holds_until", 0)}),
    (breaks, "INV-03", REJECTED, "a record rejected at the last moment of its lock comes again",
     {**LATE, "ack_received": ("holds_until", 0)}),
    (breaks, "INV-02", ACCEPTED, "an acceptance answered a moment late was made all the same",
     {**LATE, "ack_received": ("holds_until", 1)}),
    (keeps, "INV-02", ACCEPTED, "an acceptance that was refused is none",
     {**LATE, "outcome": Outcome.FAILED}),
    (keeps, "INV-03", REJECTED_ODDLY, "a rejection that was refused is none",
     {**LATE, "outcome": Outcome.FAILED}),
    (keeps, "INV-02", ACCEPTED, "an acceptance without an answer may not have happened",
     {**LATE, "outcome": Outcome.UNKNOWN}),
    (keeps, "INV-02", ACCEPTED, "an acceptance during a load may be forgotten",
     {"load": (("ack_sent", 0), ("ack_received", 0)), "sent": ("ack_received", 1),
      "acquired": ("ack_received", 1 + MS), "count": 1}),
    (breaks, "INV-02", ACCEPTED, "an acceptance from a session that was ending was made anyhow",
     {**LATE, "freed": ("ack_received", -1)}),
    (breaks, "INV-09", ACCEPTED, "a refused acceptance frees its record",
     {"outcome": Outcome.FAILED, "sent": ("ack_received", 0), "acquired": ("ack_received", 1)}),
    (breaks, "INV-09", ACCEPTED, "an unanswered acceptance frees its record a moment too early",
     {"outcome": Outcome.UNKNOWN, "sent": ("acquired", 1), "acquired": ("holds_until", -1)}),
    (keeps, "INV-09", ACCEPTED, "a refused acceptance leaves a lock that ends at the very moment",
     {"outcome": Outcome.FAILED, "sent": ("ack_received", 0), "acquired": ("holds_until", 0)}),
    (keeps, "INV-09", ACCEPTED, "a refused acceptance is followed by the end of its session",
     {"outcome": Outcome.FAILED, "freed": ("ack_received", 1), "sent": ("ack_received", 2),
      "acquired": ("ack_received", MS)}),
):
    declare(rule, name, of=of, **fields)(_comes_again)
# fmt: on


@keeps("INV-02", of=ACCEPTED, partition=1)
def _a_deleted_record_is_accepted_by_nobody_in_particular(copy: Copy, row: Row) -> None:
    at, below = row["ack_sent"] - MS, row["offset"]
    copy.delete(below, at, row["ack_received"] + MS, Outcome.OK)
    copy.drop("deliveries", lambda one: one["offset"] <= below and one["sent"] > at)
    copy.again(row, sent=row["ack_received"], acquired=row["ack_received"] + MS, count=2)


@breaks("INV-15", "a member dies and its delivery does not count", of=CRASHED)
@keeps("INV-15", "a member dies and a load takes the count back", of=CRASHED, load=True)
def _does_not_count(copy: Copy, row: Row, after: Row, *, load: bool = False) -> None:
    after["count"] = row["count"]
    if load:
        copy.reload(row["share_partition"], row["freed"], after["acquired"])


def _comes_later(
    copy: Copy, row: Row, after: Row, *, to: Moment, sent: Moment, load: tuple[Moment, ...] = ()
) -> None:
    """Have a record come for the second time at another moment of the first delivery."""
    acquired, asked, *loaded = _at(row, to, sent, *load)
    shift(after, acquired, sent=asked)
    if load:
        copy.reload(row["share_partition"], *loaded)


# fmt: off
for declare, rule, of, name, fields in (
    (breaks, "INV-18", DROPPED, "a record comes again a moment before its lock ended",
     {"to": ("holds_until", -1), "sent": ("acquired", 1)}),
    (keeps, "INV-18", DROPPED, "a record comes again as its lock ends",
     {"to": ("holds_until", 0), "sent": ("acquired", 1)}),
    (breaks, "INV-18", DROPPED, "a record comes again while its silent holder has it",
     {"to": ("acquired", 2 * MS), "sent": ("acquired", MS)}),
    (keeps, "INV-18", DROPPED, "a record comes again within its lock after a load",
     {"to": ("acquired", 4 * MS), "sent": ("acquired", 3 * MS),
      "load": (("acquired", MS), ("acquired", 2 * MS))}),
    (breaks, "INV-26", CRASHED, "the end of a session frees nothing",
     {"to": ("holds_until", MS), "sent": ("holds_until", -1)}),
    (keeps, "INV-26", CRASHED, "nobody asked until the lock of a dead member had ended",
     {"to": ("holds_until", MS), "sent": ("holds_until", 0)}),
    (breaks, "INV-26", CRASHED, "a fetch of less than two seconds brings it",
     {"to": ("holds_until", 0), "sent": ("holds_until", 1 - 2 * SECOND)}),
    (keeps, "INV-26", CRASHED, "a fetch of two seconds brings it",
     {"to": ("holds_until", 0), "sent": ("holds_until", -2 * SECOND)}),
    (keeps, "INV-26", CRASHED, "a load made what a dead member held wait",
     {"to": ("holds_until", 0), "sent": ("holds_until", -1), "load": (("freed", 0), ("freed", 1))}),
):
    declare(rule, name, of=of, **fields)(_comes_later)
# fmt: on


@keeps("INV-18", of=DROPPED)
def _a_record_comes_again_after_its_holder_was_refused_letting_it_go_twice(
    _: Copy, row: Row, after: Row
) -> None:
    at = row["acquired"] + MS
    row.update(acknowledged(AckType.RELEASE, at, at + MS, Outcome.UNKNOWN) | {"attempts": 2})
    shift(after, at + 3 * MS, sent=at + 2 * MS)


@breaks("INV-23", "a released record is kept back", of=RELEASED, after=1)
@keeps("INV-23", "a released record comes at the last moment", of=RELEASED, after=0)
def _is_kept_back(_: Copy, row: Row, later: Row, after: int) -> None:
    at = row["ack_received"] + row["lock_ms"] * MS + 15 * SECOND + after
    shift(later, at, sent=at)


@breaks("INV-23", "a fetch waits for a released record", of=RELEASED, after=1)
@keeps("INV-23", "a fetch waits for a released record until the end", of=RELEASED, after=0)
def _a_fetch_waits(_: Copy, row: Row, later: Row, after: int) -> None:
    sent = row["ack_received"] + SECOND
    shift(later, sent + row["lock_ms"] * MS + 15 * SECOND + after, sent=sent)


@breaks("INV-23", of=DROPPED)
def _a_record_whose_lock_ended_is_kept_back(_: Copy, row: Row, after: Row) -> None:
    at = row["ends_by"] + row["lock_ms"] * MS + 15 * SECOND + 1
    shift(after, at, sent=at)


@keeps("INV-23", of=RELEASED)
def _a_record_whose_release_was_refused_takes_its_time(_: Copy, row: Row, after: Row) -> None:
    row.update(ended_as(row, Outcome.FAILED))
    shift(after, row["ends_by"] + 40 * SECOND)


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


LET_GO = life_of(_let_go, last=2)


def _run_out(copy: Copy, row: Row, upto: int) -> None:
    copy.store_start_only(row["share_partition"])
    row.update(copy.unacknowledged())
    for count in range(row["count"] + 1, upto + 1):
        at = row["ends_by"] + MS
        row = copy.again(row, sent=at, acquired=at + MS, count=count, **copy.unacknowledged())


@breaks("INV-12", "a record comes with two at first", of=ONCE, count=2)
@breaks("INV-12", "a record comes with none at first", of=ONCE, count=0)
def _a_record_comes_with(_: Copy, row: Row, count: int) -> None:
    row["count"] = count


@breaks("INV-12", "a count stays", of=LET_GO, by=0)
@breaks("INV-12", "a count skips one", of=LET_GO, by=2)
def _a_count_rises(_: Copy, row: Row, after: Row, by: int) -> None:
    after["count"] = row["count"] + by


@breaks("INV-12", of=LET_GO)
def _a_count_falls(copy: Copy, row: Row, after: Row) -> None:
    row["count"], after["count"] = 2, 1
    copy.unseen_response(row["share_partition"], 0, 1)


@keeps("INV-12", of=ONCE)
def _a_record_comes_with_two_after_an_answer_that_nobody_saw(copy: Copy, row: Row) -> None:
    copy.unseen_response(row["share_partition"], row["sent"] - 2 * SECOND, row["sent"] - SECOND)
    row["count"] = 2


@keeps("INV-12", of=LET_GO)
def _a_count_skips_one_for_an_answer_that_nobody_saw(copy: Copy, row: Row, after: Row) -> None:
    copy.unseen_response(row["share_partition"], row["acquired"] + 1, after["acquired"])
    after["count"] = row["count"] + 2


@keeps("INV-12 INV-18", of=LET_GO)
def _answers_are_seen_in_another_order_than_they_were_made(_: Copy, row: Row, after: Row) -> None:
    row["count"], after["count"] = 2, 1
    after["sent"] = row["sent"] - 1


@keeps("INV-12", "a load takes a count back", of=LET_GO, by=0)
@breaks("INV-13", "a load raises a count", of=LET_GO, by=2)
def _a_load_changes_a_count(copy: Copy, row: Row, after: Row, by: int) -> None:
    copy.reload(row["share_partition"], row["acquired"] + 1, after["acquired"])
    after["count"] = row["count"] + by


@breaks("INV-13", of=ONCE)
def _a_load_raises_the_count_of_a_record_that_comes_far_later(copy: Copy, row: Row) -> None:
    _run_out(copy, row, 1)
    copy.reload(row["share_partition"], row["ends_by"] - SECOND, row["ends_by"])
    at = row["ends_by"] + SECOND
    copy.again(row, sent=at, acquired=at + MS, count=3)


@keeps("INV-13", of=LET_GO)
def _an_unseen_answer_raises_a_count_across_a_load(copy: Copy, row: Row, after: Row) -> None:
    copy.reload(row["share_partition"], row["acquired"] + 1, after["acquired"])
    copy.unseen_response(row["share_partition"], row["acquired"] + 1, after["acquired"])
    after["count"] = row["count"] + 2


@breaks("INV-14", "a record comes once more than it may", of=ONCE, more=1)
@keeps("INV-14", "a record comes as often as it may", of=ONCE, more=0)
def _a_record_comes_often(copy: Copy, row: Row, more: int) -> None:
    _run_out(copy, row, copy.share(row["share_partition"])["delivery_limit"] + more)


breaks("INV-14 INV-12 INV-39", "a record comes far more often than it may", of=ONCE, count=30_000)(
    _a_record_comes_with
)


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


def _last_with_others(copy: Copy) -> list[Row]:
    (row,) = copy.choose(_accompanied)
    row["count"] = copy.share(row["share_partition"])["delivery_limit"]
    for _ in range(row["count"] - 1):
        copy.unseen_response(row["share_partition"], row["sent"], row["acquired"])
    return [row]


@breaks("INV-39", "a record comes for the last time among others", of=_last_with_others)
@keeps("INV-39", "a record comes for the last time alone", of=_last_with_others, op=1 << 46)
def _comes_for_the_last_time(_: Copy, row: Row, op: int = 0) -> None:
    row["op"] += op


@keeps("INV-39", of=_last_with_others)
def _a_limit_that_changes_leaves_open_which_delivery_is_the_last(copy: Copy, row: Row) -> None:
    told = {"share_partition": row["share_partition"], "delivery_limit": row["count"] + 1}
    copy.tables["limits"].append({**told, "since": NEVER - 2, "until": NEVER - 1, "ends": NEVER})
