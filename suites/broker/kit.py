"""What nearly every check imports: clients of the wire, the check's world, judging and waiting."""

from __future__ import annotations

from fixtures.clients.cluster import (
    RETRIABLE,
    SHARE,
    WITHIN,
    Topic,
    attempts,
    eventually,
    gather_all,
    share_key,
)
from fixtures.clients.member import (
    CLOSE,
    OPEN,
    Ack,
    AckType,
    Member,
    Part,
    Response,
    Session,
    Where,
    accept,
    each,
    gap,
    reject,
    release,
    renew,
)
from fixtures.wire.codec import Struct
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode, error_name
from spec.verdict import OutOfReach, Undecided
from suites.broker.acknowledgements import (
    GONE,
    LEFT_OUT,
    PROBE,
    Pinned,
    delivery_limit,
    hold_at,
    judge_final,
    judge_held,
    next_catch,
    pinned,
    result,
    result_in,
    sentinel_only,
    singly,
    spread,
)
from suites.broker.check import ACROSS_BATCHES, AMONG, BEHIND, BESIDE, IDLE, KEYS, RELOADED, check
from suites.broker.leaders import ReconnectingConsumer, located, moved, replicated
from suites.broker.logs import rewritten
from suites.broker.membership import beat, beating, good_beat, member_ids
from suites.broker.settings import HEARTBEAT, LOCK, SESSION
from suites.broker.share import NOT_FOR, Catch, Consumer, Queue, Share
from suites.broker.state import StateKey, Store, read_state
from suites.broker.timing import (
    EARLY,
    SLACK,
    in_time,
    linger,
    outlast,
    reconfigure,
    two_partitions,
    watch,
)
from suites.judge import Judge

# fmt: off
__all__ = [
    "ACROSS_BATCHES", "AMONG", "BEHIND", "BESIDE", "CLOSE", "EARLY", "GONE", "HEARTBEAT",
    "IDLE", "KEYS", "LEFT_OUT", "LOCK", "NOT_FOR", "OPEN", "PROBE", "RELOADED", "RETRIABLE",
    "SESSION", "SHARE", "SLACK", "WITHIN", "Ack", "AckType", "CallFailed", "Catch", "Consumer",
    "ErrorCode", "Judge", "Member", "OutOfReach", "Part", "Pinned", "Queue",
    "ReconnectingConsumer", "Response", "Session", "Share", "StateKey", "Store", "Struct",
    "Topic", "Undecided", "Where", "accept", "attempts", "beat", "beating", "check",
    "delivery_limit", "each", "error_name", "eventually", "gap", "gather_all", "good_beat",
    "hold_at", "in_time", "judge_final", "judge_held", "linger", "located", "member_ids",
    "moved", "next_catch", "outlast", "pinned", "read_state", "reconfigure", "reject",
    "release", "renew", "replicated", "result", "result_in", "rewritten", "sentinel_only",
    "share_key", "singly", "spread", "two_partitions", "watch",
]
# fmt: on
