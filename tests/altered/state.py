"""Alterations of what was shown, what was stored, how long it took, and of dead letters."""

from collections.abc import Callable
from itertools import pairwise

from spec.history import AckType, Outcome, Transaction
from tests.altered.alteration import MS, SECOND, Copy, NoPlace, Row, breaks, ended_as, keeps
from tests.altered.deliveries import once
from tests.altered.records import stored

TICK = SECOND // 10
UNKNOWN_SERVER = -1


def _calm(copy: Copy) -> int:
    return copy.share_partitions("calm")[0]


def _pair(copy: Copy, wanted: str = "spso") -> tuple[Row, Row]:
    """Return two looks after each other of which the earlier one showed something."""
    looks = copy.looks(_calm(copy))
    found = [(one, two) for one, two in pairwise(looks) if one[wanted] > 0]
    return found[copy.edge]


def _in_flight(copy: Copy) -> tuple[int, int]:
    found = [
        (share_partition, most)
        for share_partition in copy.share_partitions("calm", "odd", "rough", "committed")
        if (most := _most_in_flight(copy, share_partition)) > 1
    ]
    if not found:
        raise NoPlace
    return found[copy.edge]


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


@breaks("INV-19", "the start offset goes back by one", by=1)
@keeps("INV-19", "the start offset stays", by=0)
def _the_start_offset_goes_back(copy: Copy, by: int) -> None:
    before, look = _pair(copy)
    look["spso"] = before["spso"] - by


@breaks("INV-19")
def _the_start_offset_goes_back_to_the_beginning(copy: Copy) -> None:
    _pair(copy)[1]["spso"] = 0


@keeps("INV-19")
def _a_start_offset_was_looked_at_while_the_look_before_was_not_over(copy: Copy) -> None:
    before, look = _pair(copy)
    look.update(spso=before["spso"] - 1, sent=before["received"] - 1)


@keeps("INV-19")
def _no_start_offset_is_shown_for_a_while(copy: Copy) -> None:
    _pair(copy)[1].update(spso=-1, lag=-1)


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
    if not found:
        raise NoPlace
    return found[copy.edge]


@breaks("INV-20 INV-19 INV-38")
def _the_start_offset_passes_a_record_that_is_held(copy: Copy) -> None:
    look, held = _held_while_shown(copy)
    look["spso"] = held + 1


@keeps("INV-20")
def _the_start_offset_reaches_a_record_that_is_held(copy: Copy) -> None:
    look, held = _held_while_shown(copy)
    if look["spso"] > held or look["lag"] > look["log_end"] - held:
        raise NoPlace
    look["spso"] = held
    for later in copy.looks(look["share_partition"]):
        if later["sent"] > look["sent"]:
            later["spso"] = max(later["spso"], held)


@breaks("INV-22")
def _a_leader_epoch_goes_back(copy: Copy) -> None:
    before, look = _pair(copy)
    before["leader_epoch"] = look["leader_epoch"] + 1


def _two_stored(copy: Copy, column: str) -> tuple[list[Row], list[Row]]:
    """Return the rows of two records of the state topic after each other."""
    share_partition = _calm(copy)
    rows = [
        row
        for row in copy.tables["persisted"]
        if row["share_partition"] == share_partition and row[column] >= 0
    ]
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
    share_partition = _calm(copy)
    for row in copy.tables["persisted"]:
        if row["share_partition"] == share_partition:
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
    kept = (Transaction.NONE, Transaction.COMMITTED)
    there = {row["offset"] for row in copy.tables["produced"] if row["transaction"] in kept}
    return copy.choose(lambda life: wanted(life) and life[0]["offset"] in there, *groups)[0]


def _accepted(life: list[Row]) -> bool:
    return once(life) and life[0]["kind"] == AckType.ACCEPT and life[0]["present"]


def _rejected(life: list[Row]) -> bool:
    return once(life) and life[0]["kind"] == AckType.REJECT and life[0]["present"]


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
    row.update(ended_as(row, Outcome.FAILED))
    _store(copy, row, ACKNOWLEDGED)


@breaks("INV-37 INV-10")
def _what_nobody_accepted_is_stored_as_accepted(copy: Copy) -> None:
    row = _choose(copy, _rejected, "odd")
    # Let no group have accepted a record.
    for one in copy.tables["deliveries"]:
        if one["offset"] == row["offset"] and one["kind"] == AckType.ACCEPT:
            one["kind"] = int(AckType.REJECT)
    copy.drop("dead_letters", lambda one: one["offset"] == row["offset"])
    dead = set(copy.share_partitions("dead"))
    for share_partition in dead:
        copy.share(share_partition)["dead_letters"] = False
    _store(copy, row, ACKNOWLEDGED)


@breaks("INV-37 INV-10")
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


@keeps("INV-21", "what was accepted is stored as available with that count", more=0, below=0)
@breaks("INV-21", "what was accepted is stored as available with a higher count", more=1, below=0)
@keeps("INV-21", "what was accepted was stored as available with a lower count", more=-1)
@keeps("INV-21", "what was accepted lies below the stored start offset", more=0, below=1)
def _is_stored_as_available(copy: Copy, more: int, below: int | None = None) -> None:
    row = _choose(copy, _accepted)
    spso = 0 if below is None else row["offset"] + below
    _store(copy, row, AVAILABLE, count=row["count"] + more, spso=spso)


@breaks("INV-21")
def _what_was_rejected_is_stored_as_available_with_a_higher_count(copy: Copy) -> None:
    row = _choose(copy, _rejected, "odd")
    _store(copy, row, AVAILABLE, count=row["count"] + 1)


@keeps("INV-21")
def _what_was_accepted_without_an_answer_is_stored_as_available(copy: Copy) -> None:
    row = _choose(copy, _accepted)
    row.update(ended_as(row, Outcome.UNKNOWN))
    _store(copy, row, AVAILABLE, count=row["count"])


def _unstored(copy: Copy, row: Row) -> None:
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
    row.update(ended_as(row, Outcome.UNKNOWN))
    _unstored(copy, row)


@keeps("INV-41")
def _what_was_accepted_is_only_below_a_stored_start_offset(copy: Copy) -> None:
    copy.store_start_only(_choose(copy, _accepted)["share_partition"])


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
    row.update(ended_as(row, Outcome.FAILED))
    copy.tables["dead_letters"].append({**_letter(copy), "offset": row["offset"]})
