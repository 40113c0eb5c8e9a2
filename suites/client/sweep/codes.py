"""The error codes of the sweep: those of each response's definition, and three that are not in it.

The definitions of the share APIs list their codes ("Supported errors"); a test holds these tables
against them. Those of Metadata, FindCoordinator and ApiVersions list none: their codes are those
that Kafka's documentation of the responses and its brokers have.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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
