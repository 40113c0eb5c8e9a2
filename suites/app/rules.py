"""The judges of the rules FRM: each takes a scenario that was played and says what it found."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fixtures.clients.member import AckType
from spec.verdict import Observation, Verdict
from suites.app.deliveries import Delivery
from suites.app.environment import QUIET
from suites.app.load import Sent
from suites.app.scenarios import Scenario, ScenarioResult
from suites.client.harness import STARVED

TOO_LATE = 1.5  # What is held for so many times the lock is late on any machine.
WITNESSES = 3
JUST_NOW = (
    0.05  # Seconds within which a program that stops may not know yet that a write went well.
)


@dataclass(slots=True)
class Finding:
    evidence: Counter[str] = field(default_factory=Counter)  # What exercised it.
    broken: list[str] = field(default_factory=list)  # What broke it.
    stuck: bool = False  # Whether what never happened broke it: that may be the brokers' fault.
    needless: str = ""  # Why the program has nothing that the rule is about.
    clear: bool = True  # Whether a slow machine is no excuse for what broke it.

    def saw(self, holds: object, sentence: str, what: str) -> None:
        self.evidence[what] += 1
        if not holds:
            self.broken.append(sentence)

    def verdict(self, seen: ScenarioResult) -> tuple[Verdict, str]:
        if self.broken and self.stuck and not seen.healthy:
            said = "records stopped coming, and a new topic and group on the same broker got none"
            return Verdict.UNKNOWN, f"{said} either"
        if self.broken and not self.clear and seen.starved > STARVED:
            said = "it was a little too late, while this machine was busy with something else"
            return Verdict.UNKNOWN, f"{said} for {seen.starved:.0%} of the time"
        if self.broken:
            said = f"{len(self.broken)} cases break the rule, the first: {self.broken[0]}"
            return Verdict.FAIL, said
        if not self.evidence:
            return Verdict.VACUOUS, self.needless or "nothing put the rule to the test"
        return Verdict.PASS, ""


Judge = Callable[[ScenarioResult, Finding], None]
JUDGES: dict[str, Judge] = {}


def check_of(scenario: Scenario) -> str:
    return f"suites/app/scenarios::{scenario.name}"


def observe(rule: str, seen: ScenarioResult, *, owed: bool = True) -> Observation:
    found = Finding()
    JUDGES[rule](seen, found)
    verdict, reason = found.verdict(seen)
    return Observation(
        rule=rule,
        check=check_of(seen.scenario),
        verdict=verdict,
        reason=reason,
        evidence={name: count for name, count in found.evidence.items() if count},
        witness=tuple(found.broken[:WITNESSES]),
        excused=verdict is Verdict.VACUOUS and bool(found.needless) and not owed,
        situations=(seen.scenario.name,) if verdict is Verdict.PASS else (),
    )


def _judges(rule: str) -> Callable[[Judge], Judge]:
    def register(judge: Judge) -> Judge:
        JUDGES[rule] = judge
        return judge

    return register


# --- Records that fail ------------------------------------------------------------------------


@_judges("FRM-01")
def _failed_is_not_accepted(seen: ScenarioResult, found: Finding) -> None:
    for one, deliveries in seen.records(poison=True):
        for each in (each for each in deliveries if each.kind is not None):
            holds = each.kind is not AckType.ACCEPT or one.key in seen.dead
            found.saw(holds, f"{one}: accepted {_when(each)}, and could not be processed", "failed")


@_judges("FRM-02")
def _back_off_is_shorter_than_the_lock(seen: ScenarioResult, found: Finding) -> None:
    if seen.scenario.undisturbed:
        _judge_locks(seen, found, poison=True)


@_judges("FRM-04")
def _dead_letter_comes_first(seen: ScenarioResult, found: Finding) -> None:
    if not seen.writes_dead:
        found.needless = "the program writes nothing to the topic of dead letters"
        return
    for one, deliveries in seen.records(poison=True):
        for each in deliveries:
            if each.kind in {AckType.ACCEPT, AckType.REJECT}:
                _judge_write(found, one, each, seen.dead, "dead_letters")


@_judges("FRM-05")
def _poison_is_finished(seen: ScenarioResult, found: Finding) -> None:
    declared = seen.attempts if seen.scenario.undisturbed else 0
    for one, deliveries in seen.records(poison=True):
        if not deliveries:
            continue
        said = f"{one}: delivered {len(deliveries)} times"
        if declared:
            early = [each for each in deliveries[:declared] if each.final]
            if early or deliveries[-1].count >= declared:  # that others never came is FRM-10's
                found.saw(early, f"{said}, and not finished by delivery {declared}", "poison")
        else:
            found.saw(seen.finished(one), f"{said}, and never finished", "poison")
            found.stuck = not seen.finished(one) or found.stuck


# --- Locks ------------------------------------------------------------------------------------


@_judges("FRM-03")
def _locks_are_kept(seen: ScenarioResult, found: Finding) -> None:
    if seen.scenario.undisturbed:
        _judge_locks(seen, found, poison=False)


def _judge_locks(seen: ScenarioResult, found: Finding, *, poison: bool) -> None:
    found.clear = False
    for one, deliveries in seen.records(poison=poison):
        for each in deliveries:
            lapsed = each.lapsed(seen.over)
            if each.done <= seen.over or lapsed:
                length = each.until - each.at
                after = f"after {each.acked - each.at:.1f} s" if each.kind is not None else "never"
                sentence = (
                    f"{one}, delivery {each.count} to {each.member}: acknowledged {after}, "
                    f"and its lock ended after {length:.1f} s"
                )
                found.saw(not lapsed, sentence, "deliveries")
                late = TOO_LATE * length / max(0.2, min(1.0, 2 - 2 * seen.starved))
                found.clear = found.clear or (lapsed and each.acked - each.at > late)
                found.evidence["locks_ended"] += lapsed
                found.evidence["renewals"] += each.renewals


@_judges("FRM-07")
def _acknowledged_by_its_holder(seen: ScenarioResult, found: Finding) -> None:
    if seen.scenario.undisturbed:
        acks = sum(each.kind is not None for each in seen.deliveries)
        found.evidence += Counter(acknowledgements=acks)
        for stray in seen.deliveries.strays:
            found.saw(False, f"{stray.ack}, and {stray.why}", "acknowledgements")


# --- What has to be true before a record is accepted ------------------------------------------


@_judges("FRM-09")
def _written_before_accepted(seen: ScenarioResult, found: Finding) -> None:
    if not seen.writes_output:
        found.needless = "the program writes nothing to the output topic"
        return
    for one, each in _accepted(seen):
        _judge_write(found, one, each, seen.outputs, "outputs")
    if seen.refused and found.evidence:
        found.evidence["refused_writes"] = seen.refused


# --- Start, stop and the time between ---------------------------------------------------------


@_judges("FRM-06")
def _stop_gives_back(seen: ScenarioResult, found: Finding) -> None:
    if seen.stopping is None:
        return
    ended = seen.instances[0].ended if seen.instances else None
    if ended is None or ended - seen.stopping >= seen.grace:
        found.clear = False
        found.saw(False, f"it still ran {seen.grace:g} s after SIGTERM", "stops")
        return
    for each in seen.deliveries:
        if each.at <= ended and each.until > ended and each.done > seen.stopping:
            sentence = (
                f"{each}: held when the program ended, {ended - seen.stopping:.1f} s after SIGTERM"
            )
            found.saw(each.done <= ended, sentence, "held")


@_judges("FRM-12")
def _stop_leaves(seen: ScenarioResult, found: Finding) -> None:
    if seen.stopping is None:
        return
    for one in seen.members:
        if one.first < seen.stopping:
            sentence = f"member {one.member} sent no heartbeat with epoch -1 after SIGTERM"
            found.saw(one.left is not None, sentence, "members")


@_judges("FRM-14")
def _stop_accepts_what_is_done(seen: ScenarioResult, found: Finding) -> None:
    if seen.stopping is None:
        return
    found.needless = "when it was asked to stop nothing was finished that it still held"
    just_now = JUST_NOW + 2 * seen.starved
    ended = (seen.instances[0].ended if seen.instances else None) or seen.over
    for one, deliveries in seen.records(poison=False):
        written = seen.outputs.get(one.key, math.inf)
        for each in deliveries:
            gone = min(each.done, ended)
            holds = each.kind is AckType.ACCEPT and each.acked <= gone
            known = holds or gone - written > just_now
            if each.at < written < gone and seen.stopping < gone <= each.until and known:
                said = f"{each}: its output was confirmed, and {gone - written:.1f} s later it was"
                found.saw(holds, f"{said} given back", "finished")


@_judges("FRM-08")
def _restart_loses_nothing(seen: ScenarioResult, found: Finding) -> None:
    ends = [one.at for one in seen.faults if one.what in {"SIGKILL", "SIGTERM"}]
    if not ends or not any(one.at < ends[0] for one in seen.deliveries):
        return
    found.evidence["held"] += len(seen.deliveries.held(ends[0]))
    _judge_accepted(seen, found)
    if seen.writes_output:
        for one, each in _accepted(seen):
            said = f"{one}: {_ack(each)}, and nothing about it was written"
            found.saw(one.key in seen.outputs, said, "outputs")


@_judges("FRM-10")
def _all_is_finished(seen: ScenarioResult, found: Finding) -> None:
    every = list(seen.deliveries)
    if not every:
        return
    for one in seen.sent.values():
        count = len(seen.deliveries.of.get(one.place, []))
        said = f"{one}: delivered {count} times and not finished when all was over{_crash(seen)}"
        found.saw(seen.finished(one), said, "records")
    found.stuck = bool(found.broken)
    found.evidence["deliveries"] = len(every)
    found.evidence["locks_ended"] = sum(each.lapsed(seen.over) for each in every)
    copies = sum(each.place not in seen.sent for each in every)
    found.evidence["copies"] = copies
    if seen.moving:
        last = max(every, key=lambda each: each.at)
        written = f", {copies} of copies that the program wrote" if copies else ""
        found.stuck = seen.over - last.at > QUIET  # copies that are left, and none that come
        found.broken.append(f"records still came after {len(every)} deliveries{written}: {last}")


@_judges("FRM-11")
def _goes_on(seen: ScenarioResult, found: Finding) -> None:
    poison = [each.at for _, deliveries in seen.records(poison=True) for each in deliveries]
    since = seen.faults[0].at if seen.faults else min(poison, default=None)
    if since is None:
        return
    for one in seen.crashed:
        found.saw(False, f"the program ended by itself, with code {one.code}", "ends")
    later = [one for one, each in _accepted(seen) if each.acked > since]
    if later or found.broken:
        _judge_accepted(seen, found)
    elif list(seen.deliveries):
        found.stuck = True
        what = seen.faults[0].what if seen.faults else "the first poison record"
        found.saw(False, f"no record was accepted after: {what}", "records")


@_judges("FRM-13")
def _one_group(seen: ScenarioResult, found: Finding) -> None:
    if len(seen.instances) < 2:
        return
    for member in seen.members:
        sentence = f"member {member.member} joined group {member.group}, not {seen.group}"
        found.saw(member.group == seen.group, sentence, "members")
    for one, deliveries in seen.records(poison=False):
        late = any(each.lapsed(seen.over) for each in deliveries)  # which is FRM-03's
        times = sum(each.kind is AckType.ACCEPT and each.final for each in deliveries)
        found.saw(late or times <= 1, f"{one}: accepted {times} times", "records")


# --- What judges share ------------------------------------------------------------------------


def _accepted(seen: ScenarioResult) -> list[tuple[Sent, Delivery]]:
    return [
        (one, each)
        for one, deliveries in seen.records(poison=False)
        for each in deliveries
        if each.kind is AckType.ACCEPT and each.final
    ]


def _judge_accepted(seen: ScenarioResult, found: Finding) -> None:
    for one, deliveries in seen.records(poison=False):
        kinds = {each.kind for each in deliveries if each.final}
        accepted, rejected = AckType.ACCEPT in kinds, AckType.REJECT in kinds
        how = "rejected" if rejected else f"delivered {len(deliveries)} times"
        found.saw(accepted, f"{one}: {how}, and never accepted{_crash(seen)}", "records")
        found.stuck = found.stuck or not (accepted or rejected)


def _crash(seen: ScenarioResult) -> str:
    codes = [str(one.code) for one in seen.crashed]
    return f" (the program had ended with code {', '.join(codes)})" if codes else ""


def _ack(each: Delivery) -> str:
    kind = each.kind.name.lower() if each.kind is not None else "nothing"
    return f"{kind} sent {_when(each)}"


def _when(each: Delivery) -> str:
    return f"{each.acked - each.at:.3f} s after delivery {each.count}"


def _judge_write(
    found: Finding, one: Sent, each: Delivery, written: Mapping[str, float], what: str
) -> None:
    at, said = written.get(one.key, math.inf), "no write about it was confirmed"
    if math.isfinite(at):
        said = f"the write about it was confirmed {at - each.acked:.3f} s later"
    found.saw(at <= each.acked, f"{one}: {_ack(each)}, and {said}", what)
