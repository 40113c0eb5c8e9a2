"""A night: random schedules one after the other, each played and judged by a process of its own.

Whatever becomes of such a process, the night goes on: one that takes too long is interrupted, and
then killed, and a history that it left behind is judged. What was played is kept in night.json
after each run, so that a night that was stopped goes on where it was. At the end, what broke a rule
that no ledger has is played again and shrunk, and the pages are built.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from chaos.fitting import fitting, offered, usual_proxies
from reports.nights import RECORD, Night, Play, Shrunk, find, play_of, read
from reports.plain import text_of
from reports.reading import read as read_results
from reports.site.archive import Archive
from reports.site.archive import find as runs_in
from reports.site.build import build
from reports.verdicts import FAULT, OK, USAGE
from reports.writing import write_whole
from shareproof.chaos.again import earlier, rejudge
from shareproof.chaos.again import exit_code as changed_verdicts
from shareproof.chaos.shrinking import SHRUNK, kinds_of
from shareproof.detected import detection
from shareproof.options import NightOptions

Tell = Callable[[str], None]
MINUTE = 60.0
INTERRUPTED = 130
_SPARE = 1_000_000_000
"""Bytes that must be free where a night keeps its runs, or it ends."""
_LOST = 3
"""So many runs in a row that left nothing to judge end a night."""
_PATIENCE = 20 * MINUTE
"""Seconds beyond three times its load that a run may take, start, drain and verdict included."""
_ENDING = 5 * MINUTE
"""Seconds that an interrupted run may take to drain and to judge what it has."""


class Stop(Exception):
    """Somebody wants the night to end."""


def spend(asked: NightOptions, tell: Tell) -> tuple[Night, int]:
    """Play a night, or go on with one; return what came of it, and the exit code."""
    night = _resumed(asked, tell) if asked.resume else None
    night = night or new_night(asked)
    folder = asked.archive / night.name
    folder.mkdir(parents=True, exist_ok=True)
    changed = _judge_again(asked, folder, tell)
    night, stopped = _keep(night, folder), False
    with _stopping():
        try:
            night = _played(night, folder, asked, tell)
            night = _confirmed(night, folder, asked, tell)
        except Stop:
            stopped = True
            night = read(folder)
            tell("stopped; --resume goes on with it")
    if not stopped:
        night = _keep(replace(night, ended=_now()), folder)
    tell(f"page: {_build(asked, night)}")
    return night, INTERRUPTED if stopped else max(night.exit_code, changed)


def _resumed(asked: NightOptions, tell: Tell) -> Night | None:
    """Return the latest night of the archive if it did not end."""
    nights = find(asked.archive) if asked.archive.is_dir() else ()
    if not nights or nights[-1][1].ended:
        tell("no night to resume; beginning a new one")
        return None
    night = nights[-1][1]
    tell(f"resuming {night.name} after {len(night.plays)} runs")
    return night


def _judge_again(asked: NightOptions, folder: Path, tell: Tell) -> int:
    """Return 0 if no verdict of the latest runs changed, and otherwise what judging again says."""
    if not asked.rejudge or next(asked.archive.rglob("results.json"), None) is None:
        return OK
    try:
        known = [
            one for one in earlier(runs_in([asked.archive])) if folder not in one.folder.parents
        ]
    except ValueError as nothing:
        tell(f"nothing to judge again: {nothing}")
        return OK
    tell(f"judging the latest {len(known[-asked.rejudge :])} runs of earlier nights again")
    return changed_verdicts(rejudge(known[-asked.rejudge :], replace=False))


def _played(night: Night, folder: Path, asked: NightOptions, tell: Tell) -> Night:
    """Play schedules until the time is over, one at least."""
    while not night.plays or night.spent < night.hours * 3600:
        free = shutil.disk_usage(folder).free
        if free < _SPARE:
            said = f"{free / 1e9:.1f} GB free in {asked.archive}: a night needs 1 GB"
            tell(said)
            return _keep(replace(night, trouble=said), folder)
        seed = night.seed + len(night.plays)
        proxies = usual_proxies(night.target, ())
        offers = offered(night.target, brokers=asked.brokers, proxies=proxies)
        kinds = kinds_of(seed, fitting((), offers))
        began = time.monotonic()
        left = f"{max(0.0, night.hours * 60 - night.spent / 60):.0f} minutes left"
        tell(f"seed {seed}, {left}: {', '.join(kinds)}")
        play = Play(
            seed=seed,
            run=f"seed-{seed}",
            faults=kinds,
            began=_now(),
            seconds=0,
            exit_code=FAULT,
        )
        _put_aside(folder / play.run)
        options = ["--seed", str(seed), "--minutes", f"{night.minutes:g}", "--overlap"]
        options += [night.overlap, "--faults", ",".join(kinds)]
        play = _run(night, folder, asked, play, options=options)
        took = time.monotonic() - began
        play = replace(play, seconds=round(took, 1))
        tell(f"seed {seed}: exit code {play.exit_code} after {took:.0f} s, {_said(play)}")
        night = replace(night, plays=(*night.plays, play), spent=night.spent + took)
        lost = [one for one in night.plays[-_LOST:] if not one.exercised]
        if play.exit_code == USAGE or len(lost) == _LOST:
            said = f"nothing to judge of the latest runs: {play.trouble[-1]}"
            tell(said)
            return _keep(replace(night, trouble=said), folder)
        night = _keep(night, folder)
    return night


def _put_aside(run: Path) -> None:
    """Keep what a night that was stopped left of a run, which is played again."""
    for number in range(1, 100) if run.exists() else ():
        aside = run.with_name(f"{run.name}.stopped-{number}")
        if not aside.exists():
            run.rename(aside)
            return


def _run(
    night: Night,
    folder: Path,
    asked: NightOptions,
    play: Play,
    *,
    options: Sequence[str],
    name: str = "",
) -> Play:
    """Play and judge in a process of its own; return what its results say."""
    run = folder / (name or play.run)
    command = ["chaos", "--target", night.target, "--brokers", str(asked.brokers)]
    command += ["--rate", f"{night.rate:g}", "--out", str(run), *options]
    log = run.with_name(f"{run.name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    code = _child(command, log, 3 * night.minutes * MINUTE + _PATIENCE)
    if not (run / "results.json").is_file() and (run / "history").is_dir():
        # The process died, or its Spark did; what it recorded is there.
        rejudging = ["chaos", "--rejudge", str(run), "--out", str(run)]
        if not (run / "chaos.json").is_file():
            rejudging = ["analyse", str(run), "--out", str(run)]
        code = _child(rejudging, log, _PATIENCE)
    try:
        return play_of(read_results(run), play)
    except ValueError:
        return replace(play, exit_code=code or FAULT, trouble=(_last_line(log),))


def _child(command: Sequence[str], log: Path, limit: float) -> int:
    """Run a command of ours; one beyond its limit is interrupted, and killed if that is no use."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "shareproof", *command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # Ctrl-C is ours alone; we pass it on
        )
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return _ended(process)
    except Stop:
        _ended(process)
        raise


