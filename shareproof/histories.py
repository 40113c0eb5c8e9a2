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
from fixtures.machine.storage import alone, reached
from fixtures.targets import TargetOptions, UsageFault, open_target
from fixtures.targets.arguments import checked_prefix, parse_properties, resolve_target
from reports import html
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


def load(options: LoadOptions, console: Console) -> dict[str, object]:
    require("pyarrow", "numpy")
    from fixtures.history.mirror import kept_at  # noqa: PLC0415
    from fixtures.workload.hosts import hosts_of  # noqa: PLC0415
    from fixtures.workload.load import run_load  # noqa: PLC0415
    from fixtures.workload.plan import Load  # noqa: PLC0415

    if options.workers_on:
        require("pyspark")

    out = options.out.absolute()
    with reached(out):
        if (out / "history").exists():
            raise UsageFault(f"--out {out}: there is a history already; give a new directory.")
    target = resolve_target(options.target, options.command_config)
    prefix = checked_prefix(options.prefix, target)
    security = security_of(options.command_config)
    target_options = TargetOptions(brokers=options.brokers, security=security, prefix=prefix)
    cluster = open_target(target, target_options)
    hosts = hosts_of(options.workers_on, out, parse_properties("--conf", options.conf))

    def log(text: str) -> None:
        line(console, text)

    with kept_at(out, log) as folder:
        try:
            cluster.start()
            load = Load(
                seconds=options.seconds,
                rate=options.rate,
                seed=options.seed,
                processes=options.processes,
            )
            done = asyncio.run(run_load(load, cluster.info, folder, log, hosts=hosts))
        finally:
            cluster.stop()
    return {
        "produced": done.produced,
        "delivered": done.delivered,
        "acknowledged": done.acknowledged,
        "drained": done.drained,
        "interrupted": done.interrupted,
        "seconds": done.seconds,
        "history": str(out / "history"),
        "files": len(done.manifest.files),
    }


def analyse(options: AnalyseOptions, console: Console) -> Results:
    require("pyarrow", "pyspark")
    _known(options.only)
    from fixtures.history.mirror import kept_at  # noqa: PLC0415
    from reports.analysis.analysis import analyse  # noqa: PLC0415
    from reports.analysis.judge import Request  # noqa: PLC0415
    from shareproof.chaos.verdicts import spark_settings  # noqa: PLC0415

    places = [*options.runs, *([options.control] if options.control else [])]

    def log(text: str) -> None:
        line(console, text)

    _prepare(places, log)
    request = Request(
        runs=tuple(run.absolute() for run in options.runs),
        control=options.control.absolute() if options.control else None,
        master=options.master,
        memory=options.memory,
        level=options.level,
        only=options.only,
        brief=options.brief,
        settings={**spark_settings(places, options.master), **options.settings},
        command=tuple(sys.argv),
    )

    with alone(options.folder):
        with reached(options.runs[0]):
            found = analyse(request, log)
        with kept_at(options.folder, log) as folder:
            html.publish(folder, found.results, found.timelines)
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


def _prepare(runs: Iterable[Path], log: Callable[[str], None]) -> None:
    """Bring old histories up to date, and finish what a killed run could not."""
    require("numpy")
    from fixtures.history.compaction import bring_up_to_date  # noqa: PLC0415
    from reports.analysis.files import MANIFEST  # noqa: PLC0415

    for run in runs:
        with reached(run):
            if not run.is_dir():
                raise UsageFault(f"{run}: there is no such directory.")
            if not any((run / name).exists() for name in ("history", "journal", MANIFEST)):
                raise UsageFault(f"{run}: no history is there: give the directory of a run.")
        bring_up_to_date(run, log)
