"""What every sweep has: cases by name, and what playing one showed."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar


class Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=Named)


def chosen(cases: Sequence[N], words: Sequence[str], mark: str = "/") -> list[N]:
    """Return the cases that patterns mean: ``ShareFetch/*/9999/*``, or ``Metadata`` alone."""
    wanted = [word if mark in word else f"{word}{mark}*" for word in words]
    return [one for one in cases if not words or any(fnmatchcase(one.name, w) for w in wanted)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    rule: str
    broken: str = ""
    witness: tuple[str, ...] = ()
    responses: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    case: str
    rule: str  # What it is about, if nothing else says so.
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0
    undecided: str = ""
    fault: str = ""  # What broke the adapter or the suite.
    died: bool = False  # Whether that ended the adapter's process, in which others ran, too.
    frames: str = ""  # What went over the wire, if a rule was broken.

    @property
    def is_clear(self) -> bool:
        return not (self.undecided or self.fault or any(one.broken for one in self.findings))
