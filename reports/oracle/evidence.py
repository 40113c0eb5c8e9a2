"""All that journals say, arranged for the rules: share-partitions, and the lives of records."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.oracle import journals
from reports.oracle.deliveries import Delivery, Stored, delivered, stored
from reports.oracle.journals import Row, Rows
from spec.history import LOG_START, AckType, Outcome
from spec.model.release import Release, release_of

Case = tuple[str, int, bool]
"""A rule, the share-partition that puts it to the test, and whether it is broken there."""


@dataclass(slots=True)
class Share:
    row: Row
    unseen: list[int] = field(default_factory=list)
    loads: list[Row] = field(default_factory=list)
    log_start: int = 0
    passed: int = 0
    faults: Sequence[Row] = ()
    drained: bool = False
    limits: list[Row] = field(default_factory=list)
    looks: list[Row] = field(default_factory=list)
    came: list[tuple[int, int]] = field(default_factory=list)
    came_alone: list[tuple[int, int]] = field(default_factory=list)

    @property
    def unseen_responses(self) -> int:
        return len(self.unseen)

    def may_have_spent(self, sent: int) -> bool:
        return sum(until >= sent for until in self.unseen) >= self.lowest_limit

    @property
    def lowest_limit(self) -> int:
        limits: list[int] = [one.delivery_limit for one in (self.row, *self.limits)]
        return min(limits)

    @property
    def highest_limit(self) -> int:
        limits: list[int] = [one.delivery_limit for one in (self.row, *self.limits)]
        return max(limits)


def _proven(one: Delivery) -> bool:
    no_load_since = one.loads_before_fetch == one.loads_by_ack
    # Of several attempts an earlier one may have ended the delivery, without a response.
    once = one.outcome == Outcome.OK and one.attempts == 1
    in_lock = once and one.ack_received <= min(one.holds_until, one.freed)
    return in_lock and no_load_since and one.ack_received < one.kept_until


@dataclass(frozen=True, slots=True)
class Position:
    share: Share
    close_uncounted: bool
    earlier: Sequence[Delivery]
    now: Delivery
    later: Sequence[Delivery]

    @property
    def after(self) -> Delivery | None:
        return self.later[0] if self.later else None

    @property
    def proven(self) -> bool:
        """Whether the holder's acknowledgement proves that it had the lock until then."""
        return _proven(self.now)

    @property
    def deposed(self) -> bool:
        now, after = self.now, self.after
        return after is not None and after.node != now.node and after.oldest < now.loaded

    def next_proven(self, *kinds: AckType) -> bool:
        after = self.after
        return (
            after is not None and after.op != self.now.op and after.kind in kinds and _proven(after)
        )

    @property
    def no_load_between(self) -> bool:
        now, after = self.now, self.after
        if after is None or after.node != now.node:
            return False
        return after.loads_by_acquire == now.loads_before_fetch

    @property
    def ordered(self) -> bool:
        now, after = self.now, self.after
        if after is None:
            return False
        return after.sent > now.acquired or (self.no_load_between and after.count > now.count)

    @property
    def skips(self) -> bool:
        """Whether the next delivery's count skips one, and none seen late explains that."""
        after = self.after
        if after is None:
            return False
        deposed = any(one.count >= self.now.count for one in self.earlier)
        unseen = after.unseen_by_acquire - (0 if deposed else self.now.unseen_before_fetch)
        if after.count <= self.now.count + 1 + unseen:
            return False
        if any(one.count >= after.count - 1 for one in self.earlier):
            return False
        return all(one.count >= after.count for one in self.later)

    @property
    def died(self) -> bool:
        return bool(self.now.kind == AckType.CLOSED and self.now.freed < self.now.holds_until)

    @property
    def locked_until(self) -> int:
        return min(self.now.holds_until, self.now.freed)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a history says.

    Attributes:
        rows: Of the journals that are about something else than records.
        stored: Every record that was produced.
        delivered: Every delivery, in the order in which they were seen.
        shares: Every share-partition by its number.
        lives: For each share-partition the deliveries of each of its records.
        release: That of the target.
    """

    rows: Rows
    stored: list[Stored]
    delivered: list[Delivery]
    partitions: dict[int, Share]
    lives: dict[int, list[list[Position]]]
    release: Release

    @property
    def positions(self) -> list[Position]:
        return [at for lives in self.lives.values() for life in lives for at in life]


def read_evidence(history: Path) -> Evidence:
    rows = journals.read(history)
    run = json.loads((history / "run.json").read_text(encoding="utf-8"))
    release = release_of(str(run.get("target", {}).get("version", "")))
    partitions, deliveries = _partitions_of(rows), delivered(rows)
    for one in deliveries:
        partitions[one.share_partition].came.append((one.offset, one.acquired))
    for (share_partition, _), response in grouped(deliveries, "share_partition", "op").items():
        if len(response) == 1 and response[0].count > 1:
            one = response[0]
            partitions[share_partition].came_alone.append((one.offset, one.acquired))
    close_uncounted = release.close_uncounted
    lives: dict[int, list[list[Position]]] = {}
    for (share_partition, _), life in grouped(deliveries, "share_partition", "offset").items():
        told = [
            Position(partitions[share_partition], close_uncounted, life[:at], now, life[at + 1 :])
            for at, now in enumerate(life)
        ]
        lives.setdefault(share_partition, []).append(told)
    return Evidence(rows, stored(rows), deliveries, partitions, lives, release)


def _partitions_of(rows: Rows) -> dict[int, Share]:
    partitions = {row.share_partition: Share(row) for row in rows["share_partitions"]}
    for row in rows["unseen_responses"]:
        partitions[row.share_partition].unseen.append(row.until)
    for row in rows["reloads"]:
        partitions[row.share_partition].loads.append(row)
    for row in rows["limits"]:
        partitions[row.share_partition].limits.append(row)
    looks = (row for row in rows["offsets"] if row.phase != LOG_START)
    for row in sorted(looks, key=lambda row: int(row.sent)):
        share = partitions[row.share_partition]
        share.looks.append(row)
        share.log_start = max(share.log_start, row.log_start)
        share.passed = max(share.passed, row.spso)
        share.drained |= row.phase == "quiet" and (row.spso >= row.log_end or row.lag == 0)
    for share in partitions.values():
        share.faults = rows["faults"]
    for row in rows["deletions"]:
        for share in partitions.values():
            if share.row.log == row.log:
                share.log_start = max(share.log_start, row.before)
    return partitions


def grouped(rows: Iterable[Any], *columns: str) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        key = tuple(getattr(row, column) for column in columns)
        found[key if len(columns) > 1 else key[0]].append(row)
    return found
