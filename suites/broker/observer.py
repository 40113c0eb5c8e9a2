"""What no execution of a correct broker explains, in all share traffic of a check.

A check looks at what it is about. The observer reads the frames of its connections again, and looks
for what is wrong whatever the check is about: a record that is given out while somebody holds it,
one that comes again though it was accepted or rejected with success, and a delivery count that does
not rise. It knows the share-partition only from these frames. So it says nothing

* of a hold from when its member acknowledged, closed or reopened its session, left, met an error,
  lost a response or a connection (KIP-932 §Share sessions), or its lock may have ended;
* after a request that changes a group from outside: its offsets, its state, its configuration, its
  topic, or who leads it;
* of an acknowledgement that names an offset twice.

On a slow machine a lock may end before a check is done. What then looks like a broken rule is none:
:func:`outlived` finds long locks whose end may have come meanwhile. Short ones a check sets itself,
and knows about.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from fixtures.clients.bounds import DELIVERIES, SESSION, WINDOW
from fixtures.clients.member import AckType
from fixtures.wire.codec import Struct, WireError
from fixtures.wire.frame import Frame, Transcript, decode_request, decode_response
from fixtures.wire.schema import SchemaError
from spec.verdict import Violation

HELD_BY_OTHER, HELD_BY_SAME = "ACQ-20", "ACQ-21"
COUNTED = "DLV-02"
_SHARE = ("ShareFetch", "ShareAcknowledge")
_FROM_OUTSIDE = frozenset(
    {
        *("AlterConfigs", "IncrementalAlterConfigs", "UpdateFeatures"),
        *("AlterPartitionReassignments", "ElectLeaders"),
        *("AlterShareGroupOffsets", "DeleteShareGroupOffsets", "DeleteGroups"),
        *("DeleteRecords", "DeleteTopics"),
        *("InitializeShareGroupState", "ReadShareGroupState"),
        *("WriteShareGroupState", "DeleteShareGroupState"),
    }
)
_FINAL = {AckType.ACCEPT: ("ACK-01", "accepted"), AckType.REJECT: ("ACK-07", "rejected")}
"""Types after which a record does not come again: the rule that says so, and the word for it."""
_READ = frozenset({*_SHARE, "ShareGroupHeartbeat"})
NEVER = float("inf")
_LONG = 25.0  # Seconds; a check that means to see the end of such a lock says so.
_MOST = 10_000  # offsets of a batch that are looked at; checks name ranges without an end


@dataclass(slots=True)
class _Call:
    """A request with its response, if one came; times are seconds on the monotonic clock."""

    api: str
    connection: int
    peer: str
    request: Struct
    sent: float
    response: Struct | None = None
    received: float = NEVER

    @property
    def member(self) -> tuple[str, str]:
        return str(self.request.group_id), str(self.request.member_id)


class _Key(NamedTuple):
    group: str
    topic: str
    partition: int
    offset: int


@dataclass(slots=True, kw_only=True)
class _Hold:
    """A delivery of a record, ``finished`` if it was certainly accepted or rejected."""

    call: _Call
    count: int
    lasts_until: float
    acknowledged: float = NEVER
    finished: AckType | None = None
    finished_at: float = NEVER
    let_go: float = NEVER  # When the response to the first acknowledgement was here.


@dataclass(slots=True)
class _Traffic:
    """All deliveries, the last of each record, and when what a member holds may have ended."""

    holds: list[_Hold] = field(default_factory=list)
    last: dict[_Key, _Hold] = field(default_factory=dict)
    ends: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))


def contradictions(transcripts: Sequence[Transcript]) -> Iterator[Violation]:
    """Yield what no execution explains; nothing if a transcript has lost its first frames."""
    if any(len(one.frames) == one.frames.maxlen for one in transcripts):
        return
    yield from _follow(_Traffic(), _undisturbed(transcripts), transcripts)


def outlived(transcripts: Sequence[Transcript]) -> str:
    """Return how a long lock, under which a record is held, may have ended, if one may."""
    if any(one.ends_expected for one in transcripts):
        return ""
    traffic = _Traffic()
    now = max((one.frames[-1].at for one in transcripts if one.frames), default=0.0)
    deque(_follow(traffic, _calls(transcripts), transcripts), maxlen=0)
    for hold in traffic.holds:
        end, seconds = hold.lasts_until, hold.lasts_until - hold.call.sent
        if seconds >= _LONG and end < min(now, hold.let_go) and _known(traffic, hold, end):
            return f"a lock of {seconds:g} s may have ended, {now - end:.1f} s before the check did"
    return ""


def strained(transcripts: Sequence[Transcript]) -> str:
    """Return which limit a check met that is, or may be, tighter than it takes for granted."""
    tight = {key: value for one in transcripts for key, value in one.tight.items()}
    if not tight:
        return ""
    traffic, calls = _Traffic(), _calls(transcripts)
    deque(_follow(traffic, calls, transcripts), maxlen=0)
    beats: dict[tuple[str, str], list[float]] = defaultdict(list)
    for call in calls:
        beats[call.member] += [call.sent] if call.api == "ShareGroupHeartbeat" else []
    ends = [call.sent for call in calls[-1:]]
    silences = (b - a for sent in beats.values() for a, b in pairwise(sent + ends))
    met = {
        DELIVERIES: max((hold.count for hold in traffic.holds), default=0),
        WINDOW: max(Counter(key[:3] for key in traffic.last).values(), default=0),
        SESSION: 1000 * max(silences, default=0.0),
    }
    return next((f"{key} may be {tight[key]} here" for key in tight if met[key] >= tight[key]), "")


def _follow(
    traffic: _Traffic, calls: Sequence[_Call], transcripts: Sequence[Transcript]
) -> Iterator[Violation]:
    closed = {number: at for one in transcripts for number, at in one.closed.items()}
    for call in calls:
        traffic.ends[call.member] += _ends(call, closed)
    # What a request says is in force from when it is sent, what a response says when it is here.
    events = [(call.sent, call, False) for call in calls if call.api in _SHARE]
    events += [(call.received, call, True) for call in calls if call.api == "ShareFetch"]
    for _, call, is_response in sorted(events, key=lambda event: event[0]):
        if is_response:
            yield from _acquire(traffic, call)
        else:
            _acknowledge(traffic, call)


def _undisturbed(transcripts: Sequence[Transcript]) -> list[_Call]:
    """Return the calls about share groups until something changes from outside."""
    calls = _calls(transcripts)
    first = min((call.sent for call in calls if call.api in _SHARE), default=NEVER)
    frames = (frame for one in transcripts for frame in one.frames)
    ends = [frame.at for frame in frames if frame.sent and frame.api in _FROM_OUTSIDE]
    ends += [call.sent for call in calls if _moved(call)]
    over = min((end for end in ends if end >= first), default=NEVER)
    return [call for call in calls if call.sent < over]


def _calls(transcripts: Sequence[Transcript]) -> list[_Call]:
    """Return the calls of members of share groups."""
    calls: dict[tuple[int, int], _Call] = {}
    frames = (frame for one in transcripts for frame in one.frames)
    for frame in sorted(frames, key=lambda frame: frame.at):
        if frame.api in _READ:
            _read(frame, (frame.connection, frame.correlation_id), calls)
    return [*calls.values()]


def _moved(call: _Call) -> bool:
    """Tell whether a fetch met an error of a partition: somebody else may lead it."""
    if call.api != "ShareFetch" or call.response is None:
        return False
    return any(part.error_code for topic in call.response.responses for part in topic.partitions)


def _read(frame: Frame, key: tuple[int, int], calls: dict[tuple[int, int], _Call]) -> None:
    try:
        if frame.sent:
            request = decode_request(frame.schemas, frame.payload)[3]
            calls[key] = _Call(frame.api, frame.connection, frame.peer, request, frame.at)
        elif key in calls:
            response = decode_response(frame.schemas, frame.api, frame.version, frame.payload)
            calls[key].response, calls[key].received = response, frame.at
    except (WireError, SchemaError):
        calls.pop(key, None)


def _ends(call: _Call, closed: dict[int, float]) -> Iterator[float]:
    """Yield when a call may have ended what its member holds."""
    if env := call.api in _SHARE:
        ends = call.request.share_session_epoch <= 0
    else:
        ends = call.request.member_epoch < 0
    failed = call.response is None or call.response.error_code
    forgets = call.api == "ShareFetch" and call.request.forgotten_topics_data
    if failed or forgets or ends:
        yield call.sent
    if env and call.connection in closed:
        yield closed[call.connection]


def _acknowledge(traffic: _Traffic, call: _Call) -> None:
    """Note what a call acknowledges: from then on its holds are over, as far as anybody knows."""
    group, member = call.member
    results = _results(call)
    for topic in call.request.topics:
        for part in topic.partitions:
            named: dict[int, int] = {}
            twice = False
            for batch in part.acknowledgement_batches:
                for offset, kind in _kinds(batch):
                    twice |= offset in named
                    named[offset] = kind
            where = str(topic.topic_id), part.partition_index
            clear = results[where] == [0] and not twice
            for offset, kind in named.items():
                hold = traffic.last.get(_Key(group, *where, offset))
                if hold and hold.call.member[1] == member and hold.call.received <= call.sent:
                    _end(traffic, hold, call, kind if clear else -1)


def _kinds(batch: Struct) -> Iterator[tuple[int, int]]:
    """Yield the offsets of a batch of acknowledgements with their types, or -1."""
    types, first = list(batch.acknowledge_types), batch.first_offset
    for offset in range(first, min(batch.last_offset, first + _MOST) + 1):
        place = offset - first if len(types) > 1 else 0
        yield offset, types[place] if place < len(types) else -1


def _results(call: _Call) -> dict[tuple[str, int], list[int]]:
    """Return the errors of acknowledgements by partition; none if the whole call failed."""
    found: dict[tuple[str, int], list[int]] = defaultdict(list)
    name = "acknowledge_error_code" if call.api == "ShareFetch" else "error_code"
    if call.response is not None and not call.response.error_code:
        for topic in call.response.responses:
            for part in topic.partitions:
                found[str(topic.topic_id), part.partition_index].append(getattr(part, name))
    return found


def _end(traffic: _Traffic, hold: _Hold, call: _Call, kind: int) -> None:
    is_first = call.sent <= hold.acknowledged
    hold.acknowledged = min(hold.acknowledged, call.sent)
    hold.let_go = min(hold.let_go, call.received)
    in_lock = call.received <= hold.lasts_until and _known(traffic, hold, call.received)
    if kind in _FINAL and is_first and in_lock:
        hold.finished, hold.finished_at = AckType(kind), call.received


def _known(traffic: _Traffic, hold: _Hold, until: float) -> bool:
    """Tell whether nothing may have ended a hold from outside its acknowledgements."""
    return not any(hold.call.sent < at <= until for at in traffic.ends[hold.call.member])


def _acquire(traffic: _Traffic, call: _Call) -> Iterator[Violation]:
    response = call.response
    if response is None or response.error_code:
        return
    lasts = response.acquisition_lock_timeout_ms / 1000
    group, _ = call.member
    for topic in response.responses:
        for part in topic.partitions:
            for some in part.acquired_records:
                for offset in range(some.first_offset, some.last_offset + 1):
                    key = _Key(group, str(topic.topic_id), part.partition_index, offset)
                    new = _Hold(call=call, count=some.delivery_count, lasts_until=call.sent + lasts)
                    if old := traffic.last.get(key):
                        yield from _between(traffic, key, old, new)
                    traffic.last[key] = new
                    traffic.holds.append(new)


def _between(traffic: _Traffic, key: _Key, old: _Hold, new: _Hold) -> Iterator[Violation]:
    """Yield what one broker did wrong from one delivery of a record to the next."""
    first, second = old.call, new.call
    if first.peer != second.peer or second.sent <= first.received:
        return
    where = f"offset {key.offset} of partition {key.partition} in group {key.group}"
    witness = (
        f"{first.received:.3f} acquired for member {first.member[1]} with count {old.count}",
        f"{second.received:.3f} acquired for member {second.member[1]} with count {new.count}",
    )
    known = _known(traffic, old, second.received)
    untouched = old.acknowledged > second.received and known
    if old.finished and second.sent > old.finished_at:
        rule, how = _FINAL[old.finished]
        yield Violation(rule, f"{where} was {how} with NONE and came again", witness)
    elif untouched and second.received < old.lasts_until:
        rule = HELD_BY_SAME if first.member == second.member else HELD_BY_OTHER
        left = old.lasts_until - second.received
        sentence = f"{where} was given out again {left:.3f} s before its lock can have ended"
        yield Violation(rule, sentence, witness)
    elif new.count <= old.count and known:
        sentence = f"{where} came with count {old.count}, and then with count {new.count}"
        yield Violation(COUNTED, sentence, witness)
