"""A night: random schedules one after the other, each played and judged by a process of its own.

The night goes on whatever happens to such a process: one that takes too long is interrupted, and
then killed, and a history that it left behind is judged. What was played is kept in night.json
after each run, so that a night that was stopped goes on where it was. At the end, what broke a rule
that no ledger has is played again and shrunk, and the pages are built.

The many plays that shrinking takes share a cluster for as long as it stays whole, and are judged by
the oracle, which needs no Spark.
"""

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chaos.capabilities import offered, playable, usual_proxies
from chaos.faults import Fault
from chaos.run import ChaosTest, RunningTarget, running, usual_load
from chaos.schedule import Schedule, described, shrink
from fixtures.targets import UsageFault
from reports.analysis.files import open_history
from reports.nights import RECORD, Night, Play, Shrunk, find, play_of, read
from reports.oracle import judge as oracle
from reports.reader import read as read_results
from reports.site.archive import Archive
from reports.site.archive import find as runs_in
from reports.site.build import build
from reports.verdicts import BROKEN, FAULT, INTERRUPTED, OK, USAGE
from shareproof.chaos.verdicts import earlier, rejudge
from shareproof.chaos.verdicts import exit_code as changed_verdicts
from shareproof.detected import detection
from shareproof.options import NightOptions
from spec.plain import text_of, write_atomically

Log = Callable[[str], None]
MINUTE = 60.0
_SPARE = 1_000_000_000  # bytes that must be free where a night keeps its runs, or it ends
_LOST = 3  # so many runs in a row that left nothing to judge end a night
_PATIENCE = 20 * MINUTE
"""Seconds beyond three times its load that a run may take, start, drain and verdict included."""
_ENDING = 5 * MINUTE  # seconds that an interrupted run may take to drain and to judge what it has


SHRUNK = "shrunk.json"
TRIES, REPLAYS, MOST = 3, 10, 40
"""Plays of a smaller schedule, of the smallest one, and of all smaller ones together."""
_SOME = (3, 7)  # how many kinds of fault a schedule of a night has, at least and at most
_DRAIN = 20.0  # seconds that the groups of a smaller schedule may take to reach the end


class Stop(Exception):
    """The night is to end: Ctrl-C, or a signal."""


def spend(options: NightOptions, log: Log) -> tuple[Night, int]:
    nights = find(options.archive) if options.resume and options.archive.is_dir() else ()
    night = new_night(options)
    if nights and not nights[-1][1].ended:
        night = nights[-1][1]
        log(f"resuming {night.name} after {len(night.plays)} runs")
    elif options.resume:
        log("no night to resume; beginning a new one")
    return _Spending(options, night, log).spend()


def new_night(options: NightOptions) -> Night:
    began = _now()
    return Night(
        name=f"night-{re.sub(r'[^0-9]', '', began)[:12]}-{options.seed}",
        target=options.target,
        seed=options.seed,
        minutes=options.minutes,
        hours=options.hours,
        overlap=options.overlap.value,
        rate=options.rate,
        began=began,
    )


