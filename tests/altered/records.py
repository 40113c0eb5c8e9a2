"""Alterations of what came, and what never did: INV-04, 05, 06, 08, 11, 34 and 36."""

from operator import itemgetter
from typing import Any

from spec.history import NEVER, AckType, Outcome, Transaction
from tests.altered.alteration import (
    MS,
    SECOND,
    Copy,
    NoPlace,
    Row,
    acknowledged,
    breaks,
    ended_as,
    keeps,
)
from tests.altered.deliveries import FINAL, once

_ABSENT: dict[str, Any] = {"present": False, "producer": -1, "sequence": -1, "crc": -1}


def _came(life: list[Row]) -> bool:
    return once(life) and life[0]["present"]


def stored(copy: Copy, offset: int) -> Row:
    found = [row for row in copy.tables["produced"] if row["offset"] == offset]
    if not found:
        raise NoPlace
    return found[0]


def abort(copy: Copy, offset: int) -> None:
    """Have the transaction of a record be aborted, and nobody who reads committed ones get it."""
    stored(copy, offset)["transaction"] = int(Transaction.ABORTED)
    strict = copy.share_partitions("committed")
    copy.drop(
        "deliveries", lambda one: one["offset"] == offset and one["share_partition"] in strict
    )


def _sealed(copy: Copy) -> list[Row]:
    sealed = {row["offset"] for row in copy.tables["produced"] if row["crc"] >= 0}
    return copy.choose(lambda life: _came(life) and life[0]["offset"] in sealed)


def _stateless(copy: Copy) -> list[Row]:
    """Return a delivery whose stored state cannot contradict what was done to it now."""
    (row,) = _sealed(copy)
    copy.store_start_only(row["share_partition"])
    return [row]


def _unseen(copy: Copy, row: Row, since: int, until: int) -> None:
    """Have as many answers be seen by nobody as a record may come."""
    for _ in range(copy.share(row["share_partition"])["delivery_limit"]):
        copy.unseen_response(row["share_partition"], since, until)


@breaks("INV-04", "a record comes with the number of its neighbour", of=_sealed, column="sequence")
@breaks("INV-04", "a record comes from another producer", of=_sealed, column="producer")
@breaks("INV-04", "a record comes with another byte", of=_sealed, column="crc")
def _comes_changed(_: Copy, row: Row, column: str) -> None:
    row[column] ^= 1


@breaks("INV-04", of=_sealed)
def _a_record_comes_that_nobody_stored(copy: Copy, row: Row) -> None:
    copy.drop("produced", lambda one: one["offset"] == row["offset"])


@keeps("INV-04", of=_sealed)
def _a_record_comes_whose_producer_got_no_answer(copy: Copy, row: Row) -> None:
    stored(copy, row["offset"]).update(offset=-1, received=-1, outcome=int(Outcome.UNKNOWN))


@keeps("INV-04", of=_sealed)
def _a_batch_comes_that_the_log_wrote_anew(copy: Copy, row: Row) -> None:
    stored(copy, row["offset"])["crc"] = -1
    row["crc"] ^= 1


def _never_came(copy: Copy) -> list[Row]:
    (row,) = _stateless(copy)
    key = row["offset"], row["share_partition"]
    copy.drop("deliveries", lambda one: (one["offset"], one["share_partition"]) == key)
    return [row]


@breaks("INV-05", of=_never_came)
def _a_record_never_comes(_: Copy, __: Row) -> None:
    pass


@breaks("INV-05", of=_sealed)
def _a_record_comes_without_its_payload(_: Copy, row: Row) -> None:
    row.update(_ABSENT)


@breaks("INV-05 INV-10 INV-37")
def _nothing_comes_to_a_group(copy: Copy) -> None:
    (share_partition,) = copy.share_partitions("calm")
    copy.drop("deliveries", lambda row: row["share_partition"] == share_partition)


@keeps("INV-05", of=_never_came)
def _an_aborted_record_never_comes(copy: Copy, row: Row) -> None:
    abort(copy, row["offset"])


@keeps("INV-05", of=_never_came)
def _a_deleted_record_never_comes(copy: Copy, row: Row) -> None:
    copy.delete(row["offset"], 0, -1, Outcome.UNKNOWN)


@keeps("INV-05", of=_never_came)
def _a_record_may_have_come_in_answers_that_nobody_saw(copy: Copy, row: Row) -> None:
    _unseen(copy, row, 0, NEVER - 1)


@breaks("INV-05", "a record never comes that was produced after answers that nobody saw", ended=-1)
@keeps("INV-05", "a record may have come as soon as it was produced", ended=0)
def _never_came_of_the_later(copy: Copy, ended: int) -> None:
    """Have a record never come to a group that had as many answers which nobody saw as may be.

    They ended so long after it was produced; few that other groups had did.
    """
    ends = [row["until"] for row in copy.tables["unseen_responses"]]
    sent = sorted(ends)[-4]  # three ended later, fewer than any limit
    later = {row["offset"]: row["sent"] for row in copy.tables["produced"] if row["sent"] > sent}
    (row,) = copy.choose(lambda life: _came(life) and life[0]["offset"] in later, "calm", "odd")
    copy.store_start_only(row["share_partition"])
    key = row["offset"], row["share_partition"]
    copy.drop("deliveries", lambda one: (one["offset"], one["share_partition"]) == key)
    _unseen(copy, row, 0, later[row["offset"]] + ended)


