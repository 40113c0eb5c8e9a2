"""report.html: one file that needs nothing beside it, made from results.json alone."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from reports.results import Document
from spec.requirement import AREAS

WORDS = ("fail", "error", "unknown", "vacuous", "unsupported", "pass", "untested")
"""Verdicts in the order a reader wants them: what needs a decision first."""


def render(document: Document) -> str:
    """Return the page. Everything that came from outside is escaped by the template engine."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("report.html.jinja")
    return template.render(document=document, areas=_areas(document), words=WORDS)


def write(out: Path, document: Document) -> Path:
    """Write the page into the run's directory and return its path."""
    file = out / "report.html"
    file.write_text(render(document), encoding="utf-8")
    return file


def _areas(document: Document) -> list[dict[str, Any]]:
    return [
        {"id": area, "title": AREAS.get(area, ""), "requirements": list(entries)}
        for area, entries in groupby(document["requirements"], key=lambda entry: entry["area"])
    ]