class _Spending:
    def __init__(self, options: NightOptions, night: Night, log: Log) -> None:
        self.options, self.night, self.log = options, night, log
        self.folder = options.archive / night.name

    def spend(self) -> tuple[Night, int]:
        self.folder.mkdir(parents=True, exist_ok=True)
        changed = self._judge_again()
        self._keep()
        stopped = False
        with _stopping():
            try:
                self._play()
                self._confirm()
                self._shrink()
            except Stop:
                stopped = True
                self.night = read(self.folder)
                self.log("stopped; --resume goes on with it")
        if not stopped:
            self._keep(ended=_now())
        self.log(f"page: {self._build()}")
        return self.night, INTERRUPTED if stopped else max(self.night.exit_code, changed)

    def _keep(self, **changes: Any) -> None:
        self.night = replace(self.night, **changes)
        write_atomically(self.folder / RECORD, text_of(self.night))

    def _keep_play(self, number: int, play: Play) -> None:
        plays = self.night.plays
        self._keep(plays=(*plays[:number], play, *plays[number + 1 :]))

    def _judge_again(self) -> int:
        most, archive = self.options.rejudge, self.options.archive
        if not most or next(archive.rglob("results.json"), None) is None:
            return OK
        try:
            known = [e for e in earlier(runs_in([archive])) if self.folder not in e.folder.parents]
        except ValueError as nothing:
            self.log(f"nothing to judge again: {nothing}")
            return OK
        self.log(f"judging the latest {len(known[-most:])} runs of earlier nights again")
        return changed_verdicts(rejudge(known[-most:], replace=False))

    def _play(self) -> None:
        while not self.night.plays or self.night.spent < self.night.hours * 3600:
            free = shutil.disk_usage(self.folder).free
            trouble = ""
            if free < _SPARE:
                trouble = f"{free / 1e9:.1f} GB free in {self.options.archive}: a night needs 1 GB"
            else:
                self._play_one(self.night.seed + len(self.night.plays))
                plays = self.night.plays
                lost = [one for one in plays[-_LOST:] if not one.exercised]
                if plays[-1].exit_code == USAGE or len(lost) == _LOST:
                    trouble = f"nothing to judge of the latest runs: {plays[-1].trouble[-1]}"
            if trouble:
                self.log(trouble)
                self._keep(trouble=trouble)
                return

    def _play_one(self, seed: int) -> None:
        night, began = self.night, time.monotonic()
        proxies = usual_proxies(night.target, ())
        offers = offered(night.target, brokers=self.options.brokers, proxies=proxies)
        kinds = kinds_of(seed, playable((), offers))
        left = f"{max(0.0, night.hours * 60 - night.spent / 60):.0f} minutes left"
        self.log(f"seed {seed}, {left}: {', '.join(kinds)}")
        play = Play(
            seed=seed, run=f"seed-{seed}", faults=kinds, began=_now(), seconds=0, exit_code=FAULT
        )
        options = ["--seed", str(seed), "--minutes", f"{night.minutes:g}", "--overlap"]
        options += [night.overlap, "--faults", ",".join(kinds)]
        play = self._run(play, options, play.run)
        took = time.monotonic() - began
        play = replace(play, seconds=round(took, 1))
        failed = {
            "broken": play.broken,
            "known failures": [one.rule for one in play.failures if one.known],
            "not seen to hit": [one.fault for one in play.missed],
            "went wrong": play.trouble,
        }
        words = [f"{what}: {', '.join(which)}" for what, which in failed.items() if which]
        summary = "; ".join(words) or "nothing broken"
        self.log(f"seed {seed}: exit code {play.exit_code} after {took:.0f} s, {summary}")
        self._keep(plays=(*night.plays, play), spent=night.spent + took)

    def _run(self, play: Play, options: Sequence[str], name: str) -> Play:
        run = self.folder / name
        # What a night that was stopped left of a run, which is played again, is kept.
        for number in range(1, 100) if run.exists() else ():
            aside = run.with_name(f"{run.name}.stopped-{number}")
            if not aside.exists():
                run.rename(aside)
                break
        command = ["chaos", "--target", self.night.target, "--brokers", str(self.options.brokers)]
        command += ["--rate", f"{self.night.rate:g}", "--out", str(run), *options]
        output = run.with_name(f"{run.name}.log")
        output.parent.mkdir(parents=True, exist_ok=True)
        code = _child(command, output, 3 * self.night.minutes * MINUTE + _PATIENCE)
        if not (run / "results.json").is_file() and (run / "history").is_dir():
            # The process died, or its Spark did; what it recorded is there.
            rejudging = ["chaos", "--rejudge", str(run), "--out", str(run)]
            if not (run / "chaos.json").is_file():
                rejudging = ["analyse", str(run), "--out", str(run)]
            code = _child(rejudging, output, _PATIENCE)
        try:
            return play_of(read_results(run), play)
        except ValueError:
            lines = output.read_text(encoding="utf-8", errors="replace").split("\n")
            printed = (line.strip() for line in reversed(lines) if line.strip())
            last = next(printed, "it said nothing")
            return replace(play, exit_code=code or FAULT, trouble=(last,))

    def _confirm(self) -> None:
        for number, play in enumerate(self.night.plays):
            now = play
            while now.broken and len(now.replays) < self.options.confirm:
                which = len(now.replays) + 1
                broke = ", ".join(now.broken)
                self.log(f"replay {which} of seed {play.seed}, which broke {broke}")
                options = ["--schedule", str(self.folder / play.run / "schedule.json")]
                again = self._run(play, options, f"replays/{play.run}-{which}")
                now = replace(now, replays=(*now.replays, again.broken))
                self._keep_play(number, now)

    def _shrink(self) -> None:
        # What no replay broke again cannot be made smaller by replays.
        failed = [
            number
            for number, play in enumerate(self.night.plays)
            if play.broken and (not play.replays or any(play.replays))
        ]
        for number in failed[: self.options.shrink_most]:
            play = self.night.plays[number]
            if play.shrunk is None:
                self.log(f"shrinking seed {play.seed}")
                command = ["night", "--shrink", str(self.folder / play.run), "--target"]
                command += [self.night.target, "--rate", f"{self.night.rate:g}"]
                _child(command, self.folder / f"{play.run}.shrinking.log", 2 * 3600)
                self._keep_play(number, replace(play, shrunk=self._shrunk(play)))

    def _shrunk(self, play: Play) -> Shrunk:
        output = self.folder / f"{play.run}.shrinking.log"
        text = output.read_text(encoding="utf-8", errors="replace")
        found = re.findall(r"^INV[^:\n]*: (.+)\n(fails \d+ of \d+)", text, re.MULTILINE)
        file = f"{play.run}/{SHRUNK}"
        if found:
            faults, reliability = found[-1]
            return Shrunk(faults=faults, reliability=reliability, file=file)
        if (self.folder / file).is_file():
            return Shrunk(faults="", reliability="shrinking did not end", file=file)
        return Shrunk(faults="", reliability="not reproduced", file="")

    def _build(self) -> Path:
        assert self.options.site is not None
        try:
            archive = runs_in([self.options.archive])
        except ValueError:
            archive = Archive(runs=())
        build(archive, self.options.site, detection(), nights=find(self.options.archive))
        return self.options.site / "nights" / f"{self.night.name}.html"


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
    def stop(*_: object) -> None:
        raise Stop

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def kinds_of(seed: int, kinds: Sequence[Fault]) -> tuple[str, ...]:
    rng = random.Random(f"swarm {seed}")
    some = rng.sample(sorted(kind.name for kind in kinds), min(len(kinds), rng.randint(*_SOME)))
    return tuple(sorted(some))


