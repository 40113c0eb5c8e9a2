"""The account of a client: what became of each record that it acquired, and each acknowledgement.

It is made up of whatever was played: the exchanges that the tap saw, and the application's calls
with what came of them. It accuses nobody where something is not known: from the moment on in which
a connection was cut, a response lost, a session or a membership ended, or a leader moved.
"""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any
from uuid import UUID

from fixtures.clients.handle import Call, Handle, Settled, settled
from fixtures.clients.member import CLOSE, AckType
from fixtures.proxies.exchange import Exchange
from fixtures.wire.codec import WireError
from fixtures.wire.errors import error_name
from fixtures.wire.records import decode_batches
from spec.verdict import Violation
from suites.client.wire import (
    HEARTBEAT,
    SHARE,
    Acked,
    Acquired,
    Place,
    acked,
    acquired,
    answers,
    forgotten,
    offsets,
)
from suites.judge import Judge

GIVEN, SENT, TOLD = ACCOUNT = ("CLI-127", "CLI-128", "CLI-129")

# Polls in a row of which each waited and came back with nothing, while a record lay there.
IN_VAIN = 3
WAITED = 0.15  # Seconds from which on a poll without records has waited for some.
ARRIVED = 0.5  # Seconds after which a record that the tap has passed on is there for a poll.
USUAL = 500  # Records that a poll returns at most, where that is not set: Kafka's default.

At = tuple[str, int, int]  # Topic, partition and offset.


@dataclass(slots=True)
class Account:
    breaches: list[Violation] = field(default_factory=list)
    decided: Counter[str] = field(default_factory=Counter)  # Records, or acknowledgements, by rule.


def account(
    handles: Iterable[Handle],
    exchanges: Sequence[Exchange],
    gone: Mapping[int, float],
    late: float = 0.0,
) -> Account:
    """Return the account of all consumers; at most one breach of a rule for each of them."""
    made = Account(decided=Counter(dict.fromkeys(ACCOUNT, 0)))
    # Topics by id; not those that share a name, of which an application cannot tell.
    seen = {
        topic["topic_id"]: topic["name"]
        for one in exchanges
        if one.api == "Metadata" and _reached(one)
        for topic in (one.response or {}).get("topics") or []
        if topic.get("name")
    }
    times = Counter(seen.values())
    names = {topic_id: name for topic_id, name in seen.items() if times[name] == 1}
    for life in (life for handle in handles for life in _lives(handle, exchanges, names)):
        life.gone, life.late = gone, late
        for rule, look in _LOOKS.items():
            wrong, decided = look(life)
            made.decided[rule] += decided
            if wrong:
                more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
                made.breaches.append(Violation(rule, f"{wrong[0]}{more}", (*wrong[:3],)))
    return made


def judge_account(made: Account, judge: Judge) -> None:
    """Raise a group of violations, one for each rule of a check's account that was broken."""
    broken: dict[str, Violation] = {}
    for one in made.breaches:
        broken.setdefault(one.rule, one)
    for rule in _LOOKS.keys() - broken.keys():
        judge.besides(rule).saw(accounted=made.decided[rule])
    if broken:
        raise ExceptionGroup("the account", list(broken.values()))


def _reached(one: Exchange) -> bool:
    return one.responded < inf and not one.scripted.startswith("frame")


def _lives(
    handle: Handle, exchanges: Sequence[Exchange], names: Mapping[UUID, str]
) -> Iterator["_Life"]:
    mine: dict[str, list[Exchange]] = defaultdict(list)
    for one in exchanges:
        named = f"{one.client_id}-".startswith(f"{handle.name}-")
        if one.api in {HEARTBEAT, *SHARE} and named:
            mine[str(one.request["member_id"])].append(one)
    opened = [call for call in handle.calls if call.op == "open" and call.result is not None]
    for opening, end in pairwise([*(call.began for call in opened), inf]):
        found = [each for each in mine.values() if opening <= each[0].sent < end]
        yield _Life(
            calls=[call for call in handle.calls if opening <= call.began < end],
            exchanges=sorted((one for each in found for one in each), key=lambda one: one.number),
            callbacks=[
                one
                for event in handle.callbacks
                if opening <= event.at < end
                for one in settled(event.partitions)
            ],
            names=names,
            has=handle.adapter.has,
        )


