"""Builds histories out of the cases of ``histories.toml``, through the recorder like any other."""

import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixtures.history.journal import Journal
from reports.analysis.files import History
from spec.history import (
    Acknowledged,
    AckType,
    Acquired,
    Deletion,
    DeliveryLimit,
    FaultSpan,
    LockDuration,
    Manifest,
    Operation,
    Outcome,
    Persisted,
    Phase,
    Produced,
    Reload,
    SeenDeadLetter,
    SharePartition,
    ShownOffsets,
    Transaction,
    UnseenResponse,
    log_numbers,
)
from tools.histories import small

FILE = Path(__file__).with_name("histories.toml")
MS = 1_000_000
FIRST_RANDOM = 1000
_END = 100_000
_REQUESTS = 10**9  # the number of the first request that a case speaks of; each case has ten
_NEIGHBOURS = 10_000
"""What is added to a case's share-partition for that of the other group on the same log."""

_DELIVERY = {
    *(kind.name.lower() for kind in AckType),
    *("offset", "last", "at", "asked", "count", "op", "member", "of", "sequence", "node", "after"),
    *("absent", "renewed", "attempts", "took", "outcome", "error", "session_ended"),
}
"""What a case may say of a delivery."""

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    share_partition: int
    log: int
    rule: str
    says: str
    breaks: bool
    plain: Plain

    def __str__(self) -> str:
        return f"{self.rule}: {self.says}"

    @property
    def version(self) -> str:
        return str(self.plain.get("version", "4.4.0"))

    @property
    def share_partitions(self) -> frozenset[int]:
        requests = range(
            _REQUESTS + 10 * self.share_partition, _REQUESTS + 10 * self.share_partition + 10
        )
        return frozenset((self.share_partition, self.share_partition + _NEIGHBOURS, *requests))


def nothing_of(run: Plain | None = None, spoiled: tuple[str, ...] = (), **facts: Any) -> History:
    manifest = Manifest(files=(), **facts)
    return History(
        folder=Path("run/history"), manifest=manifest, run=dict(run or {}), spoiled=spoiled
    )


def read_cases() -> list[Case]:
    by_rule = tomllib.loads(FILE.read_text(encoding="utf-8"))
    raw = [(rule, one) for rule, cases in by_rule.items() for one in cases]
    return [
        Case(
            share_partition=share_partition,
            log=log,
            rule=rule,
            says=one.get("rejects") or one["accepts"],
            breaks="rejects" in one,
            plain=one,
        )
        for share_partition, (log, (rule, one)) in enumerate(zip(log_numbers(), raw, strict=False))
    ]


def write_share_partition(
    journal: Journal,
    number: int,
    log: int,
    slot: int = 0,
    *,
    limit: int = 5,
    lock_ms: int = 1000,
    **more: int,
) -> None:
    names = (f"group-{number}", f"topic-{log}", "", 0, 0)
    most = (limit, lock_ms, more.get("window", 2000), more.get("batch", 500))
    flags = (bool(more.get(name)) for name in ("committed_only", "dead_letters"))
    journal.add(SharePartition(number, log, slot, *names, *most, *flags))


def write_history(
    folder: Path, cases: Iterable[Case], histories: Sequence[small.History] = ()
) -> None:
    cases = list(cases)
    with Journal(folder, 0) as journal:
        for case in cases:
            _write(journal, case)
        small.add(journal, histories, first=FIRST_RANDOM)
        for since, until in {tuple(case.plain["away"]) for case in cases if "away" in case.plain}:
            journal.add(FaultSpan(0, "kill-leader", "broker 2", since * MS, until * MS, "dead"))
        if any("dead_letters" in case.plain for case in cases):
            journal.add(Phase("dead letters read", _END * MS, (_END + 1) * MS))
        for read in {case.plain["read"] for case in cases if "read" in case.plain}:
            journal.add(Phase("state read", read * MS, read * MS))
    (versions := {case.version for case in cases}).discard("4.4.0")
    document = {"target": {"name": "cases", "version": max(versions, default="4.4.0")}}
    (folder / "run.json").write_text(json.dumps(document), encoding="utf-8")


def _write(journal: Journal, case: Case) -> None:
    plain, number = case.plain, case.share_partition
    kept = {"limit", "lock_ms", "window", "batch", "committed_only"} & plain.keys()
    limits = {name: plain[name] for name in kept} | {"dead_letters": "dead_letters" in plain}
    write_share_partition(journal, number, case.log, **limits)
    highest: int = max(one.get("last", one.get("offset", 0)) for one in plain["deliveries"])
    stored: Sequence[Plain] = plain.get("stored") or [
        {"offset": offset} for offset in range(highest + 1)
    ]
    for one in stored:
        outcome = Outcome[one.get("outcome", "ok").upper()]
        transaction = Transaction[one.get("transaction", "none").upper()]
        row = (case.log, one["offset"], 1, 1, one.get("sequence", one["offset"]))
        ended = (one.get("crc", -1), 0, MS, int(outcome), 0, int(transaction))
        journal.add(Produced(*row, *ended))
    end = 1 + max(highest, *(int(one["offset"]) for one in stored))
    _deliver(journal, case, number, plain["deliveries"])
    _show(journal, number, plain, end)
    if "neighbour" in plain:
        number += _NEIGHBOURS
        write_share_partition(journal, number, case.log, 1, **limits)
        _deliver(journal, case, number, plain["neighbour"])
        _show(journal, number, {}, end)
    _write_further(journal, case)


