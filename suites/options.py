"""The options of a run: each field of a frozen dataclass, with its help, is an option.

The command line, pytest's options, the command that reproduces a rule and what workers are sent are
derived from the fields. A shell that completes a word imports this module, so that what takes long
to import is imported where it is used.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast, get_type_hints

import spec.rule
from fixtures.adapters.shipped import SHIPPED, checked_client
from fixtures.interface.capability import Capability
from fixtures.interface.names import FORMS, UsageFault, innermost, parse_target
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from spec.rule import APP_AREA, AREAS, Level, Rule, SpecError
from spec.tiers import ALL, TIERS

if TYPE_CHECKING:
    from fixtures.targets.hooks import Hooks
    from spec.ledger import Ledger

T = TypeVar("T")
DEFAULT_BROKERS = 3
CLIENT_AREA = "CLI"
# Files that a run writes into its directory, and may therefore overwrite there.
_WRITTEN = "results.json run.json report.html junit.xml pytest.log badge.json badge.svg"
OWN = (*_WRITTEN.split(), "allurerc.json", "findings.json", "sequences.json")
UNSEEN = "apache-kafka"  # The ledger of a target that has not started yet.


class Option:
    """What a field's annotation says of the option that it is.

    ``kind`` is what the command line takes, where that is not the field's type; ``parse`` makes the
    field's value of that. ``typer`` is what Typer is to know besides, such as the smallest value;
    ``autocompletion`` is the name of a function of :mod:`shareproof.manual`.
    """

    def __init__(
        self,
        help: str,  # noqa: A002  # as Typer calls it
        *names: str,
        kind: Any = None,
        parse: Callable[[Any], Any] = lambda value: value,
        **typer: Any,
    ) -> None:
        self.help, self.names, self.kind, self.parse, self.typer = help, names, kind, parse, typer


@cache
def options_of(kind: type) -> dict[str, tuple[Any, Option]]:
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for field in fields(kind):
        annotation = hints[field.name]
        for option in getattr(annotation, "__metadata__", ()):
            if isinstance(option, Option):
                found[field.name] = (annotation.__origin__, option)
    return found


def typed(options: object, names: str) -> list[str]:
    found: list[str] = []
    for name in names.split():
        value, usual = getattr(options, name), getattr(type(options), name, None)
        flag = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            found += [flag] if value else []
        elif value not in (usual, None, "", ()):
            values = value if isinstance(value, tuple) else (value,)
            # What a JVM or a broker is given may begin with a dash.
            joined = name.startswith("broker_")
            for one in values:
                found += [f"{flag}={one}"] if joined else [flag, str(one)]
    return found


def repeated(values: Iterable[str] | None) -> tuple[str, ...]:
    return tuple(values or ())


def split(values: Iterable[str] | None) -> tuple[str, ...]:
    """Split repeated and comma-separated names: ``["a,b", "c*"]``."""
    parts = [part.strip() for value in values or () for part in value.split(",")]
    if parts and not any(parts):
        raise UsageFault("An option that takes names got an empty one: leave it out for all.")
    return tuple(dict.fromkeys(part for part in parts if part))


def words(values: Iterable[str] | None) -> tuple[str, ...]:
    """Split repeated and comma-separated areas and rules: ``["ACK,LCK-02", "mem"]``."""
    return split(value.upper() for value in values or ())


def lowered(values: Iterable[str] | None) -> tuple[str, ...]:
    """Split repeated and comma-separated names of ours: ``["Kill-Leader,pause"]``."""
    return split(value.lower() for value in values or ())


def absolute(path: str | Path | None) -> str:
    """Return where a file is that is named from here; empty if none is."""
    return str(Path(path).absolute()) if path else ""


def new_seed() -> int:
    return secrets.randbelow(2**32)


LISTED: Any = list[str] | None
FILE: Any = Path | None

Target = Annotated[str, Option(f"{FORMS}.", autocompletion="targets")]
Brokers = Annotated[int, Option("Number of brokers: 1 or 3.")]
ExpectVersion = Annotated[str, Option("Judge an external target as this release.")]
Only = Annotated[
    tuple[str, ...],
    Option(
        "Area (ACK) or rule (ACK-07); repeatable, or a,b,c.",
        kind=LISTED,
        parse=words,
        autocompletion="rules",
    ),
]
LowestLevel = Annotated[
    Level, Option("Rules from MUST down to this level must hold.", case_sensitive=False)
]
Seed = Annotated[
    int,
    Option(
        "Random seed; repeats an earlier run. Default: a new one.",
        parse=lambda given: new_seed() if given is None else given,
        default_factory=new_seed,
        show_default=False,
    ),
]
Out = Annotated[str, Option("Output directory for the reports.", kind=Path, parse=absolute)]
LedgerName = Annotated[
    str,
    Option(
        "Ledger of known failures: a shipped name, or a path to a .toml file.",
        parse=lambda name: absolute(name) if name.endswith(".toml") else name,
        autocompletion="ledgers",
    ),
]
CommandConfig = Annotated[
    str,
    Option(
        "client.properties with the credentials of an external target, and its addresses for "
        "--target external.",
        kind=FILE,
        parse=absolute,
    ),
]
Prefix = Annotated[str, Option("What names of topics and groups have to begin with on the target.")]
HooksFile = Annotated[
    str,
    Option(
        "TOML file of commands that break and heal an external cluster.", kind=FILE, parse=absolute
    ),
]
ShippedClient = Annotated[
    str,
    Option(f"A shipped adapter: {', '.join(SHIPPED)}; or NAME:VERSION.", autocompletion="clients"),
]
Adapter = Annotated[str, Option("The command of your own adapter; see docs/adapter-protocol.md.")]
AsJson = Annotated[bool, Option("Print JSON, and nothing else, on stdout.", "--json")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    option: tuple[str, str]
    command: tuple[str, ...]
    name: str
    version: str
    language: str = ""
    runtime: str = ""
    capabilities: tuple[str, ...] = ()

    @classmethod
    def from_cli(cls, *, client: str, adapter: str) -> Client | None:
        if client and adapter:
            raise UsageFault("--client and --adapter: give one of them.")
        if not client and not adapter:
            return None
        option = ("--client", checked_client(client)) if client else ("--adapter", adapter)
        return cls(option=option, command=(), name="", version="")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The choices of one run. ``out`` is an absolute path, or empty for a run without reports."""

    tier: Annotated[
        int,
        Option(
            "Rules that need no more than heartbeats, fetches and acknowledgements (1), also "
            "administration (2), or everything (3).",
            min=TIERS[0],
            max=ALL,
        ),
    ] = ALL
    expect_version: ExpectVersion = ""
    topics: Annotated[
        tuple[str, ...],
        Option(
            "Empty topics of an external target to use instead of creating any; repeatable, or "
            "a,b,c*.",
            kind=LISTED,
            parse=split,
        ),
    ] = ()
    second_config: Annotated[
        str,
        Option(
            "client.properties of a second principal without permissions, for rules about them.",
            kind=FILE,
            parse=absolute,
        ),
    ] = ""
    hooks: HooksFile = ""
    target: Target = DEFAULT_TARGET
    brokers: Brokers = DEFAULT_BROKERS
    only: Only = ()
    level: LowestLevel = Level.SHOULD
    seed: Seed = 0
    out: Out = ""
    fast: Annotated[bool, Option("Run the fast subset only.")] = False
    drafts: Annotated[bool, Option("Run draft checks, too.")] = False
    strict_reach: Annotated[
        bool, Option("Fail the run if a rule is out of reach of this target.")
    ] = False
    ledger: LedgerName = ""
    broker_option: Annotated[
        tuple[str, ...],
        Option(
            "Broker property KEY=VALUE for brokers started here; repeatable.",
            kind=LISTED,
            parse=repeated,
        ),
    ] = ()
    broker_jvm: Annotated[
        tuple[str, ...],
        Option(
            "JVM option for brokers started here, such as an agent; repeatable.",
            kind=LISTED,
            parse=repeated,
        ),
    ] = ()
    command_config: CommandConfig = ""
    prefix: Prefix = ""
    client: Client | None = None

    @classmethod
    def given(cls, values: dict[str, Any]) -> RunOptions:
        return resolved(from_given(cls, values))

    @property
    def subject(self) -> str:
        if self.client:
            return f"client {self.client.option[1]}, facing {self.target}"
        return f"target {self.target}"

    @property
    def suite(self) -> str:
        return "client" if self.client else "broker"

    def ledger_for(self, target: str) -> str:
        from spec.ledger import shipped

        if self.ledger:
            return self.ledger
        if self.client is None:
            return target
        own = f"client-{self.client.name}"
        return own if own in shipped() else "strict"

    def judged(self, version: str) -> str:
        return self.client.version if self.client else self.expect_version or version

    @property
    def offers(self) -> frozenset[Capability]:
        hooked = self.hooks_read.offers if self.hooks_read else frozenset()
        return innermost(self.target).offers | hooked

    @property
    def hooks_read(self) -> Hooks | None:
        from fixtures.targets.hooks import Hooks

        return Hooks.read(Path(self.hooks)) if self.hooks else None

    @property
    def target_options(self) -> TargetOptions:
        from fixtures.interface.credentials import security_of

        return TargetOptions(
            brokers=self.brokers,
            properties=self.broker_properties,
            jvm=self.broker_jvm,
            security=security_of(self.command_config),
            topics=self.topics,
            prefix=self.prefix,
        )

    @property
    def broker_properties(self) -> dict[str, str]:
        from fixtures.targets.arguments import parse_properties

        return parse_properties("--broker-option", self.broker_option)

    @property
    def version(self) -> str:
        """The release under test as far as it is known before the target is up."""
        return self.expect_version or innermost(self.target).version

    def selected(self) -> dict[str, Rule]:
        return {id_: rule for id_, rule in spec.rule.load_rules().items() if self.asks(rule)}

    def asks(self, rule: Rule) -> bool:
        """Tell whether the run decides a rule; those of Kafka's inside are for who has one."""
        if rule.internal and rule.id not in self.only and not self.internals:
            return False
        return self.owes(rule.id) and self.wants(rule.id)

    @property
    def internals(self) -> bool:
        own = bool(self.ledger) and named_ledger(self.ledger).internals
        return own or Capability.INTERNALS in self.offers

    @property
    def as_written(self) -> tuple[str, ...]:
        return named_ledger(self.ledger).as_written if self.ledger else ()

    def owes(self, rule: str) -> bool:
        """Tell whether a rule is for what is tested: a client, or a broker; never a program."""
        return rule[:3] != APP_AREA and (rule[:3] == CLIENT_AREA) is bool(self.client)

    def wants(self, rule: str) -> bool:
        return not self.only or rule in self.only or rule[:3] in self.only

    def reproduce(self, rule: str) -> str:
        line = ["shareproof", self.suite, *(self.client.option if self.client else ())]
        line += ["--target", self.target, "--only", rule, "--seed", str(self.seed)]
        if Capability.OWN_CLUSTER in self.offers:
            line += typed(self, "brokers")
        line += typed(self, "drafts strict_reach expect_version ledger command_config")
        line += typed(self, "second_config topics prefix hooks broker_option broker_jvm")
        return shlex.join(line)


