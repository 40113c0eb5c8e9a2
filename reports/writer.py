"""The one writer of results.json, and of the page and the timelines that lie beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reports import html
from reports.results import Results
from reports.timelines import write_timelines
from spec.plain import text_of, to_plain, write_atomically


def write(out: Path, results: Results) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "results.json", text_of(results))
    facts = {**to_plain(results.run), "target": results.target, "timing": results.timing}
    write_atomically(out / "run.json", text_of(facts))


def publish(out: Path, results: Results, timelines: Mapping[str, Any] | None = None) -> None:
    """Write results, what was drawn of judged histories if any were, and the page of all that."""
    write(out, results)
    if timelines is not None:
        write_timelines(out, timelines)
    html.write(out, results)