def _write_further(journal: Journal, case: Case) -> None:
    plain, mine = case.plain, case.share_partition

    def span(one: Plain) -> tuple[int, int]:
        return one["since"] * MS, one["until"] * MS

    for one in plain.get("reloads", ()):
        journal.add(Reload(mine, one.get("node", -1), *span(one), one.get("why", "planted")))
    for one in plain.get("unseen_responses", ()):
        journal.add(UnseenResponse(mine, *span(one)))
    for place, offset in enumerate(plain.get("dead_letters", ())):
        journal.add(SeenDeadLetter(mine, offset, 1, place, place if "unlike" in plain else -1))
    for one in plain.get("limits", ()):
        journal.add(DeliveryLimit(mine, one["limit"], *span(one), one["ends"] * MS))
    for one in plain.get("locks", ()):
        journal.add(LockDuration(mine, one["lock_ms"], *span(one)))
    for one in plain.get("deletions", ()):
        sent, outcome = one["at"] * MS, Outcome[one.get("outcome", "ok").upper()]
        received = sent + MS if outcome is Outcome.OK else -1
        journal.add(Deletion(case.log, one["before"], sent, received, int(outcome)))
    for place, one in enumerate(plain.get("requests", ())):
        op, sent = _REQUESTS + 10 * mine + place, one["sent"] * MS
        ended = (sent, one["received"] * MS, one["waits"], int(Outcome.OK), 0)
        journal.add(Operation(op, 0, 0, one["api"], mine, *ended))
    others = plain.get("others", {"seconds": 0})
    for second in range(others["seconds"]):
        op, at = 2 * _REQUESTS + 1000 * mine + second, 1000 * second * MS
        ended = (at, at + others.get("took", 500) * MS, 500, int(Outcome.OK), 0)
        process, node = others.get("process", 0), others.get("node", mine)
        journal.add(Operation(op, process, 0, "ShareFetch", node, *ended))


def _deliver(
    journal: Journal, case: Case, share_partition: int, deliveries: Sequence[Plain]
) -> None:
    ops: dict[int, int] = {}
    for number, one in enumerate(deliveries):
        assert one.keys() <= _DELIVERY, f"{case}: {one}"
        key = one.get("op", -number - 1)
        op = ops.setdefault(key, journal.next_operation())
        first, count = one.get("offset", 0), one.get("count", 1)
        last = one.get("last", first)
        row = (op, share_partition, case.log, one.get("member", number), first, last, count)
        sent = one.get("asked", one["at"] - 1)
        times = (case.plain.get("lock_ms", 1000), sent * MS, one["at"] * MS)
        payload = (True, one.get("of", 1), one.get("sequence", first), 7)
        if "node" in one:
            ended = (sent * MS, one["at"] * MS, 500, int(Outcome.OK), 0)
            journal.add(Operation(op, 0, 0, "ShareFetch", one["node"], *ended))
        rest = (one.get("after", -1), *((False, -1, -1, -1) if "absent" in one else payload))
        journal.add(Acquired(*row, *times, *rest))
        for act in _acts(one):
            journal.add(Acknowledged(op, share_partition, case.log, first, last, *act))


def _acts(one: Plain) -> Iterator[tuple[int, int, int, int, int]]:
    if "renewed" in one:
        sent = one["renewed"] * MS
        yield int(AckType.RENEW), sent, sent + MS, int(Outcome.OK), 0
    if kind := next((kind for kind in AckType if kind.name.lower() in one), None):
        outcome = Outcome[one.get("outcome", "ok").upper()]
        sent = one[kind.name.lower()] * MS
        unseen = outcome is Outcome.UNKNOWN and "took" not in one
        received = -1 if unseen else sent + one.get("took", 1) * MS
        error = one.get("error", 121) if outcome is Outcome.FAILED else 0
        for _ in range(one.get("attempts", 1)):
            yield int(kind), sent, received, int(outcome), error
    if "session_ended" in one:
        at = one["session_ended"] * MS
        yield int(AckType.CLOSED), at, at, int(Outcome.OK), 0


def _show(journal: Journal, share_partition: int, plain: Plain, end: int) -> None:
    ending = {"at": _END, "spso": end, "end": end, "lag": 0, "phase": "quiet"}
    for one in plain.get("shown", (ending,)):
        at = one["at"] * MS
        sent = one.get("asked", one["at"] - 1) * MS
        row = (sent, at, one["spso"], one["lag"], one.get("start", 0), one["end"])
        further = (one.get("epoch", 0), one.get("phase", "load"))
        journal.add(ShownOffsets(share_partition, *row, *further))
    epochs = itertools.count(1)
    for one in plain.get("kept", ()):
        shown = (one.get("leader_epoch", next(epochs)), one.get("snapshot_epoch", 0))
        head = (share_partition, one["position"], False, -1, *shown, one.get("spso", 0))
        journal.add(Persisted(*head, one["first"], one["last"], one["state"], one["count"]))
