"""report.html: one file that needs nothing beside it, made of what else is in a run's directory.

The templates, styles and scripts are in ``page/``; they are put into the page when it is written.
Scripts run only if their digest is in the page's content security policy, so that no text of a
target can become one, whatever else went wrong.
"""

import base64
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from reports import headlines, timelines
from reports.headlines import SIGNS, WORDS, Told
from reports.results import Results
from spec.plain import text_of

__all__ = ["SIGNS", "WORDS", "Told", "filled", "render", "templates", "write"]

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
    runs = timelines.runs(results, timelines.read_timelines(folder))
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


def write(
    out: Path, results: Results, *, told: Mapping[str, Sequence[Told]] | None = None, home: str = ""
) -> Path:
    file = out / "report.html"
    file.write_text(render(results, folder=out, told=told, home=home), encoding="utf-8")
    return file


def filled(template: str, **given: object) -> str:
    """Return a page that is made of a template of ``page/``; what it is given is escaped."""
    return templates(PAGE).get_template(template).render(headlines=headlines, **given)


@cache
def templates(folder: Path) -> Environment:
    """Return the templates of a folder, which are compiled once for all pages of a process."""
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
    """Return transcripts by their name, packed, up to a limit."""
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
