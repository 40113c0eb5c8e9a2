"""The document that a run leaves: measures and promises of each system, side by side."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import psutil

from benchmarks.patterns.measures import measure
from benchmarks.patterns.promises import judged
from benchmarks.patterns.scenes import NOTICED_MS, PARTITIONS, SCENES
from benchmarks.patterns.stage import Played
from benchmarks.patterns.workload import NAMES, SYSTEMS
from fixtures.adapters.versions import NEWEST
from fixtures.targets import Target

SCHEMA = 1
FILE = Path(__file__).with_name("results.schema.json")


def document(
    played: Sequence[Played], target: Target, options: argparse.Namespace, partial: str
) -> dict[str, Any]:
    """Return the results of all scenarios that were played; ``partial`` says what ended that.

    Raises:
        jsonschema.ValidationError: they do not fit their own schema.
    """
    scenes: dict[str, dict[str, Any]] = {}
    for one in played:
        scene = one.scene
        found = scenes.setdefault(
            scene.name,
            {
                "name": scene.name,
                "question": scene.question,
                "fault": scene.fault.value,
                "members": scene.members,
                "partitions": PARTITIONS,
                "handler_ms": scene.handler_ms,
                "records": scene.records(options.seconds),
                "batch": scene.batch,
                "systems": {},
            },
        )
        for system, course in one.courses.items():
            fault = one.faults.get(system)
            at = None if fault is None else round((fault - one.began) / 1e9, 3)
            measures = measure(course, one.began, fault).to_json()
            found["systems"][system] = {"fault_at": at, "drained": course.drained, **measures}
    told = [one for one in played if one.scene.judged]
    promises = {
        system: judged(system, courses, options.out / "histories" / system, target.version)
        for system in SYSTEMS
        if (courses := [one.courses[system] for one in told if system in one.courses])
    }
    found = {
        "schema": SCHEMA,
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": _command(options),
        "partial": partial,
        "note": options.note,
        "target": {"name": target.name, "version": target.version, "brokers": options.brokers},
        "client": f"confluent-kafka {NEWEST['confluent']}",
        "machine": _machine(),
        "seconds": options.seconds,
        "noticed_ms": NOTICED_MS,
        "scenes": list(scenes.values()),
        "promises": promises,
    }
    check(found)
    return found


def check(found: dict[str, Any]) -> None:
    """Raise a ValidationError unless a document fits the schema."""
    jsonschema.validate(json.loads(json.dumps(found)), json.loads(FILE.read_text(encoding="utf-8")))


def _command(options: argparse.Namespace) -> str:
    """Return what to type for a run like this, into a directory of one's own."""
    wanted = ["--target", options.target, "--brokers", str(options.brokers)]
    wanted += ["--seconds", f"{options.seconds:g}"]
    for name, known in (("scenes", SCENES), ("systems", SYSTEMS)):
        if (said := getattr(options, name)) != ",".join(known):
            wanted += [f"--{name}", said]
    return shlex.join(["python", "-m", "benchmarks.patterns", *wanted, "--out", "DIR"])


def _machine() -> dict[str, Any]:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = [
            one
            for one in info.read_text(encoding="utf-8").splitlines()
            if one.startswith("model name")
        ]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    return {
        "processor": model,
        "cores": os.cpu_count() or 0,
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "system": platform.system(),
        "load": round(os.getloadavg()[0], 1),
    }


ROWS: tuple[tuple[str, str, str], ...] = (
    ("records a second", "rate", ""),
    ("members that worked", "busy", ""),
    ("time to acknowledge, median", "settle_median", " s"),
    ("delay, median", "delay_median", " s"),
    ("delay, worst", "delay_worst", " s"),
    ("delayed for over 1 s", "held_up", ""),
    ("held by the failed member", "held", ""),
    ("first redelivery of these after", "again_first", " s"),
    ("last redelivery of these after", "again_last", " s"),
    ("pause of partition 0", "pause", " s"),
    ("processed more than once", "duplicates", ""),
    ("lost", "lost", ""),
)
"""What a table says: words, the measure, its unit."""


def cell(found: dict[str, Any] | None, name: str, unit: str) -> str:
    value = None if found is None else found[name]
    if value is None:
        return "-"
    return f"{value:,.2f}{unit}" if isinstance(value, float) else f"{value:,}{unit}"


def table(found: dict[str, Any]) -> str:
    lines: list[str] = []
    for scene in found["scenes"]:
        lines += ["", f"{scene['name']}: {scene['question']} ({scene['fault']})"]
        lines.append(f"  {'':<34}" + "".join(f"{NAMES[one]:>16}" for one in SYSTEMS))
        for words, name, unit in ROWS:
            cells = [cell(scene["systems"].get(one), name, unit) for one in SYSTEMS]
            if any(one not in ("-", "0") for one in cells) or name == "lost":
                lines.append(f"  {words:<34}" + "".join(f"{one:>16}" for one in cells))
    lines += ["", "promises (cases, broken)"]
    for system, promises in found["promises"].items():
        for one in promises:
            told = f"{one['cases']:,}, {one['broken']:,}"
            line = f"  {NAMES[system]:<16}{one['rule']:<8}{one['verdict']:<9}{told:>16}"
            why = f" ({one['why']})" if one["why"] else ""
            lines.append(f"{line}  {one['sentence']}{why}")
    return "\n".join(lines)
