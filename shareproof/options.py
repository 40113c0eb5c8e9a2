"""The options of commands beside those of a run, and how a command takes its options as one value.

A field of a frozen dataclass, with its help, is an option; see :mod:`suites.options`.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from fixtures.interface.names import UsageFault
from fixtures.targets import DEFAULT_TARGET
from shareproof import manual
from spec.rule import Level
from suites.options import (
    FILE,
    LISTED,
    AsJson,
    Brokers,
    CommandConfig,
    HooksFile,
    LowestLevel,
    Only,
    Option,
    Prefix,
    Seed,
    Target,
    from_given,
    lowered,
    options_of,
    repeated,
)


def place_of(text: str) -> Path:
    """Return the directory, or the place behind a URI such as ``s3a://…``, that an option names."""
    from fixtures.machine.storage import place

    try:
        return place(text)
    except UsageFault as fault:
        raise typer.BadParameter(str(fault)) from None


Conf = Annotated[
    tuple[str, ...], Option("Spark setting KEY=VALUE; repeatable.", kind=LISTED, parse=repeated)
]
WorkersOn = Annotated[
    str,
    Option(
        "Spark master (spark://HOST:PORT) on whose workers the processes of the load run. "
        "Default: this machine."
    ),
]
Processes = Annotated[int, Option("Number of processes of the load.", min=1)]


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    seconds: Annotated[float, Option("Duration of the load.", min=1)] = 20.0
    rate: Annotated[float, Option("Records per second; 0 for as many as possible.", min=0)] = 4000.0
    seed: Seed = 0
    out: Annotated[
        Path, Option("Output directory for the history, or a URI (s3a://…).", parser=place_of)
    ] = Path("out")
    command_config: CommandConfig = ""
    prefix: Prefix = ""
    workers_on: WorkersOn = ""
    processes: Processes = 2
    conf: Conf = ()
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class SparkOptions:
    master: Annotated[
        str, Option("Spark master: local[N], spark://HOST:PORT, yarn or k8s://….")
    ] = "local[*]"
    memory: Annotated[str, Option("Memory of Spark's driver and executors.")] = "2g"
    conf: Conf = ()
    packages: Annotated[str, Option("Maven coordinates of further jars for Spark, as a,b,c.")] = ""

    @property
    def settings(self) -> dict[str, str]:
        from fixtures.targets.arguments import parse_properties

        packages = {"spark.jars.packages": self.packages} if self.packages else {}
        return {**packages, **parse_properties("--conf", self.conf)}


@dataclass(frozen=True, kw_only=True)
class AnalyseOptions(SparkOptions):
    runs: Annotated[
        list[Path],
        Option(
            "Directories of runs that left a history, or their URIs (s3a:, hdfs:, …).",
            argument=True,
            parser=place_of,
        ),
    ]
    control: Annotated[
        Path | None,
        Option("A fault-free control run to compare broken rules with.", parser=place_of),
    ] = None
    level: LowestLevel = Level.SHOULD
    only: Only = ()
    out: Annotated[
        Path | None,
        Option("Output directory for the reports. Default: RUN/analysis.", parser=place_of),
    ] = None
    brief: Annotated[bool, Option("Verdicts and witnesses only, no statistics.")] = False
    as_json: AsJson = False

    @property
    def folder(self) -> Path:
        return (self.out or self.runs[0] / "analysis").absolute()


class Overlap(StrEnum):
    WHOLE = "whole"
    FREE = "free"


MayOverlap = Annotated[
    Overlap,
    Option(
        "Which faults of a random schedule may overlap: whole, those that do not break what the "
        "other one relies on; free, all but two that take a broker away."
    ),
]


