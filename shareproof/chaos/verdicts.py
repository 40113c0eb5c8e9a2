"""Verdicts of chaos runs: on their histories, and whether their faults took effect.

An archive is judged again by ``shareproof rejudge ARCHIVE``: what do today's rules say about the
histories of earlier runs? It finds every judgement of histories at and below some directories,
judges the same histories once more, and says for each which verdicts are others than before. The
archive stays as it is; with ``--replace`` the new results and pages take the place of the old ones.
A judgement whose histories were not kept is named and left out.

The exit code is 0 if no verdict changed, 1 if one did, 3 if something could not be judged again.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from chaos.run import RECORD
from fixtures.history.compaction import bring_up_to_date
from fixtures.history.mirror import kept_at
from fixtures.interface.names import UsageFault
from fixtures.machine.cache import cache_root
from fixtures.machine.java import OLDEST, SWITCH_VARIABLE, find_java
from fixtures.machine.storage import place, reached, settings
from reports import html
from reports.analysis.analysis import analyse, analyse_all
from reports.analysis.judge import Request
from reports.analysis.session import ALL_BRANCHES
from reports.headlines import cases
from reports.results import ChaosRun, Results, RuleResult
from reports.site.archive import Archive, Comparison, compare, find, judged
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
        html.publish(folder, results, found.timelines)
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
    name = Path(run.run).name
    return [
        f"{name}: {case.rule}: {case.sentence}; this scenario is to judge {run.judged:.0%}"
        for case in cases(results, name)
        if case.rule in run.owed and case.share < run.judged
    ]


def _again(results: Results, rule: RuleResult, played: Sequence[ChaosRun]) -> str:
    broken = [check.check for check in rule.checks if check.verdict == rule.verdict]
    named = [one for one in played if any(c.endswith(f"[{Path(one.run).name}]") for c in broken)]
    file = f"{(named or played)[0].run}/schedule.json"
    return f"shareproof chaos --target {results.target.name} --schedule {shlex.quote(file)}"


Judge = Callable[[Sequence["Earlier"], bool], list[Results | EnvironmentFault]]
"""Judges many once more, and writes the results in place of the old ones if it is to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    folder: Path  # The directory of its ``results.json``.
    results: Results
    runs: tuple[Path, ...]  # The directories of the runs; empty if one of them is gone.
    lost: tuple[str, ...]  # The runs that are gone, as the results name them.

    @property
    def chaotic(self) -> bool:
        return self.results.chaos is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    folder: Path
    comparison: Comparison | None = None
    trouble: str = ""

    @property
    def lines(self) -> list[str]:
        if self.comparison is None:
            return [f"{self.folder}: not judged again: {self.trouble}"]
        changes = [one for found in self.comparison.changes.values() for one in found]
        details = [
            f"    {one.rule.id}  {one.before} -> {one.word}"
            + (f": {one.rule.reason}" if one.rule.reason else "")
            for one in changes
        ]
        return [f"{self.folder}: {self.comparison.sentence}", *details]

    @property
    def plain(self) -> dict[str, Any]:
        found = self.comparison.changes.values() if self.comparison else ()
        return {
            "run": str(self.folder),
            "trouble": self.trouble,
            "changed": [
                {"id": one.rule.id, "before": one.before, "now": one.word}
                for changes in found
                for one in changes
            ],
            "added": list(self.comparison.added if self.comparison else ()),
            "dropped": list(self.comparison.dropped if self.comparison else ()),
        }


def earlier(archive: Archive) -> list[Earlier]:
    found = [
        _earlier(run.folder, run.results)
        for run in archive.runs
        if run.results.distributions is not None  # only who judges a history measures it
    ]
    if not found:
        raise ValueError("no judged history there; certificates of brokers and clients have none")
    return found


