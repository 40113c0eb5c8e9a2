"""Rules about records of a log: what was stored there, and what all groups made of it."""

from collections.abc import Iterator
from dataclasses import dataclass

from reports.oracle.deliveries import Delivery, Stored
from reports.oracle.evidence import Case, Evidence, Position, grouped
from reports.oracle.journals import SECOND, Row
from spec.history import NEVER, AckType, Outcome, Transaction

_ACKNOWLEDGED, _UNFINISHED = 2, (0, 1)
_KEPT = (Transaction.NONE, Transaction.COMMITTED)


def stored_and_delivered(evidence: Evidence) -> Iterator[Case]:
    """INV-04, INV-05, INV-34: what comes is what was stored, to all who are owed it."""
    stored = {(row.log, row.offset): row for row in evidence.stored if row.offset >= 0}
    lost = {(r.log, r.producer, r.sequence) for r in evidence.stored if r.offset < 0}
    came = grouped(evidence.delivered, "log", "offset")
    first = {
        log: min(row.share_partition for row in rows)
        for log, rows in grouped(evidence.rows["share_partitions"], "log").items()
    }
    for log, offset in sorted({*stored, *came}):
        record, deliveries = stored.get((log, offset)), came.get((log, offset), [])
        seen = [one for one in deliveries if one.present]
        if seen:
            yield "INV-04", first[log], _foreign(record, seen, lost)
        if record is None:
            continue
        owed = _owed(evidence, record)
        if owed and record.transaction in _KEPT:
            served = {one.share_partition for one in deliveries if one.present or record.crc < 0}
            yield "INV-05", first[log], bool(owed - served)
        if record.transaction == Transaction.ABORTED:
            strict = (
                one for one in seen if evidence.partitions[one.share_partition].row.committed_only
            )
            yield "INV-34", first[log], any(strict)


def _foreign(record: Stored | None, seen: list[Delivery], lost: set[tuple[int, int, int]]) -> bool:
    if record is None:
        who = (seen[0].log, min(r.producer for r in seen), min(r.sequence for r in seen))
        return who not in lost
    return any(
        (one.producer, one.sequence) != (record.producer, record.sequence)
        or (record.crc >= 0 <= one.crc and one.crc != record.crc)
        for one in seen
    )


def _owed(evidence: Evidence, record: Stored) -> set[int]:
    """Return the share-partitions that must have got a record.

    Groups that had many unseen responses are owed what was produced when all of them have few left,
    and those that were not done at the end what each of them showed a start offset beyond.
    """
    groups = [share for share in evidence.partitions.values() if share.row.log == record.log]
    if any(record.offset < max(share.row.first, share.log_start) for share in groups):
        return set()
    spent = any(share.may_have_spent(record.sent) for share in groups)
    passed = record.offset < min((s.passed for s in groups if not s.drained), default=NEVER)
    return {
        s.row.share_partition
        for s in groups
        if (s.drained or passed) and (s.unseen_responses < s.lowest_limit or not spent)
    }


def dead_letters(evidence: Evidence) -> Iterator[Case]:
    """INV-33: those and only those have a dead letter that were rejected or exhausted."""
    if not any(row.phase == "dead letters read" for row in evidence.rows["phases"]):
        return
    letters = grouped(evidence.rows["dead_letters"], "share_partition", "offset")
    for share_partition, records in evidence.lives.items():
        if not evidence.partitions[share_partition].row.dead_letters:
            continue
        for at, before in ((at, record[:n]) for record in records for n, at in enumerate(record)):
            owed = _is_owed_a_letter(at)
            if owed is not None:
                found = letters.get((share_partition, at.now.offset), [])
                alike = len({(one.count, one.crc) for one in found}) == 1
                wrong = not alike if owed else bool(found)
                # It may have been given up, as something was broken meanwhile.
                until = min(at.now.ack_received, at.now.ends_by) + 10 * SECOND
                since = at.now.acquired - 5 * SECOND
                faults = evidence.rows["faults"]
                excused = wrong and (
                    any(o.since < until and o.until > since for o in faults)
                    or (not owed and any(one.now.count >= at.now.count for one in before))
                )
                if not excused:
                    yield "INV-33", share_partition, wrong


def _is_owed_a_letter(at: Position) -> bool | None:
    now, share = at.now, at.share
    if not now.present or now.offset < share.log_start:
        return None
    if now.kind in (AckType.ACCEPT, AckType.REJECT):
        return now.kind == AckType.REJECT if at.proven else None
    if at.after is not None or not share.drained or now.count < share.highest_limit:
        return None
    if now.kind == AckType.RELEASE:
        return True if at.proven else None
    return True if now.attempts == 0 and now.kind in (AckType.NONE, AckType.CLOSED) else None


