"""What a run is asked to do, as one frozen value, from the command line to the workers."""

from __future__ import annotations

import secrets
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fixtures.adapters.shipped import asked_client
from fixtures.interface.capability import Capability
from fixtures.interface.credentials import read_credentials, security_of
from fixtures.interface.names import UsageFault, innermost, parse_target
from fixtures.targets import DEFAULT_TARGET, TargetOptions, open_target
from fixtures.targets.asked import (
    asked_prefix,
    asked_properties,
    asked_target,
    check_properties,
)
from fixtures.targets.hooks import Hooks
from spec import profile as profiles
from spec import requirement as requirements
from spec.profile import Profile
from spec.requirement import APP_AREA, AREAS, Level, Requirement, SpecError
from spec.tiers import ALL

DEFAULT_BROKERS = 3
CLIENT_AREA = "CLI"
OWN = (
    "results.json",
    "run.json",
    "report.html",
    "junit.xml",
    "pytest.log",
    "badge.json",
    "badge.svg",
    "allurerc.json",
)
"""Files that a run writes into its directory, and may therefore overwrite there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The client under test: how it was asked for, how to start it, and what it says it is."""

    asked: tuple[str, str]
    command: tuple[str, ...]
    name: str
    version: str
    language: str = ""
    runtime: str = ""
    capabilities: tuple[str, ...] = ()

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Client:
        """Read back what JSON made of it."""
        fields: dict[str, Any] = dict(plain)
        for name in ("asked", "command", "capabilities"):
            fields[name] = tuple(plain[name])
        return cls(**fields)

    @classmethod
    def asked_for(cls, *, client: str, adapter: str) -> Client | None:
        """Return the client that ``--client`` or ``--adapter`` names; it is not introduced yet.

        Raises:
            UsageFault: both are given, or there is no such client.
        """
        if client and adapter:
            raise UsageFault("--client and --adapter: give one of them.")
        if not client and not adapter:
            return None
        asked = ("--client", asked_client(client)) if client else ("--adapter", adapter)
        return cls(asked=asked, command=(), name="", version="")