@keeps("INV-05", of=_sealed)
def _a_record_whose_batch_was_compacted_comes_without_its_payload(copy: Copy, row: Row) -> None:
    stored(copy, row["offset"])["crc"] = -1
    row.update(_ABSENT)


def _forgotten(copy: Copy) -> list[Row]:
    (row,) = _stateless(copy)
    row.update(copy.unacknowledged())
    return [row]


@breaks("INV-06", "a record that nobody acknowledged never comes again", of=_forgotten)
@breaks("INV-06", "a released record never comes again", of=_forgotten, kind=AckType.RELEASE)
@keeps(
    "INV-06",
    "a record whose acceptance got no answer never comes again",
    of=_forgotten,
    kind=AckType.ACCEPT,
)
def _never_comes_again(_: Copy, row: Row, kind: AckType | None = None) -> None:
    sent = row["acquired"] + MS
    if kind is AckType.ACCEPT:
        row.update(acknowledged(kind, sent, NEVER, Outcome.UNKNOWN))
    elif kind is not None:
        row.update(acknowledged(kind, sent, sent + MS))


@breaks("INV-06", of=_forgotten)
def _what_a_dead_member_held_never_comes_again(_: Copy, row: Row) -> None:
    row.update(acknowledged(AckType.CLOSED, row["acquired"] + MS, NEVER, Outcome.UNKNOWN))
    row.update(attempts=0, freed=row["acquired"] + MS)


@keeps("INV-06", of=_forgotten)
def _a_record_that_nobody_acknowledged_may_have_come_in_answers_that_nobody_saw(
    copy: Copy, row: Row
) -> None:
    _unseen(copy, row, row["acquired"] + 1, NEVER - 1)


def _acknowledged_together(copy: Copy) -> list[Row]:
    same = itemgetter("share_partition", "member", "ack_sent", "op", "kind")

    def together(life: list[Row]) -> list[Row]:
        lives = [one[0] for one in copy.lives.values() if _came(one) and one[0]["crc"] >= 0]
        return [row for row in lives if same(row) == same(life[0])]

    (row,) = copy.choose(lambda life: _came(life) and len(together(life)) > 1)
    rows = together([row])
    for one in rows:
        one.update(ended_as(one, Outcome.FAILED))
    return rows


@breaks("INV-08", "one record of a refused acknowledgement comes again", which=slice(1))
@breaks("INV-08", "all but one record of a refused acknowledgement come again", which=slice(-1))
@keeps("INV-08", "all records of a refused acknowledgement come again", which=slice(None))
@keeps("INV-08", "a refused acknowledgement took effect", which=slice(0))
def _come_again(copy: Copy, which: slice) -> None:
    for row in _acknowledged_together(copy)[which]:
        copy.again(row, sent=row["ends_by"], acquired=row["ends_by"] + MS, count=row["count"] + 1)


@breaks("INV-11", "an offset is listed after a higher one", of=_sealed, by=1)
@keeps("INV-11", "an offset is listed after the one before it", of=_sealed, by=-1)
def _is_listed_after(_: Copy, row: Row, by: int) -> None:
    row["after"] = row["offset"] + by


@breaks("INV-11", of=_sealed)
def _an_offset_is_listed_twice(copy: Copy, row: Row) -> None:
    copy.tables["deliveries"].append(dict(row))


def _committed(copy: Copy) -> list[Row]:
    def ended(life: list[Row]) -> bool:
        return bool(life[-1]["kind"] in FINAL and life[0]["present"])

    return copy.choose(ended, "committed")[:1]


@breaks(
    "INV-34 INV-10 INV-37",
    "a record comes that was aborted",
    of=_committed,
    end=Transaction.ABORTED,
)
@keeps("INV-34", "nobody knows how a transaction ended", of=_committed, end=Transaction.OPEN)
@keeps(
    "INV-34", "an aborted record is only a gap", of=_committed, end=Transaction.ABORTED, **_ABSENT
)
def _comes_of_a_transaction(copy: Copy, row: Row, end: Transaction, **changes: int) -> None:
    row.update(changes)
    stored(copy, row["offset"])["transaction"] = int(end)


@breaks("INV-36", "a fetch brings what was deleted before", partition=1)
@keeps("INV-36", "a record is deleted while the fetch is under way", partition=1, received=0)
@keeps("INV-36", "a deletion without an answer may be none", partition=1, outcome=Outcome.UNKNOWN)
def _deleted(copy: Copy, received: int = -1, outcome: Outcome = Outcome.OK) -> None:
    """Delete a record at some time after the fetch was sent that brings it."""
    (row,) = copy.choose(_came)
    ended, below = row["sent"] + received, row["offset"]
    copy.delete(below, row["sent"] - SECOND, ended, outcome)
    copy.drop(
        "deliveries",
        lambda one: one["offset"] <= below and one["sent"] > ended and one is not row,
    )
