"""Alterations of how often a record came: INV-12, 13, 14, 35 and 39."""

from __future__ import annotations

from spec.history import NEVER, AckType
from tests.altered.alteration import breaks, keeps
from tests.altered.copies import MS, SECOND, Copy, Row
from tests.altered.deliveries import once


def _twice(life: list[Row]) -> bool:
    """Tell whether a record came twice, the second time certainly later than the first."""
    if len(life) != 2:
        return False
    row, after = life
    return bool(row["kind"] != AckType.CLOSED and after["sent"] > row["acquired"])


def _let_go(life: list[Row]) -> bool:
    """Tell whether a record came twice and no response that nobody saw can lie between."""
    if not _twice(life) or life[0]["kind"] not in (AckType.NONE, AckType.RELEASE):
        return False
    return bool(life[0]["next_unseen_by_acquire"] == life[0]["unseen_before_fetch"])


def _run_out(copy: Copy, row: Row, upto: int) -> None:
    """Deliver a record again and again, up to a count, each time until its lock ends."""
    copy.store_start_only(row["share_partition"])
    row.update(copy.unacknowledged())
    for count in range(row["count"] + 1, upto + 1):
        at = row["ends_by"] + MS
        row = copy.again(row, sent=at, acquired=at + MS, count=count, **copy.unacknowledged())


# --- INV-12 -------------------------------------------------------------------------------------


@breaks("INV-12", name="a record comes with two at first", count=2)
@breaks("INV-12", name="a record comes with none at first", count=0)
def _a_record_comes_with(copy: Copy, count: int) -> None:
    copy.choose(once)[0]["count"] = count


@breaks("INV-12", name="a count stays", by=0)
@breaks("INV-12", name="a count skips one", by=2)
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


@keeps("INV-12", "INV-18")
def _answers_are_seen_in_another_order_than_they_were_made(copy: Copy) -> None:
    row, after = copy.choose(_let_go)
    row["count"], after["count"] = 2, 1
    after["sent"] = row["sent"] - 1


# --- INV-13 -------------------------------------------------------------------------------------


@keeps("INV-12", name="a load takes a count back", by=0)
@breaks("INV-13", name="a load raises a count", by=2)
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


# --- INV-14 -------------------------------------------------------------------------------------


@breaks("INV-14", name="a record comes once more than it may", more=1)
@keeps("INV-14", name="a record comes as often as it may", more=0)
def _a_record_comes_often(copy: Copy, more: int) -> None:
    (row,) = copy.choose(once)
    _run_out(copy, row, copy.share(row["share_partition"])["delivery_limit"] + more)


@breaks("INV-14", "INV-12", "INV-39")
def _a_record_comes_far_more_often_than_it_may(copy: Copy) -> None:
    (row,) = copy.choose(once)
    row["count"] = 30_000


# --- INV-35 -------------------------------------------------------------------------------------


@breaks("INV-35", name="a record comes beyond a limit that was lowered before")
@keeps("INV-35", name="a record comes once more after its limit was lowered", until=1)
@keeps("INV-35", name="a limit was raised again before a record came", ends=1)
def _limited(copy: Copy, until: int = 0, ends: int = NEVER) -> None:
    """Lower the limit to one, and deliver a record for the second time after that."""
    (row,) = copy.choose(lambda life: once(life) and life[0]["count"] == 1, "calm")
    told = {"share_partition": row["share_partition"], "since": 0, "delivery_limit": 1}
    copy.tables["limits"].append({**told, "until": row["sent"] + until, "ends": ends})
    row.update(copy.unacknowledged())
    at = row["ends_by"] + MS
    copy.again(row, sent=at, acquired=at + MS, count=2)


# --- INV-39 -------------------------------------------------------------------------------------


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
