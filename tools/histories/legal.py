"""Legal histories: what clients see of a leader that acts by the table, under faults.

Each request takes effect at one moment, and is seen as an interval around it. So requests overlap,
responses get lost, requests are carried out late or never, share-partitions are loaded again, by
the same broker or by another, whose predecessor does not always hear of it at once.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from spec.history import AckType, Outcome
from spec.model.durable import Coordinator
from spec.model.leader import Leader
from spec.model.log import Log
from spec.model.operations import Batch, Error, Mode
from spec.model.settings import Settings
from tools.histories.small import (
    NEVER,
    Ack,
    Close,
    Deletion,
    Event,
    Fetch,
    History,
    Load,
    Look,
    Unseen,
)

MEMBERS, NODES = range(3), (1, 2)
_MS = 1000
_HEARS = 500 * _MS  # How long a leader that was deposed may not hear of it.
_KINDS = (AckType.ACCEPT, AckType.ACCEPT, AckType.RELEASE, AckType.RELEASE, AckType.REJECT)


def legal(seed: int) -> History:
    run, lost = _Run(Random(seed)), Random(f"lost {seed}")  # draws of their own
    if lost.random() < 0.2:
        run.coordinator.lost, run.moves = lost, 2
    return run.history()


class _Coordinator(Coordinator):
    lost: Random | None = None

    def write(self, **write: Any) -> Error:
        lost = self.lost is not None and self.lost.random() < 0.3
        # The start offset moves with a response: what is below it is lost for a later release.
        error = super().write(**(write | {"start": -1} if lost else write))
        return Error.COORDINATOR_NOT_AVAILABLE if lost and error is Error.NONE else error


class _Run:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.records, self.limit = random.randint(1, 3), random.choice((2, 3, 5))
        self.lock_ms = random.choice((200, 1000))
        # Timers are late, now and then.
        self.lasts = self.lock_ms * _MS + random.choice((0, 1, 100 * _MS))
        self.reach = random.choice((1, 20, 20, 200, 600)) * _MS
        self.losses, self.refusals = random.choice((0.0, 0.0, 0.2)), random.choice((0.0, 0.0, 0.2))
        self.moves, self.deletes = random.choice((0, 0, 2)), random.choice((0, 0, 0, 1))
        self.log = Log()
        for offset in range(self.records):
            self.log.append(offset, offset)
        self.stores = True
        self.coordinator = _Coordinator(ready=lambda _: self.stores)
        self.coordinator.initialize(0, 0)
        self.leader, self.leaders = 1, {1: self._leader(0)}
        self.now = 10 * _MS
        self.events: list[Event] = []
        self.busy: dict[int, int] = {}
        self.held: dict[tuple[int, int], set[tuple[int, int]]] = {}
        self.over: set[tuple[int, int]] = set()
        self.sessions: Counter[tuple[int, int]] = Counter()
        self.loaded = -NEVER
        self.late: list[tuple[int, Callable[[], object]]] = []

    def _leader(self, epoch: int) -> Leader:
        its = Settings(lock_ms=self.lasts, delivery_limit=self.limit)
        return Leader(settings=its, coordinator=self.coordinator, log=self.log, leader_epoch=epoch)

    def history(self) -> History:
        actions = [self.fetch] * 6 + [self.acknowledge] * 6 + [self.close, self.look, self.look]
        actions += [self.load] * self.moves + [self.delete] * self.deletes
        for _ in range(self.random.randint(4, 14)):
            self.wait(self.random.choice((5, 30, 30, self.lock_ms // 3, self.lock_ms)) * _MS)
            self.stores = self.random.random() >= self.refusals
            self.random.choice(actions)()
        self.stores = True
        drained = self.random.random() < 0.7
        if drained:
            self.drain()
        return History(
            records=self.records,
            limit=self.limit,
            lock_ms=self.lock_ms,
            drained=drained,
            events=tuple(self.events),
        )

    def session(self, member: int, node: int) -> str:
        return f"{member}-{self.sessions[member, node]}"

    def wait(self, most: int) -> None:
        until = self.now + self.random.randint(1, most)
        for due in sorted((one for one in self.late if one[0] <= until), key=lambda one: one[0]):
            self.late.remove(due)
            self.now = due[0]
            due[1]()
        self.now = until

    def around(self, who: int) -> tuple[int, int]:
        before = min(self.busy.get(who, 0) + 1, self.now)
        sent = max(self.now - self.random.randint(1, self.reach), before)
        self.busy[who] = self.now + self.random.randint(1, self.reach)
        return sent, self.busy[who]

    def fetch(self) -> None:
        member = self.random.choice(MEMBERS)
        if self.busy.get(member, 0) >= self.now:
            return
        moved = self.now < self.loaded + _HEARS and self.random.random() < 0.5
        node = self.random.choice(list(self.leaders)) if moved else self.leader
        sent, received = self.around(member)
        most, session = self.random.randint(1, self.records), self.session(member, node)
        if self.random.random() < self.losses:  # nobody sees the response
            if self.random.random() < 0.7:
                self.leaders[node].acquire(self.now, session, max_records=most)
            self.events.append(Unseen(sent=sent, received=received + self.random.randint(0, 900)))
            return
        taken = self.leaders[node].acquire(
            self.now, session, max_records=most, mode=Mode.RECORD_LIMIT
        )
        if not taken:
            return
        op = len(self.events)
        counts = tuple((o, one.deliveries) for one in taken for o in range(one.first, one.last + 1))
        self.events.append(
            Fetch(sent=sent, received=received, op=op, member=member, node=node, counts=counts)
        )
        # Brokers know offsets, not deliveries: members acknowledge the last that they have seen.
        offsets = {offset for offset, _ in counts}
        before = {one for one in self.held.get((member, node), ()) if one[1] not in offsets}
        self.held[member, node] = before | {(op, offset) for offset in offsets}

    def acknowledge(self) -> None:
        # Hardly any client says twice what it makes of a delivery.
        said = self.over if self.random.random() < 0.98 else set()
        having = [
            key for key in self.held if self.held[key] - said and self.busy[key[0]] < self.now
        ]
        if not having:
            return
        member, node = key = self.random.choice(having)
        op = self.random.choice(sorted({op for op, _ in self.held[key] - said}))
        offsets = sorted(offset for other, offset in self.held[key] - said if other == op)
        some = sorted(self.random.sample(offsets, self.random.randint(1, len(offsets))))
        renew = self.random.random() < 0.15
        kinds = tuple((o, AckType.RENEW if renew else self.random.choice(_KINDS)) for o in some)
        sent, received = self.around(member)
        outcome = self._acknowledge(node, member, kinds)
        if outcome is Outcome.UNKNOWN:
            received = NEVER
        self.events.append(Ack(sent=sent, received=received, op=op, kinds=kinds, outcome=outcome))
        if not renew:
            self.over |= {(op, offset) for offset in some}
        if outcome is Outcome.OK and not renew:
            self.held[key] -= {(op, offset) for offset in some}

    def _acknowledge(
        self, node: int, member: int, kinds: tuple[tuple[int, AckType], ...]
    ) -> Outcome:
        session = self.session(member, node)

        def act() -> Error:
            batches = [Batch(offset, offset, (int(kind),)) for offset, kind in kinds]
            renew = kinds[0][1] is AckType.RENEW
            return self.leaders[node].acknowledge(self.now, session, batches, renew=renew)

        if self.random.random() >= self.losses:
            return Outcome.OK if act() is Error.NONE else Outcome.FAILED
        when = self.random.choice((0, 0, self.random.randint(1, 500 * _MS), NEVER))
        self.late.append((self.now + when, act))
        return Outcome.UNKNOWN

    def close(self) -> None:
        having = [key for key in self.held if self.busy[key[0]] < self.now]
        if not having:
            return
        member, node = key = self.random.choice(having)
        sent, received = self.around(member)
        outcome = Outcome.UNKNOWN if self.random.random() < 0.3 else Outcome.OK
        delay = 0
        if outcome is Outcome.UNKNOWN:
            received, delay = NEVER, self.random.choice((0, 50 * _MS, NEVER))
        session = self.session(member, node)
        self.late.append((self.now + delay, lambda: self.leaders[node].close(self.now, session)))
        self.sessions[member, node] += 1
        self.wait(1)
        held = tuple(sorted(self.held.pop(key)))
        self.events.append(
            Close(
                sent=sent, received=received, member=member, node=node, outcome=outcome, held=held
            )
        )

    def load(self) -> None:
        node, self.stores = self.random.choice(NODES), True
        sent, received = self.around(-1)
        epoch = self.leaders[self.leader].leader_epoch + 1
        self.leader, self.leaders[node], self.loaded = node, self._leader(epoch), self.now
        self.events.append(Load(sent=sent, received=received, node=node))

    def delete(self) -> None:
        sent, received = self.around(-1)
        before = self.random.randint(0, self.records)
        for leader in self.leaders.values():
            leader.move_log_start(self.now, before)
        self.log.start = max(self.log.start, before)
        self.events.append(Deletion(sent=sent, received=received, before=before))

    def look(self) -> None:
        state = self.coordinator.state
        if state is not None and self.busy.get(-1, 0) < self.now:
            sent, received = self.around(-1)
            shown, start = state.start, self.log.start
            self.events.append(Look(sent=sent, received=received, spso=shown, log_start=start))

    def drain(self) -> None:
        self.losses, self.reach = 0.0, 20 * _MS
        self.wait(1000 * _MS)
        self.now = max([self.now, *self.busy.values()]) + 1
        while self.leaders[self.leader].unfinished():
            self.wait(self.lock_ms * _MS)
            self.fetch()
            self.acknowledge()
