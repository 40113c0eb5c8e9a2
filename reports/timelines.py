"""What a page draws of recorded runs: each history with its faults, timeline, times and stories.

Put together from the results and from ``timelines.json`` beside them; a page without the latter
still has its tables.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.results import Measure, Results

FILE = "timelines.json"
"""Timelines and stories of a directory's runs, by the folder of their histories."""

SCHEMA = 1
SCHEMA_FILE = Path(__file__).with_name("timelines.schema.json")


def read_timelines(folder: Path | None) -> dict[str, Any]:
    if folder is None:
        return {}
    try:
        document = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        return {}
    return dict(document.get("runs", {}))


def write_timelines(out: Path, runs: Mapping[str, Any]) -> None:
    text = json.dumps({"schema": SCHEMA, "runs": runs}, separators=(",", ":"), ensure_ascii=False)
    (out / FILE).write_text(text + "\n", encoding="utf-8")


def runs(results: Results, timelines: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each judged history with all that is known of it, in the order of judging."""
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
    """Return rows by what they measure, each with its places on a logarithmic scale, in percent."""
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
