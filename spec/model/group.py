"""A judge of one share group's membership: who is in it, and which epochs may be answered.

There is no fencing between members (KIP-932 §Group membership): a partition may belong to several
of them and changes hands without a handshake. So all there is to judge is who is a member and that
epochs only rise:

1. The *group epoch* rises when a member joins, leaves, expires or subscribes anew, and when a topic
   that somebody subscribes to changes. A *member epoch* follows it with the member's heartbeats.
   How far it rises is a release's own business (1, 2 or 3 after the first join), that it rises is
   not.
2. Epoch 0 joins, -1 leaves, any other must be the member's own one or the one before, which it
   sends again when an answer got lost. Everything else is FENCED_MEMBER_EPOCH.
3. A member that says nothing for the session timeout is removed. The observer knows only intervals,
   so between the earliest and the latest moment of that it may be either.

Time is in milliseconds, as in :mod:`spec.model.partition`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from spec.model.judgement import FINE, Judgement, Moment, Refusal, Span, span
from spec.model.operations import Error

JOIN, LEAVE = 0, -1
"""Member epochs that a heartbeat asks with."""
UNSEEN = -9
"""Stands for an epoch that was given in an answer nobody got."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A ShareGroupHeartbeat and its answer; ``error`` None: there was no answer."""

    member: str
    epoch: int
    error: int | None = 0
    answered: int = 0
    subscribes: bool = False


@dataclass(slots=True)
class Member:
    """What is known of a member id. ``epochs`` are the ones that it may have or have had last."""

    epochs: set[int] = field(default_factory=set)
    highest: int = 0
    heard_from: float = -math.inf
    heard_by: float = -math.inf
    may_be_in: bool = False
    may_be_out: bool = True


