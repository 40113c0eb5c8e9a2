"""results.json, and report.html: one file that needs nothing beside it, made of what else is there.

The templates, styles and scripts are in ``page/``; they are put into the page when it is written.
Scripts run only if their digest is in the page's content security policy, so that no text of a
target can become one, whatever else went wrong.

A page draws each history that was judged, with its faults, timeline, times and stories: from the
results and from ``timelines.json`` beside them. A page without the latter still has its tables.
"""

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports import headlines
from reports.headlines import SIGNS, WORDS, Told
from reports.results import Measure, Results
from spec.plain import text_of, to_plain, write_atomically

TIMELINES = "timelines.json"
"""Timelines and stories of a directory's runs, by the folder of their histories."""

TIMELINES_VERSION = 1
TIMELINES_SCHEMA = Path(__file__).with_name("timelines.schema.json")


def read_timelines(folder: Path | None) -> dict[str, Any]:
    if folder is None:
        return {}
    try:
        document = json.loads((folder / TIMELINES).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict) or document.get("schema") != TIMELINES_VERSION:
        return {}
    return dict(document.get("runs", {}))


def write_timelines(out: Path, runs: Mapping[str, Any]) -> None:
    text = json.dumps(
        {"schema": TIMELINES_VERSION, "runs": runs}, separators=(",", ":"), ensure_ascii=False
    )
    (out / TIMELINES).write_text(text + "\n", encoding="utf-8")


def runs_of(results: Results, timelines: Mapping[str, Any]) -> list[dict[str, Any]]:
    measured, reached = results.distributions or {}, results.reached or {}
    injected = {}
    for one in results.chaos or ():
        inside = f"{one.run.rstrip('/')}/history"
        injected[inside if inside in measured else one.run] = one
    found = []
    for history in dict.fromkeys([*injected, *measured, *reached, *timelines]):
        folder, chaos = Path(history), injected.get(history)
        name = folder.parent.name if folder.name == "history" else folder.name
        drawn = timelines.get(history, {})
        found.append(
            {
                "name": (chaos.scenario if chaos else "") or name,
                "chaos": chaos,
                "timeline": drawn.get("timeline") or {},
                "stories": drawn.get("stories") or [],
                "measures": _measures(measured.get(history, ())),
                "reached": reached.get(history, ()),
            }
        )
    return found


def _measures(rows: Sequence[Measure]) -> list[dict[str, Any]]:
    found: dict[str, list[Measure]] = {}
    for row in rows:
        found.setdefault(row.measure, []).append(row)
    drawn = []
    for measure, own in found.items():
        # A lock may end a little before the latest time at which it may.
        whole = math.log1p(max(0, *(each.max for each in own))) or 1.0
        places = [
            {
                name: round(100 * math.log1p(max(0, value)) / whole, 1)
                for name, value in (
                    ("median", row.median),
                    ("p90", row.p90),
                    ("p99", row.p99),
                    ("max", row.max),
                )
            }
            for row in own
        ]
        both = zip(own, places, strict=True)
        drawn.append({"measure": measure, "rows": [{"row": row, "at": at} for row, at in both]})
    return drawn


__all__ = ["SIGNS", "WORDS", "Told", "filled", "render", "templates"]

PAGE = Path(__file__).parent / "page"
PLOTS = ("uplot/uPlot.iife.min.js", "timeline.js")
"""What a page of recorded runs needs besides: a library for plots, and what we do with it."""
MOST_FRAMES = 2_500_000
"""Characters of packed transcripts that a page takes in; the others stay links to their files."""


def render(
    results: Results,
    *,
    folder: Path | None = None,
    told: Mapping[str, Sequence[Told]] | None = None,
    home: str = "",
) -> str:
    """Return the page. Everything that came from outside is escaped by the template engine.

    Transcripts are in ``folder``, the run's directory, and left out without it. ``told`` is what
    other runs of the same subject said of each rule, newest first, ``home`` where the site is that
    the page is part of, seen from the page.
    """
    runs = runs_of(results, read_timelines(folder))
    drawn = [run["timeline"] for run in runs] if any(run["timeline"] for run in runs) else []
    plots = [_asset(name) for name in PLOTS] if drawn else []
    scripts = [_asset("report.js"), *plots]
    # A printed certificate names the digest of the results.json that it rests on.
    file = folder / "results.json" if folder else None
    kept = file.read_bytes() if file and file.is_file() else text_of(results).encode()
    return filled(
        "report.html.jinja",
        results=results,
        fingerprint=hashlib.sha256(kept).hexdigest(),
        told=told or {},
        home=home,
        frames=_frames(results, folder) if folder else {},
        runs=runs,
        drawn=drawn,
        styles=[*([_asset("uplot/uPlot.min.css")] if drawn else []), _asset("report.css")],
        scripts=scripts,
        digests=[_digest(script) for script in scripts],
    )


def write_page(
    out: Path, results: Results, *, told: Mapping[str, Sequence[Told]] | None = None, home: str = ""
) -> Path:
    file = out / "report.html"
    file.write_text(render(results, folder=out, told=told, home=home), encoding="utf-8")
    return file


def filled(template: str, **given: object) -> str:
    return templates(PAGE).get_template(template).render(headlines=headlines, **given)


@cache
def templates(folder: Path) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["linked"] = headlines.linked
    return environment


def _asset(name: str) -> Markup:
    return Markup((PAGE / name).read_text(encoding="utf-8"))  # noqa: S704 - a file of ours


def _digest(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _frames(results: Results, folder: Path) -> dict[str, str]:
    names = [check.transcript for rule in results.rules for check in rule.checks]
    packed: dict[str, str] = {}
    left = MOST_FRAMES
    for name in dict.fromkeys(name for name in names if name):
        try:
            text = (folder / name).read_bytes()
        except OSError:
            continue
        one = base64.b64encode(gzip.compress(text, mtime=0)).decode()
        if len(one) <= left:
            packed[name] = one
            left -= len(one)
    return packed


def write(out: Path, results: Results) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "results.json", text_of(results))
    facts = {**to_plain(results.run), "target": results.target, "timing": results.timing}
    write_atomically(out / "run.json", text_of(facts))


def publish(out: Path, results: Results, timelines: Mapping[str, Any] | None = None) -> None:
    write(out, results)
    if timelines is not None:
        write_timelines(out, timelines)
    write_page(out, results)
