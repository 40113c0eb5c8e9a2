"""What ``shareproof chaos`` does: play schedules or scenarios, judge the histories, list faults.

It needs the extra ``judge``, and is imported only where that is there. Spark starts before the last
load of a run drains, so that judging need not wait for it.
"""

import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PosixPath
from threading import Event, Lock, Timer

from rich.console import Console
from rich.table import Table

from chaos.capabilities import offered, playable, usual_proxies
from chaos.faults import FAULTS, Fault
from chaos.run import (
    COMPACTED,
    DELIVERY_LIMIT,
    RECORD,
    ChaosTest,
    growth,
    is_keyed,
    needs_clocks,
    running,
    usual_load,
)
from chaos.schedule import Schedule, draw
from fixtures.history.mirror import kept_at
from fixtures.interface.capability import Capability
from fixtures.interface.names import innermost
from fixtures.machine.storage import reached
from fixtures.targets import UsageFault
from fixtures.targets.arguments import checked_prefix
from fixtures.targets.hooks import Hooks
from fixtures.workload.hosts import Hosts, hosts_of
from fixtures.workload.load import DRAINING, PRODUCING
from fixtures.workload.plan import KINDS, PLAIN, Group, Load
from reports.analysis.judge import Request
from reports.analysis.warm_up import Enough, warm
from reports.console import line
from reports.headlines import cases
from reports.results import Results
from reports.verdicts import INTERRUPTED
from shareproof.chaos.verdicts import judge, spark_settings
from shareproof.options import ChaosOptions, Overlap
from suites.chaos.scenarios import CALM, DYING, MIXED, SCENARIOS, SLOW, TARDY, Scenario, chosen

_CALM = Group(name="calm", members=(PLAIN, PLAIN))
_ODD = Group(name="odd", members=tuple(KINDS[name] for name in ("picky", "renewing", "explicit")))
_GROUPS = {
    CALM: (_CALM,),
    MIXED: (_CALM, _ODD),
    TARDY: (Group(name="tardy", members=(KINDS["tardy"], KINDS["tardy"], KINDS["wordless"])),),
    DYING: (Group(name="dying", members=(*[KINDS["dying"]] * 3, PLAIN)),),
    SLOW: (_CALM, Group(name="slow", members=(*[KINDS["slow"]] * 3, PLAIN))),
}

Log = Callable[[str], None]
Listening = Callable[[Sequence[Load]], tuple[Log, Callable[[], None]]]
"""Gives for loads that will be played what logs lines, and what to wait for after them."""
Played = tuple[tuple[Path, ...], bool]
"""The directories of runs, and whether the last one was interrupted."""


def run(options: ChaosOptions, console: Console) -> Results | None:
    out = options.out.absolute()
    request = Request(
        runs=(out,),
        level=options.level,
        command=tuple(sys.argv),
        master=options.master,
        memory=options.memory,
        settings=options.settings,
        strict=options.strict,
    )
    if options.rejudge:
        runs = tuple(each for run in options.rejudge for each in _runs_in(run.absolute()))
        interrupted = False
    else:
        line(console, f"seed {options.seed}, target {options.target}")
        runs, interrupted = _played(options, request, console)
        if not options.judged:
            again = shlex.join(["shareproof", "chaos", "--rejudge", str(options.out)])
            line(console, f"not judged: {again}")
            if interrupted:
                raise KeyboardInterrupt
            return None
    found = judge(replace(request, runs=runs), out, lambda text: line(console, text))
    # The verdicts stand, and their exit code is kept with them; this one is the command's.
    ended = INTERRUPTED if interrupted else found.run.exit_code
    return replace(found, run=replace(found.run, exit_code=ended))


def _played(options: ChaosOptions, request: Request, console: Console) -> Played:
    (out,) = request.runs
    with reached(out):
        if out.exists() and any(out.rglob("history")):
            raise UsageFault(f"--out {out}: there is a history already; give a new directory.")

    def log(text: str) -> None:
        line(console, text)

    def listening(loads: Sequence[Load]) -> tuple[Log, Callable[[], None]]:
        # A JVM is started by a fork, which the locks of remote file systems do not survive.
        # Nor is there to be a second one, where Spark runs the load.
        if not options.judged or options.workers_on or not isinstance(out, PosixPath):
            return log, lambda: None
        settings = {**spark_settings([out], options.master), **options.settings}
        return starting(loads, replace(request, settings=settings), log)

    with kept_at(out, log) as folder:
        if options.scenario:
            made, interrupted = _play_scenarios(options, folder, listening)
        else:
            made, interrupted = _play_schedule(options, folder, console, listening)
        runs = [run.relative_to(folder) for run in made]
    return tuple(out / run.as_posix() if run.parts else out for run in runs), interrupted


def _runs_in(folder: Path) -> list[Path]:
    with reached(folder):
        if (folder / RECORD).is_file():
            return [folder]
        inside = sorted(record.parent for record in folder.glob(f"*/{RECORD}"))
    if not inside:
        raise UsageFault(f"--rejudge {folder}: there is no chaos run in it.")
    return inside


