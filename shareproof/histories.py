"""The commands that record and judge histories; they need the extra ``judge``.

What they need is imported when they are called, so that everything else works without it.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from fixtures.interface.credentials import security_of
from fixtures.machine.storage import reached
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.targets.asked import asked_prefix, asked_properties, asked_target
from reports import writing
from reports.console import line
from reports.results import Results

if TYPE_CHECKING:
    from shareproof.options import AnalyseOptions, LoadOptions


def require(*modules: str) -> None:
    """Raise UsageFault with the one sentence that helps, if a module is missing."""
    if any(importlib.util.find_spec(module) is None for module in modules):
        raise UsageFault(
            "Histories need PyArrow and PySpark: pip install 'shareproof[judge]', and Java 17."
        )


def load(asked: LoadOptions, console: Console) -> dict[str, object]:
    """Put load on a target, leave its history in ``out`` and return what came of it."""
    require("pyarrow", "numpy")
    from fixtures.history.mirror import kept_at  # noqa: PLC0415
    from fixtures.workload.hosts import hosts_of  # noqa: PLC0415
    from fixtures.workload.load import run_load  # noqa: PLC0415
    from fixtures.workload.plan import Load  # noqa: PLC0415

    if asked.workers_on:
        require("pyspark")

    out = asked.out.absolute()
    with reached(out):
        if (out / "history").exists():
            raise UsageFault(f"--out {out}: there is a history already; give a new directory.")
    target = asked_target(asked.target, asked.command_config)
    prefix = asked_prefix(asked.prefix, target)
    security = security_of(asked.command_config)
    options = TargetOptions(brokers=asked.brokers, security=security, prefix=prefix)
    cluster = open_target(target, options)

    def tell(text: str) -> None:
        line(console, text)

    with kept_at(out, tell) as folder:
        try:
            cluster.start()
            load = Load(
                seconds=asked.seconds, rate=asked.rate, seed=asked.seed, processes=asked.processes
            )
            hosts = hosts_of(asked.workers_on, out, asked_properties("--conf", asked.conf))
            done = asyncio.run(run_load(load, cluster.info, folder, tell, hosts=hosts))
        finally:
            cluster.stop()
    return {
        "produced": done.produced,
        "delivered": done.delivered,
        "acknowledged": done.acknowledged,
        "drained": done.drained,
        "seconds": done.seconds,
        "history": str(out / "history"),
        "files": len(done.manifest.files),
    }


def analyse(asked: AnalyseOptions, console: Console) -> Results:
    require("pyarrow", "pyspark")
    _known(asked.only)
    from fixtures.history.mirror import kept_at  # noqa: PLC0415
    from reports.analysis.analysis import analyse  # noqa: PLC0415
    from reports.analysis.request import Request  # noqa: PLC0415
    from shareproof.chaos.judging import spark_settings  # noqa: PLC0415

    places = [*asked.runs, *([asked.control] if asked.control else [])]

    def tell(text: str) -> None:
        line(console, text)

    _prepare(places, tell)
    request = Request(
        runs=tuple(run.absolute() for run in asked.runs),
        control=asked.control.absolute() if asked.control else None,
        master=asked.master,
        memory=asked.memory,
        level=asked.level,
        only=asked.only,
        brief=asked.brief,
        settings={**spark_settings(places, asked.master), **asked.settings},
        command=tuple(sys.argv),
    )

    with reached(asked.runs[0]):
        found = analyse(request, tell)
    with kept_at(asked.folder, tell) as folder:
        writing.publish(folder, found.results, found.timelines)
    return found.results


def _known(only: Iterable[str]) -> None:
    from reports.analysis.rules import load_invariants  # noqa: PLC0415

    rules = {rule.id for rule in load_invariants()}
    for word in only:
        if word not in {*rules, *(rule[:3] for rule in rules)}:
            raise UsageFault(
                f"--only {word}: no history is judged by that; these rules are: "
                f"{', '.join(sorted(rules))}."
            )


def _prepare(runs: Iterable[Path], tell: Callable[[str], None]) -> None:
    """Finish what a killed run could not, and bring old histories up to date.

    The journals of a killed run hold all but its last second.
    """
    require("numpy")
    from fixtures.history.compaction import bring_up_to_date  # noqa: PLC0415
    from reports.analysis.files import MANIFEST  # noqa: PLC0415

    for run in runs:
        with reached(run):
            if not run.is_dir():
                raise UsageFault(f"{run}: there is no such directory.")
            if not any((run / name).exists() for name in ("history", "journal", MANIFEST)):
                raise UsageFault(f"{run}: no history is there: give the directory of a run.")
        bring_up_to_date(run, tell)
