"""The cases of the sweep: an API, a level, an error code, and a rhythm.

A name such as ``ShareFetch/partition/NOT_LEADER_OR_FOLLOWER/ten`` has all four, and selects a case
on the command line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from suites.client.sweep.codes import FINAL, Code, codes

Step = Mapping[str, Any]

ONCE, THREE, TEN, LASTING = "once", "three", "ten", "lasting"
ALTERNATING, WITH_DATA = "alternating", "with-data"
_RHYTHMS = (ONCE, TEN, LASTING, ALTERNATING)
_TURNS = 8
"""Errors of a case that alternates; after each a request is served."""

_TIMES = {ONCE: 1, THREE: 3, TEN: 10, LASTING: 0, ALTERNATING: 1, WITH_DATA: 3}
"""How often a step is taken in each rhythm; 0 is without end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case.

    Attributes:
        name: Its parts with slashes between.
        steps: The hostile broker's script.
        joining: Whether the script runs from the start, and not once records have come.
        commits: Whether the application commits after each poll, or lets the next fetch do it.
        owed: Whether the application has to be told.
        lasting: Whether the error lasts until the script is taken away.
        unreadable: Whether the responses hold what no client can read, so that it may reject it.
    """

    name: str
    steps: tuple[Step, ...]
    joining: bool = False
    commits: bool = True
    owed: bool = False
    lasting: bool = False
    unreadable: bool = False

    @property
    def api(self) -> str:
        return self.name.partition("/")[0]


def all_errors() -> list[Case]:
    return [*_heartbeats(), *_fetches(), *_acknowledgements(), *_looking_around()]


def chosen(cases: Sequence[Case], words: Sequence[str]) -> list[Case]:
    wanted = [word if "/" in word else f"{word}/*" for word in words]
    return [one for one in cases if not words or any(fnmatchcase(one.name, w) for w in wanted)]


def with_rhythm(step: Step, rhythm: str) -> tuple[Step, ...]:
    times = _TIMES[rhythm]
    one = {**step, "times": times}
    if rhythm != ALTERNATING:
        return (one,)
    between = {"on": step["on"], "when": step.get("when", {}), "do": "pass", "times": 1}
    return (one, between) * _TURNS


def _of(
    api: str, level: str, code: Code, step: Step, rhythms: Sequence[str] = _RHYTHMS, **fields: Any
) -> Iterator[Case]:
    final = code in FINAL[api] and (api, level) not in _NEVER_FINAL
    for rhythm in rhythms:
        lasting = rhythm == LASTING
        yield Case(
            name=f"{api}/{level}/{code}/{rhythm}",
            steps=with_rhythm({"on": api, "code": code, **step}, rhythm),
            lasting=lasting,
            owed=lasting and (final or "acknowledge" in level or api == "ShareAcknowledge"),
            **fields,
        )


_NEVER_FINAL = {("Metadata", "top"), ("Metadata", "partition")}
"""Where codes have another meaning than for a topic."""


def _heartbeats() -> Iterator[Case]:
    api = "ShareGroupHeartbeat"
    for code in codes(api):
        refused = {"do": "error", "applied": False}
        yield from _of(api, "joining", code, refused, joining=True)
        yield from _of(api, "staying", code, refused)


def _fetches() -> Iterator[Case]:
    api = "ShareFetch"
    for code in codes(api):
        if code != "INVALID_RECORD_STATE":  # only for AcknowledgeErrorCode, says the definition
            yield from _of(api, "top", code, {"do": "error", "applied": False})
            with_data = {"do": "partition-error", "only": 0, "keep": True}
            yield from _of(api, "partition", code, {"do": "partition-error", "only": 0})
            yield from _of(api, "partition", code, with_data, [WITH_DATA])
            yield from _topped(code)
        refused = {"do": "partition-error", "level": "acknowledge", "without_acks": True, "only": 0}
        step = {**refused, "when": {"has": "acks-0"}}
        yield from _of(api, "acknowledge", code, step, commits=False)


def _topped(code: Code) -> Iterator[Case]:
    """Yield the case of a whole fetch that fails, and has its data all the same."""
    step = {"do": "field", "name": "error_code", "value": code}
    yield Case(
        name=f"ShareFetch/top/{code}/{WITH_DATA}",
        steps=with_rhythm({"on": "ShareFetch", **step}, WITH_DATA),
    )


def _acknowledgements() -> Iterator[Case]:
    api = "ShareAcknowledge"
    for code in codes(api):
        acks = {"when": {"has": "acks"}}
        yield from _of(api, "top", code, {"do": "error", "applied": False, **acks})
        refused = {"do": "partition-error", "without_acks": True, "only": 0}
        refused |= {"when": {"has": "acks-0"}}
        yield from _of(api, "partition", code, refused)


def _looking_around() -> Iterator[Case]:
    for code in codes("Metadata"):
        for level, step in (
            ("top", {"do": "error"}),
            ("topic", {"do": "metadata-error"}),
            ("partition", {"do": "metadata-error", "level": "partition", "only": 0}),
        ):
            yield from _of("Metadata", level, code, step, joining=True)
    for api in ("FindCoordinator", "ApiVersions"):
        for code in codes(api):
            yield from _of(api, "top", code, {"do": "error", "applied": False}, joining=True)
