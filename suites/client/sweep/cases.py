"""The cases of the sweep: an API, a level, an error code, and a rhythm; and fields at their edges.

A name such as ``ShareFetch/partition/NOT_LEADER_OR_FOLLOWER/ten`` has all four, and selects a case
on the command line.

The definitions of the share APIs list their codes ("Supported errors"); a test holds these tables
against them. Those of Metadata, FindCoordinator and ApiVersions list none: their codes are those
that Kafka's documentation of the responses and its brokers have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

Code = str | int

DEFINED: Mapping[str, tuple[Code, ...]] = MappingProxyType(
    {
        "ShareGroupHeartbeat": (
            "GROUP_AUTHORIZATION_FAILED",
            "NOT_COORDINATOR",
            "COORDINATOR_NOT_AVAILABLE",
            "COORDINATOR_LOAD_IN_PROGRESS",
            "GROUP_ID_NOT_FOUND",
            "UNKNOWN_MEMBER_ID",
            "GROUP_MAX_SIZE_REACHED",
            "INVALID_REQUEST",
            "TOPIC_AUTHORIZATION_FAILED",
        ),
        "ShareFetch": (
            "GROUP_AUTHORIZATION_FAILED",
            "TOPIC_AUTHORIZATION_FAILED",
            "SHARE_SESSION_NOT_FOUND",
            "INVALID_SHARE_SESSION_EPOCH",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "NOT_LEADER_OR_FOLLOWER",
            "UNKNOWN_TOPIC_ID",
            "INVALID_RECORD_STATE",
            "KAFKA_STORAGE_ERROR",
            "CORRUPT_MESSAGE",
            "INVALID_REQUEST",
            "UNKNOWN_SERVER_ERROR",
        ),
        "ShareAcknowledge": (
            "GROUP_AUTHORIZATION_FAILED",
            "TOPIC_AUTHORIZATION_FAILED",
            "UNKNOWN_TOPIC_OR_PARTITION",
            "SHARE_SESSION_NOT_FOUND",
            "INVALID_SHARE_SESSION_EPOCH",
            "NOT_LEADER_OR_FOLLOWER",
            "UNKNOWN_TOPIC_ID",
            "INVALID_RECORD_STATE",
            "KAFKA_STORAGE_ERROR",
            "INVALID_REQUEST",
            "UNKNOWN_SERVER_ERROR",
        ),
        "Metadata": (
            "UNKNOWN_TOPIC_OR_PARTITION",
            "LEADER_NOT_AVAILABLE",
            "INVALID_TOPIC_EXCEPTION",
            "TOPIC_AUTHORIZATION_FAILED",
            "REPLICA_NOT_AVAILABLE",
            "LISTENER_NOT_FOUND",
            "REBOOTSTRAP_REQUIRED",
        ),
        "FindCoordinator": (
            "COORDINATOR_LOAD_IN_PROGRESS",
            "COORDINATOR_NOT_AVAILABLE",
            "GROUP_AUTHORIZATION_FAILED",
            "INVALID_REQUEST",
            "INVALID_GROUP_ID",
        ),
        "ApiVersions": ("UNSUPPORTED_VERSION", "INVALID_REQUEST", "REBOOTSTRAP_REQUIRED"),
    }
)
"""Codes of each API's response."""

OTHERS: Mapping[str, tuple[Code, ...]] = MappingProxyType(
    {
        "ShareGroupHeartbeat": ("FENCED_MEMBER_EPOCH", "UNKNOWN_SERVER_ERROR", 9999),
        "ShareFetch": ("SHARE_SESSION_LIMIT_REACHED", "FENCED_STATE_EPOCH", 9999),
        "ShareAcknowledge": ("REQUEST_TIMED_OUT", "FENCED_STATE_EPOCH", 9999),
        "Metadata": ("UNKNOWN_SERVER_ERROR", "KAFKA_STORAGE_ERROR", 9999),
        "FindCoordinator": ("NOT_COORDINATOR", "UNKNOWN_SERVER_ERROR", 9999),
        "ApiVersions": ("UNKNOWN_SERVER_ERROR", "CLUSTER_AUTHORIZATION_FAILED", 9999),
    }
)
"""Three codes for each API that its definition does not have; nobody knows the last."""

_DENIED: frozenset[Code] = frozenset({"GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"})

FINAL: Mapping[str, frozenset[Code]] = MappingProxyType(
    {
        "ShareGroupHeartbeat": _DENIED | {"INVALID_REQUEST", "GROUP_MAX_SIZE_REACHED"},
        "ShareFetch": _DENIED,
        "ShareAcknowledge": frozenset(),
        "Metadata": frozenset({"TOPIC_AUTHORIZATION_FAILED", "INVALID_TOPIC_EXCEPTION"}),
        "FindCoordinator": _DENIED | {"INVALID_GROUP_ID"},
        "ApiVersions": frozenset(),
    }
)
"""Codes that do not pass by themselves, so that the application has to be told while they last.

Javadoc of KafkaShareConsumer.poll: AuthorizationException, InvalidTopicException, and
KafkaException for any other unrecoverable error.
"""