def finished(evidence: Evidence) -> Iterator[Case]:
    """INV-37: nothing is stored as finished that nobody of the group finished."""
    kept = {
        (row.log, row.offset)
        for row in evidence.stored
        if row.offset >= 0 and row.transaction in _KEPT
    }
    logs = {evidence.partitions[row.share_partition].row.log for row in evidence.rows["persisted"]}
    read = [number for number, share in evidence.partitions.items() if share.row.log in logs]
    who: set[tuple[int, int, bool]] = set()
    last: dict[tuple[int, int], int] = {}
    for record in (one for number in read for one in evidence.lives.get(number, [])):
        place = record[0].now.share_partition, record[0].now.offset
        last[place] = max(at.now.count for at in record)
        for accepted in (True, False):
            if any(_may_have_finished(at, accepted) for at in record):
                who.add((*place, accepted))
    for share_partition, offset, accepted in _stored_as_finished(evidence):
        share = evidence.partitions[share_partition]
        if (share.row.log, offset) not in kept or offset < share.log_start:
            continue
        most = last.get((share_partition, offset), 0) + share.unseen_responses
        own = (share_partition, offset, accepted) in who
        yield "INV-37", share_partition, not own and (accepted or most < share.lowest_limit)


def _stored_as_finished(evidence: Evidence) -> set[tuple[int, int, bool]]:
    return {
        (row.share_partition, offset, row.state == _ACKNOWLEDGED)
        for row in evidence.rows["persisted"]
        if row.state not in _UNFINISHED and row.first >= 0
        for offset in range(row.first, row.last + 1)
    }


def _may_have_finished(at: Position, accepted: bool) -> bool:
    if at.now.attempts > 1:
        return True
    if accepted:
        return bool(at.now.kind == AckType.ACCEPT)
    return bool(at.now.kind == AckType.REJECT or at.now.count >= at.share.lowest_limit)


@dataclass(slots=True)
class _States:
    count: int = 0
    spso: int = 1 << 62
    available_at: int = -1
    finished_at: int = -1
    whole_at: int = -1

    def add(self, row: Row) -> None:
        if row.state:
            self.finished_at = max(self.finished_at, row.position)
            return
        self.count = max(self.count, row.count)
        self.spso = min(self.spso, row.spso)
        self.available_at = max(self.available_at, row.position)
        if row.snapshot:
            self.whole_at = max(self.whole_at, row.position)

    def is_available_after(self, count: int) -> bool:
        """Tell whether what was finished at a count is available later.

        Of two updates with the same count the one that finishes counts, whichever came first.
        """
        if self.available_at <= self.finished_at:
            return False
        same = self.finished_at < 0 or self.whole_at > self.finished_at
        return self.count > count or (self.count == count and same)


def stays_finished(evidence: Evidence) -> Iterator[Case]:
    """INV-21: what was finished is not stored as available later, at its count or a higher one.

    Earlier it may have been: counts fall back when a share-partition is loaded.
    """
    stored: dict[tuple[int, int], _States] = {}
    for row in evidence.rows["persisted"]:
        for offset in range(row.first, row.last + 1) if row.first >= 0 else ():
            stored.setdefault((row.share_partition, offset), _States()).add(row)
    for share_partition in {
        row.share_partition for row in evidence.rows["persisted"]
    } & evidence.lives.keys():
        for at in (at for record in evidence.lives[share_partition] for at in record):
            now = at.now
            if now.kind in (AckType.ACCEPT, AckType.REJECT) and at.proven:
                found = stored.get((share_partition, now.offset), _States())
                again = found.is_available_after(now.count)
                yield "INV-21", share_partition, again and now.offset >= found.spso


def was_stored(evidence: Evidence) -> Iterator[Case]:
    """INV-41: what was finished with a response of OK was stored before all of that was read."""
    read = [row.since for row in evidence.rows["phases"] if row.phase == "state read"]
    finished = {
        (share_partition, offset) for share_partition, offset, _ in _stored_as_finished(evidence)
    }
    starts: dict[int, int] = {}
    for row in evidence.rows["persisted"]:
        starts[row.share_partition] = max(row.spso, starts.get(row.share_partition, row.spso))
    for at in (at for records in evidence.lives.values() for record in records for at in record):
        now = at.now
        final = now.kind in (AckType.ACCEPT, AckType.REJECT) and at.proven
        if read and final and now.ack_received <= max(read):
            passed = now.offset < starts.get(now.share_partition, -1)
            yield (
                "INV-41",
                now.share_partition,
                not passed and (now.share_partition, now.offset) not in finished,
            )


def below_the_log(evidence: Evidence) -> Iterator[Case]:
    """INV-36: what was deleted does not come."""
    done = [row for row in evidence.rows["deletions"] if row.outcome == Outcome.OK]
    for log, deletions in grouped(done, "log").items():
        for one in evidence.delivered:
            starts = [row.before for row in deletions if one.sent > row.received]
            if one.log == log and one.present and starts:
                yield "INV-36", one.share_partition, one.offset < max(starts)


def alone_at_last(evidence: Evidence) -> Iterator[Case]:
    """INV-39: what is delivered for the last time is alone in its response."""
    for (share_partition, _), rows in grouped(evidence.delivered, "share_partition", "op").items():
        share = evidence.partitions[share_partition]
        limit = share.highest_limit
        throttled = evidence.release.throttling and limit > 2 and share.lowest_limit == limit
        for row in rows:
            if throttled and row.count >= limit:
                yield "INV-39", share_partition, len(rows) > 1


CASES = (
    stored_and_delivered,
    dead_letters,
    finished,
    stays_finished,
    was_stored,
    below_the_log,
    alone_at_last,
)
