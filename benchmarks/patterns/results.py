"""The document that a run leaves: measures and promises of each system, side by side."""

import argparse
import datetime
import json
import os
import platform
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jsonschema
import psutil

from benchmarks.patterns.events import Course, measure
from benchmarks.patterns.stage import NOTICED_MS, PARTITIONS, SCENES, Played
from benchmarks.patterns.workload import GROUP, KMQ, SHARE, SYSTEMS
from fixtures.adapters.versions import NEWEST
from fixtures.history.compaction import compact
from fixtures.history.journal import Journal
from fixtures.targets import Target
from reports.oracle.judging import judge
from spec import history
from spec.history import AckType, Outcome, log_numbers
from spec.requirement import load_requirements

HELD, BROKEN, VACUOUS, ABSENT = "held", "broken", "vacuous", "absent"
ORDER = "order"
_LIMIT = 5
_SECOND = 1_000_000_000

RULES = (
    ("INV-05", "No record is lost"),
    ("INV-04", "No unknown record is delivered"),
    ("INV-02", "An acknowledged record is not redelivered"),
    ("INV-01", "One member at a time holds a record"),
    ("INV-18", "No record is redelivered while it is held"),
    ("INV-23", "A record of a lost member is redelivered in time"),
    ("INV-24", "The topic is consumed to its end"),
    ("INV-11", "The records of a response are in the order of their offsets"),
    ("INV-12", "Delivery counts rise by one"),
    ("INV-14", "No count is above the limit"),
)
"""The rules of histories that can mean something for all three, in words for all three."""