def _play_schedule(
    options: ChaosOptions, out: Path, console: Console, listening: Listening
) -> Played:
    schedule = _schedule(options)
    for planned in schedule.injections:
        line(console, f"{planned.at:5.1f} s  {planned.fault} for {planned.lasts:g} s")
    chaos = ChaosTest(
        target=options.target,
        brokers=options.brokers,
        schedule=schedule,
        load=replace(usual_load(schedule, options.rate), processes=options.processes),
        proxies=_proxies(options, [planned.fault for planned in schedule.injections]),
        allowed=options.allow_faults,
        hooks=_hooks(options),
        command_config=options.command_config,
        prefix=checked_prefix(options.prefix, options.target),
        hosts=_hosts(options),
    )
    log, wait = listening([chaos.load])
    with running(chaos, log) as ready:
        played = ready.play(chaos, out)
    wait()
    return (out,), played.loaded.interrupted


def _play_scenarios(options: ChaosOptions, out: Path, listening: Listening) -> Played:
    if options.faults or options.no_faults or options.schedule:
        raise UsageFault("--scenario excludes --faults, --no-faults and --schedule.")
    scenarios = chosen(options.scenario, options.target)
    loads = [as_chaos(one, options.target, options.seed, options.proxies).load for one in scenarios]
    log, wait = listening(loads)
    played = play_all(
        scenarios,
        target=options.target,
        proxies=options.proxies,
        seed=options.seed,
        out=out,
        log=log,
        hosts=_hosts(options),
        processes=options.processes,
    )
    wait()
    return played


def play_all(
    scenarios: Sequence[Scenario],
    *,
    target: str,
    seed: int,
    out: Path,
    log: Log,
    proxies: str = "",
    hosts: Hosts | None = None,
    processes: int = 2,
) -> Played:
    runs: list[Path] = []
    left = [as_chaos(scenario, target, seed, proxies) for scenario in scenarios]
    clocks = any(needs_clocks(chaos) for chaos in left)
    left = [
        replace(
            chaos,
            clocks=clocks,
            load=replace(chaos.load, processes=processes),
            hosts=hosts and replace(hosts, out=hosts.out / chaos.scenario),
        )
        for chaos in left
    ]
    while left:
        with running(left[0], log) as ready:
            stands = (left[0].target, left[0].proxies)
            while left and (left[0].target, left[0].proxies) == stands:
                chaos = left.pop(0)
                runs.append(out / chaos.scenario)
                log(f"== {chaos.scenario}")
                played = ready.play(chaos, runs[-1])
                if played.loaded.interrupted:
                    return tuple(runs), True
                if played.trouble:
                    break  # whatever was not healed is no place for the next one
    return tuple(runs), False


def as_chaos(scenario: Scenario, target: str, seed: int, proxies: str = "") -> ChaosTest:
    faults = [planned.fault for planned in scenario.injections]
    schedule = Schedule(seed=seed, seconds=scenario.seconds, injections=scenario.injections)
    ours = Capability.LOCAL_PROCESS in innermost(target).offers
    load = Load(
        seconds=scenario.seconds,
        partitions=4,
        rate=scenario.rate,
        batch=20,
        lock_ms=scenario.lock_ms,
        drain=60.0,
        seed=seed,
        groups=_GROUPS[scenario.members],
        patience=10.0,
        delivery_limit=DELIVERY_LIMIT,
        background=False,
        keyed=is_keyed(schedule),
        spare=growth(schedule),
        topic_configs=COMPACTED if is_keyed(schedule) else {},
    )
    return ChaosTest(
        target=f"kafka:{scenario.release}" if scenario.release and ours else target,
        schedule=schedule,
        load=load,
        scenario=scenario.name,
        owed=scenario.rules,
        judged=scenario.judged,
        proxies=proxies or usual_proxies(target, faults),
    )