@dataclass(frozen=True, kw_only=True)
class ChaosOptions(SparkOptions):
    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    faults: Annotated[
        tuple[str, ...],
        Option(
            "Faults to inject; repeatable, or a,b,c. Default: all that fit.",
            kind=LISTED,
            parse=lowered,
        ),
    ] = ()
    no_faults: Annotated[bool, Option("Control run: inject no fault.")] = False
    list_faults: Annotated[bool, Option("List the faults, and exit.")] = False
    minutes: Annotated[float, Option("Duration of the load.", min=0.1)] = 2.0
    schedule: Annotated[Path | None, Option("Replay the schedule.json of an earlier run.")] = None
    overlap: MayOverlap = Overlap.WHOLE
    scenario: Annotated[
        tuple[str, ...],
        Option("Run a scenario, several, or all; repeatable.", kind=LISTED, parse=lowered),
    ] = ()
    list_scenarios: Annotated[bool, Option("List the scenarios, and exit.")] = False
    proxies: Annotated[
        str,
        Option(
            "Proxy in front of the brokers: ours or toxiproxy. Default: toxiproxy for "
            "containers, unless a fault needs to decode frames; ours otherwise."
        ),
    ] = ""
    allow_faults: Annotated[bool, Option("Allow faults in an external cluster, by --hooks.")] = (
        False
    )
    hooks: HooksFile = ""
    command_config: CommandConfig = ""
    prefix: Prefix = ""
    rejudge: Annotated[
        list[Path] | None, Option("Judge an earlier run again; repeatable.", parser=place_of)
    ] = None
    judged: Annotated[bool, Option("Judge the history at the end.", "--judge/--no-judge")] = True
    strict: Annotated[
        bool,
        Option(
            "Fail where a run leaves a rule that it is for unexercised, misses a kind of "
            "fault of its scenario, or excuses too many cases. For CI of this suite."
        ),
    ] = False
    rate: Annotated[float, Option("Records per second.", min=1)] = 600.0
    workers_on: WorkersOn = ""
    processes: Processes = 2
    level: LowestLevel = Level.SHOULD
    seed: Seed = 0
    out: Annotated[
        Path, Option("Output directory, or a URI, for history and reports.", parser=place_of)
    ] = Path("out")
    as_json: AsJson = False


@dataclass(frozen=True, kw_only=True)
class NightOptions:
    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    hours: Annotated[float, Option("How long to play; one run at least.", min=0)] = 8.0
    minutes: Annotated[float, Option("Duration of each run's load.", min=0.1)] = 2.0
    rate: Annotated[float, Option("Records per second.", min=1)] = 600.0
    overlap: MayOverlap = Overlap.WHOLE
    seed: Seed = 0
    archive: Annotated[Path, Option("Where nights are kept, each in a directory of its own.")] = (
        Path("nights")
    )
    site: Annotated[Path | None, Option("Where the pages go. Default: ARCHIVE-site.")] = None
    resume: Annotated[bool, Option("Go on with the latest night, if it was stopped.")] = False
    rejudge: Annotated[
        int, Option("Latest runs of earlier nights to judge again first.", min=0)
    ] = 10
    confirm: Annotated[int, Option("Replays of a schedule that broke a rule.", min=0)] = 3
    shrink_most: Annotated[int, Option("Runs that broke a rule to shrink.", min=0)] = 3
    shrink: Annotated[
        Path | None, Option("Shrink the schedule of this run, and do nothing else.")
    ] = None
    as_json: AsJson = False


def takes(
    kind: Any = None, order: str = "", **usual: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: the fields of a dataclass become the options of a command.

    The command gets them as one value. Its keywords are options, too. ``order`` has the names of
    fields and keywords as help shows them: by default all fields, those that the class does not
    inherit first, and then the keywords. ``usual`` are defaults that are others than the fields'.
    """
    known = fields(kind) if kind else ()
    bases = kind.__bases__ if kind else ()
    inherited = {name for base in bases for name in getattr(base, "__annotations__", ())}
    own = [f.name for f in sorted(known, key=lambda f: f.name in inherited)]
    make = getattr(kind, "given", functools.partial(from_given, kind))

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        parameters = inspect.signature(command).parameters.values()
        beside = {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY}
        options = {
            **(options_of(kind) if kind else {}),
            **{name: (hints[name].__origin__, hints[name].__metadata__[0]) for name in beside},
        }
        defaults = {**{f.name: f.default for f in known}, **usual, **beside}
        shown = order.split() or [*(name for name in own if name in options), *beside]

        @functools.wraps(command)
        def called(**given: Any) -> None:
            others = {name: options[name][1].parse(given.pop(name)) for name in beside}
            command(*([make(given)] if kind else ()), **others)

        typed = [_parameter(name, *options[name], defaults[name]) for name in shown]
        called.__signature__ = inspect.Signature(typed)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in typed}
        return called

    return decorate


def _parameter(name: str, kind: Any, option: Option, default: Any) -> inspect.Parameter:
    more = dict(option.typer)
    if complete := more.pop("autocompletion", ""):
        more["autocompletion"] = getattr(manual, complete)
    if more.pop("argument", False):
        made = typer.Argument(help=option.help, **more)
    else:
        plain = (f"--{name.replace('_', '-')}",) if kind is bool else ()
        made = typer.Option(*(option.names or plain), help=option.help, **more)
    if option.kind in (LISTED, FILE):
        default = default or None
    if default in (MISSING, inspect.Parameter.empty) or "default_factory" in more:
        default = inspect.Parameter.empty
    annotation: Any = Annotated[option.kind or kind, made]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