_COUNTS = "a consumer group does not count deliveries"
WHY_ABSENT: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        (GROUP, "INV-12"): _COUNTS,
        (GROUP, "INV-14"): _COUNTS,
        (KMQ, "INV-11"): "a copy is at the end of the log, behind records that came later",
        (KMQ, "INV-14"): "our KMQ has no limit; the pattern can have one",
        (SHARE, ORDER): "not promised: members work on records of a partition at the same time",
        (KMQ, ORDER): "not promised: a copy is at the end of the log",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A verdict: how many cases put the rule to the test, and in how many it was broken."""

    rule: str
    sentence: str
    verdict: str
    cases: int
    broken: int
    why: str = ""


def judged(
    system: str, courses: Sequence[Course], folder: Path, version: str
) -> list[dict[str, object]]:
    """Return what each rule says of all courses of a system, judged as a history by the oracle.

    A delivery by a share group is what the history is made for. One by KMQ is held from its start
    marker until its end marker or the timeout, and a copy counts as a further delivery of the
    record that it is a copy of. One by a consumer group is held until it is committed or its
    session is over. A rule about something that a system does not have, or does not promise, is
    *absent* there, with the reason; what happened is counted all the same where it can be.

    Args:
        system: whose they are.
        courses: what happened in each scenario.
        folder: a new directory for the history.
        version: the release of Kafka that it happened on, by whose rules it is judged.
    """
    folder.mkdir(parents=True)
    _write(system, courses, folder, version)
    found = judge(folder)
    known = load_requirements()
    promises = []
    for rule, words in RULES:
        assert rule in known
        places = found.get(rule, {}).values()
        cases, broken = sum(one for one, _ in places), sum(one for _, one in places)
        promises.append(_promise(system, rule, words, cases, broken))
    pairs = [_orderly(course) for course in courses]
    words = "Work on the records of a partition is done in the order of their offsets"
    broken = sum(one for _, one in pairs)
    promises.append(_promise(system, ORDER, words, sum(one for one, _ in pairs), broken))
    return [asdict(one) for one in promises]


def _promise(system: str, rule: str, words: str, cases: int, broken: int) -> Promise:
    why = WHY_ABSENT.get((system, rule), "")
    verdict = ABSENT if why else VACUOUS if not cases else BROKEN if broken else HELD
    told = rule == ORDER or not why
    return Promise(
        rule=rule,
        sentence=words,
        verdict=verdict,
        cases=cases if told else 0,
        broken=broken if told else 0,
        why=why,
    )


def _orderly(course: Course) -> tuple[int, int]:
    """Return how many records had one before them, and how many were done before that one."""
    first: dict[tuple[int, int], int] = {}
    for one in course.done:
        place = one.partition, one.offset
        first[place] = min(one.at, first.get(place, one.at))
    cases = broken = 0
    highest: dict[int, int] = {}
    for (partition, _), at in sorted(first.items()):
        if partition in highest:
            cases += 1
            broken += at < highest[partition]
        highest[partition] = max(at, highest.get(partition, 0))
    return cases, broken


def _write(system: str, courses: Sequence[Course], folder: Path, version: str) -> None:
    run = json.dumps({"schema": 1, "target": {"version": version}})
    (folder / "run.json").write_text(run, encoding="utf-8")
    numbers = log_numbers()
    with Journal(folder, 0) as journal:
        for turn, course in enumerate(courses):
            logs = [next(numbers) for _ in range(PARTITIONS)]
            for table, row in _rows(system, turn, course, logs):
                journal.add(history.ROWS[table]._make(row))
    compact(folder)


_Row = tuple[str, tuple[object, ...]]


def _rows(system: str, turn: int, course: Course, logs: Sequence[int]) -> Iterator[_Row]:
    queues = [turn * PARTITIONS + partition for partition in range(PARTITIONS)]
    for partition, (queue, log) in enumerate(zip(queues, logs, strict=True)):
        named = (queue, log, 0, f"{system}-{turn}", f"topic-{turn}", "", partition)
        yield "share_partitions", (*named, 0, _LIMIT, NOTICED_MS, 2000, 500, False, False)
        end = max((one.at for one in course.got), default=0)
        yield "offsets", (queue, end, end, -1, 0 if course.drained else 1, 0, -1, -1, "quiet")
        if course.down:
            # The new leader loads the share-partition when somebody asks it, so a little later.
            since, until = course.down[0], course.down[1] + NOTICED_MS * _SECOND // 1000
            yield "reloads", (queue, -1, since, until, "a broker was away")
            yield "unseen_responses", (queue, since, until)
    for one in course.sent:
        outcome = Outcome.OK if one.offset >= 0 else Outcome.UNKNOWN
        where = (logs[one.partition], one.offset, 1, 0, one.number, -1)
        yield "produced", (*where, one.sent, one.stored, int(outcome), 0, 0)
    yield from _deliveries(turn, course, queues, logs)
    yield from _gone(system, turn, course, queues, logs)


def _op(turn: int, member: int, op: int) -> int:
    return ((turn << 8 | member) << 32) | op


def _deliveries(
    turn: int, course: Course, queues: Sequence[int], logs: Sequence[int]
) -> Iterator[_Row]:
    after: dict[tuple[int, int], int] = {}
    for one in course.got:
        op, queue, log = _op(turn, one.member, one.op), queues[one.partition], logs[one.partition]
        before = after.get((op, queue), -1)
        after[op, queue] = max(before, one.offset)
        place = (op, queue, log, turn << 8 | one.member, one.offset, one.offset)
        told = (one.count, NOTICED_MS, one.asked, one.at, before)
        yield "acquired", (*place, *told, True, 0, one.number, -1)
    for act in course.settled:
        where = (queues[act.partition], logs[act.partition], act.offset, act.offset)
        op = _op(turn, act.member, act.op)
        told = (int(AckType.ACCEPT), act.sent, act.answered, act.outcome, 0)
        yield "acknowledged", (op, *where, *told)


def _gone(
    system: str, turn: int, course: Course, queues: Sequence[int], logs: Sequence[int]
) -> Iterator[_Row]:
    """Yield what ended with who died or froze; a lock and a start marker do not end by freezing."""
    for one in course.dead:
        number, name = turn << 8 | one.member, f"m{one.member}"
        if one.until < 0:
            yield "members", (number, name, f"{system}-{turn}", 0, "plain", "killed", one.at)
            for queue in queues:
                yield "unseen_responses", (queue, one.at - _SECOND, one.at + _SECOND)
        elif system == GROUP:
            for got in course.got:
                if got.member == one.member and got.at <= one.at:
                    where = (queues[got.partition], logs[got.partition], got.offset, got.offset)
                    told = (int(AckType.CLOSED), one.at, one.at, int(Outcome.UNKNOWN), 0)
                    yield "acknowledged", (_op(turn, one.member, got.op), *where, *told)


SCHEMA = 1
FILE = Path(__file__).with_name("results.schema.json")


def document(
    played: Sequence[Played], target: Target, options: argparse.Namespace, partial: str
) -> dict[str, Any]:
    """Return the results of all scenarios that were played; ``partial`` says what ended that."""
    scenes: dict[str, dict[str, Any]] = {}
    for one in played:
        scene = one.scene
        found = scenes.setdefault(
            scene.name,
            {
                "name": scene.name,
                "question": scene.question,
                "fault": scene.fault.value,
                "members": scene.members,
                "partitions": PARTITIONS,
                "handler_ms": scene.handler_ms,
                "records": scene.records(options.seconds),
                "batch": scene.batch,
                "systems": {},
            },
        )
        for system, course in one.courses.items():
            fault = one.faults.get(system)
            at = None if fault is None else round((fault - one.began) / 1e9, 3)
            measures = measure(course, one.began, fault)
            found["systems"][system] = {"fault_at": at, "drained": course.drained, **measures}
    told = [one for one in played if one.scene.judged]
    promises = {
        system: judged(system, courses, options.out / "histories" / system, target.version)
        for system in SYSTEMS
        if (courses := [one.courses[system] for one in told if system in one.courses])
    }
    found = {
        "schema": SCHEMA,
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": _command(options),
        "partial": partial,
        "note": options.note,
        "target": {"name": target.name, "version": target.version, "brokers": options.brokers},
        "client": f"confluent-kafka {NEWEST['confluent']}",
        "machine": _machine(),
        "seconds": options.seconds,
        "noticed_ms": NOTICED_MS,
        "scenes": list(scenes.values()),
        "promises": promises,
    }
    check(found)
    return found


def check(found: dict[str, Any]) -> None:
    """Raise a ValidationError unless a document fits the schema."""
    jsonschema.validate(json.loads(json.dumps(found)), json.loads(FILE.read_text(encoding="utf-8")))


def _command(options: argparse.Namespace) -> str:
    """Return what to type for a run like this, into a directory of one's own."""
    wanted = ["--target", options.target, "--brokers", str(options.brokers)]
    wanted += ["--seconds", f"{options.seconds:g}"]
    for name, known in (("scenes", SCENES), ("systems", SYSTEMS)):
        if (said := getattr(options, name)) != ",".join(known):
            wanted += [f"--{name}", said]
    return shlex.join(["python", "-m", "benchmarks.patterns", *wanted, "--out", "DIR"])


def _machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = [
            one
            for one in info.read_text(encoding="utf-8").splitlines()
            if one.startswith("model name")
        ]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    return {
        "processor": model,
        "cores": os.cpu_count() or 0,
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.system(),
        "load": round(os.getloadavg()[0], 1),
    }


ROWS: tuple[tuple[str, str, str], ...] = (
    ("records a second", "rate", ""),
    ("members that worked", "busy", ""),
    ("time to acknowledge, median", "settle_median", " s"),
    ("delay, median", "delay_median", " s"),
    ("delay, worst", "delay_worst", " s"),
    ("delayed for over 1 s", "held_up", ""),
    ("held by the failed member", "held", ""),
    ("first redelivery of these after", "again_first", " s"),
    ("last redelivery of these after", "again_last", " s"),
    ("pause of partition 0", "pause", " s"),
    ("processed more than once", "duplicates", ""),
    ("lost", "lost", ""),
)
"""What a table says: words, the measure, its unit."""