@dataclass(kw_only=True)
class _Life:
    calls: list[Call]
    exchanges: list[Exchange]
    callbacks: list[Settled]
    names: Mapping[UUID, str]
    has: Callable[[str], bool]
    gone: Mapping[int, float] = field(default_factory=dict)  # Since when nodes are away.
    late: float = 0.0  # Seconds that the machine kept us, and so the client, waiting.

    @property
    def config(self) -> Mapping[str, Any]:
        return next(call.fields["config"] for call in self.calls if call.op == "open")

    def calling(self, *ops: str) -> list[Call]:
        return [call for call in self.calls if call.op in ops]

    @property
    def shared(self) -> list[Exchange]:
        return [one for one in self.exchanges if one.api in SHARE]

    @cached_property
    def closed(self) -> Call | None:
        for call in self.calling("close"):
            limit = call.fields.get("timeout_ms")
            if call.result is not None and call.ended - call.began < (limit or inf) * 0.8 / 1000:
                return call
        return None

    @cached_property
    def closing(self) -> float:
        return min((call.began for call in self.calling("close")), default=inf)

    @cached_property
    def acquired(self) -> list[Acquired]:
        clean = [one for one in self.shared if _reached(one) and one.scripted in {"", "pass"}]
        return [one for one in acquired(clean) if one.topic_id in self.names]

    @cached_property
    def acked(self) -> list[Acked]:
        return [one for one in acked(self.shared) if one.topic_id in self.names]

    @cached_property
    def acked_at(self) -> Mapping[At, list[Acked]]:
        found = defaultdict(list)
        for one in self.acked:
            found[self.at(one)].append(one)
        return found

    @cached_property
    def any_acquired(self) -> Mapping[At, list[Exchange]]:
        found = defaultdict(list)
        for one in self.shared:
            for topic_id, part in answers(one.response):
                for each in part.get("acquired_records") or []:
                    for offset in offsets(each):
                        name = self.names.get(topic_id, "")
                        found[name, part["partition_index"], offset].append(one)
        return found

    def ended_at(self, node: int) -> list[Exchange]:
        closing = (one for one in self.shared if one.request["share_session_epoch"] == CLOSE)
        return [one for one in closing if one.node == node]

    @property
    def results(self) -> list[Settled]:
        found = [call.result for call in self.calling("commit_sync") if call.result is not None]
        return [one for result in found for one in settled(result["partitions"])]

    def at(self, one: Acquired | Acked) -> At:
        return self.names[one.topic_id], one.partition, one.offset

    @cached_property
    def given(self) -> Mapping[At, list[Call]]:
        found = defaultdict(list)
        for call in self.calling("poll"):
            for one in (call.result or {}).get("records", ()):
                found[one["topic"], one["partition"], one["offset"]].append(call)
        return found

    @cached_property
    def made(self) -> Mapping[At, list[tuple[float, str]]]:
        found = defaultdict(list)
        owed = set[At]()  # what the next poll or commit accepts
        for call in self.calls:
            if call.op == "acknowledge":
                stop = call.refused.index if call.refused else None
                whole = call.result is not None
                for one in call.fields["records"][: None if whole else stop or 0]:
                    at = one["topic"], one["partition"], one["offset"]
                    found[at].append((call.began, call.fields["type"]))
                    owed.discard(at)
            elif call.op in {"poll", "commit_sync", "commit_async"}:
                if self.config.get("mode") == "implicit" and call.result is not None:
                    for at in owed:
                        found[at].append((call.began, "accept"))
                owed.clear()
            if call.op == "poll" and call.result is not None:
                records = call.result["records"]
                owed = {(one["topic"], one["partition"], one["offset"]) for one in records}
        return found

    def lock_of(self, one: Acquired) -> float:
        told = (one.by.response or {}).get("acquisition_lock_timeout_ms", -1)
        return told / 1000 if told > 0 else inf

    def known_until(self, one: Acquired) -> float:
        """Return when something happened after which nobody knows who has a record."""
        place, since = (one.topic_id, one.partition), one.by.number
        later = (each for each in self.exchanges if each.number > since)
        doubtful = (e.sent for e in later if e.node == one.by.node and self._loses(e, one, place))
        changed = [
            call.began
            for call in self.calling("subscribe", "unsubscribe")
            if call.ended > one.by.responded
        ]
        gone = self.gone.get(one.by.node, inf)  # no request reaches the tap from then on
        return min([gone, *doubtful, *changed, *self._departures(place, one.by.responded)])

    def _loses(self, each: Exchange, one: Acquired, place: Place) -> bool:
        if each.api not in SHARE:
            return False
        wrong = any(
            (topic_id, part["partition_index"]) == place and part.get("error_code")
            for topic_id, part in answers(each.response)
        )
        return (
            not _reached(each)
            or each.connection != one.by.connection
            or each.request["share_session_epoch"] == 0
            or bool((each.response or {}).get("error_code"))
            or wrong
            or place in forgotten(each)
        )

    def _departures(self, place: Place, since: float) -> Iterator[float]:
        for each in self.exchanges:
            if each.api != HEARTBEAT or each.responded < since:
                continue
            told = (each.response or {}).get("assignment")
            assigned = (told or {}).get("topic_partitions") or []
            mine = {(t["topic_id"], index) for t in assigned for index in t["partitions"]}
            gone = told is not None and place not in mine
            if (each.response or {}).get("error_code") or gone:
                yield each.sent