UNSEEN = "apache-kafka"
"""The ledger of a target that has not started yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The choices of one run. ``out`` is an absolute path, or empty for a run without reports."""

    target: str = DEFAULT_TARGET
    brokers: int = DEFAULT_BROKERS
    only: tuple[str, ...] = ()
    level: Level = Level.SHOULD
    seed: int = 0
    out: str = ""
    fast: bool = False
    drafts: bool = False
    expect_version: str = ""
    profile: str = ""
    client: Client | None = None
    command_config: str = ""
    second_config: str = ""
    broker_option: tuple[str, ...] = ()
    broker_jvm: tuple[str, ...] = ()
    strict_reach: bool = False
    topics: tuple[str, ...] = ()
    prefix: str = ""
    hooks: str = ""
    tier: int = ALL

    @classmethod
    def asked(
        cls,
        *,
        target: str,
        only: list[str] | None,
        seed: int | None,
        out: str | Path,
        profile: str,
        command_config: str | Path | None = None,
        second_config: str | Path | None = None,
        broker_option: list[str] | None = None,
        broker_jvm: list[str] | None = None,
        topics: list[str] | None = None,
        hooks: str | Path | None = None,
        **others: Any,
    ) -> RunOptions:
        """Return the options as a person gave them.

        Args:
            target: The target's name; see :func:`fixtures.targets.asked.asked_target`.
            only: Areas and rules, each perhaps several with commas between.
            seed: None for a random one.
            out: A directory, seen from here; empty for a run without reports.
            profile: A ledger's name, or a path that ends in ``.toml``, seen from here.
            command_config: A client.properties, seen from here.
            second_config: That of a second principal.
            broker_option: Broker properties, each KEY=VALUE.
            broker_jvm: JVM options of brokers.
            topics: Names of topics, each perhaps several with commas between.
            hooks: A file of hooks, seen from here.
            others: Fields that are kept as they are.
        """
        config = str(Path(command_config).absolute()) if command_config else ""
        return cls(
            target=asked_target(target, config),
            command_config=config,
            second_config=str(Path(second_config).absolute()) if second_config else "",
            broker_option=tuple(broker_option or ()),
            broker_jvm=tuple(broker_jvm or ()),
            topics=_names(topics),
            hooks=str(Path(hooks).absolute()) if hooks else "",
            only=words(only),
            seed=new_seed() if seed is None else seed,
            out=str(Path(out).absolute()) if out else "",
            profile=str(Path(profile).absolute()) if profile.endswith(".toml") else profile,
            **others,
        )

    @property
    def subject(self) -> str:
        """What is tested, in a few words."""
        if self.client:
            return f"client {self.client.asked[1]}, facing {self.target}"
        return f"target {self.target}"

    @property
    def suite(self) -> str:
        """The checks to run: the name of their folder below ``suites``."""
        return "client" if self.client else "broker"

    def ledger(self, target: str) -> str:
        """Return the name of the ledger to compare verdicts with; ``target`` names the target's."""
        if self.profile:
            return self.profile
        if self.client is None:
            return target
        own = f"client-{self.client.name}"
        return own if own in profiles.shipped() else "strict"

    def judged(self, version: str) -> str:
        """Return the version that the ledger is asked about; ``version`` is the target's."""
        return self.client.version if self.client else self.expect_version or version

    @property
    def offers(self) -> frozenset[Capability]:
        """What the target offers to checks, whatever stands in front of it."""
        hooked = self.hooks_read.offers if self.hooks_read else frozenset()
        return innermost(self.target).offers | hooked

    @property
    def hooks_read(self) -> Hooks | None:
        """The commands that break and mend somebody's brokers, if there are any.

        Raises:
            UsageFault: the file makes no sense.
        """
        return Hooks.read(Path(self.hooks)) if self.hooks else None

    @property
    def target_options(self) -> TargetOptions:
        """How the target is to be opened."""
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
        """The properties that every broker of ours is started with.

        Raises:
            UsageFault: one is not KEY=VALUE.
        """
        return asked_properties("--broker-option", self.broker_option)

    @property
    def version(self) -> str:
        """The release under test as far as it is known before the target is up."""
        return self.expect_version or innermost(self.target).version

    def selected(self) -> dict[str, Requirement]:
        """Return the rules that this run is asked about."""
        rules = requirements.load_requirements()
        return {id_: rule for id_, rule in rules.items() if self.asks(rule)}

    def asks(self, rule: Requirement) -> bool:
        """Tell whether the run is asked about a rule.

        Rules about Apache's own implementation are for Kafka's brokers, for the reference broker,
        which has the same inside, for whoever's ledger says so, and for whoever names the rule.
        """
        if rule.internal and rule.id not in self.only and not self.internals:
            return False
        return self.owes(rule.id) and self.wants(rule.id)

    @property
    def internals(self) -> bool:
        """Whether the target is held to the rules about Apache's own implementation."""
        own = bool(self.profile) and load_ledger(self.profile).internals
        return own or Capability.INTERNALS in self.offers

    @property
    def as_written(self) -> tuple[str, ...]:
        """The set-ups that checks are not played in on this target, by its ledger."""
        return load_ledger(self.profile).as_written if self.profile else ()

    def owes(self, rule: str) -> bool:
        """Tell whether a rule is for what is tested: a client, or a broker; never a program."""
        return rule[:3] != APP_AREA and (rule[:3] == CLIENT_AREA) is bool(self.client)

    def wants(self, rule: str) -> bool:
        """Tell whether ``--only`` lets a rule through."""
        return not self.only or rule in self.only or rule[:3] in self.only

    def reproduce(self, rule: str) -> str:
        """Return the command that runs one rule again as it ran here."""
        words = ["shareproof", self.suite, *(self.client.asked if self.client else ())]
        words += ["--target", self.target, "--only", rule]
        words += ["--seed", str(self.seed)]
        if self.brokers != DEFAULT_BROKERS and Capability.OWN_CLUSTER in self.offers:
            words += ["--brokers", str(self.brokers)]
        if self.drafts:
            words.append("--drafts")
        if self.strict_reach:
            words.append("--strict-reach")
        given = [
            ("--expect-version", self.expect_version),
            ("--profile", self.profile),
            ("--command-config", self.command_config),
            ("--second-config", self.second_config),
            *(("--topics", name) for name in self.topics),
            ("--prefix", self.prefix),
            ("--hooks", self.hooks),
        ]
        words += [word for option, value in given if value for word in (option, value)]
        for name, values in (("option", self.broker_option), ("jvm", self.broker_jvm)):
            words += [f"--broker-{name}={value}" for value in values]
        return shlex.join(words)

    def to_plain(self) -> dict[str, Any]:
        """Return a value that pytest-xdist can send to its workers."""
        return {**asdict(self), "only": list(self.only), "level": self.level.value}

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> RunOptions:
        """Undo :meth:`to_plain`."""
        client = plain["client"] and Client.from_plain(plain["client"])
        own = {
            name: tuple(plain[name]) for name in ("only", "broker_option", "broker_jvm", "topics")
        }
        return cls(**{**plain, **own, "level": Level(plain["level"]), "client": client})


