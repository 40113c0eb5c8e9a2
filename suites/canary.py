"""The canary: a check that must fail in every run, so that all the others can be believed.

It goes the way of all checks, from the marker to the recorder, and is shown to nobody as a failure.
A run whose canary came out as anything else has a fault, and ends with exit code 3.
"""

from collections.abc import Sequence

import pytest

from spec.verdict import NOT_PLAYED, Observation, Verdict

CANARY = "CANARY"  # What stands in place of a rule; no rule will ever be called that.
EXCUSE = "the canary: in every run one check must fail, so that all others are believed"


def is_canary(item: pytest.Item) -> bool:
    return item.get_closest_marker("canary") is not None


def told(seen: Sequence[Observation]) -> Observation | None:
    failed = [one for one in seen if one.verdict is Verdict.FAIL]
    return next(iter(failed or reversed(seen)), None)


def fault(seen: Sequence[Observation]) -> str:
    said = told(seen)
    if said is None:
        return "harness: the canary, a check that must fail, never reported"
    if said.verdict is Verdict.FAIL or said.reason.startswith(NOT_PLAYED):
        return ""  # or else another check has failed, since the broker hangs
    why = f": {said.reason}" if said.reason else ""
    return f"harness: the canary must fail, and came out as {said.verdict}{why}"
