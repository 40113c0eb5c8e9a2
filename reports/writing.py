"""The one writer of results.json, and of the page and the timelines that lie beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports import drawing, html
from reports.results import Results
from spec.plain import text_of, to_plain


def write(out: Path, results: Results) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "results.json", text_of(results))
    facts = {**to_plain(results.run), "target": results.target, "timing": results.timing}
    write_whole(out / "run.json", text_of(facts))


def publish(out: Path, results: Results, timelines: Mapping[str, Any] | None = None) -> None:
    """Write results, what was drawn of judged histories if any were, and the page of all that."""
    write(out, results)
    if timelines is not None:
        drawing.write_timelines(out, timelines)
    html.write(out, results)


def write_whole(file: Path, text: str) -> None:
    """Write a file beside its place and rename it: a reader never meets half a file."""
    draft = file.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)
