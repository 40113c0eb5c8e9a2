"""What ``shareproof chaos`` does: play schedules or scenarios, judge the histories, list faults.

It needs the extra ``judge``, and is imported only where that is there.
"""

import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from chaos.capabilities import offered, playable, usual_proxies
from chaos.faults import FAULTS, Fault
from chaos.run import (
    COMPACTED,
    DELIVERY_LIMIT,
    RECORD,
    ChaosTest,
    check,
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
from fixtures.workload.plan import KINDS, PLAIN, Group, Load
from reports.analysis.judge import Request
from reports.console import line
from reports.headlines import cases
from reports.results import Results
from reports.verdicts import INTERRUPTED
from shareproof.chaos.verdicts import judge
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

    def log(text: str) -> None:
        line(console, text)

    if options.rejudge:
        runs = tuple(each for run in options.rejudge for each in _runs_in(run.absolute()))
        interrupted = False
    else:
        runs, interrupted = _played(options, out, log)
        if not options.judged:
            again = shlex.join(["shareproof", "chaos", "--rejudge", str(options.out)])
            log(f"not judged: {again}")
            if interrupted:
                raise KeyboardInterrupt
            return None
    found = judge(replace(request, runs=runs), out, log)
    # The verdicts stand, and their exit code is kept with them; this one is the command's.
    ended = INTERRUPTED if interrupted else found.run.exit_code
    return replace(found, run=replace(found.run, exit_code=ended))


def _played(options: ChaosOptions, out: Path, log: Log) -> Played:
    with reached(out):
        if out.exists() and any(out.rglob("history")):
            raise UsageFault(f"--out {out}: there is a history already; give a new directory.")
    play = _play_scenarios if options.scenario else _play_schedule
    with kept_at(out, log) as folder:
        made, interrupted = play(options, folder, log)
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


def _play_schedule(options: ChaosOptions, out: Path, log: Log) -> Played:
    schedule = _schedule(options)
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
    check(chaos)
    log(f"seed {options.seed}, target {options.target}")
    for planned in schedule.injections:
        log(f"{planned.at:5.1f} s  {planned.fault} for {planned.lasts:g} s")
    with running(chaos, log) as ready:
        return (out,), ready.play(chaos, out).loaded.interrupted


def _play_scenarios(options: ChaosOptions, out: Path, log: Log) -> Played:
    if options.faults or options.no_faults or options.schedule:
        raise UsageFault("--scenario excludes --faults, --no-faults and --schedule.")
    seed, proxies, hosts = options.seed, options.proxies, _hosts(options)
    scenarios = chosen(options.scenario, options.target)
    left = [as_chaos(scenario, options.target, seed, proxies) for scenario in scenarios]
    clocks = any(needs_clocks(chaos) for chaos in left)
    left = [
        replace(
            chaos,
            clocks=clocks,
            load=replace(chaos.load, processes=options.processes),
            hosts=hosts and replace(hosts, out=hosts.out / chaos.scenario),
        )
        for chaos in left
    ]
    for chaos in left:
        check(chaos)
    log(f"seed {seed}, target {options.target}")
    runs: list[Path] = []
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
