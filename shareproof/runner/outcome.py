"""From what a check raised to what it observed: one observation per rule, with the blame in it.

The mapping is the heart of "never cry wolf". Only a broken rule is a ``fail``. An outcome that
stayed open is ``unknown``, what this target cannot be asked is ``out of reach``, and whatever the
harness did not expect is its own ``error``.

A check that could not decide has a second try: alone, when all other checks are done. An
``unknown`` often says no more than that the machine was too busy for a deadline. Alone the check
has the machine to itself, so an ``unknown`` that is left is one to look at. The same goes for a
check that was broken into, or whose worker died. ``fail`` is never retried, nor what the ledger
expects.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import pytest

from fixtures.clients.adapter import Refused
from fixtures.wire.connection import CallFailed
from fixtures.wire.frame import Transcript
from spec.plain import from_plain, to_plain
from spec.verdict import (
    EnvironmentFault,
    Observation,
    OutOfReach,
    Stalled,
    Undecided,
    Verdict,
    Violation,
)
from suites.broker.observer import outlived, strained
from suites.judge import Judge, Vacuous

PROPERTY = "shareproof"  # name of the report property that carries a check's observations
HUNG = "the check hung, and was broken into"  # begins the reason of a check that was broken into


BLAME: tuple[tuple[type[BaseException], tuple[Verdict, str]], ...] = (
    (AssertionError, (Verdict.FAIL, "")),
    (pytest.skip.Exception, (Verdict.VACUOUS, "the check was skipped: ")),
    (OutOfReach, (Verdict.OUT_OF_REACH, "")),
    (Undecided, (Verdict.UNKNOWN, "")),
    (Refused, (Verdict.UNKNOWN, "a call that the check needs was refused: ")),
    (CallFailed, (Verdict.UNKNOWN, "no response: ")),
    (EnvironmentFault, (Verdict.ERROR, "environment: ")),
    (BaseException, (Verdict.ERROR, "harness: {kind}: ")),
)
"""Whose fault an exception is, first match first: verdict, and what to say before its text."""


def observe(
    check: str,
    judge: Judge,
    error: BaseException | None,
    seconds: float,
    refusal: str = "",
    *,
    throttled: str = "",
) -> list[Observation]:
    """Return what a check saw of each of its rules; ``error`` ended it, if anything did.

    What the target does not let this user do (``refusal``) explains the error. What a quota of the
    target slows down (``throttled``) explains what stayed open; a violation stays open with it, as
    a broken broker may throttle, too.
    """
    error = cause_of(error)
    if error and (refusal or throttled) and not isinstance(error, OutOfReach):
        broke = isinstance(error, AssertionError) and not refusal
        error = Undecided(f"{throttled}: {error}") if broke else OutOfReach(refusal or throttled)
    if isinstance(error, Stalled) and judge.rules:
        error = Violation((*judge.unexercised(), judge.rules[-1])[0], str(error), error.witness)
    other = [error.rule] if isinstance(error, Violation) else []
    found = []
    for rule in dict.fromkeys([*judge.rules, *other]):
        evidence = dict(judge.evidence(rule))
        verdict, reason = _verdict(rule, error, bool(evidence))
        proof = error.witness if isinstance(error, Violation) else ()
        found.append(
            Observation(
                rule=rule,
                check=check,
                verdict=verdict,
                reason=reason,
                evidence=evidence,
                witness=tuple(map(str, proof)) if verdict is Verdict.FAIL else (),
                seconds=round(seconds, 3),
                situations=judge.situations if evidence else (),
            )
        )
    return found


def besides(check: str, judge: Judge, error: BaseException | None) -> list[Observation]:
    """Return what a check's end showed of rules that it does not name, if it was about such."""
    leaves = list(_leaves(error)) if error else []
    if not all(isinstance(leaf, Violation) for leaf in leaves):
        return []
    failed = [observe(check, Judge(()), leaf, 0.0) for leaf in leaves]
    rules = judge.evidence_besides()
    return [one for each in failed for one in each] + [
        Observation(rule=rule, check=check, verdict=Verdict.PASS, evidence=counted)
        for rule, counted in rules.items()
        if counted
    ]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def broken(
    check: str, rules: Iterable[str], sentence: str, verdict: Verdict = Verdict.ERROR
) -> list[Observation]:
    return [Observation(rule=rule, check=check, verdict=verdict, reason=sentence) for rule in rules]


