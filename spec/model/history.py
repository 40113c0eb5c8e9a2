"""Histories for the judge: requests, their times and their results, in any order.

:func:`judge` feeds them to a :class:`~spec.model.partition.SharePartition` as an
observer lives them: every request once when it was sent and once when it was answered.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush

from spec.model.durable import StateBatch
from spec.model.operations import FINE, Acknowledge, Batch, Fetch, Judgement, Mode, Operation, Range
from spec.model.partition import SharePartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Something that happened between ``sent`` and ``received``, in milliseconds."""

    sent: float
    received: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced(Step):
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched(Step):
    """A fetch; ``ranges`` None: no response came."""

    member: str
    ranges: tuple[Range, ...] | None
    mode: Mode = Mode.BATCH_OPTIMIZED
    max_records: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged(Step):
    """Acknowledgements; ``error`` None: no response came."""

    member: str
    batches: tuple[Batch, ...]
    error: int | None = 0
    renew: bool = False
    version: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Step):
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded(Step):
    """The share-partition was loaded anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStarted(Step):
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSeen(Step):
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSeen(Step):
    start: int
    batches: tuple[StateBatch, ...]


def judge(partition: SharePartition, steps: Iterable[Step]) -> Iterator[tuple[Step, Judgement]]:
    """Yield every step with its judgement, in the order in which the steps ended.

    A step without a response is judged as it ends, and never refused.
    """
    pending: list[tuple[float, int, Step, Operation | None]] = []
    for number, one in enumerate(sorted(steps, key=lambda one: (one.sent, one.received))):
        while pending and pending[0][0] < one.sent:
            yield _ended(partition, *heappop(pending)[2:])
        heappush(pending, (one.received, number, one, _begin(partition, one)))
    while pending:
        yield _ended(partition, *heappop(pending)[2:])


def refusals(partition: SharePartition, steps: Iterable[Step]) -> list[str]:
    return [str(found) for _one, verdict in judge(partition, steps) for found in verdict.refusals]


def _begin(partition: SharePartition, one: Step) -> Operation | None:
    begun: Operation | None = None
    match one:
        case Produced():
            partition.produced(one.first, one.last)
        case Fetched():
            fetch = Fetch(member=one.member, mode=one.mode, max_records=one.max_records)
            begun = partition.begin_fetch(one.sent, fetch)
        case Acknowledged():
            ack = Acknowledge(
                member=one.member, batches=one.batches, renew=one.renew, version=one.version
            )
            begun = partition.begin_acknowledge(one.sent, ack)
        case Closed():
            begun = partition.begin_close(one.sent, one.member)
        case Reloaded():
            begun = partition.begin_reload(one.sent)
        case LogStarted():
            begun = partition.begin_log_start(one.sent, one.offset)
        case StartSeen() | StateSeen():
            begun = partition.begin_look(one.sent)
    return begun


def _ended(
    partition: SharePartition, one: Step, operation: Operation | None
) -> tuple[Step, Judgement]:
    verdict, received = FINE, one.received
    if operation is None:
        return one, verdict
    match one:
        case Fetched(ranges=None) | Acknowledged(error=None):
            verdict = partition.lost(operation, received)
        case Fetched():
            verdict = partition.fetched(operation, received, one.ranges or ())
        case Acknowledged():
            verdict = partition.answered(operation, received, one.error or 0)
        case Closed():
            verdict = partition.closed(operation, received)
        case Reloaded():
            verdict = partition.reload_done(operation, received)
        case LogStarted():
            verdict = partition.log_started(operation, received)
        case StartSeen():
            verdict = partition.start_shown(operation, received, one.offset)
        case StateSeen():
            verdict = partition.state_shown(operation, received, one.start, one.batches)
    return one, verdict
