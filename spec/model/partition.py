"""A judge of one share-partition: it takes requests and responses in the order of time.

The judge does not predict. A broker is free in which available records it hands out, how it cuts
ranges, and when within a request's time it acts; the judge keeps every state that the observations
allow and refuses an observation only if no interleaving explains it.

Time
    Milliseconds on one monotonic clock. A request acts at one moment between being sent and being
    answered. The judge takes a request when it is sent (``begin_…``) and again when it is answered
    (the method that takes the operation), each in the order of its time, so that requests may
    overlap. An observer that does one thing at a time uses the short forms, which do both.

No response
    An operation that got no response, or one after which the broker may have acted all the same, is
    marked lost. Its effects stay possible until evidence decides, or until ``linger_ms`` is over.

After a refusal
    The judge believes what it saw and goes on, so that one defect is reported once.
"""

from collections.abc import Iterable, Sequence

from spec.model import observations
from spec.model.cells import Cell, Cells, aged, deleted
from spec.model.log import Log
from spec.model.observations import judge_accepted, judge_acquired, judge_refused, take_refusal
from spec.model.operations import (
    CERTAIN_REFUSALS,
    FINE,
    Acknowledge,
    Batch,
    Error,
    Fetch,
    Judgement,
    Kind,
    Mode,
    Moment,
    Operation,
    Range,
    Refusal,
    malformed,
    pieces_of,
    span,
)
from spec.model.possible import Possible, untagged
from spec.model.release import NEWEST, Release
from spec.model.runs import END
from spec.model.settings import Knobs, Settings, Slack


