"""The command that breaks things on purpose: play schedules, let Spark judge, say what came of it.

It needs the extra ``judge``, and is imported only where that is there.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from chaos.faults import FAULTS, Fault
from chaos.fitting import fitting, offered, usual_proxies
from chaos.hooks import Hooks
from chaos.run import RECORD, Chaos, running, usual_load
from chaos.schedule import Schedule, draw
from fixtures.interface.capability import Capability
from fixtures.targets import UsageFault
from reports.results import InjectedFault, Results
from shareproof.chaos.judging import Judging, judge
from shareproof.chaos.playing import play_all
from shareproof.histories import tell
from spec.requirement import Level
from suites.chaos.scenario import Scenario
from suites.chaos.scenarios import SCENARIOS, chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a chaos run; a file ``schedule`` wins over seed, minutes and faults."""

    target: str
    brokers: int
    faults: tuple[str, ...]
    no_faults: bool
    minutes: float
    seed: int
    schedule: Path | None
    scenarios: tuple[str, ...]
    proxies: str
    allowed: bool
    hooks: Path | None
    rate: float
    level: Level
    out: Path
    judged: bool


def run(asked: Asked, console: Console) -> Results | None:
    """Carry out a chaos run and return its results, which are also in ``out``.

    Nothing is returned where nothing was to be judged.

    Raises:
        UsageFault: the options make no sense.
        EnvironmentFault: the target did not start, or nothing can be judged.
    """
    if asked.out.exists() and any(asked.out.rglob("history")):
        raise UsageFault(f"--out {asked.out}: there is a history already; give a new directory.")
    runs = _play_scenarios(asked, console) if asked.scenarios else _play_schedule(asked, console)
    if not asked.judged:
        return None
    return rejudge(runs, asked.out, asked.level, console)


def rejudge(runs: tuple[Path, ...], out: Path, level: Level, console: Console) -> Results:
    """Judge what was played, now or long ago; a directory of runs stands for all in it."""
    found = tuple(each for run in runs for each in _runs_in(run.absolute()))
    asked = Judging(runs=found, out=out, level=level, command=tuple(sys.argv))
    return judge(asked, lambda line: tell(console, line))


def _runs_in(folder: Path) -> list[Path]:
    if (folder / RECORD).is_file():
        return [folder]
    inside = sorted(record.parent for record in folder.glob(f"*/{RECORD}"))
    if not inside:
        raise UsageFault(f"--rejudge {folder}: there is no chaos run in it.")
    return inside


def _play_schedule(asked: Asked, console: Console) -> tuple[Path, ...]:
    schedule = _schedule(asked)
    for strike in schedule.strikes:
        tell(console, f"{strike.at:5.1f} s  {strike.fault} for {strike.lasts:g} s")
    chaos = Chaos(
        target=asked.target,
        brokers=asked.brokers,
        schedule=schedule,
        load=usual_load(schedule, asked.rate),
        proxies=_proxies(asked, [strike.fault for strike in schedule.strikes]),
        allowed=asked.allowed,
        hooks=_hooks(asked),
    )
    with running(chaos, lambda line: tell(console, line)) as ready:
        ready.play(chaos, asked.out)
    return (asked.out,)


def _play_scenarios(asked: Asked, console: Console) -> tuple[Path, ...]:
    if asked.faults or asked.no_faults or asked.schedule:
        raise UsageFault("A scenario says itself what breaks: leave out the other choices.")
    return play_all(
        chosen(asked.scenarios, asked.target),
        target=asked.target,
        proxies=asked.proxies,
        seed=asked.seed,
        out=asked.out,
        tell=lambda line: tell(console, line),
    )


def _schedule(asked: Asked) -> Schedule:
    seconds = asked.minutes * 60
    if asked.no_faults:
        if asked.faults or asked.schedule:
            raise UsageFault("--no-faults leaves nothing to --faults or --schedule: give one.")
        return Schedule(seed=asked.seed, seconds=seconds)
    if asked.schedule is None:
        proxies = _proxies(asked, asked.faults)
        offers = offered(asked.target, brokers=asked.brokers, proxies=proxies, hooks=_hooks(asked))
        drawn = draw(asked.seed, seconds, fitting(asked.faults, offers))
        if not drawn.strikes:
            raise UsageFault(f"{asked.minutes:g} minutes are too short for any of these faults.")
        return drawn
    try:
        return Schedule.from_json(asked.schedule.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageFault(f"--schedule {asked.schedule}: {error.strerror}.") from None
    except ValueError as error:
        raise UsageFault(f"--schedule {asked.schedule}: {error}.") from None


def _proxies(asked: Asked, faults: Sequence[str]) -> str:
    return asked.proxies or usual_proxies(asked.target, faults)


def _hooks(asked: Asked) -> Hooks | None:
    return Hooks.read(asked.hooks) if asked.hooks else None


def list_faults() -> list[dict[str, object]]:
    """Return every kind of fault, for machines."""
    return [
        {
            "fault": fault.name,
            "sentence": fault.sentence,
            "brokers": _brokers(fault),
            "needs": [need.name.lower().replace("_", "-") for need in sorted(fault.needs)],
            "seconds": list(fault.lasts),
        }
        for fault in FAULTS.values()
    ]


def _brokers(fault: Fault) -> int:
    return 3 if fault.needs & {Capability.REPLICAS, Capability.SPARE_BROKER} else 1


def list_scenarios() -> list[dict[str, object]]:
    """Return every scenario, for machines."""
    return [
        {
            "scenario": one.name,
            "sentence": one.sentence,
            "rules": list(one.rules),
            "faults": [strike.fault for strike in one.strikes],
            "seconds": one.seconds,
        }
        for one in SCENARIOS.values()
    ]


def show_faults(console: Console) -> None:
    """Print every kind of fault."""
    table = Table("fault", "brokers", "seconds", "what it does", box=None)
    for fault in FAULTS.values():
        low, high = fault.lasts
        table.add_row(fault.name, str(_brokers(fault)), f"{low:g}-{high:g}", fault.sentence)
    console.print(table)


def show_scenarios(console: Console) -> None:
    """Print every scenario."""
    table = Table("scenario", "seconds", "what happens", "rules", box=None)
    for one in SCENARIOS.values():
        table.add_row(one.name, f"{one.seconds:g}", one.sentence, " ".join(_rules(one)))
    console.print(table)


def _rules(scenario: Scenario) -> list[str]:
    return [rule.removeprefix("INV-") for rule in scenario.rules]


def show_struck(results: Results, console: Console) -> None:
    """Print which faults took effect and which states were reached."""
    for chaos in results.chaos or ():
        name = chaos.scenario or "schedule"
        said = f"{name}: {len(chaos.faults)} faults, {_missed(chaos.faults) or 'all took effect'}"
        console.print(said, highlight=False)
    totals: Counter[str] = Counter()
    for states in (results.reached or {}).values():
        totals.update({state.state: state.count for state in states})
    for name, count in totals.items():
        console.print(f"{count or 'never':>8} {name}", highlight=False)


def _missed(faults: Sequence[InjectedFault]) -> str:
    """Return which faults never took effect, and what blocked them; nothing if all did."""
    blocked = {one.fault: one.blocked_by for one in faults if not one.hit}
    said = (f"{name} (blocked by {by})" if by else name for name, by in blocked.items())
    return f"never took effect: {', '.join(said)}" if blocked else ""
