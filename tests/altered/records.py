"""Alterations of what came, and what never did: INV-04, 05, 06, 08, 11, 34 and 36."""

from collections.abc import Mapping
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


def _committed(copy: Copy) -> list[Row]:
    def ended(life: list[Row]) -> bool:
        return bool(life[-1]["kind"] in FINAL and life[0]["present"])

    return copy.choose(ended, "committed")[:1]


def _comes(copy: Copy, row: Row, flip: str = "", was: Mapping[str, int] = {}, **now: Any) -> None:
    """Have a record come with one bit, or with columns, that are others, or have been stored so."""
    stored(copy, row["offset"]).update(was)
    row.update(now)
    if flip:
        row[flip] ^= 1


# fmt: off
for declare, rules, of, name, fields in (
    (breaks, "INV-04", _sealed, "a record comes with the number of its neighbour",
     {"flip": "sequence"}),
    (breaks, "INV-04", _sealed, "a record comes from another producer", {"flip": "producer"}),
    (breaks, "INV-04", _sealed, "a record comes with another byte", {"flip": "crc"}),
    (keeps, "INV-04", _sealed, "a record comes whose producer got no answer",
     {"was": {"offset": -1, "received": -1, "outcome": Outcome.UNKNOWN}}),
    (keeps, "INV-04", _sealed, "a batch comes that the log wrote anew",
     {"was": {"crc": -1}, "flip": "crc"}),
    (breaks, "INV-05", _sealed, "a record comes without its payload", _ABSENT),
    (keeps, "INV-05", _sealed, "a record whose batch was compacted comes without its payload",
     {"was": {"crc": -1}, **_ABSENT}),
    (breaks, "INV-34 INV-10 INV-37", _committed, "a record comes that was aborted",
     {"was": {"transaction": Transaction.ABORTED}}),
    (keeps, "INV-34", _committed, "nobody knows how a transaction ended",
     {"was": {"transaction": Transaction.OPEN}}),
    (keeps, "INV-34", _committed, "an aborted record is only a gap",
     {"was": {"transaction": Transaction.ABORTED}, **_ABSENT}),
):
    declare(rules, name, of=of, **fields)(_comes)
# fmt: on


@breaks("INV-04", of=_sealed)
def _a_record_comes_that_nobody_stored(copy: Copy, row: Row) -> None:
    copy.drop("produced", lambda one: one["offset"] == row["offset"])


def _lost(copy: Copy, row: Row) -> Row:
    key = row["offset"], row["share_partition"]
    copy.drop("deliveries", lambda one: (one["offset"], one["share_partition"]) == key)
    return row


def _never_came(copy: Copy) -> list[Row]:
    return [_lost(copy, row) for row in _stateless(copy)]


@breaks("INV-05", of=_never_came)
def _a_record_never_comes(_: Copy, __: Row) -> None:
    pass


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
    _unseen(copy, _lost(copy, row), 0, later[row["offset"]] + ended)


def _forgotten(copy: Copy) -> list[Row]:
    (row,) = _stateless(copy)
    row.update(copy.unacknowledged())
    return [row]


@breaks("INV-06", "a record that nobody acknowledged never comes again", of=_forgotten)
@breaks("INV-06", "a released record never comes again", of=_forgotten, kind=AckType.RELEASE)
@keeps("INV-06", "an unanswered acceptance is the last", of=_forgotten, kind=AckType.ACCEPT)
@breaks("INV-06", "what a dead member held never comes again", of=_forgotten, kind=AckType.CLOSED)
def _never_comes_again(_: Copy, row: Row, kind: AckType | None = None) -> None:
    sent = row["acquired"] + MS
    if kind is AckType.RELEASE:
        row.update(acknowledged(kind, sent, sent + MS))
    elif kind is not None:
        row.update(acknowledged(kind, sent, NEVER, Outcome.UNKNOWN))
    if kind is AckType.CLOSED:
        row.update(attempts=0, freed=sent)


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
