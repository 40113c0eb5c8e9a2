"""Verdicts of chaos runs: on their histories, and whether their faults took effect."""

import contextlib
import hashlib
import importlib.util
import json
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from chaos.run import RECORD
from fixtures.history.compaction import bring_up_to_date
from fixtures.history.mirror import kept_at
from fixtures.machine.cache import cache_root
from fixtures.machine.java import OLDEST, SWITCH_VARIABLE, find_java
from fixtures.machine.storage import reached, settings
from reports import writer
from reports.analysis.analysis import analyse
from reports.analysis.request import Request
from reports.analysis.session import ALL_BRANCHES
from reports.headlines import cases
from reports.results import ChaosRun, Results, RuleResult
from reports.verdicts import BROKEN, FAULT, OK
from spec.plain import from_plain
from spec.verdict import EnvironmentFault

Log = Callable[[str], None]
KEPT = 4
"""How many archives of Spark's classes there may be."""


def judge(request: Request, out: Path, log: Log) -> Results:
    """Judge the histories of runs, add the faults injected, and write all of it to ``out``."""
    with reached(request.runs[0]):
        played = [read(run) for run in request.runs]
        for run in request.runs:
            bring_up_to_date(run, log)
        whole = replace(
            request,
            owed={
                run: one.owed if request.strict else ()
                for run, one in zip(request.runs, played, strict=True)
            },
            settings={**spark_settings(request.runs, request.master), **request.settings},
        )
        found = analyse(whole, log)
    results = with_chaos(found.results, played, strict=request.strict)
    with kept_at(out, log) as folder:
        writer.publish(folder, results, found.timelines)
    return results


def spark_settings(runs: Iterable[Path], master: str = "local[*]") -> dict[str, str]:
    options = class_data_options()
    with contextlib.suppress(EnvironmentFault):  # Spark says so when it is started
        # These help Java 17 alone; the newest that was measured is 25.
        options = f"{options} {ALL_BRANCHES if find_java().major <= OLDEST else ''}"
    return {"spark.driver.defaultJavaOptions": options.strip(), **settings(runs, master)}


def class_data_options() -> str:
    """Return the JVM options that map Spark's classes from an archive, which starts it sooner.

    The first judgement on a machine leaves the archive, while its JVM exits. It belongs to one
    Java and one PySpark, and the JVM ignores one that is not whole or does not fit, so nothing has
    to be locked or checked.
    """
    home, spark = os.environ.get("JAVA_HOME"), importlib.util.find_spec("pyspark")
    java = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "")
    if os.environ.get(SWITCH_VARIABLE) == "off" or not java.is_file() or spark is None:
        return ""
    jars = Path(spark.origin or "").parent / "jars"
    seen = [f"{path} {path.stat().st_mtime_ns}" for path in (java.resolve(), jars)]
    identity = hashlib.sha256("\n".join(seen).encode()).hexdigest()[:12]
    archive = cache_root() / f"spark-classes-{identity}.jsa"
    use = "SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit"
    if not archive.exists():
        # Each fresh environment leaves one of 180 MB. Another process may remove them, too.
        with contextlib.suppress(OSError):
            found = archive.parent.glob("spark-classes-*.jsa")
            for old in sorted(found, key=lambda file: file.stat().st_mtime)[: 1 - KEPT]:
                old.unlink()
    return f"-XX:{use}={archive} -Xlog:cds=off -Xlog:cds+dynamic=off"


def read(run: Path) -> ChaosRun:
    try:
        record = json.loads((run / RECORD).read_text(encoding="utf-8"))
        return from_plain(ChaosRun, {**record, "run": str(run)})
    except (OSError, ValueError, TypeError) as error:
        raise EnvironmentFault(f"{run}: no chaos run ({error})") from None


def with_chaos(results: Results, played: Sequence[ChaosRun], *, strict: bool = False) -> Results:
    """Return results with the faults injected; ``strict``: one that never hit is no pass."""
    trouble = [f"{Path(one.run).name}: {what}" for one in played for what in one.trouble]
    missed = []
    for one in played:
        if one.verdict != "pass" and (strict or not any(each.hit for each in one.faults)):
            unseen = dict.fromkeys(each.fault for each in one.faults if not each.hit)
            missed.append(f"{Path(one.run).name}: not seen to take effect: {', '.join(unseen)}")
    if strict:
        missed += [sentence for one in played for sentence in excused_too_much(results, one)]
    code = results.run.exit_code
    if code == OK:
        code = FAULT if trouble else BROKEN if missed else OK
    notes = [f"{Path(one.run).name}: {what}" for one in played for what in one.notes]
    run = replace(
        results.run,
        errors=(*results.run.errors, *trouble, *missed),
        notices=(*results.run.notices, *notes),
        exit_code=code,
    )
    again = tuple(
        replace(rule, reproduce=_again(results, rule, played)) if rule.reproduce else rule
        for rule in results.rules
    )
    return replace(results, run=run, rules=again, chaos=tuple(played))


def excused_too_much(results: Results, run: ChaosRun) -> list[str]:
    """Return a sentence for each rule of which a run excused more cases than it may."""
    name = Path(run.run).name
    return [
        f"{name}: {case.rule}: {case.sentence}; this scenario is to judge {run.judged:.0%}"
        for case in cases(results, name)
        if case.rule in run.owed and case.share < run.judged
    ]


def _again(results: Results, rule: RuleResult, played: Sequence[ChaosRun]) -> str:
    broken = [check.check for check in rule.checks if check.verdict == rule.verdict]
    named = [one for one in played if any(c.endswith(f"[{Path(one.run).name}]") for c in broken)]
    run = (named or played)[0].run
    return f"shareproof chaos --target {results.target.name} --schedule {run}/schedule.json"
