"""Benchmarks: the ledger of KMQ, and the comparison of share group, consumer group and KMQ."""

import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from benchmarks.kmq.ledger import Begun, Kind, Ledger, Place, life_of, of_copy
from benchmarks.patterns.__main__ import main
from benchmarks.patterns.events import Course, Dead, Done, Got, Sent, Settled, gather, measure
from benchmarks.patterns.page import write
from benchmarks.patterns.results import judged
from benchmarks.patterns.stage import PARTITIONS, SCENES
from benchmarks.patterns.workload import GROUP, KMQ, SHARE, SYSTEMS
from reports.analysis.files import open_history

TIMEOUT = 100
SEEDS = range(40)


def place(offset: int) -> Place:
    return Place("queue", 0, offset)


@dataclass
class Log:
    """A partition of the markers topic: kind, place and time of each marker."""

    markers: list[tuple[Kind, Place, int]] = field(default_factory=list)

    def write(self, kind: Kind, where: Place, at: int) -> None:
        self.markers.append((kind, where, at))


@dataclass
class Tracker:
    """Reads a log by a ledger, as the real one does, and remembers what it sent."""

    log: Log
    kind: type[Ledger] = Ledger
    committed: int = 0
    sent: Counter[Place] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.ledger = self.kind(TIMEOUT)
        self.read_to = self.committed

    def step(self, now: int, markers: int) -> None:
        for position in range(self.read_to, min(len(self.log.markers), self.read_to + markers)):
            self.ledger.take(position, *self.log.markers[position])
            self.read_to = position + 1
        if self.ledger.wants_look(now):
            self.ledger.looked(len(self.log.markers), now)
        for where in self.ledger.overdue():
            self.sent[where] += 1
            self.log.write(Kind.END, where, now)
            self.ledger.ended(where)
        self.committed = max(self.committed, self.ledger.committable)


def played(kind: type[Ledger], seed: int) -> tuple[Counter[Place], set[Place], set[Place]]:
    """Play a night: return what was sent again, what was owed, and what must not be sent."""
    rng, log = Random(seed), Log()
    tracker = Tracker(log, kind)
    now, working, ended_in_time, abandoned = 0, dict[Place, int](), set[Place](), set[Place]()
    for number in range(200):
        now += rng.randrange(1, 20)
        log.write(Kind.START, place(number), now)
        working[place(number)] = now
        for where, since in list(working.items()):
            if now - since > TIMEOUT // 2:  # done well before its time, or given up for good
                del working[where]
                if rng.random() < 0.9:
                    log.write(Kind.END, where, now)
                    ended_in_time.add(where)
                else:
                    abandoned.add(where)
        if rng.random() < 0.1:
            tracker.start()
        tracker.step(now, rng.randrange(0, 6))
    for where in working:
        log.write(Kind.END, where, now)
        ended_in_time.add(where)
    for _ in range(200):
        now += 10
        tracker.step(now, 20)
    return tracker.sent, abandoned, ended_in_time


def wrong(kind: type[Ledger]) -> list[str]:
    found = []
    for seed in SEEDS:
        sent, owed, forbidden = played(kind, seed)
        found += [f"{seed}: {where} was never sent again" for where in owed - sent.keys()]
        found += [f"{seed}: {where} had ended" for where in forbidden & sent.keys()]
    return found


def test_all_that_was_given_up_is_sent_again_once_and_nothing_that_ended() -> None:
    assert wrong(Ledger) == []
    for seed in SEEDS:
        assert set(played(Ledger, seed)[0].values()) <= {1}


class _DeafToEnds(Ledger):
    def take(self, position: int, kind: Kind, place: Place, at: int) -> None:
        if kind is Kind.START:
            super().take(position, kind, place, at)
        self.position = position + 1


class _TrustsTheClock(Ledger):
    def overdue(self) -> list[Place]:
        look = self.look
        return [p for p, one in self.begun.items() if look is not None and one.due <= look.at]


class _CommitsWhatItRead(Ledger):
    @property
    def committable(self) -> int:
        return self.position


class _Forgets(Ledger):
    def take(self, position: int, kind: Kind, place: Place, at: int) -> None:
        super().take(position, kind, place, at)
        if len(self.begun) > 10:
            self.begun.pop(next(iter(self.begun)))


class _NeverLooks(Ledger):
    def wants_look(self, now: int) -> bool:
        return now < 0


@pytest.mark.parametrize(
    "broken", [_DeafToEnds, _TrustsTheClock, _CommitsWhatItRead, _Forgets, _NeverLooks]
)
def test_a_broken_tracker_is_noticed(broken: type[Ledger]) -> None:
    assert wrong(broken)


