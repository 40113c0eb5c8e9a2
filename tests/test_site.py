"""The site over many runs: what it shows, what changed, and that what came from outside is text."""

import json
import re
from collections.abc import Iterator, Sequence
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from reports import headlines
from reports.evidence import ALTERATION, KAFKA_MUTANT
from reports.reader import parse
from reports.site.archive import (
    Archive,
    Run,
    by_broker,
    by_release,
    by_version,
    compare,
    cross,
    find,
)
from reports.site.build import build
from reports.site.detection import Detection, Missed, Noticed, figures
from shareproof.detected import detection
from spec.catalogue import load_track_record
from spec.plain import to_plain
from spec.rule import Honesty, load_rules
from tests.shell import without_extras
from tests.test_results import HOSTILE, client, document, keep

FIB = Noticed(
    kind=ALTERATION, name="fib", sentence="It fibs.", rule="ACK-01", check="a/b.py::test_x"
)
LATE = Noticed(
    kind=KAFKA_MUTANT, name="late", sentence="It lags.", rule="ACK-02", check="b.py::test_y"
)
ODD = Missed(kind=KAFKA_MUTANT, name="odd", sentence="It is odd.", why="nobody looks there")
SEEN = Detection(
    made={KAFKA_MUTANT: 2},
    noticed=(FIB, LATE),
    missed=(ODD,),
    kills={"ACK-01": FIB},
    exempt={"ACK-02": "it cannot be broken"},
)


def judged(verdict: str, *, day: int, target: str = "kafka:4.4.0", **summary: int) -> Any:
    found = document()
    found["target"] |= {"name": target, "version": target.partition(":")[2] or "4.4.0"}
    found["run"] |= {"started": f"2026-03-{day:02}T00:00:00+00:00", "partial": False, "errors": []}
    found["rules"][0] |= {"verdict": verdict, "known_failures": []}
    found["summary"] |= dict.fromkeys(("pass", "fail", "unknown", "vacuous"), 0) | {verdict: 1}
    found["summary"] |= summary
    return found


def java(version: str, facing: str) -> Any:
    return to_plain(client("x", name="java", version=version, facing=facing))


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    keep(tmp_path / "b", judged("fail", day=2))
    keep(tmp_path / "a", judged("pass", day=1))
    keep(tmp_path / "c" / "deep", judged("pass", day=3, target="reference"))
    return tmp_path


def test_runs_are_found_in_order(runs: Path) -> None:
    archive = find([runs])
    assert [run.started[8:10] for run in archive.runs] == ["01", "02", "03"]
    assert {name: len(found) for name, found in archive.histories.items()} == {
        "reference": 1,
        "kafka:4.4.0": 2,
    }
    assert [(old.started[8:10], new.started[8:10]) for old, new in archive.changes] == [
        ("01", "02")
    ]


def test_clients_and_histories_are_subjects_of_their_own() -> None:
    found = judged("pass", day=1)
    found["client"] = java("4.4.0", "reference")
    (run,) = _archive(found).runs
    assert (run.kind, run.subject) == ("client", "java 4.4.0 facing reference")
    chaos = judged("fail", day=2) | {"distributions": {}, "chaos": []}
    load = judged("fail", day=3) | {"distributions": {}}
    archive = _archive(judged("pass", day=1), chaos, load)
    assert {run.subject: run.kind for run in archive.newest} == {
        "kafka:4.4.0": "broker",
        "kafka:4.4.0 under chaos": "history",
        "kafka:4.4.0 under load": "history",
    }
    assert archive.changes == ()
    # What judged a part only does not stand for a whole run.
    whole, glance = judged("pass", day=1), judged("fail", day=2)
    whole["rules"].append(whole["rules"][0] | {"id": "ACK-03"})
    assert to_plain(_archive(whole, glance).newest[0].results) == whole


def _archive(*documents: Any) -> Archive:
    runs = (
        Run(slug=str(number), folder=Path(), results=parse(found))
        for number, found in enumerate(documents)
    )
    return Archive(runs=tuple(runs))


def test_broken_files_are_named_and_left_out(runs: Path) -> None:
    (runs / "b" / "results.json").write_text("{", encoding="utf-8")
    archive = find([runs])
    assert len(archive.runs) == 2
    assert "not JSON" in archive.unreadable[0]
    (runs / "empty").mkdir()
    with pytest.raises(ValueError, match=r"no results\.json at or below"):
        find([runs / "empty"])


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("pass", "fail", "1 newly failing"),
        ("fail", "pass", "1 newly passing"),
        ("pass", "vacuous", "1 newly vacuous"),
        ("fail", "fail", "no verdict changed"),
    ],
)
def test_changes_are_told(before: str, after: str, sentence: str) -> None:
    old, new = _archive(judged(before, day=1), judged(after, day=2)).runs
    assert compare(old.rules, new.rules).sentence == sentence