class ShareGroup:
    """What one share group may be, judged by the heartbeats that were seen."""

    def __init__(
        self, *, session_ms: float = 45_000, max_size: int = 200, late_ms: float = 5_000
    ) -> None:
        self.session_ms = session_ms
        self.max_size = max_size
        self.late_ms = late_ms
        self.members: dict[str, Member] = {}
        self._shown: tuple[float, int] = (-math.inf, 0)

    # ------------------------------------------------------------------ heartbeats

    def heartbeat(self, moment: Moment, beat: Heartbeat) -> Judgement:
        """Judge the answer to a heartbeat. One member's heartbeats do not overlap."""
        when = span(moment)
        member = self.members.setdefault(beat.member, Member())
        self._age(member, when)
        if beat.error is None:
            self._unanswered(member, beat, when)
            return FINE
        refusal = self._judge(member, beat)
        if beat.error == Error.NONE:
            self._accepted(member, beat, when)
        elif beat.error == Error.UNKNOWN_MEMBER_ID:
            member.may_be_in, member.may_be_out = False, True
        return Judgement((refusal,)) if refusal else FINE

    def _age(self, member: Member, when: Span) -> None:
        if not member.may_be_in:
            return
        if when.received >= member.heard_from + self.session_ms:
            member.may_be_out = True
        if when.sent > member.heard_by + self.session_ms + self.late_ms:
            member.may_be_in = False

    def _judge(self, member: Member, beat: Heartbeat) -> Refusal | None:
        if beat.error == Error.NONE:
            return self._judge_accepted(member, beat)
        refused = {
            Error.UNKNOWN_MEMBER_ID: self._judge_unknown,
            Error.FENCED_MEMBER_EPOCH: self._judge_fenced,
            Error.GROUP_MAX_SIZE_REACHED: self._judge_full,
            Error.INVALID_REQUEST: self._judge_invalid,
        }
        judge = refused.get(Error(beat.error or 0)) if beat.error in list(Error) else None
        return judge(member, beat) if judge else None

    def _judge_accepted(self, member: Member, beat: Heartbeat) -> Refusal | None:
        who, epoch, answered = beat.member, beat.epoch, beat.answered
        if epoch < LEAVE:
            return _refusal("MEM-34", f"epoch {epoch} of {who} was accepted")
        if epoch == JOIN and not beat.subscribes:
            return _refusal("MEM-35", f"{who} joined without topics")
        if epoch == LEAVE:
            wrong = answered != LEAVE
            return _refusal("MEM-03", f"{who} left with epoch {answered}") if wrong else None
        if epoch > 0 and not member.may_be_in:
            return _refusal("MEM-28", f"{who} is no member, its epoch {epoch} was accepted")
        if epoch > 0 and not member.epochs & {epoch, UNSEEN}:
            rule = "MEM-23" if epoch > member.highest else "MEM-24"
            known = sorted(member.epochs)
            return _refusal(rule, f"epoch {epoch} of {who} was accepted, known are {known}")
        return self._judge_epoch(member, beat)

    def _judge_epoch(self, member: Member, beat: Heartbeat) -> Refusal | None:
        who, answered = beat.member, beat.answered
        if answered <= 0:
            return _refusal("MEM-01", f"{who} was answered epoch {answered}")
        if beat.epoch == JOIN and answered <= member.highest and not member.may_be_in:
            text = f"{who} joined again with epoch {answered}, it had {member.highest} before"
            return _refusal("MEM-04", text)
        if answered < member.highest:
            return _refusal("INV-22", f"epoch of {who} went from {member.highest} to {answered}")
        return None

    def _judge_unknown(self, member: Member, beat: Heartbeat) -> Refusal | None:
        if beat.epoch == JOIN:
            return _refusal("MEM-01", f"{beat.member} joined and was answered UNKNOWN_MEMBER_ID")
        if member.may_be_out:
            return None
        return _refusal("MEM-38", f"{beat.member} heartbeats in time and was removed")

    def _judge_fenced(self, member: Member, beat: Heartbeat) -> Refusal | None:
        if beat.epoch == JOIN:
            return _refusal("MEM-05", f"{beat.member} joined with epoch 0 and was fenced")
        own = beat.epoch == member.highest and member.epochs == {beat.epoch}
        if own and not member.may_be_out:
            return _refusal("MEM-26", f"{beat.member} was fenced with its own epoch {beat.epoch}")
        return None

    def _judge_full(self, member: Member, beat: Heartbeat) -> Refusal | None:
        possible = sum(one.may_be_in for one in self.members.values())
        if member.may_be_in and not member.may_be_out:
            return _refusal("MEM-36", f"{beat.member} is a member and was refused for want of room")
        if possible < self.max_size:
            return _refusal("MEM-36", f"{possible} members fill a group of {self.max_size}")
        return None

    @staticmethod
    def _judge_invalid(_member: Member, beat: Heartbeat) -> Refusal | None:
        sound = beat.epoch >= LEAVE and (beat.epoch != JOIN or beat.subscribes)
        if sound and 0 < len(beat.member) <= 36:
            return _refusal("MEM-31", f"a sound heartbeat of {beat.member} was INVALID_REQUEST")
        return None

    # ------------------------------------------------------------------ what follows

    def _accepted(self, member: Member, beat: Heartbeat, when: Span) -> None:
        if beat.epoch == LEAVE:
            member.may_be_in, member.may_be_out = False, True
            member.epochs = set()
            return
        member.may_be_in, member.may_be_out = True, False
        member.heard_from, member.heard_by = when
        # The previous epoch stays good for one more heartbeat: the answer may have been lost.
        before = {beat.epoch} if beat.epoch > 0 else set()
        member.epochs = {beat.answered} | before
        member.highest = max(member.highest, beat.answered)

    def _unanswered(self, member: Member, beat: Heartbeat, when: Span) -> None:
        if beat.epoch == LEAVE:
            member.may_be_out = True
        elif beat.epoch == JOIN:
            member.may_be_in = True
        # The epoch may have moved on unseen, and again with the next one: it may be any.
        member.epochs = member.epochs | {beat.epoch, UNSEEN}
        member.heard_by = max(member.heard_by, when.received)

    # ------------------------------------------------------------------ what others show

    def described(self, moment: Moment, epoch: int, members: set[str], state: str) -> Judgement:
        """Judge a description of the group: its epoch, members and state."""
        when = span(moment)
        found: list[Refusal] = []
        if self._shown[0] < when.sent and epoch < self._shown[1]:
            found.append(_refusal("INV-22", f"group epoch went from {self._shown[1]} to {epoch}"))
        for name, member in self.members.items():
            self._age(member, when)
            if name in members and not member.may_be_in:
                found.append(_refusal("MEM-37", f"{name} is listed although it is gone"))
            if name not in members and not member.may_be_out:
                found.append(_refusal("MEM-38", f"{name} is missing although it heartbeats"))
        if (state == "Stable") != bool(members):
            found.append(_refusal("MEM-49", f"a group of {len(members)} members is {state}"))
        if epoch >= self._shown[1]:
            self._shown = (when.received, epoch)
        return Judgement(tuple(found)) if found else FINE


def _refusal(rule: str, sentence: str) -> Refusal:
    return Refusal(rule=rule, sentence=sentence)
