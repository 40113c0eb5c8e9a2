"""The comparison of share group, consumer group and KMQ: numbers and verdicts, on both sides."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from benchmarks.patterns.__main__ import main
from benchmarks.patterns.events import Course, Dead, Done, Got, Sent, Settled, gather, measure
from benchmarks.patterns.page import write
from benchmarks.patterns.results import judged
from benchmarks.patterns.stage import PARTITIONS, SCENES
from benchmarks.patterns.workload import GROUP, KMQ, SHARE, SYSTEMS
from reports.analysis.files import open_history

ROOT = Path(__file__).resolve().parents[1]
S = 1_000_000_000
OK = 1
VERSION = "4.4.0"


def lived(number: int, at: int, *, member: int = 0, op: int = 1, count: int = 1) -> Course:
    """Return a course in which one record was got, done and settled."""
    part, offset = number % PARTITIONS, number // PARTITIONS
    return Course(
        got=[Got(member, op, part, offset, count, number, at - S // 10, at)],
        done=[Done(member, op, part, offset, number, at + S // 10)],
        settled=[Settled(member, op, part, offset, at + S // 5, at + S // 4, OK)],
    )


def course(*parts: Course, records: int = 6) -> Course:
    """Return a course that is drained, in which so many records were produced."""
    found = Course(drained=True)
    for number in range(records):
        found.sent.append(Sent(number % PARTITIONS, number // PARTITIONS, number, S, S + 1))
    for part in parts:
        found.got += part.got
        found.done += part.done
        found.settled += part.settled
    return found


def honest() -> Course:
    """Return a course in which everything came once, in order."""
    return course(*(lived(number, (2 + number) * S, op=number + 1) for number in range(6)))


def verdicts(system: str, told: Course, room: Path) -> dict[str, str]:
    """Return the verdict of each rule."""
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
    """Return a course in which record 0 was held by a member that died, and came again."""
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


def test_the_numbers_of_a_crash() -> None:
    found = measure(dropped(7 * S), S, 2 * S + 1)
    assert (found["held"], found["again_first"], found["again_last"]) == (1, 7.0, 7.0)
    assert (found["lost"], found["duplicates"], found["busy"]) == (0, 0, 1)
    assert found["delay_worst"] == pytest.approx(8.1)
    assert found["held_up"] == 6


def test_the_numbers_of_losses_and_duplicates() -> None:
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
    (tmp_path / "comparison").mkdir()
    write([run_of(20.0), run_of(150.0, "broken")], tmp_path)
    text = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert "| records a second | 20.0 to 150 |" in text
    assert "| No record is lost (INV-05) | broken (12) |" in text
    drawn = (tmp_path / "comparison" / "runs.js").read_text(encoding="utf-8")
    assert drawn.startswith("window.comparison = {")


def test_a_run_that_does_not_fit_the_schema_makes_no_page(tmp_path: Path) -> None:
    strange = run_of(20.0) | {"schema": 2}
    with pytest.raises(jsonschema.ValidationError):
        write([strange], tmp_path)
    assert list(tmp_path.iterdir()) == []


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
