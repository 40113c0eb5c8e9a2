"""The record of what was played: verdicts of single runs, kept by release, and shown in tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reports.oracle.judging import Verdicts
from reports.plain import from_plain
from reports.results import ChaosRun
from suites.chaos.scenarios import SCENARIOS
from tools.documents.chaos import (
    PAGE,
    Played,
    Strikes,
    faults,
    filled,
    merged,
    played,
    read,
    scenarios,
    strikes_of,
    struck,
    verdict_of,
    write,
)

HELD, BROKEN = {0: (9, 0)}, {0: (9, 2), 1: (9, 0)}


def _record(**more: Any) -> ChaosRun:
    plain = {"run": "r", "scenario": "", "seed": 1, "seconds": 1.0, "produced": 1, "delivered": 1}
    plain |= {"drained": True, "owed": ["INV-01"], "trouble": [], "verdict": "pass", "faults": []}
    return from_plain(ChaosRun, plain | more)


@pytest.mark.parametrize(
    ("record", "found", "expected"),
    [
        ({}, {"INV-01": HELD}, ("pass", ())),
        ({}, {"INV-01": HELD, "INV-02": BROKEN}, ("fail", ("INV-02",))),
        ({}, {"INV-01": HELD, "INV-36": BROKEN}, ("known failure", ("INV-36",))),
        ({}, {"INV-02": BROKEN, "INV-36": BROKEN}, ("fail", ("INV-02",))),
        ({}, {"INV-02": HELD}, ("vacuous", ("INV-01",))),
        ({"verdict": "vacuous"}, {"INV-01": HELD}, ("vacuous", ())),
        ({"trouble": ["broker 1 ended by itself"]}, {"INV-01": HELD}, ("error", ())),
    ],
)
def test_a_run_has_one_verdict(
    record: dict[str, Any], found: Verdicts, expected: tuple[str, tuple[str, ...]]
) -> None:
    assert verdict_of(_record(**record), found, {"INV-36"}) == expected


def test_strikes_are_counted_by_kind() -> None:
    words = dict.fromkeys(("subject", "trouble", "blocked_by"), "")
    plain = {**words, **dict.fromkeys(("at", "lasts", "since", "until"), 1), "healed": "seen"}
    faults = [{"fault": "elect-leader", "hit": hit, **plain} for hit in ("seen", "")]
    counted = strikes_of(_record(faults=faults).faults)
    assert counted == {"elect-leader": Strikes(struck=2, hit=1, healed=2)}


def _played(name: str, release: str, verdict: str = "pass") -> Played:
    faults = {"elect-leader": Strikes(struck=3, hit=2, healed=3)}
    return Played(
        name=name,
        release=release,
        on="2026-11-22",
        seed=7,
        verdict=verdict,
        rules=(),
        faults=faults,
    )


def test_a_later_run_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    known = [_played("short", "4.2.1", "fail"), _played("short", "4.4.0")]
    now = merged(known, [_played("short", "4.2.1")])
    assert {one.verdict for one in now} == {"pass"}
    write(now, tmp_path / "scenarios.jsonl")
    assert read(tmp_path / "scenarios.jsonl") == sorted(now, key=lambda one: one.release)


def test_tables_count_what_was_struck() -> None:
    runs = [_played(name, "4.4.0") for name in SCENARIOS]
    runs += [_played("short", "4.1.1", "fail")]
    first = played(runs).splitlines()
    assert first[0] == "| scenario | 4.4.0 |"
    assert "| `short` | pass (2026-11-22) |" in first
    hits = f"| `elect-leader` | {2 * len(SCENARIOS)} of {3 * len(SCENARIOS)} hit, "
    assert any(line.startswith(hits) for line in struck(runs).splitlines())
    assert "| `kill-leader` | not played |" in struck(runs).splitlines()


def test_the_page_has_a_place_for_all_tables() -> None:
    page = (Path(__file__).parents[1] / PAGE).read_text(encoding="utf-8")
    tables = {faults(), scenarios(), played(read()), struck(read())}
    assert {table.rstrip() for table in tables} <= set(filled(page).split("\n\n"))