def _ended(process: subprocess.Popen[bytes]) -> int:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        return process.wait(_ENDING)
    except (subprocess.TimeoutExpired, Stop):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


@contextmanager
def _stopping() -> Iterator[None]:
    """Have Ctrl-C, and whoever ends a job of CI, end the night in an orderly way."""

    def stop(*_: object) -> None:
        raise Stop

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _confirmed(night: Night, folder: Path, asked: NightOptions, tell: Tell) -> Night:
    """Play again what broke a rule that no ledger has, and shrink the first of it."""
    for number, play in enumerate(night.plays):
        now = play
        while now.broken and len(now.replays) < asked.confirm:
            tell(f"replay {len(now.replays) + 1} of seed {play.seed}: {', '.join(now.broken)}")
            run = f"replays/{play.run}-{len(now.replays) + 1}"
            _put_aside(folder / run)
            options = ["--schedule", str(folder / play.run / "schedule.json")]
            again = _run(night, folder, asked, play, options=options, name=run)
            now = replace(now, replays=(*now.replays, again.broken))
            night = _with(night, number, now, folder)
    failed = [number for number, play in enumerate(night.plays) if play.broken]
    for number in failed[: asked.shrink_most]:
        play = night.plays[number]
        if play.shrunk is None:
            tell(f"shrinking seed {play.seed}")
            command = ["night", "--shrink", str(folder / play.run), "--target", night.target]
            command += ["--rate", f"{night.rate:g}"]
            _child(command, folder / f"{play.run}.shrinking.log", 2 * 3600)
            night = _with(night, number, replace(play, shrunk=_shrunk(folder, play)), folder)
    return night


def _with(night: Night, number: int, play: Play, folder: Path) -> Night:
    plays = (*night.plays[:number], play, *night.plays[number + 1 :])
    return _keep(replace(night, plays=plays), folder)


def _shrunk(folder: Path, play: Play) -> Shrunk:
    log = (folder / f"{play.run}.shrinking.log").read_text(encoding="utf-8", errors="replace")
    found = re.findall(r"^INV[^:\n]*: (.+)\n(fails \d+ of \d+)", log, re.MULTILINE)
    file = f"{play.run}/{SHRUNK}"
    if found:
        faults, reliability = found[-1]
        return Shrunk(faults=faults, reliability=reliability, file=file)
    if (folder / file).is_file():
        return Shrunk(faults="", reliability="shrinking did not end", file=file)
    return Shrunk(faults="", reliability="not reproduced", file="")


def _said(play: Play) -> str:
    """Return in a few words what a night has to know of a run."""
    known = [one.rule for one in play.failures if one.known]
    said = {
        "broken": play.broken,
        "known failures": known,
        "not seen to hit": [one.fault for one in play.missed],
        "went wrong": play.trouble,
    }
    words = [f"{what}: {', '.join(which)}" for what, which in said.items() if which]
    return "; ".join(words) or "nothing broken"


def _build(asked: NightOptions, night: Night) -> Path:
    """Build the pages of the archive; return that of the night."""
    try:
        archive = runs_in([asked.archive])
    except ValueError:
        archive = Archive(runs=())
    assert asked.site is not None
    build(archive, asked.site, detection(), nights=find(asked.archive))
    return asked.site / "nights" / f"{night.name}.html"


def _keep(night: Night, folder: Path) -> Night:
    write_whole(folder / RECORD, text_of(night))
    return night


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def new_night(asked: NightOptions) -> Night:
    began = _now()
    return Night(
        name=f"night-{re.sub(r'[^0-9]', '', began)[:12]}-{asked.seed}",
        target=asked.target,
        seed=asked.seed,
        minutes=asked.minutes,
        hours=asked.hours,
        overlap=asked.overlap,
        rate=asked.rate,
        began=began,
    )