def _schedule(options: ChaosOptions) -> Schedule:
    seconds = options.minutes * 60
    if options.no_faults:
        if options.faults or options.schedule:
            raise UsageFault("--no-faults excludes --faults and --schedule: give one of them.")
        return Schedule(seed=options.seed, seconds=seconds)
    if options.faults and options.schedule:
        raise UsageFault("--faults excludes --schedule: give one of them.")
    if options.schedule is None:
        proxies = _proxies(options, options.faults)
        offers = offered(
            options.target,
            brokers=options.brokers,
            proxies=proxies,
            hooks=_hooks(options),
            on_hosts=bool(options.workers_on),
        )
        free = options.overlap is Overlap.FREE
        drawn = draw(options.seed, seconds, playable(options.faults, offers), free=free)
        if not drawn.injections:
            raise UsageFault(f"{options.minutes:g} minutes are too short for any of these faults.")
        return drawn
    try:
        return Schedule.from_json(options.schedule.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageFault(f"--schedule {options.schedule}: {error.strerror}.") from None
    except ValueError as error:
        raise UsageFault(f"--schedule {options.schedule}: {error}.") from None


def _proxies(options: ChaosOptions, faults: Sequence[str]) -> str:
    return options.proxies or usual_proxies(options.target, faults)


def _hooks(options: ChaosOptions) -> Hooks | None:
    return Hooks.read(Path(options.hooks)) if options.hooks else None


def _hosts(options: ChaosOptions) -> Hosts | None:
    return hosts_of(options.workers_on, options.out.absolute(), options.settings)


def list_faults() -> list[dict[str, object]]:
    return [
        {
            "fault": fault.name,
            "sentence": fault.sentence,
            "brokers": _brokers(fault),
            "needs": [need.name.lower().replace("_", "-") for need in sorted(fault.needs)],
            "takes": sorted(fault.takes),
            "relies_on": sorted(fault.relies_on),
            "seconds": list(fault.lasts),
        }
        for fault in FAULTS.values()
    ]


def _brokers(fault: Fault) -> int:
    return 3 if fault.needs & {Capability.REPLICAS, Capability.SPARE_BROKER} else 1


def list_scenarios() -> list[dict[str, object]]:
    return [
        {
            "scenario": one.name,
            "sentence": one.sentence,
            "rules": list(one.rules),
            "faults": [planned.fault for planned in one.injections],
            "seconds": one.seconds,
        }
        for one in SCENARIOS.values()
    ]


def show_faults(console: Console) -> None:
    table = Table("fault", "brokers", "seconds", "takes", "relies on", "effect", box=None)
    for fault in FAULTS.values():
        low, high = fault.lasts
        breaks = [", ".join(sorted(some)) for some in (fault.takes, fault.relies_on)]
        row = (fault.name, str(_brokers(fault)), f"{low:g}-{high:g}", *breaks, fault.sentence)
        table.add_row(*row)
    console.print(table)


def show_scenarios(console: Console) -> None:
    table = Table("scenario", "seconds", "what happens", "rules", box=None)
    for one in SCENARIOS.values():
        rules = " ".join(rule.removeprefix("INV-") for rule in one.rules)
        table.add_row(one.name, f"{one.seconds:g}", one.sentence, rules)
    console.print(table)


def show_injections(results: Results, console: Console) -> None:
    for chaos in results.chaos or ():
        name = chaos.scenario or "schedule"
        blocked = {one.fault: one.blocked_by for one in chaos.faults if not one.hit}
        missed = (f"{fault} (blocked by {by})" if by else fault for fault, by in blocked.items())
        effect = f"never took effect: {', '.join(missed)}" if blocked else "all took effect"
        console.print(f"{name}: {len(chaos.faults)} faults, {effect}", highlight=False)
        for case in cases(results, Path(chaos.run).name):
            console.print(f"  {case.rule}: {case.sentence}", highlight=False)
    totals: Counter[str] = Counter()
    for states in (results.reached or {}).values():
        totals.update({state.state: state.count for state in states})
    for name, count in totals.items():
        console.print(f"{count or 'never':>8} {name}", highlight=False)


# Seconds that starting and warming Spark takes beside a load and three brokers, at the lowest
# priority; draining may take none.
_TAKES = 45.0
_EVERY = 0.05


def starting(loads: Sequence[Load], request: Request, log: Log) -> tuple[Log, Callable[[], None]]:
    """Return a ``log`` that starts Spark near the end of the last load, and what waits for Spark.

    ``loads`` will be put on the target one after the other. The first run of ``request``, by which
    their histories are judged, is the one under way, or the place where all are.
    """
    begun, waits = 0, list[Callable[[], None]]()
    # One row for each record, and one for each of its deliveries; few come twice.
    rows = sum(int(load.rate * load.seconds) * (1 + len(load.groups)) for load in loads)
    lock = Lock()

    def start() -> None:
        with lock:
            if not waits:
                waits.append(warm(request, rows, partial(recorded, request.runs[0])))

    timer = Timer(max(0.0, loads[-1].seconds - _TAKES), start)
    timer.daemon = True

    def listen(text: str) -> None:
        nonlocal begun
        log(text)
        if text.startswith(PRODUCING):
            begun += 1
            if begun == len(loads):
                timer.start()
        elif text == DRAINING and begun == len(loads):
            timer.cancel()
            start()

    def wait() -> None:
        timer.cancel()
        with lock:
            for one in waits:
                one()

    return listen, wait


def recorded(place: Path, run: Path, hurried: Event) -> bool:
    found = [journal.parent for journal in place.rglob("journal") if journal.is_dir()]
    if not found:
        return False
    history = max(found, key=lambda one: one.stat().st_mtime)
    command = [sys.executable, "-m", "fixtures.history.compaction", str(history), str(run)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as making:
        while making.poll() is None:
            if hurried.wait(_EVERY):
                making.kill()
                raise Enough
    return making.returncode == 0
