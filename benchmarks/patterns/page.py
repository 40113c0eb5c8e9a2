"""The page about the comparison: ``python -m benchmarks.patterns.page DIR... --docs docs``.

Takes the directories of some runs, and writes comparison.md and comparison/runs.js: tables over all
runs, from the lowest to the highest, and the plots of the last one. The words are in page.md.jinja.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jinja2

from benchmarks.patterns.results import ROWS, check
from benchmarks.patterns.workload import SYSTEMS

TEMPLATE = Path(__file__).with_name("page.md.jinja")
_AFTER_A_FAULT = ("pause", "delay_worst", "held_up", "duplicates", "lost")
_AFTER_A_MEMBER = ("held", "again_first", "again_last", *_AFTER_A_FAULT)
SHOWN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "parallel": ("rate", "busy", "settle_median", "lost"),
        "throughput": ("rate", "settle_median", "lost"),
        "blocking": ("delay_median", "delay_worst", "held_up", "lost"),
        "crash": _AFTER_A_MEMBER,
        "freeze": _AFTER_A_MEMBER,
        "tracker": _AFTER_A_MEMBER,
        "leader": _AFTER_A_FAULT,
    }
)
"""Which measures a scenario's table has."""
_PLOTTED = ("fault_at", "progress", "delays")
_WORST = ("broken", "held", "vacuous", "absent")


def spread(values: Sequence[float | None], unit: str) -> str:
    """Return values of several runs as one cell: the lowest to the highest."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return "-"
    ends = [_number(one) for one in (known[0], known[-1])]
    told = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
    return f"{told}{unit}"


def _number(value: float) -> str:
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def scenes(runs: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        for scene in run["scenes"]:
            found.setdefault(scene["name"], []).append(scene)
    return found


def table(played: Sequence[dict[str, Any]]) -> list[list[str]]:
    return [
        [words, *(_cell(played, system, name, unit) for system in SYSTEMS)]
        for words, name, unit in ROWS
        if name in SHOWN[played[-1]["name"]]
    ]


def _cell(played: Sequence[dict[str, Any]], system: str, name: str, unit: str) -> str:
    own = [scene["systems"][system] for scene in played if system in scene["systems"]]
    return spread([one[name] for one in own], unit)


def promises(runs: Sequence[dict[str, Any]]) -> list[tuple[str, str, list[str]]]:
    told = [one for run in runs for one in run["promises"].get(SYSTEMS[0], ())]
    rules = list(dict.fromkeys((one["rule"], one["sentence"]) for one in told))
    return [(rule, words, [_verdict(runs, one, rule) for one in SYSTEMS]) for rule, words in rules]


def _verdict(runs: Sequence[dict[str, Any]], system: str, rule: str) -> str:
    found = [one for run in runs for one in run["promises"].get(system, ()) if one["rule"] == rule]
    if not found:
        return "-"
    worst = min(found, key=lambda one: _WORST.index(one["verdict"]))
    cases, broken = (sum(one[name] for one in found) for name in ("cases", "broken"))
    counted = _number(cases) + (f", {_number(broken)} not so" if broken else "")
    if worst["why"]:
        return f"absent: {worst['why']}" + (f" ({counted})" if cases else "")
    return f"{worst['verdict']} ({counted})"


def write(runs: Sequence[dict[str, Any]], docs: Path) -> None:
    """Write the page and what its plots show."""
    for run in runs:
        check(run)
    played = scenes(runs)
    # It writes Markdown, of numbers and of words of ours, so there is nothing to escape.
    made = jinja2.Environment(  # noqa: S701
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True
    )
    text = made.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        runs=runs,
        last=runs[-1],
        scenes=played,
        tables={name: table(own) for name, own in played.items()},
        promises=promises(runs),
    )
    (docs / "comparison.md").write_text(text, encoding="utf-8")
    drawn = {
        name: {
            system: {each: found[each] for each in _PLOTTED}
            for system, found in own[-1]["systems"].items()
        }
        for name, own in played.items()
    }
    script = f"window.comparison = {json.dumps(drawn, separators=(',', ':'))};\n"
    (docs / "comparison" / "runs.js").write_text(script, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="directories that hold a patterns.json")
    parser.add_argument("--docs", type=Path, default=Path("docs"))
    options = parser.parse_args()
    runs = []
    for folder in options.runs:
        try:
            runs.append(json.loads((folder / "patterns.json").read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            parser.error(f"{folder} is no directory of a run: {error}")
    write(runs, options.docs)


if __name__ == "__main__":
    main()
