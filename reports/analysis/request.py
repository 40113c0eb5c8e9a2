"""What is asked of the judge, and what it gives back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reports.analysis.files import History
from reports.analysis.judge import Found
from reports.results import Measure, Reached, Results
from spec.rule import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for."""

    runs: tuple[Path, ...]  # The runs to judge.
    # A run without faults that broken rules are compared with; its own verdicts do not count.
    # Without it, one of the runs serves if nothing was done to it.
    control: Path | None = None
    master: str = "local[*]"
    memory: str = "1g"
    level: Level = Level.SHOULD
    only: tuple[str, ...] = ()
    # The rules that each run had to put to the test, where that is not what it says itself. That it
    # never exercised another one is not held against it.
    owed: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    ledger: str = ""  # What the runs say unless given, as the version.
    version: str = ""
    # Verdicts and witnesses only: no distributions, states, timeline or stories.
    brief: bool = False
    # Whether chaos runs are held to what they owe: rules, faults and cases not excused.
    strict: bool = False
    command: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What was found: the results, and by history what a page draws of it."""

    results: Results
    timelines: Mapping[str, Any]


@dataclass(slots=True)
class Judged:
    """One history with what was found in it."""

    history: History
    found: dict[str, Found]
    distributions: list[Measure]
    reached: list[Reached]
    drawn: dict[str, Any]