Found = tuple[list[str], int]  # What is wrong, in sentences, and how many were decided.


def _given(life: _Life) -> Found:
    """Each record that was acquired is given while its lock runs, or let go."""
    most = life.config.get("max_poll_records", USUAL)
    room = [one for one in life.calling("poll") if one.result is not None and _room(one, most)]
    brought = {one.by.number: one.by for one in life.acquired}
    readable = {number: _readable(one) for number, one in brought.items()}
    wrong, decided = list[str](), 0
    for one in life.acquired:
        at, since, known = life.at(one), one.by.responded, min(life.known_until(one), life.closing)
        end = min(known, one.by.sent + life.lock_of(one))
        given = min((call.ended for call in life.given[at] if call.ended >= since), default=inf)
        freed = [ack.by for ack in life.acked_at[at]] + life.ended_at(one.by.node)
        if min([given, *(by.sent for by in freed if by.number > one.by.number)]) < end:
            decided += 1
        elif (one.topic_id, one.partition, one.offset) in readable[one.by.number]:
            there = since + ARRIVED + life.late
            chances = [call for call in room if there <= call.began and call.ended < end]
            vain = [call for call in chances if not (call.result or {})["records"]]
            is_over = since + life.lock_of(one) < known
            if len(vain) >= IN_VAIN or (is_over and len(chances) > _waiting(life, since, end)):
                polls = f"{len(chances)} polls with room brought others, or nothing ({len(vain)})"
                count = f"delivery {one.count}, acquired by ShareFetch #{one.by.number}"
                wrong.append(f"{_where(at)}, {count}: {polls}, and it was not let go")
    return wrong, decided + len(wrong)


def _room(call: Call, most: int) -> bool:
    found = len((call.result or {})["records"])
    return 0 < found < most or (not found and call.ended - call.began >= WAITED)


def _waiting(life: _Life, since: float, end: float) -> int:
    """Return how many records may have stood in line with one; a poll gives one of them at least.

    A second poll may have been on its way when they came.
    """
    return 1 + sum(
        one.by.responded < end
        and not any(one.by.responded <= call.ended < since for call in life.given[life.at(one)])
        for one in life.acquired
    )