class SharePartition:
    def __init__(
        self,
        start: int = 0,
        *,
        settings: Settings | None = None,
        release: Release = NEWEST,
        slack: Slack | None = None,
    ) -> None:
        knobs = Knobs(settings or Settings())
        self._possible = Possible(start, release, knobs, slack or Slack())
        self._log = Log()
        self._start_seen = start
        self._start_seen_at = float("-inf")

    # ------------------------------------------------------------------ the surroundings

    def produced(self, first: int, last: int) -> None:
        """Add a record batch before it is sent; a judge that knows one batch must know all."""
        self._log.append(first, last)

    def configured(self, moment: Moment, settings: Settings) -> None:
        when = span(moment)
        self._possible.knobs.change(when.sent, when.received, settings)

    # ------------------------------------------------------------------ acquiring

    def begin_fetch(self, sent: float, fetch: Fetch) -> Operation:
        return self._possible.begin(Kind.FETCH, sent, member=fetch.member, fetch=fetch)

    def fetched(
        self, operation: Operation, received: float, ranges: Iterable[tuple[int, int, int]]
    ) -> Judgement:
        operation.received = received
        fetch = operation.fetch
        if fetch is None:
            raise ValueError("this operation is no fetch")
        taken = [Range(*one) for one in ranges]
        refusals = judge_acquired(self._possible, operation, fetch, taken, self._log)
        self._possible.finish(operation)
        return self._judged(operation, refusals)

    def acquired(
        self,
        moment: Moment,
        member: str,
        ranges: Iterable[tuple[int, int, int]],
        mode: Mode = Mode.BATCH_OPTIMIZED,
        max_records: int | None = None,
    ) -> Judgement:
        when = span(moment)
        fetch = Fetch(member=member, mode=mode, max_records=max_records)
        return self.fetched(self.begin_fetch(when.sent, fetch), when.received, ranges)

    # ------------------------------------------------------------------ acknowledging

    def begin_acknowledge(self, sent: float, ack: Acknowledge) -> Operation:
        fault = malformed(ack, self._possible.release)
        pieces = () if fault else pieces_of(ack.batches)
        return self._possible.begin(
            Kind.ACK, sent, member=ack.member, ack=ack, fault=fault, pieces=pieces
        )

    def answered(self, operation: Operation, received: float, error: int) -> Judgement:
        """Judge the response to acknowledgements: the partition's error code.

        Errors that leave open whether something was applied are taken as :meth:`lost`.
        """
        ack = operation.ack
        if ack is None:
            raise ValueError("this operation is no acknowledgement")
        operation.received = received
        if error == Error.NONE:
            refusals = judge_accepted(self._possible, operation, ack)
            self._possible.finish(operation)
            self._possible.forget_tag(operation, keep=True)
            self._possible.advance()
        elif error in CERTAIN_REFUSALS:
            refusals = self._refused(operation, ack, Error(error))
        else:
            return self.lost(operation, received)
        return self._judged(operation, refusals)

    def _refused(self, operation: Operation, ack: Acknowledge, error: Error) -> list[Refusal]:
        refusals: list[Refusal] = []
        if error in {Error.INVALID_RECORD_STATE, Error.INVALID_REQUEST}:
            seen = self._start_seen if self._start_seen_at < operation.sent else 0
            refusals = judge_refused(self._possible, operation, ack, error, seen)
        self._possible.finish(operation)
        if refusals or error is not Error.INVALID_RECORD_STATE:
            self._possible.forget_tag(operation, keep=False)
        else:
            take_refusal(self._possible, operation)
        return refusals

    def acknowledged(
        self,
        moment: Moment,
        member: str,
        batches: Sequence[tuple[int, int, Sequence[int]]],
        error: int | None = Error.NONE,
        *,
        renew: bool = False,
        version: int = 2,
    ) -> Judgement:
        when = span(moment)
        cut = tuple(Batch(first, last, tuple(types)) for first, last, types in batches)
        ack = Acknowledge(member=member, batches=cut, renew=renew, version=version)
        operation = self.begin_acknowledge(when.sent, ack)
        if error is None:
            return self.lost(operation, when.received)
        return self.answered(operation, when.received, error)

    def lost(self, operation: Operation, received: float) -> Judgement:
        del received
        operation.answered = True
        return FINE

    # ------------------------------------------------------------------ what frees records

    def begin_close(self, sent: float, member: str) -> Operation:
        return self._possible.begin(Kind.CLOSE, sent, member=member)

    def closed(self, operation: Operation, received: float) -> Judgement:
        operation.received = received
        self._possible.finish(operation)
        self._sweep(operation)
        return self._judged(operation, [])

    def released_session(self, moment: Moment, member: str) -> Judgement:
        when = span(moment)
        return self.closed(self.begin_close(when.sent, member), when.received)

    def begin_reload(self, sent: float) -> Operation:
        return self._possible.begin(Kind.RELOAD, sent)

    def reload_done(self, operation: Operation, received: float) -> Judgement:
        operation.received = received
        self._possible.finish(operation)
        self._may_fall_back(operation, received)
        self._sweep(operation)
        return self._judged(operation, [])

    def _may_fall_back(self, operation: Operation, received: float) -> None:
        possible = self._possible
        highest = possible.highest_start(operation.sent, received)
        possible.peak = (received, highest)
        possible.highest_ever = max(possible.highest_ever, highest)
        possible.cached = possible.runs.first - 1
        possible.reloads += 1

    def reloaded(self, moment: Moment) -> Judgement:
        when = span(moment)
        return self.reload_done(self.begin_reload(when.sent), when.received)

    def over(self, operation: Operation, received: float) -> Judgement:
        """Tell that an operation has acted by now, or never will: the end of a session or a reload.

        That is less than :meth:`closed` and :meth:`reload_done` say, which are sure that it acted.
        """
        operation.received = received
        possible = self._possible
        if operation.kind is Kind.RELOAD:
            self._may_fall_back(operation, received)
        possible.spread(possible.runs.first, END - 1, operation.sent, received)
        possible.finish(operation)
        possible.forget_tag(operation, keep=True)
        return self._judged(operation, [])

    # ------------------------------------------------------------------ offsets

    def begin_log_start(self, sent: float, offset: int) -> Operation:
        return self._possible.begin(Kind.LOG_START, sent, offset=offset)

    def log_started(self, operation: Operation, received: float) -> Judgement:
        operation.received = received
        self._possible.finish(operation)

        def delete(_first: int, _last: int, cells: Cells) -> Cells:
            return tuple(dict.fromkeys(deleted(cell) for cell in cells))

        self._possible.within(operation, self._possible.runs.first, operation.offset - 1, delete)
        self._possible.highest = max(self._possible.highest, operation.offset - 1)
        return self._looked(operation, [])

    def log_start_moved(self, moment: Moment, offset: int) -> Judgement:
        when = span(moment)
        return self.log_started(self.begin_log_start(when.sent, offset), when.received)

    def begin_look(self, sent: float) -> Operation:
        possible = self._possible
        start = possible.highest_start(sent, sent)
        return possible.begin(Kind.LOOK, sent, start=start)

    def start_shown(self, operation: Operation, received: float, offset: int) -> Judgement:
        operation.received = received
        before = self._start_seen if self._start_seen_at < operation.sent else 0
        refusals = observations.start_seen(self._possible, operation, offset, before)
        if offset >= self._start_seen:
            self._start_seen, self._start_seen_at = offset, received
        return self._looked(operation, refusals)

    def spso_seen(self, moment: Moment, offset: int) -> Judgement:
        when = span(moment)
        return self.start_shown(self.begin_look(when.sent), when.received, offset)

    # ------------------------------------------------------------------ questions

    @property
    def start(self) -> int:
        return self._possible.runs.first

    @property
    def end(self) -> int:
        return self._possible.highest + 1

    def cells(self, now: float, offset: int) -> Cells:
        if offset < self._possible.runs.first:
            return ()
        possible = self._possible
        return aged(possible.runs[offset], now, now, possible.slack, possible.knobs)

    def overdue(self, now: float) -> list[tuple[int, int]]:
        return observations.overdue(self._possible, now)

    # ------------------------------------------------------------------ inside

    def _sweep(self, operation: Operation) -> None:
        possible = self._possible
        force = possible.knobs.over(operation.sent, operation.received)

        def sweep(_first: int, _last: int, cells: Cells) -> Cells:
            after: list[Cell] = []
            for cell in cells:
                if operation.id in cell.ops or not operation.coupled:
                    after.append(cell)
                if operation.id not in cell.ops:
                    after.extend(operation.sweep(cell, possible.release, force))
            return untagged(after, operation.id)

        self._possible.within(operation, possible.runs.first, END - 1, sweep)

    def _looked(self, operation: Operation, refusals: list[Refusal]) -> Judgement:
        judgement = self._judged(operation, refusals)
        self._possible.advance()
        return judgement

    def _judged(self, operation: Operation, refusals: list[Refusal]) -> Judgement:
        if self._possible.open:
            refusals.extend(self._possible.conclude(operation.sent, operation.received))
        return Judgement(tuple(refusals)) if refusals else FINE