def _earlier(folder: Path, results: Results) -> Earlier:
    names = [one.run for one in results.chaos or ()]
    names = names or [name.rpartition("/")[0] for name in results.distributions or ()]
    places = {name: _place(folder, place(name)) for name in names}
    lost = tuple(name for name, where in places.items() if where is None)
    runs = () if lost else tuple(where for where in places.values() if where)
    return Earlier(folder=folder, results=results, runs=runs, lost=lost)


def _place(folder: Path, run: Path) -> Path | None:
    beside = (folder / run.name, folder, folder.parent)
    named = [one for one in beside if one.name == run.name]
    for one in (*named, run, *beside):
        if (one / "history").is_dir():
            return one
    return None


def judged_again(found: Sequence[Earlier], replacing: bool) -> list[Results | EnvironmentFault]:
    settings = spark_settings([run for one in found for run in one.runs])
    made = [_request(one, settings, brief=not replacing) for one in found]
    requests = [one for one in made if isinstance(one, Request)]
    try:
        judgements = iter(analyse_all(requests, _quiet) if requests else [])
    except EnvironmentFault as fault:
        return [fault for _ in found]
    every: list[Results | EnvironmentFault] = []
    for one, request in zip(found, made, strict=True):
        new = request if isinstance(request, EnvironmentFault) else next(judgements)
        if isinstance(new, EnvironmentFault):
            every.append(new)
            continue
        played = [read(run) for run in one.runs] if one.chaotic else []
        results = with_chaos(new.results, played) if played else new.results
        if replacing:
            with kept_at(one.folder, _quiet) as folder:
                html.publish(folder, results, new.timelines)
        every.append(results)
    return every


def _request(
    one: Earlier, settings: Mapping[str, str], *, brief: bool
) -> Request | EnvironmentFault:
    run = one.results.run
    control = None
    if "--control" in run.command and not one.chaotic:
        control = place(run.command[run.command.index("--control") + 1])
    try:
        for each in one.runs:
            bring_up_to_date(each, _quiet)
        return Request(
            runs=one.runs,
            level=run.level,
            only=run.only,
            command=run.command,
            control=control,
            owed=dict.fromkeys(one.runs, ()) if one.chaotic else {},
            brief=brief,
            settings=settings,
        )
    except EnvironmentFault as fault:
        return fault


def rejudge(found: Sequence[Earlier], *, replace: bool, by: Judge = judged_again) -> list[Again]:
    results = iter(by([one for one in found if not one.lost], replace))
    judgements = []
    for one in found:
        if one.lost:
            gone = f"the history of {', '.join(one.lost)} was not kept"
            again = Again(folder=one.folder, trouble=gone)
        elif isinstance(now := next(results), EnvironmentFault):
            again = Again(folder=one.folder, trouble=str(now))
        else:
            again = Again(folder=one.folder, comparison=compare(judged(one.results), judged(now)))
        print("\n".join(again.lines), file=sys.stderr, flush=True)
        judgements.append(again)
    return judgements


def exit_code(judgements: Iterable[Again]) -> int:
    codes = [
        FAULT if again.comparison is None else BROKEN if again.comparison.changes else OK
        for again in judgements
    ]
    return max(codes, default=OK)


def _quiet(_: str) -> None:
    return


def rejudge_archive(places: Sequence[Path], *, replace: bool, as_json: bool) -> int:
    try:
        archive = find(list(places))
        found = earlier(archive)
    except ValueError as error:
        raise UsageFault(str(error)) from None
    for problem in archive.left_out:
        print(f"left out: {problem}", file=sys.stderr)
    judgements = rejudge(found, replace=replace)
    if as_json:
        print(json.dumps([again.plain for again in judgements], indent=1, ensure_ascii=False))
    changed = sum(bool(again.comparison and again.comparison.changes) for again in judgements)
    missed = sum(again.comparison is None for again in judgements) + len(archive.unreadable)
    print(
        f"{len(judgements)} judgements made again, {changed} with other verdicts, "
        f"{missed} impossible",
        file=sys.stderr,
    )
    return max(exit_code(judgements), FAULT if archive.unreadable else OK)