def codes(api: str) -> tuple[Code, ...]:
    return (*DEFINED[api], *OTHERS[api])


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


HUGE = 2**31 - 1

_FIELDS: dict[str, dict[str, Step]] = {
    "ShareFetch": {
        "hints-of-zeros": {"do": "hints", "leader": 0, "epoch": 0},
        "hints-as-defined": {"do": "hints", "leader": -1, "epoch": -1},
        "hint-to-nobody": {"do": "hints", "leader": 99, "epoch": 1000, "code": 6},
        "hint-of-an-old-epoch": {"do": "hints", "leader": 1, "epoch": 0, "code": 6},
        "no-partitions": {"do": "omit-partitions"},
        "strangers": {"do": "strangers"},
        "lock-of-zero": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": 0},
        "lock-below-zero": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": -1},
        "huge-lock": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": HUGE},
        "ranges-twice": {"do": "repeat-ranges"},
        "ranges-overlap": {"do": "ranges", "shape": "overlap"},
        "ranges-beyond": {"do": "ranges", "shape": "beyond"},
        "ranges-reversed": {"do": "ranges", "shape": "reversed"},
        "ranges-missing": {"do": "ranges", "shape": "none"},
    },
    "ShareAcknowledge": {
        "hints-of-zeros": {"do": "hints", "leader": 0, "epoch": 0},
        "hint-to-nobody": {"do": "hints", "leader": 99, "epoch": 1000, "code": 6},
        "no-partitions": {"do": "omit-partitions"},
        "strangers": {"do": "strangers"},
        "lock-of-zero": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": 0},
        "huge-lock": {"do": "field", "name": "acquisition_lock_timeout_ms", "value": HUGE},
    },
    "ShareGroupHeartbeat": {
        "strangers": {"do": "strangers"},
        "interval-of-zero": {"do": "field", "name": "heartbeat_interval_ms", "value": 0},
        "interval-below-zero": {"do": "field", "name": "heartbeat_interval_ms", "value": -1},
        "no-member-id": {"do": "field", "name": "member_id", "value": None},
        "epoch-goes-back": {"do": "field", "name": "member_epoch", "value": 1},
    },
    "Metadata": {
        "no-brokers": {"do": "field", "name": "brokers", "value": []},
        "no-topics": {"do": "field", "name": "topics", "value": []},
        "leader-is-nobody": {"do": "leaders", "leader": 99},
        "no-leader": {"do": "leaders", "leader": -1},
        "epoch-goes-back": {"do": "leaders", "epoch": 0},
        "no-cluster-id": {"do": "field", "name": "cluster_id", "value": None},
    },
    "FindCoordinator": {
        "nobody": {"do": "field", "name": "coordinators", "value": []},
    },
    "ApiVersions": {
        "no-apis": {"do": "field", "name": "api_keys", "value": []},
    },
}
"""For each API what becomes of its fields, by name."""

_LASTS = {"hints-of-zeros", "hints-as-defined", "huge-lock", "lock-of-zero", "no-cluster-id"}
"""What brokers may do for ever, and a client has to live with."""

_BATCHES = (
    "codec",
    "magic-0",
    "magic-1",
    "magic-3",
    "crc",
    "count",
    "negative-count",
    "length",
    "negative-length",
    "truncated",
    "empty",
)
_FRAMES = ("garbage", "truncated", "header", "correlation")
_FIRST = {"Metadata", "FindCoordinator", "ApiVersions"}


def all_cases() -> list[Case]:
    """Return every case of the sweep: of error codes, and of edges."""
    return [*all_errors(), *_edges()]


def _edges() -> Iterator[Case]:
    for api, fields in _FIELDS.items():
        for name, step in fields.items():
            yield from _rhythms(api, f"fields/{name}", step, lasting=name in _LASTS)
    for flaw in _BATCHES:
        step = {"do": "batch", "flaw": flaw}
        yield from _rhythms("ShareFetch", f"batch/{flaw}", step, unreadable=True)
    for api in _FIELDS:
        for flaw in _FRAMES:
            yield from _frames(api, flaw)


def _rhythms(
    api: str, what: str, step: Step, *, lasting: bool = False, **fields: Any
) -> Iterator[Case]:
    for rhythm in (THREE, LASTING) if lasting else (THREE,):
        yield Case(
            name=f"{api}/{what}/{rhythm}",
            steps=with_rhythm({"on": api, **step}, rhythm),
            lasting=rhythm == LASTING,
            joining=api in _FIRST,
            **fields,
        )


def _frames(api: str, flaw: str) -> Iterator[Case]:
    for rhythm in (ONCE, TEN):
        yield Case(
            name=f"{api}/frame/{flaw}/{rhythm}",
            steps=with_rhythm({"on": api, "do": "frame", "flaw": flaw}, rhythm),
            joining=api in _FIRST,
        )