def _readable(one: Exchange) -> set[tuple[UUID, int, int]]:
    """Return what is a record for any reader: not what is cut, unreadable, or transactional."""
    found = set[tuple[UUID, int, int]]()
    for topic_id, part in answers(one.response):
        with contextlib.suppress(WireError):
            for batch in decode_batches(part.get("records") or b""):
                if not (batch.control or batch.transactional):
                    place = topic_id, part["partition_index"]
                    found |= {(*place, record.offset) for record in batch.records}
    return found


def _sent(life: _Life) -> Found:
    """Each acknowledgement that the application made is sent, and once if it was taken."""
    wrong, decided = list[str](), 0
    for at, acks in life.acked_at.items():
        final = [ack for ack in acks if ack.kind != AckType.RENEW]
        decided += len(final)
        for first, again in pairwise(final):
            since = first.by.number
            before = [one for one in life.any_acquired[at] if one.number < again.by.number]
            taken = [a for a in final if a.error == 0 and a.by.number < again.by.number]
            is_one_more = len(taken) >= len(before) and not any(o.number >= since for o in before)
            if first.error == 0 and first.by.responded < again.by.sent and is_one_more:
                wrong.append(f"{_where(at)}: {first}, taken, and again {again}")
    failed = {
        (one.topic, one.partition)
        for one in [*life.callbacks, *life.results]
        if one.error is not None
    }
    for at, made in life.made.items():
        for one in _unsent(life, at, [when for when, _ in made]):
            if at[:2] not in failed:
                wrong.append(f"{_where(at)}, delivery {one.count}: acknowledged, and never sent")
    return wrong, decided


def _unsent(life: _Life, at: At, made: Sequence[float]) -> Iterator[Acquired]:
    mine = [one for one in life.acquired if life.at(one) == at]
    for one, after in zip(mine, [*mine[1:], None], strict=False):
        until = min(life.known_until(one), one.by.sent + life.lock_of(one))
        stop = after.by.responded if after else inf
        when = max((at_ for at_ in made if one.by.responded <= at_ < stop), default=inf)
        due = [
            c.ended for c in life.calling("commit_sync") if c.began > when and c.result is not None
        ]
        due += [life.closed.ended] if life.closed and life.closed.began > when else []
        sent = [ack for ack in life.acked_at[at] if ack.by.number > one.by.number]
        if not sent and min(due, default=inf) < min(until, stop):
            yield one


def _told(life: _Life) -> Found:
    """Each acknowledgement that was answered is told once, by result or callback."""
    by_callback = life.has("callback-offsets") and life.config.get("callback") == "record"
    if (
        not by_callback
        or life.closed is None
        or any(c.fields.get("concurrent") for c in life.calls)
    ):
        return [], 0
    known = {*life.names.values()}
    told = Counter((o.topic, o.partition, each) for o in life.callbacks for each in o.offsets or ())
    results = {
        (one.topic, one.partition, offset)
        for one in life.results
        for offset in (one.offsets if one.offsets is not None else (-1,))
    }
    wrong, decided = list[str](), 0
    for at, made in life.made.items():
        if at[0] not in known:
            continue
        acks = life.acked_at[at]
        answered = {
            max(
                (one.number for one in life.any_acquired[at] if one.number < ack.by.number),
                default=0,
            )
            for ack in acks
            if _reached(ack.by) and ack.error is not None and ack.kind not in {0, AckType.RENEW}
        }
        least, most = min(len(answered), len(made)), max(len(acks), len(made))
        decided += least
        if told[at] > most:
            wrong.append(f"{_where(at)}: acknowledged {len(made)} times, told {told[at]} times")
        elif told[at] < least and not {at, (*at[:2], -1)} & results:
            last = "; ".join(f"{ack}, answered {_name(ack.error)}" for ack in acks[-1:])
            wrong.append(f"{_where(at)}: {last}; told {told[at]} times of {least}")
    return wrong, decided


def _name(error: int | None) -> str:
    return error_name(error) if error else "NONE"


def _where(at: At) -> str:
    return f"{at[0]}-{at[1]} offset {at[2]}"


_LOOKS: Mapping[str, Callable[[_Life], Found]] = {GIVEN: _given, SENT: _sent, TOLD: _told}
