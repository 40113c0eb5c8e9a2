"""What nearly every check imports: clients of the wire, the check's world, judging and waiting."""

from __future__ import annotations

from fixtures.clients.admin import BROKER_RESOURCE, EARLIEST, GROUP_RESOURCE, TOPIC_RESOURCE
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
from fixtures.clients.transactions import TransactionalProducer
from fixtures.wire.codec import Struct
from fixtures.wire.connection import CallFailed
from fixtures.wire.errors import ErrorCode, error_name
from fixtures.wire.placing import partition_of
from fixtures.wire.records import Record, encode_batch
from spec.configs import Config, Scope
from spec.model.durable import StateBatch
from spec.verdict import OutOfReach, Undecided
from suites.broker.acknowledgements import (
    GONE,
    LEFT_OUT,
    PROBE,
    Pinned,
    delivery_limit,
    given_anew,
    held_at,
    hold_at,
    judge_final,
    judge_held,
    next_catch,
    pinned,
    releases,
    result,
    result_in,
    sentinel_only,
    singly,
    spread,
    up_to_new,
)
from suites.broker.check import (
    ACROSS_BATCHES,
    AMONG,
    BEHIND,
    BESIDE,
    IDLE,
    IN_LISTS,
    KEYS,
    RELOADED,
    check,
)
from suites.broker.deadletters import (
    DeadLetterSetup,
    boxed,
    dead_letters_in,
    dead_name,
    dead_topic,
    naming,
    verdicts,
)
from suites.broker.groups import (
    NON_EMPTY,
    RACED,
    SILENT,
    UNSET,
    ask_coordinator,
    classic_group,
    committed_offsets,
    consumer_beat,
    consumer_group,
    delete_group,
    delete_groups,
    delete_offsets,
    kind_of,
    neighbours,
    refusals,
    vacant,
)
from suites.broker.leaders import (
    TAKEN_OVER,
    MixedStates,
    ReconnectingConsumer,
    judge_new_leader,
    judge_open,
    located,
    moved,
    prepared,
    replicated,
)
from suites.broker.logs import (
    CLEANED_WITHIN,
    COMMITTED,
    COMPACTED,
    UNCOMMITTED,
    Compacted,
    aborted,
    compacted,
    jumble,
    read_log,
    rewritten,
)
from suites.broker.many import AT, MANY, POSITIONS, Grid, among, grid, nowhere
from suites.broker.membership import (
    assigned_in,
    beat,
    beating,
    covered,
    crowd,
    good_beat,
    group_epoch,
    in_session,
    member_ids,
    risen,
)
from suites.broker.settings import HEARTBEAT, LOCK, RESET, SESSION, broker_values, everywhere
from suites.broker.share import NOT_FOR, Catch, Consumer, Queue, Share
from suites.broker.state import (
    ACKNOWLEDGED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    STATE_TOPIC,
    StateKey,
    Store,
    Trail,
    as_model,
    batches_of,
    per_offset,
    read_state,
    replayed,
    rising_batches,
    settled_below,
    write_state,
)
from suites.broker.timing import (
    EARLY,
    RENEW_ONLY,
    SLACK,
    apart,
    comes_again,
    in_time,
    judge_span,
    linger,
    outlast,
    reconfigure,
    two_partitions,
    waits_end_late,
    watch,
)
from suites.judge import Judge

# fmt: off
__all__ = [
    "ACKNOWLEDGED", "ACROSS_BATCHES", "AMONG", "ARCHIVED", "ARCHIVING", "AT", "AVAILABLE",
    "BEHIND", "BESIDE", "BROKER_RESOURCE", "CLEANED_WITHIN", "CLOSE", "COMMITTED", "COMPACTED",
    "EARLIEST", "EARLY", "GONE", "GROUP_RESOURCE", "HEARTBEAT", "IDLE", "IN_LISTS", "KEYS",
    "LEFT_OUT", "LOCK", "MANY", "NON_EMPTY", "NOT_FOR", "OPEN", "POSITIONS", "PROBE", "RACED",
    "RELOADED", "RENEW_ONLY", "RESET", "RETRIABLE", "SESSION", "SHARE", "SILENT", "SLACK",
    "STATE_TOPIC", "TAKEN_OVER", "TOPIC_RESOURCE", "UNCOMMITTED", "UNSET", "WITHIN", "Ack",
    "AckType", "CallFailed", "Catch", "Compacted", "Config", "Consumer", "DeadLetterSetup",
    "ErrorCode", "Grid", "Judge", "Member", "MixedStates", "OutOfReach", "Part", "Pinned",
    "Queue", "ReconnectingConsumer", "Record", "Response", "Scope", "Session", "Share",
    "StateBatch", "StateKey", "Store", "Struct", "Topic", "Trail", "TransactionalProducer",
    "Undecided", "Where", "aborted", "accept", "among", "apart", "as_model", "ask_coordinator",
    "assigned_in", "attempts", "batches_of", "beat", "beating", "boxed", "broker_values", "check",
    "classic_group", "comes_again", "committed_offsets", "compacted", "consumer_beat",
    "consumer_group", "covered", "crowd", "dead_letters_in", "dead_name", "dead_topic",
    "delete_group", "delete_groups", "delete_offsets", "delivery_limit", "each", "encode_batch",
    "error_name", "eventually", "everywhere", "gap", "gather_all", "given_anew", "good_beat",
    "grid", "group_epoch", "held_at", "hold_at", "in_session", "in_time", "judge_final",
    "judge_held", "judge_new_leader", "judge_open", "judge_span", "jumble", "kind_of", "linger",
    "located", "member_ids", "moved", "naming", "neighbours", "next_catch", "nowhere", "outlast",
    "partition_of", "per_offset", "pinned", "prepared", "read_log", "read_state", "reconfigure",
    "refusals", "reject", "release", "releases", "renew", "replayed", "replicated", "result",
    "result_in", "rewritten", "risen", "rising_batches", "sentinel_only", "settled_below",
    "share_key", "singly", "spread", "two_partitions", "up_to_new", "vacant", "verdicts",
    "waits_end_late", "watch", "write_state",
]
# fmt: on
