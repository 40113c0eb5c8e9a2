"""Writes the site: plain files that any web server, or none, can show.

What changed is there for readers that poll, too: a JSON feed and an RSS feed of the same items.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from reports import headlines, html
from reports.headlines import NEEDS, SIGNS, WORDS, uncrossed
from reports.nights import Night, before_each, changes
from reports.results import RuleResult
from reports.site.archive import (
    KINDS,
    Archive,
    Comparison,
    Run,
    by_broker,
    by_release,
    by_version,
    compare,
    cross,
)
from reports.site.detection import KINDS as BROKEN
from reports.site.detection import Detection, Row, figures, matrix
from spec.catalogue import Past, load_track_record
from spec.rule import AREAS, load_rules

KEPT = ("results.json", "run.json", "junit.xml", "chaos.json", "timelines.json", "transcripts")
"""What of a run goes into the site beside its page."""

MEANINGS = {
    "pass": "hold",
    "fail": "do not hold",
    "unknown": "could not be decided",
    "vacuous": "were not exercised",
    "out of reach": "could not be asked",
    "unsupported": "need a feature that it does not have",
}
"""What the signs of the first page count."""


def build(
    archive: Archive,
    out: Path,
    detection: Detection,
    *,
    watched: Callable[[Sequence[Run]], Iterable[Run]] = iter,
    nights: Sequence[tuple[Path, Night]] = (),
) -> Path:
    """Write the site into a folder, over what is there; return its first page.

    ``watched`` gives the runs one by one, and tells whoever waits how far it has come; ``nights``
    are those that the runs were played in, and the directory of each.
    """
    out.mkdir(parents=True, exist_ok=True)
    pages = _Pages(out, len(archive.runs))
    for run in watched(archive.runs):
        _keep(run, out / "runs" / run.slug, archive)
    for name, run in archive.lasting.items():
        _write_badge(run, out / "badges" / name)
    # Every rule that any run judged, as the newest of them words it.
    rules = dict(sorted({n: rule for run in archive.runs for n, rule in run.rules.items()}.items()))
    rows = _write_rules(pages, archive, rules, detection)
    pages.write(
        "rules.html",
        "rules.html",
        areas=_areas(rules, archive.newest),
        signs=SIGNS,
        met={name: _met(archive, name) for name in rules},
        killed={name: row.kill.name for name, row in rows.items() if row.kill},
    )
    pages.write(
        "track-record.html", "track-record.html", entries=_past(archive), judged=rules.keys()
    )
    _write_nights(pages, archive, nights)
    before = _write_index(pages, archive, [night for _, night in nights])
    _write_feeds(archive, before, out)
    return out / "index.html"


class _Pages:
    def __init__(self, out: Path, runs: int) -> None:
        self._out = out
        self._runs = runs
        self._environment = html.templates(Path(__file__).parent / "pages")
        self._environment.filters["moment"] = _moment

    def write(self, template: str, address: str, **values: Any) -> None:
        file = self._out / address
        file.parent.mkdir(parents=True, exist_ok=True)
        root = "../" * address.count("/")
        page = self._environment.get_template(f"{template}.jinja")
        text = page.render(root=root, words=WORDS, runs=self._runs, **values)
        file.write_text(text, encoding="utf-8")


def _moment(started: str) -> str:
    return f"{datetime.fromisoformat(started).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _copy_all(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for one in source.iterdir():
        if one.is_dir():
            _copy_all(one, target / one.name)
        else:
            (target / one.name).write_bytes(one.read_bytes())


def _keep(run: Run, folder: Path, archive: Archive) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        source = run.folder / name
        if source == (folder / name).resolve():  # a site that is built of itself
            continue
        if source.is_dir():
            _copy_all(source, folder / name)
        elif source.is_file():
            (folder / name).write_bytes(source.read_bytes())
    told = archive.told(run, lambda other: f"../{other.slug}/report.html")
    html.write_page(folder, run.results, told=told, home="../../index.html")
    _write_badge(run, folder / "badge")


def _write_badge(run: Run, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shield = headlines.of_results(run.results)
    path.with_name(f"{path.name}.json").write_text(shield.endpoint(), encoding="utf-8")
    path.with_name(f"{path.name}.svg").write_text(shield.picture(), encoding="utf-8")


def _write_nights(pages: _Pages, archive: Archive, nights: Sequence[tuple[Path, Night]]) -> None:
    before = before_each([night for _, night in nights])
    for folder, night in nights:
        old = before.get(night.name)
        pages.write(
            "night.html",
            f"nights/{night.name}.html",
            night=night,
            before=old,
            changed=changes(old, night) if old else (),
            nights=[one for _, one in reversed(nights) if one.target == night.target],
            archive=folder.parent,
            needs=NEEDS,
            pages={
                run.folder.relative_to(folder.resolve()).as_posix(): f"runs/{run.slug}/report.html"
                for run in archive.runs
                if folder.resolve() in run.folder.parents
            },
        )


def _write_index(
    pages: _Pages, archive: Archive, nights: Sequence[Night]
) -> dict[str, tuple[str, Comparison]]:
    of_clients = [run for run in archive.newest if run.kind == "client"]
    releases = cross((run for run in archive.newest if run.kind == "broker"), by_release)
    brokers, versions = cross(of_clients, by_broker), cross(of_clients, by_version)
    before = {new.slug: _changed(pages, old, new) for old, new in archive.changes}
    pages.write(
        "index.html",
        "index.html",
        newest=archive.newest,
        badges={run.slug: f"badges/{name}.svg" for name, run in archive.lasting.items()},
        histories=archive.histories,
        releases=releases,
        brokers=brokers,
        steps=[
            (old, new, *_changed(pages, old, new))
            for table in (releases, versions, brokers)
            for old, new in table.neighbours
        ],
        before=before,
        areas=AREAS,
        signs=SIGNS,
        meanings=MEANINGS,
        tallies={run.slug: _tallies(run) for run in archive.newest},
        unreadable=archive.unreadable,
        nights=list(reversed(nights)),
    )
    return before


def _changed(pages: _Pages, old: Run, new: Run) -> tuple[str, Comparison]:
    address, found = f"changes/{old.slug}..{new.slug}.html", compare(old.rules, new.rules)
    pages.write("change.html", address, old=old, new=new, found=found, kinds=KINDS)
    return address, found


def _write_rules(
    pages: _Pages, archive: Archive, rules: Mapping[str, RuleResult], detection: Detection
) -> dict[str, Row]:
    """Write a page for each judged rule, and the matrix of what the checks of all notice.

    Returns the rows of that, by rule.
    """
    areas = matrix(detection, load_rules().values())
    pages.write(
        "detection.html",
        "detection.html",
        figures=figures(detection),
        missed=detection.missed,
        kills=sum(row.kill is not None for found in areas.values() for row in found),
        owed=sum(map(len, areas.values())),
        areas=areas,
        titles=AREAS,
        kinds=BROKEN,
        judged=rules.keys(),
    )
    rows = {row.rule.id: row for found in areas.values() for row in found}
    for name, rule in rules.items():
        told = [(run, run.rules[name]) for run in reversed(archive.runs) if name in run.rules]
        pages.write(
            "rule.html",
            f"rules/{name}.html",
            rule=rule,
            told=told,
            again=_again(told),
            row=rows.get(name),
            kinds=BROKEN,
            past=[one for one in load_track_record() if one.rule == name],
            why=uncrossed(rule),
        )
    return rows


def _past(archive: Archive) -> list[tuple[Past, list[tuple[str, Run | None]]]]:
    by_target = {
        (run.subject, rule): run
        for run in archive.runs
        if run.kind == "broker"
        for rule in run.rules
    }
    return [
        (
            past,
            [
                (release, by_target.get((f"kafka:{release}", past.rule)))
                for release in (past.seen, past.mended)
            ],
        )
        for past in load_track_record()
    ]


def _areas(
    rules: Mapping[str, RuleResult], newest: Iterable[Run]
) -> list[tuple[str, str, list[RuleResult], list[Run]]]:
    found = []
    for name in sorted({rule.area for rule in rules.values()}):
        owned = [rule for rule in rules.values() if rule.area == name]
        judges = [run for run in newest if any(rule.id in run.rules for rule in owned)]
        found.append((name, AREAS.get(name, ""), owned, judges))
    return found


def _met(archive: Archive, rule: str) -> list[str]:
    runs = (run.rules[rule] for run in archive.runs if rule in run.rules)
    return sorted({name for said in runs for name in said.situations})


def _again(told: Iterable[tuple[Run, RuleResult]]) -> str:
    said = [one for _, one in told if one.reproduce]
    broken = [one for one in said if one.verdict == "fail"]
    return next((one.reproduce for one in (*broken, *said)), "")


def _tallies(run: Run) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for rule in run.rules.values():
        area = found.setdefault(rule.area, {})
        area[rule.verdict] = area.get(rule.verdict, 0) + 1
    return found


def _write_feeds(archive: Archive, before: Mapping[str, tuple[str, Comparison]], out: Path) -> None:
    items = []
    for run in reversed(archive.runs):
        address, found = before.get(run.slug, (f"runs/{run.slug}/report.html", None))
        text = found.sentence if found else "judged for the first time"
        title = f"{run.subject}: {text}"
        items.append(Item(address=address, title=title, text=text, when=run.started))
    (out / "feed.json").write_text(json_feed(items), encoding="utf-8")
    (out / "feed.xml").write_text(rss(items), encoding="utf-8")


_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # characters that no XML may have

TITLE = "shareproof: verdicts that changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One run. ``address`` is relative to the site, ``when`` is ISO 8601."""

    address: str
    title: str
    text: str
    when: str


def json_feed(items: Sequence[Item]) -> str:
    """Return a JSON feed (https://www.jsonfeed.org/version/1.1/)."""
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": TITLE,
        "items": [
            {
                "id": item.address,
                "url": item.address,
                "title": item.title,
                "content_text": item.text,
                "date_published": item.when,
            }
            for item in items
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def rss(items: Sequence[Item]) -> str:
    root = Element("rss", version="2.0")
    channel = SubElement(root, "channel")
    for name, text in (("title", TITLE), ("link", "index.html"), ("description", TITLE)):
        SubElement(channel, name).text = text
    for item in items:
        entry = SubElement(channel, "item")
        when = format_datetime(datetime.fromisoformat(item.when))
        fields = {
            "title": item.title,
            "link": item.address,
            "description": item.text,
            "pubDate": when,
        }
        for name, text in fields.items():
            SubElement(entry, name).text = text
        SubElement(entry, "guid", isPermaLink="false").text = item.address
    indent(root)
    return _NO_XML.sub("\ufffd", tostring(root, encoding="unicode", xml_declaration=True)) + "\n"