def test_who_begins_anew_has_the_whole_time() -> None:
    ledger = Ledger(TIMEOUT)
    ledger.take(0, Kind.START, place(1), 0)
    ledger.take(1, Kind.START, place(1), 60)
    assert ledger.begun == {place(1): Begun(1, 60 + TIMEOUT)}
    ledger.looked(2, 120)
    assert ledger.overdue() == []
    ledger.looked(2, 160)
    assert ledger.overdue() == [place(1)]


def test_places_go_through_bytes() -> None:
    assert Place.from_bytes(place(7).to_bytes()) == place(7)
    assert life_of(place(9), None) == (place(9), 1)
    assert life_of(place(9), [("other", b"x"), *of_copy(place(7), 3)]) == (place(7), 3)
    for strange in (b"", b"7", b"[1, 2]", b"{", b"null"):
        with pytest.raises(ValueError, match=r"."):
            Place.from_bytes(strange)


# --- The comparison ---------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[1]
S = 1_000_000_000
OK = 1
VERSION = "4.4.0"


def lived(number: int, at: int, *, member: int = 0, op: int = 1, count: int = 1) -> Course:
    part, offset = number % PARTITIONS, number // PARTITIONS
    return Course(
        got=[Got(member, op, part, offset, count, number, at - S // 10, at)],
        done=[Done(member, op, part, offset, number, at + S // 10)],
        settled=[Settled(member, op, part, offset, at + S // 5, at + S // 4, OK)],
    )


def course(*parts: Course, records: int = 6) -> Course:
    found = Course(drained=True)
    for number in range(records):
        found.sent.append(Sent(number % PARTITIONS, number // PARTITIONS, number, S, S + 1))
    for part in parts:
        found.got += part.got
        found.done += part.done
        found.settled += part.settled
    return found


def honest() -> Course:
    return course(*(lived(number, (2 + number) * S, op=number + 1) for number in range(6)))


def verdicts(system: str, told: Course, room: Path) -> dict[str, str]:
    found = judged(system, [told], room / f"{system}-{len(list(room.iterdir()))}", VERSION)
    return {str(one["rule"]): str(one["verdict"]) for one in found}


@pytest.mark.parametrize("system", SYSTEMS)
def test_an_honest_course_breaks_nothing(system: str, tmp_path: Path) -> None:
    found = verdicts(system, honest(), tmp_path)
    assert "broken" not in found.values()
    assert {found[rule] for rule in ("INV-02", "INV-04", "INV-05", "INV-24")} == {"held"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_is_lost_foreign_or_comes_again_is_broken(system: str, tmp_path: Path) -> None:
    parts = [lived(number, (2 + number) * S, op=number + 1) for number in range(6)]
    assert verdicts(system, course(*parts[:5]), tmp_path)["INV-05"] == "broken"
    assert verdicts(system, course(*parts, records=5), tmp_path)["INV-04"] == "broken"
    again = lived(0, 20 * S, member=1, op=9, count=2)
    assert verdicts(system, course(*parts, again), tmp_path)["INV-02"] == "broken"
    stuck = replace(honest(), drained=False)
    assert verdicts(system, stuck, tmp_path)["INV-24"] == "broken"


def dropped(after: int) -> Course:
    held = Course(got=[Got(1, 1, 0, 0, 1, 0, 2 * S - 1, 2 * S)])
    parts = [lived(number, (3 + number) * S, op=number + 2) for number in range(1, 6)]
    told = course(held, *parts, lived(0, 2 * S + after, op=90, count=2))
    told.dead = [Dead(1, 2 * S + 1)]
    return told


@pytest.mark.parametrize("system", SYSTEMS)
def test_what_was_dropped_has_to_come_in_time(system: str, tmp_path: Path) -> None:
    assert verdicts(system, dropped(7 * S), tmp_path)["INV-23"] == "held"
    assert verdicts(system, dropped(60 * S), tmp_path)["INV-23"] == "broken"


def test_what_a_system_does_not_have_is_absent(tmp_path: Path) -> None:
    found = {str(one["rule"]): one for one in judged(GROUP, [honest()], tmp_path / "g", VERSION)}
    assert found["INV-12"]["verdict"] == "absent"
    assert "count" in str(found["INV-12"]["why"])
    assert found["order"]["verdict"] == "held"
    for system in (SHARE, KMQ):
        told = verdicts(system, honest(), tmp_path)
        assert told["order"] == "absent"


def test_the_history_names_its_release(tmp_path: Path) -> None:
    judged(SHARE, [honest()], tmp_path / "s", "4.2.1")
    assert open_history(tmp_path / "s").version == "4.2.1"


def test_order_can_be_broken(tmp_path: Path) -> None:
    parts = [lived(number, (9 - number) * S, op=number + 1) for number in range(6)]
    found = {
        str(one["rule"]): one for one in judged(GROUP, [course(*parts)], tmp_path / "g", VERSION)
    }
    assert (found["order"]["verdict"], found["order"]["broken"]) == ("broken", 4)


def test_the_numbers_of_a_crash_and_of_losses_and_duplicates() -> None:
    found = measure(dropped(7 * S), S, 2 * S + 1)
    assert (found["held"], found["again_first"], found["again_last"]) == (1, 7.0, 7.0)
    assert (found["lost"], found["duplicates"], found["busy"]) == (0, 0, 1)
    assert found["delay_worst"] == pytest.approx(8.1)
    assert found["held_up"] == 6
    parts = [lived(number, (2 + number) * S, op=number + 1) for number in range(5)]
    found = measure(course(*parts, lived(0, 20 * S, op=9)), S, None)
    assert (found["produced"], found["lost"], found["duplicates"]) == (6, 1, 1)
    assert (found["pause"], found["again_first"]) == (None, None)


def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    lines = '["got",1,0,0,1,0,5,6]\n["done",1,0,0,0,7]\n["settled",1,0,0,8'
    (tmp_path / "member-2.events").write_text(lines)
    (tmp_path / "producer.events").write_text('["sent",0,0,0,1,2]\n["produced",1,3]\n')
    found = gather(tmp_path)
    assert found.got == [Got(2, 1, 0, 0, 1, 0, 5, 6)]
    assert (found.done, found.settled) == ([Done(2, 1, 0, 0, 0, 7)], [])
    assert found.sent == [Sent(0, 0, 0, 1, 2)]


@pytest.mark.parametrize("name", SCENES)
def test_the_marked_record_is_within_a_batch_of_partition_0(name: str) -> None:
    found = SCENES[name]
    for seconds in (5.0, 12.0, 60.0):
        marked = found.marked(seconds)
        assert marked % PARTITIONS == 0
        assert marked // PARTITIONS % found.batch == 1
        assert marked < found.records(seconds)


def run_of(rate: float, verdict: str = "held") -> dict[str, Any]:
    """Return the document of a run in which every scenario was played."""
    told = measure(dropped(7 * S), S, 2 * S + 1) | {"rate": rate}
    promise = {
        "rule": "INV-05",
        "why": "",
        "sentence": "No record is lost",
        "cases": 6,
        "broken": 0,
    }
    return {
        "schema": 1,
        "at": "2026-11-22T07:00:00+00:00",
        "command": "python -m benchmarks.patterns",
        "partial": "",
        "target": {"name": "kafka:4.4.0", "version": "4.4.0", "brokers": 3},
        "client": "confluent-kafka 1",
        "machine": {"processor": "x", "cores": 2, "memory_gib": 8, "system": "L", "load": 1.0},
        "seconds": 10.0,
        "noticed_ms": 6000,
        "scenes": [
            {
                "name": scene.name,
                "question": scene.question,
                "fault": scene.fault.value,
                "members": scene.members,
                "partitions": PARTITIONS,
                "handler_ms": scene.handler_ms,
                "records": 6,
                "batch": scene.batch,
                "systems": {
                    one: {"fault_at": 1.0, "drained": True, **told}
                    for one in SYSTEMS
                    if scene.only in ("", one)
                },
            }
            for scene in SCENES.values()
        ],
        "promises": {one: [promise | {"verdict": verdict}] for one in SYSTEMS},
    }


def test_the_page_has_the_range_of_the_runs_and_the_worst_verdict(tmp_path: Path) -> None:
    with pytest.raises(jsonschema.ValidationError):
        write([run_of(20.0) | {"schema": 2}], tmp_path)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "comparison").mkdir()
    write([run_of(20.0), run_of(150.0, "broken")], tmp_path)
    text = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert "| records a second | 20.0 to 150 |" in text
    assert "| No record is lost (INV-05) | broken (12) |" in text
    drawn = (tmp_path / "comparison" / "runs.js").read_text(encoding="utf-8")
    assert drawn.startswith("window.comparison = {")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--scenes", "nonsense"], "There is no scene 'nonsense'; there are parallel"),
        (["--systems", ","], "No system was named"),
        (["--seconds", "1"], "--seconds is at least 5"),
        (["--target", "reference"], "--target is a Kafka that we start"),
        (["--out", str(ROOT)], "is not empty"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_code_2(
    options: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["patterns", *options])
    assert main() == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert said in told.err
    assert told.err.count("\n") == 1
