"""No rule forbids an obvious repair of what a finding describes."""

import pytest

from fixtures.reference.mutants import REPAIRS
from tools.campaign.hunting import cases_of, checks, playable
from tools.campaign.player import HONEST, play

STATE = "PER-05,PER-14,PER-16,PER-17,PER-18,PER-33"
ASKED = {
    "the-later-of-equal-counts": STATE,
    "the-last-write-counts": STATE,
    "starts-are-stored-when-decided": "OFF-01,OFF-02,OFF-06,OFF-19,OFF-46,LAG-05,LAG-07,ADM-10",
}
"""The rules that a repair is near to."""


@pytest.mark.parametrize("name", REPAIRS)
def test_no_rule_forbids_a_repair(name: str) -> None:
    near = set(ASKED[name].split(","))
    cases = [
        case for check in playable() if near & {*checks()[check].rules} for case in cases_of(check)
    ]
    played = {case.name: play(f"{HONEST}:{name}", case, seed=1) for case in cases}
    assert {case: seen.observations for case, seen in played.items() if not seen.held} == {}
    assert near <= {seen.requirement for one in played.values() for seen in one.observations}