@dataclass(frozen=True, kw_only=True)
class AppOptions:
    """The program under test: what it is given, and how long it may take."""

    command: Annotated[
        list[str] | None,
        Option(
            "Your program. {bootstrap}, {topic}, {group}, {output} and {dead_letters} in it "
            "are replaced; SHAREPROOF_BOOTSTRAP, _TOPIC, _GROUP, _OUTPUT and _DEAD_LETTERS are "
            "set.",
            argument=True,
            metavar="-- COMMAND...",
        ),
    ] = None
    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    only: Only = ()
    scenario: Annotated[
        tuple[str, ...],
        Option("Play this scenario only; repeatable, or a,b,c.", kind=LISTED, parse=lowered),
    ] = ()
    list_them: Annotated[bool, Option("List the scenarios, and exit.", "--list-scenarios")] = False
    name: Annotated[str, Option("What reports call the program. Default: its command.")] = ""
    records: Annotated[int, Option("Records in each scenario.", min=10)] = 40
    record: Annotated[str, Option("Value of a record, with {key} in it.")] = (
        '{"id": "{key}", "work_ms": 20}'
    )
    poison: Annotated[str, Option("Value that your program cannot process, with {key} in it.")] = (
        "this is no JSON: {key}"
    )
    poison_every: Annotated[int, Option("One in so many records is poison; 0 for none.", min=0)] = (
        10
    )
    attempts: Annotated[
        int,
        Option(
            "The delivery by which your program finishes what fails. Default: the broker's "
            "limit does.",
            min=0,
        ),
    ] = 0
    patience: Annotated[float, Option("Seconds without progress that end a scenario.", min=1)] = (
        20.0
    )
    grace: Annotated[float, Option("Seconds that the program may take to end.", min=1)] = 20.0
    starting: Annotated[float, Option("Seconds that it may take to join the group.", min=1)] = 60.0
    level: LowestLevel = Level.SHOULD
    seed: Seed = 0
    out: Annotated[Path, Option("Output directory for the reports.")] = Path("out")
    ledger: LedgerName = ""
    command_config: CommandConfig = ""
    as_json: AsJson = False

    def uses(self, name: str) -> bool:
        return any(f"{{{name}}}" in word for word in self.command or ())


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What the model plays with a target; a limit of 0 is the ledger's."""

    target: Target = DEFAULT_TARGET
    brokers: Brokers = 3
    expect_version: Annotated[str, Option("The release, where the target does not tell it.")] = ""
    profile: Annotated[str, Option("How long: ci (minutes) or night.")] = "ci"
    minutes: Annotated[float, Option("Stop after this time.", min=0)] = 0.0
    steps: Annotated[int, Option("Stop after this many actions.", min=0)] = 0
    actions: Annotated[int, Option("Actions in one example.", min=0)] = 0
    shrinking: Annotated[float, Option("Minutes for finding a short script.", min=0)] = 0.0
    seed: Seed = 0
    out: Annotated[Path | None, Option("File for the script of a violation.")] = None
    replay: Annotated[Path | None, Option("Play this script once.")] = None
    as_json: AsJson = False


