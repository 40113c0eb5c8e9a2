"""Alterations of what was stored, and of dead letters: INV-10, 21, 33 and 37."""

from __future__ import annotations

from collections.abc import Callable

from spec.history import NEVER, AckType, Outcome, Transaction
from tests.altered.alteration import Copy, NoPlace, Row, acknowledged, breaks, keeps
from tests.altered.deliveries import once
from tests.altered.records import stored

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def _store(copy: Copy, row: Row, state: int, *, count: int = 1, spso: int = 0, at: int = 1) -> None:
    """Store a record in a state, after all that was stored or before it."""
    known = [
        one for one in copy.tables["persisted"] if one["share_partition"] == row["share_partition"]
    ]
    if not known:
        raise NoPlace
    last = max(known, key=lambda one: int(one["position"]))
    place = last["position"] + 1 if at > 0 else 0
    told = {"snapshot": False, "state_epoch": -1, "first": row["offset"], "last": row["offset"]}
    new = {**last, **told, "position": place, "spso": spso, "state": state, "count": count}
    if at <= 0:
        new |= {"leader_epoch": 0, "snapshot_epoch": 0}
    copy.tables["persisted"].append(new)


def _choose(copy: Copy, wanted: Callable[[list[Row]], bool], *groups: str) -> Row:
    """Return the one delivery of a record that was not aborted."""
    kept = (Transaction.NONE, Transaction.COMMITTED)
    there = {row["offset"] for row in copy.tables["produced"] if row["transaction"] in kept}
    return copy.choose(lambda life: wanted(life) and life[0]["offset"] in there, *groups)[0]


def _accepted(life: list[Row]) -> bool:
    return once(life) and life[0]["kind"] == AckType.ACCEPT and life[0]["present"]


def _rejected(life: list[Row]) -> bool:
    return once(life) and life[0]["kind"] == AckType.REJECT and life[0]["present"]


def _reject_for_all(copy: Copy, row: Row) -> None:
    """Let no group have accepted a record."""
    for one in copy.tables["deliveries"]:
        if one["offset"] == row["offset"] and one["kind"] == AckType.ACCEPT:
            one["kind"] = int(AckType.REJECT)
    copy.drop("dead_letters", lambda one: one["offset"] == row["offset"])
    dead = set(copy.share_partitions("dead"))
    for share_partition in dead:
        copy.share(share_partition)["dead_letters"] = False


# --- INV-10 and INV-37 --------------------------------------------------------------------------


@breaks("INV-10")
def _what_another_group_accepted_is_stored_as_accepted(copy: Copy) -> None:
    row = _choose(copy, _rejected, "odd")
    _store(copy, row, ACKNOWLEDGED)


@breaks("INV-10")
def _what_another_group_rejected_is_stored_as_archived(copy: Copy) -> None:
    offset = _choose(copy, _rejected, "odd")["offset"]
    row = _choose(copy, lambda life: _accepted(life) and life[0]["offset"] == offset, "calm")
    _store(copy, row, ARCHIVED)


@keeps("INV-10")
def _an_acceptance_that_was_refused_may_have_been_stored(copy: Copy) -> None:
    row = _choose(copy, _accepted)
    row.update(acknowledged(AckType.ACCEPT, row["ack_sent"], row["ack_received"], Outcome.FAILED))
    _store(copy, row, ACKNOWLEDGED)


@breaks("INV-37", "INV-10")
def _what_nobody_accepted_is_stored_as_accepted(copy: Copy) -> None:
    row = _choose(copy, _rejected, "odd")
    _reject_for_all(copy, row)
    _store(copy, row, ACKNOWLEDGED)


@breaks("INV-37", "INV-10")
def _what_nobody_rejected_is_stored_as_archived(copy: Copy) -> None:
    strange = {
        row["offset"]
        for row in copy.tables["deliveries"]
        if row["kind"] != AckType.ACCEPT or row["attempts"] != 1
    }
    row = _choose(copy, lambda life: _accepted(life) and life[0]["offset"] not in strange, "calm")
    _store(copy, row, ARCHIVED)


@keeps("INV-37")
def _what_was_aborted_is_stored_as_archived(copy: Copy) -> None:
    row = _choose(copy, _accepted, "calm")
    stored(copy, row["offset"])["transaction"] = int(Transaction.ABORTED)
    strict = copy.share_partitions("committed")
    copy.drop(
        "deliveries",
        lambda one: one["offset"] == row["offset"] and one["share_partition"] in strict,
    )
    _store(copy, row, ARCHIVED)


@keeps("INV-37", partition=1)
def _what_was_deleted_is_stored_as_archived(copy: Copy) -> None:
    row = _choose(copy, _accepted, "calm")
    told = {"log": copy.log, "before": row["offset"] + 1, "sent": 0, "received": -1}
    copy.tables["deletions"].append({**told, "outcome": int(Outcome.UNKNOWN)})
    _store(copy, row, ARCHIVED)


@keeps("INV-37")
def _what_was_acknowledged_twice_may_be_stored_in_either_way(copy: Copy) -> None:
    row = _choose(copy, _accepted, "calm")
    row["attempts"] = 2
    _store(copy, row, ARCHIVED)


