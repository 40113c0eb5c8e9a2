"""The cases of the sweep: an API, what becomes of its responses, and a rhythm.

A name such as ``ShareFetch/partition/NOT_LEADER_OR_FOLLOWER/ten`` has an API, a level, an error
code and a rhythm, and selects a case on the command line. Others have fields at their edges, or
responses that cannot be decoded at all.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

Code = str | int
Step = Mapping[str, Any]

# --- Tables -------------------------------------------------------------------------------------

_FILE = resources.files("suites") / "client" / "sweep" / "cases.toml"
_TABLES = tomllib.loads(_FILE.read_text(encoding="utf-8"))


def _codes(kind: str) -> Mapping[str, tuple[Code, ...]]:
    return {api: tuple(told[kind].split()) for api, told in _TABLES["codes"].items()}


DEFINED, OTHERS, FINAL = map(_codes, ("defined", "others", "final"))
UNKNOWN = 9999  # A code that nobody knows.

# --- Cases --------------------------------------------------------------------------------------

# How often a step is taken in each rhythm; 0 is without end.
_TIMES = {"once": 1, "three": 3, "ten": 10, "lasting": 0, "alternating": 1, "with-data": 3}
_TURNS = 8  # Errors of a case that alternates; after each a request is served.


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    name: str  # Its parts with slashes between.
    steps: tuple[Step, ...]  # The hostile broker's script.
    joining: bool = False  # Whether the script runs from the start, and not once records have come.
    # Whether the application commits after each poll, or lets the next fetch do it.
    commits: bool = True
    owed: bool = False  # Whether the application has to be told.
    lasting: bool = False  # Whether the error lasts until the script is taken away.
    # Whether the responses hold what no client can read, so that it may reject it.
    unreadable: bool = False

    @property
    def api(self) -> str:
        return self.name.partition("/")[0]


def all_cases() -> list[Case]:
    return [*_errors(), *_edges()]


def _case(
    api: str, what: str, rhythm: str, step: Step, *, owed: bool = False, **fields: bool
) -> Case:
    first = {"on": api, **step, "times": _TIMES[rhythm]}
    between = {"on": api, "when": step.get("when", {}), "do": "pass", "times": 1}
    lasting = rhythm == "lasting"
    return Case(
        name=f"{api}/{what}/{rhythm}",
        steps=(first, between) * _TURNS if rhythm == "alternating" else (first,),
        lasting=lasting,
        owed=lasting and owed,
        **fields,
    )


_FAILS = {"do": "error", "applied": False}
_ONE_FAILS = {"do": "partition-error", "only": 0}
_ACKS_FAIL = {**_ONE_FAILS, "without_acks": True, "when": {"has": "acks-0"}}
# For each API where in a response an error code stands, and how the case differs from others.
_LEVELS: Mapping[str, Sequence[tuple[str, Step, dict[str, bool]]]] = {
    "ShareGroupHeartbeat": (("joining", _FAILS, {"joining": True}), ("staying", _FAILS, {})),
    "ShareFetch": (
        ("top", _FAILS, {}),
        ("partition", _ONE_FAILS, {}),
        ("partition with-data", {**_ONE_FAILS, "keep": True}, {}),
        # A whole fetch fails, and has its data all the same.
        ("top with-data", {"do": "field", "name": "error_code"}, {}),
        ("acknowledge", {**_ACKS_FAIL, "level": "acknowledge"}, {"commits": False}),
    ),
    "ShareAcknowledge": (
        ("top", {**_FAILS, "when": {"has": "acks"}}, {}),
        ("partition", _ACKS_FAIL, {}),
    ),
    "Metadata": (
        ("top", {"do": "error"}, {"joining": True}),
        ("topic", {"do": "metadata-error"}, {"joining": True}),
        ("partition", {"do": "metadata-error", "level": "partition", "only": 0}, {"joining": True}),
    ),
    "FindCoordinator": (("top", _FAILS, {"joining": True}),),
    "ApiVersions": (("top", _FAILS, {"joining": True}),),
}

# Where codes have another meaning than for a topic.
_NEVER_FINAL = {("Metadata", "top"), ("Metadata", "partition")}


def _errors() -> Iterator[Case]:
    for api, levels in _LEVELS.items():
        for code in (*DEFINED[api], *OTHERS[api], UNKNOWN):
            for where, step, fields in levels:
                level, _, rhythm = where.partition(" ")
                if (api, code) == ("ShareFetch", "INVALID_RECORD_STATE") and level != "acknowledge":
                    continue  # only for AcknowledgeErrorCode, says the definition
                final = code in FINAL[api] and (api, level) not in _NEVER_FINAL
                owed = final or level == "acknowledge" or api == "ShareAcknowledge"
                coded = {**step, "value" if step["do"] == "field" else "code": code}
                for each in [rhythm] if rhythm else ("once", "ten", "lasting", "alternating"):
                    yield _case(api, f"{level}/{code}", each, coded, owed=owed, **fields)


# --- Edges --------------------------------------------------------------------------------------

# What brokers may do for ever, and a client has to live with.
_LASTS = {"hints-of-zeros", "hints-as-defined", "huge-lock", "lock-of-zero", "no-cluster-id"}

_BATCHES = (
    "codec magic-0 magic-1 magic-3 crc count negative-count length negative-length truncated empty"
)
_FIRST = {"Metadata", "FindCoordinator", "ApiVersions"}


def _edges() -> Iterator[Case]:
    for api, fields in _TABLES["fields"].items():
        for name, told in fields.items():
            step = told | {"value": told.get("value")} if told["do"] == "field" else told
            for rhythm in ("three", "lasting") if name in _LASTS else ("three",):
                yield _case(api, f"fields/{name}", rhythm, step, joining=api in _FIRST)
    for flaw in _BATCHES.split():
        step = {"do": "batch", "flaw": flaw}
        yield _case("ShareFetch", f"batch/{flaw}", "three", step, unreadable=True)
    for api in _TABLES["fields"]:
        for flaw in ("garbage", "truncated", "header", "correlation"):
            for rhythm in ("once", "ten"):
                step = {"do": "frame", "flaw": flaw}
                yield _case(api, f"frame/{flaw}", rhythm, step, joining=api in _FIRST)