def from_given(kind: type[T], values: dict[str, Any]) -> T:
    known = options_of(cast("Any", kind))
    return kind(**{name: known[name][1].parse(value) for name, value in values.items()})


def resolved(options: T) -> T:
    from fixtures.targets.arguments import resolve_target

    given = cast("Any", options)
    target = resolve_target(given.target, getattr(given, "command_config", ""))
    return cast("T", replace(given, target=target))


def checked(options: RunOptions) -> RunOptions:
    parse_target(options.target)
    rules = spec.rule.load_rules()
    for word in options.only:
        if word not in AREAS and word not in rules:
            raise UsageFault(
                f"--only {word}: no such rule; give an area such as ACK or an id such as ACK-07 "
                "(`shareproof list` prints them)."
            )
    _check_access(options)
    check_version(options.target, options.expect_version)
    if options.ledger:
        named_ledger(options.ledger)
    if options.out:
        _check_out(Path(options.out))
    return options


def check_version(target: str, expected: str) -> None:
    known = innermost(target).version
    if known and expected not in {"", known}:
        raise UsageFault(f"--expect-version {expected}: {target} is not that.")


def _check_access(options: RunOptions) -> None:
    from fixtures.interface.credentials import read_credentials
    from fixtures.targets.arguments import check_properties, checked_prefix

    offers = innermost(options.target).offers
    ours = Capability.OWN_CLUSTER in offers
    if (options.command_config or options.second_config) and ours:
        option = "--command-config" if options.command_config else "--second-config"
        raise UsageFault(f"{option}: {options.target} needs no credentials.")
    if options.second_config:
        read_credentials(options.second_config, "--second-config")
    if (options.broker_option or options.broker_jvm) and not ours:
        raise UsageFault(f"--broker-option and --broker-jvm: {options.target} is running already.")
    if options.broker_jvm and Capability.JVM not in offers:
        raise UsageFault(f"--broker-jvm: {options.target} does not run in a JVM.")
    if (options.topics or options.hooks) and ours:
        option = "--topics" if options.topics else "--hooks"
        raise UsageFault(f"{option}: only for an external cluster; {options.target} is none.")
    checked_prefix(options.prefix, options.target)
    check_properties("--broker-option", options.broker_properties, options.target)
    open_target(options.target, options.target_options)  # reads names and files; starts nothing


def named_ledger(name: str) -> Ledger:
    """Return a shipped ledger by name, or one from a file by a path that ends in ``.toml``."""
    from spec.ledger import load_ledger, parse_ledger

    try:
        if not name.endswith(".toml"):
            return load_ledger(name)
        return parse_ledger(Path(name).read_text(encoding="utf-8"), Path(name).name)
    except (SpecError, UnicodeDecodeError) as error:
        raise UsageFault(f"--ledger {name}: {error}.") from None
    except OSError as error:
        raise UsageFault(f"--ledger {name}: {error.strerror}.") from None


def _check_out(out: Path) -> None:
    from fixtures.machine.storage import refuse_file

    refuse_file(out)
    ours = (*OWN, "programs")  # all that a run of a program leaves that comes to nothing
    if out.is_dir() and any(out.iterdir()) and not any((out / name).exists() for name in ours):
        raise UsageFault(f"--out {out}: the directory holds other things; give a new or empty one.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageFault(f"--out {out}: cannot be written: {error.strerror}.") from None