# --- INV-21 -------------------------------------------------------------------------------------


@keeps("INV-21")
def _what_was_accepted_is_stored_as_available_with_that_count(copy: Copy) -> None:
    row = _choose(copy, _accepted)
    _store(copy, row, AVAILABLE, count=row["count"], spso=row["offset"])


@breaks("INV-21")
def _what_was_accepted_is_stored_as_available_with_a_higher_count(copy: Copy) -> None:
    row = _choose(copy, _accepted)
    _store(copy, row, AVAILABLE, count=row["count"] + 1, spso=row["offset"])


@breaks("INV-21")
def _what_was_rejected_is_stored_as_available_with_a_higher_count(copy: Copy) -> None:
    row = _choose(copy, _rejected, "odd")
    _store(copy, row, AVAILABLE, count=row["count"] + 1)


@keeps("INV-21")
def _what_was_accepted_was_stored_as_available_with_a_lower_count(copy: Copy) -> None:
    row = _choose(copy, _accepted)
    _store(copy, row, AVAILABLE, count=row["count"] - 1)


@keeps("INV-21")
def _what_was_accepted_without_an_answer_is_stored_as_available(copy: Copy) -> None:
    row = _choose(copy, _accepted)
    row.update(acknowledged(AckType.ACCEPT, row["ack_sent"], NEVER, Outcome.UNKNOWN))
    _store(copy, row, AVAILABLE, count=row["count"])


@keeps("INV-21")
def _what_was_accepted_lies_below_the_stored_start_offset(copy: Copy) -> None:
    row = _choose(copy, _accepted)
    _store(copy, row, AVAILABLE, count=row["count"], spso=row["offset"] + 1)


# --- INV-41 -------------------------------------------------------------------------------------


def _unstored(copy: Copy, row: Row) -> None:
    """Take away all that was stored of a record; all others of its group are stored."""
    mine, offset = row["share_partition"], row["offset"]
    copy.store_start_only(mine)
    known = [one for one in copy.tables["persisted"] if one["share_partition"] == mine]
    for one in known:
        one["spso"] = offset
    rest = {"first": offset + 1, "last": offset + 1000, "state": ACKNOWLEDGED, "count": 1}
    copy.tables["persisted"].append({**known[-1], **rest})


@breaks("INV-41")
def _what_was_accepted_was_never_stored(copy: Copy) -> None:
    _unstored(copy, _choose(copy, _accepted, "calm", "committed"))


@breaks("INV-41")
def _nothing_was_stored_of_a_group(copy: Copy) -> None:
    (share_partition,) = copy.share_partitions("calm")
    copy.drop("persisted", lambda one: one["share_partition"] == share_partition)


@keeps("INV-41")
def _what_was_accepted_without_an_answer_was_never_stored(copy: Copy) -> None:
    row = _choose(copy, _accepted, "calm", "committed")
    row.update(acknowledged(AckType.ACCEPT, row["ack_sent"], NEVER, Outcome.UNKNOWN))
    _unstored(copy, row)


@keeps("INV-41")
def _what_was_accepted_is_only_below_a_stored_start_offset(copy: Copy) -> None:
    copy.store_start_only(_choose(copy, _accepted)["share_partition"])


# --- INV-33 -------------------------------------------------------------------------------------


def _letter(copy: Copy) -> Row:
    letters = sorted(copy.tables["dead_letters"], key=lambda row: int(row["offset"]))
    proven = {
        life[-1]["offset"]
        for (_, share_partition), life in copy.lives.items()
        if share_partition in copy.share_partitions("dead") and _rejected(life[-1:])
    }
    found = [row for row in letters if row["offset"] in proven]
    if not found:
        raise NoPlace
    return found[copy.edge]


@breaks("INV-33")
def _a_rejected_record_has_no_letter(copy: Copy) -> None:
    gone = _letter(copy)
    copy.drop("dead_letters", lambda row: row is gone)


@breaks("INV-33")
def _an_accepted_record_has_a_letter(copy: Copy) -> None:
    row = _choose(copy, _accepted, "dead")
    copy.tables["dead_letters"].append({**_letter(copy), "offset": row["offset"]})


@breaks("INV-33")
def _two_letters_of_a_record_differ(copy: Copy) -> None:
    one = _letter(copy)
    copy.tables["dead_letters"].append({**one, "crc": one["crc"] ^ 1})


@keeps("INV-33")
def _a_letter_is_there_twice(copy: Copy) -> None:
    one = _letter(copy)
    copy.tables["dead_letters"].append({**one, "position": one["position"] + 1000})


@keeps("INV-33")
def _an_acceptance_that_was_refused_is_followed_by_a_letter(copy: Copy) -> None:
    row = _choose(copy, _accepted, "dead")
    row.update(acknowledged(AckType.ACCEPT, row["ack_sent"], row["ack_received"], Outcome.FAILED))
    copy.tables["dead_letters"].append({**_letter(copy), "offset": row["offset"]})
