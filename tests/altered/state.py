"""Alterations of what was shown, what was stored, how long it took, and of dead letters."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

from spec.history import AckType, Outcome, Transaction
from tests.altered.alteration import (
    MS,
    SECOND,
    Chosen,
    Copy,
    NoPlace,
    Row,
    breaks,
    ended_as,
    keeps,
)
from tests.altered.deliveries import once
from tests.altered.records import abort

TICK = SECOND // 10
UNKNOWN_SERVER = -1


Found = TypeVar("Found")


def _one_of(found: Sequence[Found], copy: Copy) -> Found:
    """Return the first or the last of what was found.

    Raises:
        NoPlace: there is none.
    """
    if not found:
        raise NoPlace
    return found[copy.edge]


def _calm(copy: Copy) -> int:
    return copy.share_partitions("calm")[0]


def _pair(copy: Copy, wanted: str = "spso") -> tuple[Row, Row]:
    """Return two looks after each other of which the earlier one showed something."""
    looks = pairwise(copy.looks(_calm(copy)))
    return _one_of([(one, two) for one, two in looks if one[wanted] > 0], copy)


def _in_flight(copy: Copy) -> tuple[int, int]:
    found = [
        (share_partition, most)
        for share_partition in copy.share_partitions("calm", "odd", "rough", "committed")
        if (most := _most_in_flight(copy, share_partition)) > 1
    ]
    return _one_of(found, copy)


def _most_in_flight(copy: Copy, share_partition: int) -> int:
    rows = [row for row in copy.tables["deliveries"] if row["share_partition"] == share_partition]
    most = 0
    for tick in {row["acquired"] // TICK for row in rows}:
        high = max(row["offset"] for row in rows if row["acquired"] // TICK <= tick)
        held = [
            row["offset"]
            for row in rows
            if row["ack_sent"] // TICK > tick
            and row["kind"] in (AckType.ACCEPT, AckType.REJECT)
            and row["outcome"] == Outcome.OK
            and row["ack_received"] <= min(row["holds_until"], row["freed"])
        ]
        most = max(most, high - min(held) + 1 if held else 0)
    return most


@breaks("INV-17", "one more is in flight than the window and a batch", batch=0)
@keeps("INV-17", "as many are in flight as the window and a batch", batch=1)
def _are_in_flight(copy: Copy, batch: int) -> None:
    share_partition, most = _in_flight(copy)
    copy.share(share_partition).update(window=most - 1, batch=batch)


@breaks("INV-19", "the start offset goes back by one", of=_pair, by=1)
@keeps("INV-19", "the start offset stays", of=_pair, by=0)
@breaks("INV-19", "the start offset goes back to the beginning", of=_pair, by=10**6)
def _the_start_offset_goes_back(_: Copy, before: Row, look: Row, by: int) -> None:
    look["spso"] = max(before["spso"] - by, 0)


@keeps("INV-19", of=_pair)
def _no_start_offset_is_shown_for_a_while(_: Copy, __: Row, look: Row) -> None:
    look.update(spso=-1, lag=-1)


@keeps("INV-19", of=_pair)
def _it_was_looked_at_while_the_look_before_was_not_over(_: Copy, before: Row, look: Row) -> None:
    look.update(spso=before["spso"] - 1, sent=before["received"] - 1)


def _held_while_shown(copy: Copy) -> tuple[Row, int]:
    """Return a look, and the lowest offset whose holder proved later that it was not finished."""
    share_partition = _calm(copy)
    found: list[tuple[Row, int]] = []
    for look in copy.looks(share_partition):
        held = [
            life[0]["offset"]
            for (_, at), life in copy.lives.items()
            if at == share_partition
            and once(life)
            and life[0]["ack_sent"] // TICK > look["received"] // TICK
        ]
        if held:
            found.append((look, min(held)))
    return _one_of(found, copy)


@breaks("INV-20 INV-19 INV-38", of=_held_while_shown)
def _the_start_offset_passes_a_record_that_is_held(_: Copy, look: Row, held: int) -> None:
    look["spso"] = held + 1


@keeps("INV-20", of=_held_while_shown)
def _the_start_offset_reaches_a_record_that_is_held(copy: Copy, look: Row, held: int) -> None:
    if look["spso"] > held or look["lag"] > look["log_end"] - held:
        raise NoPlace
    look["spso"] = held
    for later in copy.looks(look["share_partition"]):
        if later["sent"] > look["sent"]:
            later["spso"] = max(later["spso"], held)


@breaks("INV-22", of=_pair)
def _a_leader_epoch_goes_back(_: Copy, before: Row, look: Row) -> None:
    before["leader_epoch"] = look["leader_epoch"] + 1


def _two_stored(copy: Copy, column: str) -> tuple[list[Row], list[Row]]:
    """Return the rows of two records of the state topic after each other."""
    rows = [row for row in copy.stored(_calm(copy)) if row[column] >= 0]
    places = sorted({row["position"] for row in rows})
    if len(places) < 2:
        raise NoPlace
    first, second = places[:2] if copy.edge == 0 else places[-2:]
    return tuple([row for row in rows if row["position"] == at] for at in (first, second))  # type: ignore[return-value]


@breaks("INV-22", "a stored leader epoch goes back", column="leader_epoch")
@breaks("INV-22", "a stored snapshot epoch goes back", column="snapshot_epoch")
def _a_stored_epoch_goes_back(copy: Copy, column: str) -> None:
    for row in _two_stored(copy, column)[0]:
        row[column] += 1_000


@keeps("INV-22")
def _stored_epochs_rise(copy: Copy) -> None:
    for row in copy.stored(_calm(copy)):
        row.update(leader_epoch=row["position"], snapshot_epoch=row["position"])


def _last_looks(copy: Copy) -> list[Row]:
    return [row for row in copy.looks(_calm(copy)) if row["phase"] == "quiet"]


@breaks("INV-24")
def _one_record_is_left_at_the_end(copy: Copy) -> None:
    for look in _last_looks(copy):
        look.update(spso=look["log_end"] - 1, lag=1)


@breaks("INV-24")
def _the_lag_stays_though_the_start_offset_is_at_the_end(copy: Copy) -> None:
    _last_looks(copy)[-1].update(lag=1)


@keeps("INV-24")
def _a_release_without_lags_stores_its_start_offset_late(copy: Copy) -> None:
    for look in copy.looks(_calm(copy)):
        look["lag"] = -1
    for look in _last_looks(copy):
        look["spso"] = look["log_end"] - 1


@breaks("INV-25", "a request takes longer than it may", by=1)
@keeps("INV-25", "a request takes as long as it may", by=0)
@keeps("INV-25", "a broker answers others in one second less", by=1, silent=1)
@breaks("INV-25", "others take a second more than they wait", by=3 * SECOND, each=SECOND)
@keeps("INV-25", "others take longer than that", by=3 * SECOND, each=SECOND + 1)
@keeps("INV-25", "another broker answers", by=1, node=1)
@keeps("INV-25", "another process gets responses", by=1, process=1)
def _takes_long(copy: Copy, by: int, silent: int = 0, each: int = 0, **aside: int) -> None:
    rows = [row for row in copy.tables["operations"] if row["received"] >= 0]
    row = sorted(rows, key=lambda one: one["sent"])[copy.edge]
    wait = row["max_wait_ms"] * MS
    row.update(received=row["sent"] + wait + 60 * SECOND + by, node=1000 + 10 * copy.log)
    beside = {name: row[name] + more for name, more in aside.items()}
    for second in range(60 + -(-wait // SECOND) - silent):
        at = row["sent"] + second * SECOND
        copy.request(row, sent=at, received=at + (wait + each if each else 0), **beside)


@breaks("INV-38", "the lag is one more than there is", by=1)
@keeps("INV-38", "the lag is all there is", by=0)
def _the_lag_is_more(copy: Copy, by: int) -> None:
    look, later = _pair(copy, "lag")
    look["lag"] = later["log_end"] - look["spso"] + by


@breaks("INV-38")
def _the_lag_forgets_what_nobody_has_acquired(copy: Copy) -> None:
    for row in copy.looks(_calm(copy)):
        row["log_end"] += 100
    copy.drop("unseen_responses", lambda row: row["share_partition"] == _calm(copy))
    for row in _last_looks(copy):
        row["log_end"] -= 100


@breaks("INV-40", "an acknowledgement is given up at once", after=0)
@breaks("INV-40", "an acknowledgement is given up too soon", after=2 * SECOND - 1)
@keeps("INV-40", "an acknowledgement is given up after two seconds", after=2 * SECOND)
def _is_given_up(copy: Copy, after: int) -> None:
    (row,) = copy.choose(once)
    row["ack_received"] = row["ack_sent"] + after
    row.update(outcome=int(Outcome.FAILED), error=UNKNOWN_SERVER, kind=int(AckType.ACCEPT))


@breaks("INV-42", "its leader accepts after another broker's load", late=-1)
@keeps("INV-42", "its leader accepts while another broker loads", late=0)
def _after_a_load_elsewhere(copy: Copy, late: int) -> None:
    (row,) = copy.choose(once)
    node = next(one["node"] for one in copy.tables["operations"] if one["op"] == row["op"]) + 1
    copy.reload(row["share_partition"], row["acquired"] + 1, row["ack_sent"] + late, node)


AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def _store(copy: Copy, row: Row, state: int, *, count: int = 1, spso: int = 0) -> None:
    """Store a record in a state, after all that was stored."""
    known = copy.stored(row["share_partition"])
    last = max(known, key=itemgetter("position"), default=None)
    if last is None:
        raise NoPlace
    told = {"snapshot": False, "state_epoch": -1, "first": row["offset"], "last": row["offset"]}
    told |= {"position": last["position"] + 1, "spso": spso, "state": state, "count": count}
    copy.tables["persisted"].append({**last, **told})


def _kept(wanted: Callable[[list[Row]], bool], *groups: str) -> Chosen:
    """Choose the first delivery of a record that suits and was not aborted."""

    def chosen(copy: Copy) -> list[Row]:
        kept = (Transaction.NONE, Transaction.COMMITTED)
        there = {row["offset"] for row in copy.tables["produced"] if row["transaction"] in kept}
        return copy.choose(lambda life: wanted(life) and life[0]["offset"] in there, *groups)[:1]

    return chosen


def _accepted(life: list[Row]) -> bool:
    return once(life) and life[0]["kind"] == AckType.ACCEPT and life[0]["present"]


def _rejected(life: list[Row]) -> bool:
    return once(life) and life[0]["kind"] == AckType.REJECT and life[0]["present"]


def _accepted_elsewhere(copy: Copy) -> Sequence[Row]:
    """Return what the calm accepted of a record that others rejected."""
    (other,) = REJECTED_ODDLY(copy)
    return _kept(lambda life: _accepted(life) and life[0]["offset"] == other["offset"], "calm")(
        copy
    )


def _accepted_by_all(copy: Copy) -> Sequence[Row]:
    rows = copy.tables["deliveries"]
    strange = {r["offset"] for r in rows if r["kind"] != AckType.ACCEPT or r["attempts"] != 1}
    return _kept(lambda life: _accepted(life) and life[0]["offset"] not in strange, "calm")(copy)


ACCEPTED, ACCEPTED_CALMLY = _kept(_accepted), _kept(_accepted, "calm")
ACCEPTED_OF_DEAD = _kept(_accepted, "dead")
ACCEPTED_PLAINLY = _kept(_accepted, "calm", "committed")
REJECTED_ODDLY = _kept(_rejected, "odd")


def _is_stored(
    copy: Copy, row: Row, state: int, more: int = 0, below: int | None = None, **ended: int
) -> None:
    """Store a record in a state with so much more than its count, or below its start offset."""
    if "outcome" in ended:
        row.update(ended_as(row, Outcome(ended.pop("outcome"))))
    row.update(ended)
    spso = 0 if below is None else row["offset"] + below
    _store(copy, row, state, count=row["count"] + more, spso=spso)


# fmt: off
for declare, rules, of, name, fields in (
    (breaks, "INV-10", REJECTED_ODDLY, "what another group accepted is stored as accepted",
     {"state": ACKNOWLEDGED}),
    (breaks, "INV-10", _accepted_elsewhere, "what another group rejected is stored as archived",
     {"state": ARCHIVED}),
    (keeps, "INV-10", ACCEPTED, "an acceptance that was refused may have been stored",
     {"state": ACKNOWLEDGED, "outcome": Outcome.FAILED}),
    (breaks, "INV-37 INV-10", _accepted_by_all, "what nobody rejected is stored as archived",
     {"state": ARCHIVED}),
    (keeps, "INV-37", ACCEPTED_CALMLY, "what was acknowledged twice may be stored in either way",
     {"state": ARCHIVED, "attempts": 2}),
    (keeps, "INV-21", ACCEPTED, "what was accepted is stored as available with that count",
     {"state": AVAILABLE, "below": 0}),
    (breaks, "INV-21", ACCEPTED, "what was accepted is stored as available with a higher count",
     {"state": AVAILABLE, "below": 0, "more": 1}),
    (keeps, "INV-21", ACCEPTED, "what was accepted was stored as available with a lower count",
     {"state": AVAILABLE, "more": -1}),
    (keeps, "INV-21", ACCEPTED, "what was accepted lies below the stored start offset",
     {"state": AVAILABLE, "below": 1}),
    (breaks, "INV-21", REJECTED_ODDLY, "what was rejected is available with a higher count",
     {"state": AVAILABLE, "more": 1}),
    (keeps, "INV-21", ACCEPTED, "what was accepted without an answer is stored as available",
     {"state": AVAILABLE, "outcome": Outcome.UNKNOWN}),
):
    declare(rules, name, of=of, **fields)(_is_stored)
# fmt: on


@breaks("INV-37 INV-10", of=REJECTED_ODDLY)
def _what_nobody_accepted_is_stored_as_accepted(copy: Copy, row: Row) -> None:
    # Let no group have accepted a record.
    for one in copy.tables["deliveries"]:
        if one["offset"] == row["offset"] and one["kind"] == AckType.ACCEPT:
            one["kind"] = int(AckType.REJECT)
    copy.drop("dead_letters", lambda one: one["offset"] == row["offset"])
    dead = set(copy.share_partitions("dead"))
    for share_partition in dead:
        copy.share(share_partition)["dead_letters"] = False
    _store(copy, row, ACKNOWLEDGED)


@keeps("INV-37", of=ACCEPTED_CALMLY)
def _what_was_aborted_is_stored_as_archived(copy: Copy, row: Row) -> None:
    abort(copy, row["offset"])
    _store(copy, row, ARCHIVED)


@keeps("INV-37", of=ACCEPTED_CALMLY, partition=1)
def _what_was_deleted_is_stored_as_archived(copy: Copy, row: Row) -> None:
    copy.delete(row["offset"], 0, -1, Outcome.UNKNOWN)
    _store(copy, row, ARCHIVED)


@breaks("INV-41", "what was accepted was never stored", of=ACCEPTED_PLAINLY)
@keeps("INV-41", "without an answer it was never stored", of=ACCEPTED_PLAINLY, unanswered=True)
def _was_never_stored(copy: Copy, row: Row, *, unanswered: bool = False) -> None:
    if unanswered:
        row.update(ended_as(row, Outcome.UNKNOWN))
    mine, offset = row["share_partition"], row["offset"]
    copy.store_start_only(mine)
    for one in (known := copy.stored(mine)):
        one["spso"] = offset
    rest = {"first": offset + 1, "last": offset + 1000, "state": ACKNOWLEDGED, "count": 1}
    copy.tables["persisted"].append({**known[-1], **rest})


@breaks("INV-41")
def _nothing_was_stored_of_a_group(copy: Copy) -> None:
    (share_partition,) = copy.share_partitions("calm")
    copy.drop("persisted", lambda one: one["share_partition"] == share_partition)


@keeps("INV-41", of=ACCEPTED)
def _what_was_accepted_is_only_below_a_stored_start_offset(copy: Copy, row: Row) -> None:
    copy.store_start_only(row["share_partition"])


def _letter(copy: Copy) -> Row:
    letters = sorted(copy.tables["dead_letters"], key=lambda row: int(row["offset"]))
    proven = {
        life[-1]["offset"]
        for (_, share_partition), life in copy.lives.items()
        if share_partition in copy.share_partitions("dead") and _rejected(life[-1:])
    }
    return _one_of([row for row in letters if row["offset"] in proven], copy)


@breaks("INV-33")
def _a_rejected_record_has_no_letter(copy: Copy) -> None:
    gone = _letter(copy)
    copy.drop("dead_letters", lambda row: row is gone)


@breaks("INV-33", "an accepted record has a letter", of=ACCEPTED_OF_DEAD)
@keeps("INV-33", "an acceptance that was refused has a letter", of=ACCEPTED_OF_DEAD, refused=True)
def _has_a_letter(copy: Copy, row: Row, *, refused: bool = False) -> None:
    if refused:
        row.update(ended_as(row, Outcome.FAILED))
    copy.tables["dead_letters"].append({**_letter(copy), "offset": row["offset"]})


@breaks("INV-33", "two letters of a record differ", crc=1)
@keeps("INV-33", "a letter is there twice", position=1 << 20)
def _is_there_twice(copy: Copy, **bits: int) -> None:
    one = _letter(copy)
    more = {column: one[column] ^ flipped for column, flipped in bits.items()}
    copy.tables["dead_letters"].append({**one, **more})
