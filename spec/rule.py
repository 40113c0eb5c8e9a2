"""Numbered rules: what a share-group implementation must do, one sentence each.

The TOML files in ``spec/rules`` are the specification this suite certifies against. A rule
is a table under its id; its sentence stands under its level::

    [ACK-07]
    MUST = "A rejected record is never delivered again in its group."
    kip.932."In-flight records" = "rejected leads from Acquired to Archived, whatever the count"

A *contract* is a KIP, a message definition, the documentation or the public Javadoc: what another
broker or client can be held to. Its key points at the section, field or anchor, and says in our
words what stands there, in one text or a list; ``code``, ``test`` and ``issue`` name what is no
contract, one or a list. What goes without saying is left out: ``basis`` is ``contract`` where a
source is one, ``since`` is ``4.1`` and ``honesty`` is ``required`` unless the area has others,
``about`` is that of the area. Ids are never reused: a retired rule keeps its id and its sentence as
a tombstone (``retired = "reason"``), so an old report can always be read.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources

from spec.tables import SpecError as SpecError  # noqa: PLC0414 - what reads rules handles it, too
from spec.tables import parse, record

AREAS: Mapping[str, str] = {
    "MEM": "membership and heartbeat",
    "SES": "share sessions and epochs",
    "ACQ": "acquiring",
    "ACK": "acknowledging",
    "LCK": "locks and renewal",
    "DLV": "delivery count and archiving",
    "OFF": "start and end offset, reset",
    "GAP": "compaction, deletion, transactions, isolation",
    "PER": "persisted state and its RPCs",
    "COO": "coordinator and leader failover",
    "ADM": "admin",
    "SEC": "security",
    "DLQ": "dead letters",
    "LAG": "lag and metrics",
    "CFG": "configuration",
    "CLI": "client obligations",
    "INV": "invariants of a whole history",
    "FRM": "frameworks and applications",
}

APP_AREA = "FRM"  # The area of rules for programs that consume: no certificate has them


class Level(StrEnum):
    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


class Honesty(StrEnum):
    """What a green verdict is worth: proof, a sample, or nothing as no check reaches the rule."""

    REQUIRED = "required"
    STOCHASTIC = "stochastic"
    UNTESTED = "untested"


class Internal(StrEnum):
    """The part of Apache Kafka that a rule is about; another implementation need not have it.

    ``persister`` is its share coordinator and the five RPCs to it, ``state-topic`` the records of
    ``__share_group_state``, ``jmx`` its metrics, ``java-tools`` its command-line tools, and
    ``choice`` one of several ways that the contracts leave open.
    """

    PERSISTER = "persister"
    STATE_TOPIC = "state-topic"
    JMX = "jmx"
    JAVA_TOOLS = "java-tools"
    CHOICE = "choice"


class About(StrEnum):
    """What a rule is about; :data:`UNCROSSED` says what speaks against other situations."""

    STATE = "state"
    FORM = "form"
    SESSIONS = "sessions"
    GROUPS = "groups"
    COORDINATORS = "coordinators"
    SETTINGS = "settings"
    PERMISSIONS = "permissions"
    TOOLS = "tools"
    CLIENTS = "clients"
    HISTORIES = "histories"
    PROGRAMS = "programs"


UNCROSSED: Mapping[About, str] = {
    About.FORM: "how a request is written or refused, whatever is kept of the share-partition",
    About.SESSIONS: "how a session's requests are counted, and how many sessions there may be",
    About.GROUPS: "which groups and members there are, and what is assigned to them",
    About.COORDINATORS: "who coordinates, and what is answered while that moves",
    About.SETTINGS: "which values a configuration takes, and where it is in force",
    About.PERMISSIONS: "who may send a request, whatever it asks for",
    About.TOOLS: "what a tool prints, or a metric counts",
    About.CLIENTS: "what a client sends; its brokers differ, not the state that they keep",
    About.HISTORIES: "a whole history of a load under faults, which has the situations in it",
    About.PROGRAMS: "what a program does; its scenarios are its situations",
}
"""Why a rule that is not about the state of share-partitions meets one situation, by subject."""

_AREA_DEFAULTS: Mapping[str, Mapping[str, str]] = {
    "MEM": {"about": About.GROUPS},
    "SEC": {"about": About.PERMISSIONS},
    "DLQ": {"since": "4.4"},
    "CFG": {"about": About.SETTINGS},
    "CLI": {"about": About.CLIENTS},
    "INV": {"about": About.HISTORIES, "honesty": Honesty.STOCHASTIC},
    "FRM": {"about": About.PROGRAMS},
}
"""What holds of all rules of an area that do not say otherwise; the others are about state."""


class Basis(StrEnum):
    """Whether a contract says what a rule demands, or only Apache's implementation shows it."""

    CONTRACT = "contract"
    REFERENCE = "reference"


class Kind(StrEnum):
    """Where a source stands; the value is its key in the rules' files."""

    KIP = "kip"
    MESSAGE = "message"
    DOC = "doc"
    JAVADOC = "javadoc"
    CODE = "code"
    TEST = "test"
    ISSUE = "issue"


CONTRACTS = (Kind.KIP, Kind.MESSAGE, Kind.DOC, Kind.JAVADOC)
NAMES = (Kind.CODE, Kind.TEST, Kind.ISSUE)  # what is no contract is named, and says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    kind: Kind  # Where it stands.
    # The KIP's number, the message, the page or class, the method, the test or the report.
    name: str
    place: str = ""  # The section, field or anchor; empty for code, tests and reports.
    says: str = ""  # What it says there, in our words; empty for code, tests and reports.

    @property
    def contract(self) -> bool:
        """Whether an implementation can be held to it."""
        return self.kind in CONTRACTS

    def __str__(self) -> str:
        head = {
            Kind.KIP: f"KIP-{self.name} §{self.place}",
            Kind.MESSAGE: f"{self.name}.json {self.place}",
            Kind.DOC: f"documentation {self.name}#{self.place}",
            Kind.JAVADOC: f"Javadoc {self.name}#{self.place}",
            Kind.CODE: f"Apache's {self.name}",
            Kind.TEST: f"Apache's test {self.name}",
            Kind.ISSUE: self.name,
        }[self.kind]
        return f"{head}: {self.says}" if self.says else head


