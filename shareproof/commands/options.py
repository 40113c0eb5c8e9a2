"""Options that several commands share, and how a command takes all of its options as one value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_type_hints

import typer

from fixtures.adapters.shipped import SHIPPED
from fixtures.interface.names import FORMS, UsageFault
from shareproof import manual
from spec.requirement import Level
from spec.tiers import ALL, TIERS

_Options = TypeVar("_Options")


def _random_seed() -> int:
    from suites.options import new_seed

    return new_seed()


def asked_place(text: str) -> Path:
    """Return the directory, or the place behind a URI such as ``s3a://…``, that an option names."""
    from fixtures.machine.storage import place

    try:
        return place(text)
    except UsageFault as fault:
        raise typer.BadParameter(str(fault)) from None


Target = Annotated[str, typer.Option(help=f"{FORMS}.", autocompletion=manual.targets)]
ShippedClient = Annotated[
    str,
    typer.Option(
        help=f"A shipped adapter: {', '.join(SHIPPED)}; or NAME:VERSION.",
        autocompletion=manual.clients,
    ),
]
Adapter = Annotated[
    str, typer.Option(help="The command of your own adapter; see docs/adapter-protocol.md.")
]
Brokers = Annotated[int, typer.Option(help="Number of brokers: 1 or 3.")]
Only = Annotated[
    list[str] | None,
    typer.Option(
        help="Area (ACK) or rule (ACK-07); repeatable, or a,b,c.", autocompletion=manual.rules
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        default_factory=_random_seed,
        show_default=False,
        help="Random seed; repeats an earlier run. Default: a new one.",
    ),
]
LowestLevel = Annotated[
    Level, typer.Option(case_sensitive=False, help="Rules from MUST down to this level must hold.")
]
Out = Annotated[Path, typer.Option(help="Output directory for the reports.")]
Fast = Annotated[bool, typer.Option("--fast", help="Run the fast subset only.")]
Tier = Annotated[
    int,
    typer.Option(
        min=TIERS[0],
        max=ALL,
        help="Rules that need no more than heartbeats, fetches and acknowledgements (1), also "
        "administration (2), or everything (3).",
    ),
]
Drafts = Annotated[bool, typer.Option("--drafts", help="Run draft checks, too.")]
StrictReach = Annotated[
    bool,
    typer.Option("--strict-reach", help="Fail the run if a rule is out of reach of this target."),
]
Workers = Annotated[
    int | None, typer.Option("--workers", "-n", min=0, help="Number of checks run in parallel.")
]
Ledger = Annotated[
    str,
    typer.Option(
        help="Ledger of known failures: a shipped name, or a path to a .toml file.",
        autocompletion=manual.ledgers,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        help="client.properties with the credentials of an external target, and its addresses for "
        "--target external."
    ),
]
SecondConfig = Annotated[
    Path | None,
    typer.Option(
        help="client.properties of a second principal without permissions, for rules about them."
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        help="Empty topics of an external target to use instead of creating any; repeatable, or "
        "a,b,c*."
    ),
]
Prefix = Annotated[
    str, typer.Option(help="What names of topics and groups have to begin with on the target.")
]
HooksFile = Annotated[
    Path | None,
    typer.Option("--hooks", help="TOML file of commands that break and heal an external cluster."),
]
BrokerOption = Annotated[
    list[str] | None,
    typer.Option(help="Broker property KEY=VALUE for brokers started here; repeatable."),
]
BrokerJvm = Annotated[
    list[str] | None,
    typer.Option(help="JVM option for brokers started here, such as an agent; repeatable."),
]
WorkersOn = Annotated[
    str,
    typer.Option(
        help="Spark master (spark://HOST:PORT) on whose workers the processes of the load run. "
        "Default: this machine."
    ),
]
Processes = Annotated[int, typer.Option(min=1, help="Number of processes of the load.")]
Conf = Annotated[list[str] | None, typer.Option(help="Spark setting KEY=VALUE; repeatable.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Where Spark runs, and with which settings, for commands that judge histories."""

    master: Annotated[
        str, typer.Option(help="Spark master: local[N], spark://HOST:PORT, yarn or k8s://….")
    ] = "local[*]"
    memory: Annotated[str, typer.Option(help="Memory of Spark's driver and executors.")] = "2g"
    conf: Conf = None
    packages: Annotated[
        str, typer.Option(help="Maven coordinates of further jars for Spark, as a,b,c.")
    ] = ""

    @property
    def settings(self) -> dict[str, str]:
        """The Spark settings asked for.

        Raises:
            UsageFault: one is no KEY=VALUE.
        """
        from fixtures.targets.asked import asked_properties

        packages = {"spark.jars.packages": self.packages} if self.packages else {}
        return {**packages, **asked_properties("--conf", self.conf or ())}


def takes(kind: type[_Options]) -> Callable[[Callable[[_Options], None]], Callable[..., None]]:
    """Return a decorator: the fields of a frozen dataclass become the options of a command.

    The command gets them as one value, and passes that on. Fields are annotated as Typer wants it;
    those that a class does not inherit come first.
    """

    def decorate(command: Callable[[_Options], None]) -> Callable[..., None]:
        hints = get_type_hints(kind, include_extras=True)
        known = fields(cast("Any", kind))
        inherited = {name for base in kind.__bases__ for name in get_type_hints(base)}
        own = sorted(known, key=lambda field: field.name in inherited)

        @functools.wraps(command)
        def called(**given: Any) -> None:
            command(kind(**given))

        parameters = [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if field.default is MISSING else field.default,
                annotation=hints[field.name],
            )
            for field in own
        ]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = hints
        return called

    return decorate
