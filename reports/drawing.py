"""What a page draws of recorded runs: each history with its faults, timeline, times and stories.

Put together from results.json and from ``timelines.json`` beside it; a page without the latter
still has its tables.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.results import Document

FILE = "timelines.json"
"""Timelines and stories of a directory's runs, by the folder of their histories."""

SCHEMA = 1
SCHEMA_FILE = Path(__file__).with_name("timelines.schema.json")


def read_timelines(folder: Path | None) -> dict[str, Any]:
    """Return what is drawn of each history, or nothing where there is nothing we can read."""
    if folder is None:
        return {}
    try:
        document = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = isinstance(document, dict) and document.get("schema") == SCHEMA
    return dict(document.get("runs", {})) if known else {}


def runs(document: Document, timelines: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each history of a document with all that is known of it, in the order of judging."""
    measured, reached = document.get("distributions", {}), document.get("reached", {})
    broken = {_history(one["run"], measured): one for one in document.get("chaos", [])}
    found = []
    for history in dict.fromkeys([*broken, *measured, *reached, *timelines]):
        chaos = broken.get(history)
        drawn = timelines.get(history, {})
        found.append(
            {
                "name": (chaos or {}).get("scenario") or _name(history),
                "chaos": chaos,
                "timeline": drawn.get("timeline") or {},
                "stories": drawn.get("stories") or [],
                "measures": _measures(measured.get(history, [])),
                "reached": reached.get(history, []),
            }
        )
    return found


def _history(run: str, histories: Mapping[str, Any]) -> str:
    inside = str(Path(run) / "history")
    return inside if inside in histories else run


def _name(history: str) -> str:
    folder = Path(history)
    return folder.parent.name if folder.name == "history" else folder.name


def _measures(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows by what they measure, each with its places on a logarithmic scale, in percent."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["measure"], []).append(row)
    return [
        {"measure": measure, "rows": [_placed(row, own) for row in own]}
        for measure, own in found.items()
    ]


def _placed(row: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    whole = math.log1p(max(each["max"] for each in own)) or 1.0
    at = {
        name: round(100 * math.log1p(max(0, row[name])) / whole, 1)
        for name in ("median", "p90", "p99", "max")
    }
    return {**row, "at": at}