@dataclass(frozen=True, slots=True, kw_only=True)
class Kip:
    """A Kafka improvement proposal that rules rest on; ``revision`` says which text was read.

    ``sections`` says for each section, where the page changed much, in which text it was read.
    """

    title: str
    page: str
    revision: str
    sections: Mapping[str, str] = field(default_factory=dict)


@cache
def load_kips() -> dict[str, Kip]:
    text = (resources.files("spec") / "kips.toml").read_text(encoding="utf-8")
    kips = parse(text, "kips.toml").items()
    return {number: record(Kip, raw, f"kips.toml: {number}") for number, raw in kips}


def parse_sources(rule: Mapping[str, object], label: str) -> tuple[Source, ...]:
    """Read the sources of a rule; ``label`` names the rule in messages. Raises SpecError."""
    kinds = [Kind(key) for key in rule if key in CONTRACTS]
    found = [one for kind in kinds for one in _pinpoints(kind, rule[kind.value], label)]
    for kind in NAMES:
        for name in _listed(rule.get(kind)):
            if not isinstance(name, str) or not name:
                raise SpecError(f"{label}: {kind} is a name or a list of names, not {name!r}")
            found.append(Source(kind=kind, name=name))
    if not found:
        raise SpecError(f"{label} names no source")
    return tuple(found)


def _listed(raw: object) -> list[object]:
    return raw if isinstance(raw, list) else [] if raw is None else [raw]


def _pinpoints(kind: Kind, raw: object, label: str) -> Iterator[Source]:
    named: Mapping[str, object] = raw if isinstance(raw, Mapping) else {str(raw): None}
    for name, places in named.items():
        if not isinstance(places, Mapping):
            raise SpecError(f"{label}: {kind} {name!r} is no pinpoint; name the place in it, too")
        if kind is Kind.KIP and name not in load_kips():
            raise SpecError(f"{label}: KIP-{name} is not in kips.toml")
        for place, texts in places.items():
            for says in _listed(texts):
                if not isinstance(says, str) or not says:
                    raise SpecError(f"{label}: {kind} {name} {place}: what it says is a text")
                yield Source(kind=kind, name=name, place=place, says=says)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule.

    ``since`` is the minor release that brought the feature, such as ``4.1``. ``basis`` says whether
    a contract demands it, and ``source`` where. ``internal`` marks what only Apache Kafka owes.
    Rules about ``state`` are checked in several situations.
    """

    id: str
    level: Level
    text: str
    source: tuple[Source, ...]
    basis: Basis = Basis.CONTRACT
    since: str = "4.1"
    honesty: Honesty = Honesty.REQUIRED
    internal: Internal | None = None
    about: About = About.STATE
    why: str = ""
    retired: str = ""

    @property
    def area(self) -> str:
        return self.id[:3]


def _requirement(identity: str, raw: Mapping[str, object], where: str) -> Rule:
    match, label = re.match(r"^([A-Z]{3})-(\d{2,3})$", identity), f"{where}: {identity}"
    if not match or match[1] not in AREAS:
        raise SpecError(f"{where}: {identity!r} is not an id of a known area, such as ACK-07")
    levels = [level for level in Level if level in raw]
    if len(levels) != 1:
        raise SpecError(f"{label} has exactly one of {', '.join(Level)}")
    plain = {key: value for key, value in raw.items() if key not in {*levels, *CONTRACTS, *NAMES}}
    sources = () if "retired" in raw else parse_sources(raw, label)
    basis = Basis.CONTRACT if any(one.contract for one in sources) else Basis.REFERENCE
    rule = record(
        Rule,
        {"basis": basis.value, **_AREA_DEFAULTS.get(match[1], {}), **plain},
        label,
        id=identity,
        level=levels[0],
        text=" ".join(str(raw[levels[0]]).split()),
        source=sources,
    )
    if rule.basis is Basis.CONTRACT is not basis:
        raise SpecError(f"{label} claims a contract, and none of its sources is one")
    if not re.match(r"^\d+\.\d+$", rule.since):
        raise SpecError(f"{label}: since must be a minor release such as 4.1")
    if rule.honesty is Honesty.UNTESTED and not rule.why:
        raise SpecError(f"{label} is untested and does not say why")
    return rule


def _read() -> Iterator[Rule]:
    folder = resources.files("spec") / "rules"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            for identity, raw in parse(file.read_text(encoding="utf-8"), file.name).items():
                rule = _requirement(identity, raw, file.name)
                if rule.area.lower() != file.name.removesuffix(".toml"):
                    raise SpecError(f"{file.name}: {rule.id} belongs in {rule.area.lower()}.toml")
                yield rule


@cache
def load_rules() -> Mapping[str, Rule]:
    """Return every live rule by id, areas in the order of ``AREAS``; raises SpecError."""
    rules: dict[str, Rule] = {}
    for rule in _read():
        if rule.id in rules:
            raise SpecError(f"{rule.id} is defined twice; ids are never reused")
        rules[rule.id] = rule
    order = list(AREAS)
    live = (rule for rule in rules.values() if not rule.retired)
    return {
        rule.id: rule
        for rule in sorted(live, key=lambda rule: (order.index(rule.area), int(rule.id[4:])))
    }