def test_rules_judged_once_are_no_change() -> None:
    old, new = _archive(judged("pass", day=1), judged("untested", day=2)).runs
    found = compare(old.rules, new.rules)
    assert (found.changes, found.dropped, found.added) == ({}, ("ACK-01",), ())


def test_site_links_hold_and_whoever_waits_is_told(runs: Path, tmp_path: Path) -> None:
    given: list[str] = []

    def watched(found: Sequence[Run]) -> Iterator[Run]:
        for run in found:
            given.append(run.subject)
            yield run

    first = build(find([runs]), tmp_path / "site", SEEN, watched=watched)
    assert given == ["kafka:4.4.0", "kafka:4.4.0", "reference"]
    pages = list(first.parent.rglob("*.html"))
    shared = {page.name for page in pages if page.parent == first.parent}
    assert shared == {"index.html", "rules.html", "detection.html", "track-record.html"}
    assert len(pages) == 4 + 1 + 1 + 3  # these, one rule, one change, three runs
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r'(?:href|src)="([^"#]+)', text):
            if not link.startswith(("transcripts/", "https://", "data:")):
                assert (page.parent / link).exists(), (page, link)


def test_site_needs_no_extra(runs: Path, tmp_path: Path) -> None:
    done = without_extras("shareproof.cli", "report", str(runs), "--site", str(tmp_path / "site"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "index.html").exists()


def test_implementations_are_crossed_with_releases() -> None:
    targets = ("kafka:4.10.0", "kafka:4.4.0", "kafka:4.9.0", "reference")
    runs = [judged("pass", day=day, target=name) for day, name in enumerate(targets, start=1)]
    found = cross(_archive(*runs).newest, by_release)
    assert (found.rows, found.columns) == (("kafka", "reference"), ("4.4.0", "4.9.0", "4.10.0"))
    assert [(old.subject, new.subject) for old, new in found.neighbours] == [
        ("kafka:4.4.0", "kafka:4.9.0"),
        ("kafka:4.9.0", "kafka:4.10.0"),
    ]


def test_clients_are_crossed_with_brokers_and_their_versions_neighbours() -> None:
    def faced(*brokers: str) -> Archive:
        runs = [judged("pass", day=day) for day in (1, 2)]
        for run, version, broker in zip(runs, ("4.1.2", "4.4.0"), brokers, strict=True):
            run["client"] = java(version, broker)
        return _archive(*runs)

    found = cross(faced("kafka:4.1.2", "kafka:4.4.0").newest, by_broker)
    assert found.rows == ("java 4.1.2", "java 4.4.0")
    assert (found.columns, found.neighbours) == (("kafka:4.1.2", "kafka:4.4.0"), ())
    ((old, new),) = cross(faced("kafka:4.4.0", "kafka:4.4.0").newest, by_version).neighbours
    assert old.subject == "java 4.1.2 facing kafka:4.4.0"
    assert new.subject == "java 4.4.0 facing kafka:4.4.0"


def test_releases_are_compared(tmp_path: Path) -> None:
    for day, (target, verdict) in enumerate((("kafka:4.3.1", "fail"), ("kafka:4.4.0", "pass")), 1):
        keep(tmp_path / target, judged(verdict, day=day, target=target))
    first = build(find([tmp_path]), tmp_path / "site", SEEN)
    link = re.search(r'href="(changes/[^"]+)">1 newly passing<', first.read_text(encoding="utf-8"))
    assert link is not None
    page = (first.parent / link[1]).read_text(encoding="utf-8")
    assert "From kafka:4.3.1" in page
    assert "to kafka:4.4.0" in page


def test_matrix_shows_what_was_noticed_and_what_was_not(runs: Path, tmp_path: Path) -> None:
    first = build(find([runs]), tmp_path / "site", SEEN)
    page = (first.parent / "detection.html").read_text(encoding="utf-8")
    for text in ("It fibs.", "b.py::test_x", "It lags.", "It is odd.", "nobody looks there"):
        assert text in page
    assert list(figures(SEEN).values()) == ["0", "1", "1 of 2", "0", "0"]
    rule = (first.parent / "rules" / "ACK-01.html").read_text(encoding="utf-8")
    assert "1 of the alterations in front of real Kafka" in rule
    assert "Killed by this rule: <code>fib</code>. It fibs." in rule
    assert "it cannot be broken" in page
    assert 'href="../detection.html#ACK-01"' in rule


def test_matrix_is_made_of_the_records() -> None:
    seen = {one.rule for one in detection().noticed}
    owed = {
        rule.id
        for rule in load_rules().values()
        if rule.honesty is not Honesty.UNTESTED and rule.area not in {"INV", "FRM"}
    }
    assert owed - seen == set()
    assert all(one.why for one in detection().missed)


def test_track_record_leads_to_runs(tmp_path: Path) -> None:
    past = load_track_record()[0]
    for day, (release, verdict) in enumerate(((past.seen, "fail"), (past.mended, "pass")), 1):
        found = judged(verdict, day=day, target=f"kafka:{release}")
        found["rules"][0]["id"] = past.rule
        keep(tmp_path / release, found)
    first = build(find([tmp_path]), tmp_path / "site", SEEN)
    page = unescape((first.parent / "track-record.html").read_text(encoding="utf-8"))
    links = re.findall(rf'<a class="(\w+)" href="runs/([^/]+)/report.html#{past.rule}">', page)
    assert [verdict for verdict, _ in links] == ["fail", "pass"]
    assert all(entry.title in page for entry in load_track_record())


def test_badges_keep_their_addresses(runs: Path, tmp_path: Path) -> None:
    build(find([runs]), tmp_path / "site", SEEN)
    badges = tmp_path / "site" / "badges"
    assert sorted(file.name for file in badges.iterdir()) == [
        "kafka-4.4.0.json",
        "kafka-4.4.0.svg",
        "reference.json",
        "reference.svg",
    ]
    newest = headlines.of_results(parse(judged("fail", day=2)))
    assert (badges / "kafka-4.4.0.json").read_text(encoding="utf-8") == newest.endpoint()


def test_names_of_subjects_are_distinct() -> None:
    runs = [judged("pass", day=day, target=name) for day, name in enumerate(("a/b:1", "a-b:1"), 1)]
    assert set(_archive(*runs).lasting) == {"a-b-1", "a-b-1-2"}


def test_feeds_tell_what_changed(runs: Path, tmp_path: Path) -> None:
    build(find([runs]), tmp_path / "site", SEEN)
    items = json.loads((tmp_path / "site" / "feed.json").read_text(encoding="utf-8"))["items"]
    assert [item["title"] for item in items] == [
        "reference: judged for the first time",
        "kafka:4.4.0: 1 newly failing",
        "kafka:4.4.0: judged for the first time",
    ]
    root = ElementTree.parse(tmp_path / "site" / "feed.xml").getroot()  # noqa: S314  our own file
    assert [entry.findtext("title") for entry in root.iter("item")] == [i["title"] for i in items]


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    found = document(HOSTILE)
    found["target"]["name"] = f"../../{HOSTILE}"
    keep(tmp_path / "run", found)
    build(find([tmp_path / "run"]), tmp_path / "site", SEEN)
    for page in (tmp_path / "site").rglob("*.html"):
        assert "<script>alert" not in page.read_text(encoding="utf-8"), page
    assert {path.name for path in tmp_path.iterdir()} == {"run", "site"}


@pytest.mark.parametrize(
    ("verdict", "run", "summary", "message", "colour"),
    [
        ("pass", {}, {}, "1 of 1 rules", headlines.GOOD),
        ("fail", {}, {}, "0 of 1 rules, 1 known bugs", headlines.DIM),
        ("fail", {}, {"pass": 9}, "9 of 10 rules, 1 known bugs", headlines.GOOD),
        ("pass", {"partial": True}, {}, None, headlines.DIM),
        ("fail", {"exit_code": 1}, {}, None, headlines.BAD),
        ("pass", {}, {"pass": 0}, "nothing could be judged", headlines.DIM),
    ],
)
def test_badge_is_green_for_a_whole_run_that_held_alone(
    verdict: str, run: dict[str, Any], summary: dict[str, int], message: str | None, colour: str
) -> None:
    found = judged(verdict, day=1)
    found["summary"] |= summary
    found["run"] |= {"exit_code": 0, **run}
    if message == "nothing could be judged":
        found["summary"] = dict.fromkeys(found["summary"], 0)
    made = headlines.of_results(parse(found))
    assert (made.label, made.colour) == ("share groups", colour)
    assert message in (None, made.message)