def checked(options: RunOptions) -> RunOptions:
    """Return the options unchanged if they make sense.

    Raises:
        UsageFault: one of them does not; the message says which and what would.
    """
    parse_target(options.target)
    rules = requirements.load_requirements()
    for word in options.only:
        if word not in AREAS and word not in rules:
            raise UsageFault(
                f"--only {word}: no such rule; give an area such as ACK or an id such as ACK-07 "
                "(`shareproof list` prints them)."
            )
    _check_access(options)
    known = innermost(options.target).version
    if known and options.expect_version not in {"", known}:
        raise UsageFault(
            f"--expect-version {options.expect_version}: {options.target} is not that."
        )
    if options.profile:
        load_ledger(options.profile)
    if options.out:
        _check_out(Path(options.out))
    return options


def _check_access(options: RunOptions) -> None:
    """Refuse credentials for brokers of ours, and settings for brokers of somebody else."""
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
    asked_prefix(options.prefix, options.target)
    check_properties("--broker-option", options.broker_properties, options.target)
    open_target(options.target, options.target_options)  # reads names and files; starts nothing


def load_ledger(name: str) -> Profile:
    """Return a shipped profile by name, or one from a file by a path that ends in ``.toml``.

    Raises:
        UsageFault: it does not exist or is malformed.
    """
    try:
        if not name.endswith(".toml"):
            return profiles.load_profile(name)
        return profiles.parse_profile(Path(name).read_text(encoding="utf-8"), Path(name).name)
    except (SpecError, UnicodeDecodeError) as error:
        raise UsageFault(f"--profile {name}: {error}.") from None
    except OSError as error:
        raise UsageFault(f"--profile {name}: {error.strerror}.") from None


def words(values: list[str] | None) -> tuple[str, ...]:
    """Split repeated and comma-separated choices: ``["ACK,LCK-02", "mem"]``."""
    parts = (part.strip().upper() for value in values or () for part in value.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def _names(values: list[str] | None) -> tuple[str, ...]:
    """Split repeated and comma-separated names: ``["a,b", "c*"]``."""
    parts = (part.strip() for value in values or () for part in value.split(","))
    return tuple(dict.fromkeys(part for part in parts if part))


def new_seed() -> int:
    """Return a random seed."""
    return secrets.randbelow(2**32)


def _check_out(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise UsageFault(f"--out {out}: that is a file, a directory is needed.")
    if out.is_dir() and any(out.iterdir()) and not any((out / name).exists() for name in OWN):
        raise UsageFault(f"--out {out}: the directory holds other things; give a new or empty one.")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageFault(f"--out {out}: cannot be written: {error.strerror}.") from None
