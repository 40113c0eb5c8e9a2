"""The cases of the sweep: an API, what becomes of its responses, and a rhythm.

A name such as ``ShareFetch/partition/NOT_LEADER_OR_FOLLOWER/ten`` has an API, a level, an error
code and a rhythm, and selects a case on the command line. Others have fields at their edges, or
responses that cannot be decoded at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Code = str | int
Step = Mapping[str, Any]

# --- Error codes --------------------------------------------------------------------------------


def _words(table: Mapping[str, str]) -> Mapping[str, tuple[Code, ...]]:
    return {api: tuple(words.split()) for api, words in table.items()}


DEFINED = _words(
    {
        "ShareGroupHeartbeat": """GROUP_AUTHORIZATION_FAILED NOT_COORDINATOR
            COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS GROUP_ID_NOT_FOUND
            UNKNOWN_MEMBER_ID GROUP_MAX_SIZE_REACHED INVALID_REQUEST TOPIC_AUTHORIZATION_FAILED""",
        "ShareFetch": """GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED
            SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH UNKNOWN_TOPIC_OR_PARTITION
            NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_ID INVALID_RECORD_STATE KAFKA_STORAGE_ERROR
            CORRUPT_MESSAGE INVALID_REQUEST UNKNOWN_SERVER_ERROR""",
        "ShareAcknowledge": """GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED
            UNKNOWN_TOPIC_OR_PARTITION SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH
            NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_ID INVALID_RECORD_STATE KAFKA_STORAGE_ERROR
            INVALID_REQUEST UNKNOWN_SERVER_ERROR""",
        "Metadata": """UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE INVALID_TOPIC_EXCEPTION
            TOPIC_AUTHORIZATION_FAILED REPLICA_NOT_AVAILABLE LISTENER_NOT_FOUND
            REBOOTSTRAP_REQUIRED""",
        "FindCoordinator": """COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE
            GROUP_AUTHORIZATION_FAILED INVALID_REQUEST INVALID_GROUP_ID""",
        "ApiVersions": "UNSUPPORTED_VERSION INVALID_REQUEST REBOOTSTRAP_REQUIRED",
    }
)
"""Codes of each API's response.

The definitions of the share APIs list their codes ("Supported errors"); a test holds these tables
against them. Those of Metadata, FindCoordinator and ApiVersions list none: their codes are those
that Kafka's documentation of the responses and its brokers have.
"""

# Two codes for each API that its definition does not have; beside them there is UNKNOWN.
OTHERS = _words(
    {
        "ShareGroupHeartbeat": "FENCED_MEMBER_EPOCH UNKNOWN_SERVER_ERROR",
        "ShareFetch": "SHARE_SESSION_LIMIT_REACHED FENCED_STATE_EPOCH",
        "ShareAcknowledge": "REQUEST_TIMED_OUT FENCED_STATE_EPOCH",
        "Metadata": "UNKNOWN_SERVER_ERROR KAFKA_STORAGE_ERROR",
        "FindCoordinator": "NOT_COORDINATOR UNKNOWN_SERVER_ERROR",
        "ApiVersions": "UNKNOWN_SERVER_ERROR CLUSTER_AUTHORIZATION_FAILED",
    }
)

UNKNOWN = 9999  # A code that nobody knows.

FINAL = _words(
    {
        "ShareGroupHeartbeat": "GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED "
        "INVALID_REQUEST GROUP_MAX_SIZE_REACHED",
        "ShareFetch": "GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED",
        "ShareAcknowledge": "",
        "Metadata": "TOPIC_AUTHORIZATION_FAILED INVALID_TOPIC_EXCEPTION",
        "FindCoordinator": "GROUP_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED INVALID_GROUP_ID",
        "ApiVersions": "",
    }
)
"""Codes that do not pass by themselves, so that the application has to be told while they last.

Javadoc of KafkaShareConsumer.poll: AuthorizationException, InvalidTopicException, and
KafkaException for any other unrecoverable error.
"""

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

HUGE = 2**31 - 1

# For each API what becomes of its fields, by name.
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
    "FindCoordinator": {"nobody": {"do": "field", "name": "coordinators", "value": []}},
    "ApiVersions": {"no-apis": {"do": "field", "name": "api_keys", "value": []}},
}

# What brokers may do for ever, and a client has to live with.
_LASTS = {"hints-of-zeros", "hints-as-defined", "huge-lock", "lock-of-zero", "no-cluster-id"}

_BATCHES = (
    "codec magic-0 magic-1 magic-3 crc count negative-count length negative-length truncated empty"
)
_FIRST = {"Metadata", "FindCoordinator", "ApiVersions"}


def _edges() -> Iterator[Case]:
    for api, fields in _FIELDS.items():
        for name, step in fields.items():
            for rhythm in ("three", "lasting") if name in _LASTS else ("three",):
                yield _case(api, f"fields/{name}", rhythm, step, joining=api in _FIRST)
    for flaw in _BATCHES.split():
        step = {"do": "batch", "flaw": flaw}
        yield _case("ShareFetch", f"batch/{flaw}", "three", step, unreadable=True)
    for api in _FIELDS:
        for flaw in ("garbage", "truncated", "header", "correlation"):
            for rhythm in ("once", "ten"):
                step = {"do": "frame", "flaw": flaw}
                yield _case(api, f"frame/{flaw}", rhythm, step, joining=api in _FIRST)