def pack(observations: Sequence[Observation]) -> str:
    return json.dumps([to_plain(observation) for observation in observations])


def unpack(text: str) -> list[Observation]:
    return [from_plain(Observation, raw) for raw in json.loads(text)]


def _verdict(rule: str, error: BaseException | None, exercised: bool) -> tuple[Verdict, str]:
    if error is None or isinstance(error, Vacuous):
        silent = "the check ended without putting this rule to the test"
        return (Verdict.PASS, "") if exercised else (Verdict.VACUOUS, silent)
    if isinstance(error, Violation):
        if error.rule == rule:
            return Verdict.FAIL, error.sentence
        return Verdict.UNKNOWN, f"the check stopped when {error.rule} broke: {error.sentence}"
    verdict, prefix = next(blame for kind, blame in BLAME if isinstance(error, kind))
    text = str(error).strip() or type(error).__name__
    reason = text.split("\n\n", 1)[0][:1000]
    return verdict, prefix.format(kind=type(error).__name__) + reason


def cause_of(error: BaseException | None) -> BaseException | None:
    """Look inside a task group's exceptions: a violation outranks what its siblings died of."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [cause_of(inner) for inner in error.exceptions]
    return next((leaf for leaf in leaves if isinstance(leaf, Violation)), leaves[0])


def left_open(error: BaseException | None, kept: Iterable[object]) -> BaseException | None:
    """Return what ended a check of brokers: no violation if a long lock may have ended before."""
    frames = [one for one in kept if isinstance(one, Transcript)]
    cause = cause_of(error)
    if isinstance(cause, Violation) and (ended := outlived(frames)):
        return Undecided(f"{ended}, which may explain it: {error}")
    if isinstance(cause, Violation | Undecided) and (limit := strained(frames)):
        return cause if isinstance(cause, OutOfReach) else OutOfReach(f"{limit}: {error}")
    return error


AGAIN = "shareproof-again"  # name of the report property of a check that is to be played once more
CHOSEN = pytest.StashKey[frozenset[str]]()
"""The checks that are played once more, as soon as the first tries are over."""

NOTE = "undecided; played once more when the other checks are done"


def wants_second_try(config: pytest.Config, troubled: Iterable[Observation]) -> bool:
    first = CHOSEN not in config.stash and not config.getoption("once")
    open_ = [one.verdict is Verdict.UNKNOWN or HUNG in one.reason for one in troubled]
    return first and bool(open_) and all(open_)


def with_second_try(first: Observation, second: Observation) -> Observation:
    reason = second.reason
    if second.verdict is Verdict.PASS:
        reason = f"passed on the second try; the first was {first.verdict}: {first.reason}"
    return replace(second, reason=reason, first=first)


def play_again(session: pytest.Session, chosen: Collection[str]) -> None:
    """Play some checks again, one after the other: in this process, or on a single new worker."""
    session.config.stash[CHOSEN] = frozenset(chosen)
    distributed = session.config.pluginmanager.getplugin("dsession")
    if distributed:
        # Have pytest-xdist begin once more, with one worker; a check that kills it kills not us.
        session.config.option.tx = ["popen"]
        distributed.nodemanager.teardown_nodes()
        distributed.shuttingdown = False
        distributed.pytest_sessionstart(session)
        distributed.pytest_runtestloop()
        return
    items = [item for item in session.items if item.nodeid in chosen]
    for item, following in zip(items, [*items[1:], None], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
