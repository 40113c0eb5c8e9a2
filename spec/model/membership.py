"""A share group that acts: it takes heartbeats in and answers them, as a coordinator has to.

Time is in milliseconds and is given with every call; a member that was silent for too long is
removed at the next look at the group.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from spec.model.operations import Error
from spec.model.sessions import Place

JOIN, LEAVE = 0, -1  # Member epochs that a heartbeat asks with.

LONGEST_ID = 36  # Characters that a member id may have: as many as a UUID.


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    session_ms: float = 45_000
    max_size: int = 200
    assignment_ms: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    member: str
    epoch: int
    topics: tuple[str, ...] | None = None
    rack: str | None = None
    client: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The response to a heartbeat; ``assignment`` is None where it did not change."""

    error: Error = Error.NONE
    message: str | None = None
    epoch: int = 0
    assignment: frozenset[Place] | None = None


@dataclass(slots=True, kw_only=True)
class Member:
    """One member. ``sent`` is the assignment that its responses have carried."""

    id: str
    epoch: int = 0
    previous: int = 0
    topics: tuple[str, ...] = ()
    rack: str | None = None
    client: str = ""
    host: str = ""
    sent: frozenset[Place] | None = None
    until: float = math.inf


@dataclass(slots=True)
class Membership:
    members: dict[str, Member] = field(default_factory=dict)
    epoch: int = 0
    assignment_epoch: int = 0
    assigned_at: float = -math.inf
    target: dict[str, frozenset[Place]] = field(default_factory=dict)
    seen: dict[str, tuple[Place, ...]] = field(default_factory=dict)

    # ------------------------------------------------------------------ heartbeats

    def heartbeat(
        self, now: float, beat: Beat, terms: Terms, topics: Mapping[str, Sequence[Place]]
    ) -> Reply:
        self.expire(now)
        refusal = self._refusal(beat, terms)
        if refusal is not None:
            return refusal
        if beat.epoch == LEAVE:
            self._remove(beat.member)
            self.look(now, terms, topics)
            return Reply(epoch=LEAVE)
        member = self.members.get(beat.member) or self._join(beat)
        self._update(member, beat)
        member.until = now + terms.session_ms
        self.look(now, terms, topics)
        return self._reply(member, beat)

    def _refusal(self, beat: Beat, terms: Terms) -> Reply | None:
        member = self.members.get(beat.member)
        if beat.epoch == JOIN:
            if member is None and self._crowded(terms):
                return _no(Error.GROUP_MAX_SIZE_REACHED, "the group is full")
            return None
        if member is None:
            return _no(Error.UNKNOWN_MEMBER_ID, f"{beat.member} is no member")
        if beat.epoch != LEAVE and not self._known(member, beat.epoch):
            return _no(Error.FENCED_MEMBER_EPOCH, f"the epoch of {beat.member} is {member.epoch}")
        return None

    def _crowded(self, terms: Terms) -> bool:
        return len(self.members) >= terms.max_size

    def _known(self, member: Member, epoch: int) -> bool:
        return epoch in {member.epoch, member.previous}

    def _join(self, beat: Beat) -> Member:
        member = Member(id=beat.member)
        self.members[beat.member] = member
        self.bump()
        return member

    def _update(self, member: Member, beat: Beat) -> None:
        if beat.topics is not None and sorted(beat.topics) != sorted(member.topics):
            member.topics = beat.topics
            self.bump()
        if beat.rack is not None:
            member.rack = beat.rack
        member.client, member.host = beat.client, beat.host

    def _reply(self, member: Member, beat: Beat) -> Reply:
        repeats = beat.epoch != member.epoch
        if member.epoch != self.assignment_epoch:
            member.previous, member.epoch = member.epoch, self.assignment_epoch
        target = self.target.get(member.id, frozenset())
        changed = self._requests_assignment(beat, repeats) or target != member.sent
        member.sent = target
        return Reply(epoch=member.epoch, assignment=target if changed else None)

    @staticmethod
    def _requests_assignment(beat: Beat, repeats: bool) -> bool:
        return repeats or beat.topics is not None

    def bump(self) -> None:
        self.epoch += 1

    # ------------------------------------------------------------------ leaving

    def _remove(self, member: str) -> None:
        del self.members[member]
        self.bump()

    def expire(self, now: float) -> None:
        for member in [one.id for one in self.members.values() if one.until <= now]:
            self._remove(member)

    # ------------------------------------------------------------------ assigning

    def tend(self, now: float, terms: Terms, topics: Mapping[str, Sequence[Place]]) -> None:
        """Do what is due without a request."""
        self.expire(now)
        self.look(now, terms, topics)

    def look(self, now: float, terms: Terms, topics: Mapping[str, Sequence[Place]]) -> None:
        """Take notice of topics that changed, and assign anew if it is time to (KIP-1263)."""
        names = {name for member in self.members.values() for name in member.topics}
        seen = {name: tuple(topics[name]) for name in sorted(names) if name in topics}
        if seen != self.seen:
            self.seen = seen
            self.bump()
        if self.assignment_epoch < self.epoch and self._due(now, terms):
            wishes = {member.id: member.topics for member in self.members.values()}
            self.target = self._assign(wishes, seen)
            self.assignment_epoch, self.assigned_at = self.epoch, now

    def _due(self, now: float, terms: Terms) -> bool:
        return now >= self.assigned_at + terms.assignment_ms

    def _assign(
        self, wishes: Mapping[str, Sequence[str]], topics: Mapping[str, Sequence[Place]]
    ) -> dict[str, frozenset[Place]]:
        return assign(wishes, topics)


def malformed(group: str, beat: Beat) -> str | None:
    if not 0 < len(beat.member) <= LONGEST_ID:
        return f"a member id has 1 to {LONGEST_ID} characters"
    if not group:
        return "the group id is empty"
    if beat.rack == "":
        return "the rack id is empty"
    if beat.epoch < LEAVE:
        return f"the member epoch {beat.epoch} means nothing"
    if beat.epoch == JOIN and not beat.topics:
        return "a member that joins has to subscribe to something"
    return None


def _no(error: Error, why: str) -> Reply:
    return Reply(error=error, message=why)


def assign(
    wishes: Mapping[str, Sequence[str]], topics: Mapping[str, Sequence[Place]]
) -> dict[str, frozenset[Place]]:
    """Return each member's partitions, as the simple assignor (KIP-932 §The SimpleAssignor).

    What is promised is little: every partition of a topic has a reader among those who subscribe to
    it, and every subscriber has a partition. Dealing partitions and members out in turn, until both
    have been through, does that with loads that differ by one at most.
    """
    assigned: dict[str, set[Place]] = {member: set() for member in wishes}
    for name, places in topics.items():
        readers = sorted(member for member, names in wishes.items() if name in names)
        if not readers:
            continue
        for turn in range(max(len(readers), len(places)) if places else 0):
            assigned[readers[turn % len(readers)]].add(places[turn % len(places)])
    return {member: frozenset(places) for member, places in assigned.items()}
