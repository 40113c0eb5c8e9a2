"""What a rule rests on: a sentence of a contract, or what Apache's implementation does.

A *contract* is a KIP, a message definition, the documentation or the public Javadoc: what another
broker or client can be held to. Code, tests and reports are *reference* only.
A source of a contract points at the sentence: section, field or anchor, and what it says in our
words.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources

from spec.tables import SpecError, parse, record


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


PLACES: Mapping[Kind, str] = {
    Kind.KIP: "section",
    Kind.MESSAGE: "field",
    Kind.DOC: "anchor",
    Kind.JAVADOC: "anchor",
}
"""The contracts, and the key that says where in each of them the sentence stands."""

NAMES = (Kind.CODE, Kind.TEST, Kind.ISSUE)  # what is no contract is named, and says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source of a rule."""

    kind: Kind  # Where it stands.
    # The KIP's number, the message, the page or class, the method, the test or the report.
    name: str
    place: str = ""  # The section, field or anchor; empty for code, tests and reports.
    says: str = ""  # What it says there, in our words; empty for code, tests and reports.

    @property
    def contract(self) -> bool:
        """Whether an implementation can be held to it."""
        return self.kind in PLACES

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
    """Return the KIPs that rules may cite, by number; raises SpecError."""
    text = (resources.files("spec") / "kips.toml").read_text(encoding="utf-8")
    kips = parse(text, "kips.toml").items()
    return {number: record(Kip, raw, f"kips.toml: {number}") for number, raw in kips}


def parse_sources(rule: Mapping[str, object], label: str) -> tuple[Source, ...]:
    """Read the sources of a rule; ``label`` names the rule in messages.

    ``source`` has those of contracts; ``code``, ``test`` and ``issue`` have names alone. Each key
    has one or a list.

    Raises SpecError: there is none, one is malformed, or a contract's does not say what it says.
    """
    found = [_contract(raw, label) for raw in _listed(rule.get("source"))]
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


def _contract(raw: object, label: str) -> Source:
    kinds = [kind for kind in PLACES if isinstance(raw, Mapping) and kind.value in raw]
    if not isinstance(raw, Mapping) or len(kinds) != 1:
        raise SpecError(f"{label}: a source has exactly one of {', '.join(PLACES)}, not {raw!r}")
    kind = kinds[0]
    place = PLACES[kind]
    if unknown := set(raw) - {kind.value, place, "says"}:
        raise SpecError(f"{label}: a {kind.value} source has unknown keys {sorted(unknown)}")
    if not all(isinstance(value, str) and value for value in raw.values()):
        raise SpecError(f"{label}: every value of a source is a text that is not empty")
    if not {place, "says"} <= raw.keys():
        raise SpecError(f"{label}: {raw!r} is no pinpoint; name the {place} and what it says there")
    found = Source(kind=kind, name=raw[kind.value], place=raw[place], says=raw["says"])
    if kind is Kind.KIP and found.name not in load_kips():
        raise SpecError(f"{label}: KIP-{found.name} is not in kips.toml")
    return found
