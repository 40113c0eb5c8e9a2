"""What chaos runs were worth: Spark's verdict on their histories, and whether their faults hit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.run import RECORD
from fixtures.history.class_data import class_data_options
from fixtures.history.upgrading import is_old, upgrade
from reports import html, results
from reports.analysis.analysis import Request, analyse
from reports.results import Document
from reports.verdicts import BROKEN, FAULT, OK
from spec.requirement import Level
from spec.verdict import EnvironmentFault

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What is to be judged; ``only`` are rules, all if there are none."""

    runs: tuple[Path, ...]
    out: Path
    level: Level = Level.SHOULD
    only: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def judge(asked: Judging, tell: Tell) -> Document:
    """Judge the histories of runs, add what was broken in them, and write it all down.

    It may be done again and again, so that an archive of runs meets newer rules.

    Raises:
        EnvironmentFault: a directory holds no chaos run, or nothing of it can be judged.
    """
    records = {run: read(run) for run in asked.runs}
    for run in asked.runs:
        if is_old(run / "history"):
            tell(f"{run}: adding what an earlier release did not write")
            upgrade(run / "history")
    request = Request(
        runs=asked.runs,
        out=asked.out,
        level=asked.level,
        only=asked.only,
        owed={run: tuple(record["owed"]) for run, record in records.items()},
        command=asked.command,
        settings={"spark.driver.defaultJavaOptions": class_data_options()},
    )
    document = analyse(request, tell)
    document["chaos"] = [{"run": str(run), **record} for run, record in records.items()]
    document["run"]["faults"] += [
        f"{run.name}: {trouble}" for run, record in records.items() for trouble in record["trouble"]
    ]
    document["run"]["exit_code"] = exit_code(document)
    for rule in document["requirements"]:
        if rule["reproduce"]:
            rule["reproduce"] = _again(document, rule)
    results.write(asked.out, document)
    html.write(asked.out, document)
    return document


def read(run: Path) -> dict[str, Any]:
    """Return what a run broke.

    Raises:
        EnvironmentFault: there is no such run.
    """
    try:
        record: dict[str, Any] = json.loads((run / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise EnvironmentFault(f"{run}: no chaos run ({error})") from None
    return record


def exit_code(document: Document) -> int:
    """Return the exit code: that of the verdicts, unless faults missed or something else broke."""
    code = int(document["run"]["exit_code"])
    if code != OK:
        return code
    if any(record["trouble"] for record in document["chaos"]):
        return FAULT
    return BROKEN if any(record["verdict"] != "pass" for record in document["chaos"]) else OK


def _again(document: Document, rule: dict[str, Any]) -> str:
    """Return the command that plays the schedule again in which a rule was broken, or the first."""
    broken = [check["check"] for check in rule["checks"] if check["verdict"] == rule["verdict"]]
    chaos: Sequence[dict[str, Any]] = document["chaos"]
    named = [one for one in chaos if any(c.endswith(f"[{Path(one['run']).name}]") for c in broken)]
    target = document["target"]["name"]
    run = (named or chaos)[0]["run"]
    return f"shareproof chaos --target {target} --schedule {run}/schedule.json"
