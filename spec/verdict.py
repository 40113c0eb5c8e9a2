"""Verdicts and the evidence they rest on: the boundary between checks and reports.

One rule gets one verdict. A check that ran on nothing is *vacuous*, a check that could not
decide is *unknown*, a check that this target cannot be asked is *out of reach*, and none of them is
ever counted as a pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """The seven verdicts of a rule, worst last in ``SEVERITY``."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    UNSUPPORTED = "unsupported"
    OUT_OF_REACH = "out of reach"
    VACUOUS = "vacuous"
    UNKNOWN = "unknown"
    FAIL = "fail"
    ERROR = "error"


SEVERITY = tuple(Verdict)
"""Verdicts from best to worst. Several checks of one rule give the rule the worst of theirs."""


NOT_PLAYED = "not played, since "
"""Begins the reason of what was undecided at once on a broker that hangs; why it does follows."""


class Violation(AssertionError):
    """The implementation under test broke a rule; carries the witness that proves it."""

    def __init__(self, rule: str, sentence: str, witness: tuple[str, ...] = ()) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule
        self.sentence = sentence
        self.witness = witness


class Undecided(Exception):
    """A check could not decide: an outcome stayed indeterminate, or a time budget ran out."""


class Stalled(Undecided):
    """Records stopped coming, and others of the same broker still came: a rule is broken by that.

    Which rule, the check decides: the next that it would have put to the test.
    """

    def __init__(self, sentence: str, witness: tuple[str, ...] = ()) -> None:
        super().__init__(sentence)
        self.witness = witness


class OutOfReach(Undecided):
    """This target cannot be asked, and why: the rule is `out of reach`, not held against it.

    Not for what failed to be decided: that is :class:`Undecided`.
    """


class EnvironmentFault(Exception):
    """The environment failed, not the implementation: a broker did not start, a port was taken."""


class MixedTargets(EnvironmentFault):
    """Histories of several targets were to be judged by the ledger of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one check saw of one rule. ``evidence`` counts named events, such as redeliveries.

    ``situations`` names those in which the rule was put to the test, if it was.

    ``excused`` marks a ``vacuous`` of a rule that the run was not there to exercise. ``first`` is
    what the first try saw, where the check was played twice. ``excuses`` counts the cases in a
    history that did not put the rule to the test, by what may have happened meanwhile.
    """

    rule: str
    check: str
    verdict: Verdict
    reason: str = ""
    evidence: dict[str, int] = field(default_factory=dict)
    witness: tuple[str, ...] = ()
    seconds: float = 0.0
    excused: bool = False
    first: Observation | None = None
    excuses: dict[str, int] = field(default_factory=dict)
    situations: tuple[str, ...] = ()