@dataclass(slots=True)
class _Replays:
    target: str
    brokers: int
    rate: float
    whole: Schedule
    folder: Path
    stack: ExitStack  # Ends with the block, and whenever a cluster is unwell.
    _ready: RunningTarget | None = None
    _number: int = 0

    def _chaos(self, schedule: Schedule) -> ChaosTest:
        load = usual_load(schedule, self.rate)
        return ChaosTest(
            target=self.target,
            brokers=self.brokers,
            schedule=schedule,
            # Who does not get to the end soon never does, and many plays are to come.
            load=replace(load, drain=_DRAIN),
            proxies=usual_proxies(self.target, self.whole.faults),
        )

    def broken(self, schedule: Schedule) -> set[str]:
        if self._ready is None:
            ready = running(self._chaos(self.whole), lambda _: None)
            self._ready = self.stack.enter_context(ready)
        self._number += 1
        out = self.folder / str(self._number)
        broke = self._ready.play(self._chaos(schedule), out)
        found = _broken_by_oracle(out)
        shutil.rmtree(out)
        if broke.trouble:
            self.stack.close()
            self._ready = None
        return found


def _broken_by_oracle(run: Path) -> set[str]:
    found = oracle.judge(open_history(run).folder)
    return {rule for rule, places in found.items() if any(bad for _, bad in places.values())}


def _rules_of(run: Path) -> list[str]:
    """Return what a run broke: unexpectedly, or if nothing was unexpected, at all."""
    if not (run / "results.json").is_file():
        return sorted(_broken_by_oracle(run))
    failed = [rule for rule in read_results(run).rules if rule.verdict == "fail"]
    new = [rule.id for rule in failed if not rule.expected]
    return new or [rule.id for rule in failed]


def shrink_run(run: Path, target: str, brokers: int, rate: float, log: Log) -> int:
    try:
        schedule = Schedule.from_json((run / "schedule.json").read_text(encoding="utf-8"))
        rules = _rules_of(run)
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", error)
        raise UsageFault(f"--shrink {run}: no run of chaos: {told}.") from None
    if not rules:
        raise UsageFault(f"--shrink {run}: that run broke no rule.")
    with ExitStack() as stack:
        plays = _Replays(target, brokers, rate, schedule, run / "shrinking", stack)

        def fails(candidate: Schedule) -> bool:
            if plays.broken(candidate).isdisjoint(rules):
                return False
            # Whatever fails is the smallest so far, and worth keeping should we be interrupted.
            (run / SHRUNK).write_text(candidate.to_json(), encoding="utf-8")
            return True

        found = shrink(schedule, fails, tries=TRIES, replays=REPLAYS, log=log, most=MOST)
    print(f"{', '.join(rules)}: {described(found.schedule)}")
    print(f"{found.reliability}, after {found.tried} plays")
    print(f"shareproof chaos --target {target} --schedule {shlex.quote(str(run / SHRUNK))}")
    return BROKEN if found.failed else OK
