"""Situations: set-ups bring about what they say, and checks do not notice."""

from __future__ import annotations

import inspect
import random

import pytest

from fixtures import virtual
from fixtures.virtual.world import reference_world
from shareproof.runner.outcome import observe
from spec.verdict import OutOfReach
from suites.broker.check import SETUPS, SITUATIONS, check
from suites.broker.share import Share, world
from suites.judge import AS_WRITTEN, Judge
from tools.campaign.hunting import cases_of, checks
from tools.campaign.player import HONEST, Case, play

SLOW = {"range across a gap"}
"""Met by checks that wait for compaction, which are not played here."""

ENOUGH = 370
"""Checks that there are at least to be played in other set-ups."""


def setup_of(case: Case) -> str:
    """Return the set-up of a case, empty where a check is not crossed."""
    return str(case.parameters.get("setup", ""))


CROSSED = {
    name: [case for case in cases_of(name) if setup_of(case)]
    for name in checks()
    if any(map(setup_of, cases_of(name)))
}


def test_enough_checks_are_crossed() -> None:
    assert len(CROSSED) >= ENOUGH
    for cases in CROSSED.values():
        names = list(dict.fromkeys(map(setup_of, cases)))
        assert names[0] == AS_WRITTEN
        assert 1 <= len(names[1:]) <= len(SETUPS)
        assert set(names[1:]) <= SETUPS.keys()


def test_setups_and_checks_meet_every_situation() -> None:
    seen: set[str] = set()
    for name in checks():
        if name in CROSSED or "_many.py" in name or "between" in name or "idle" in name:
            for case in cases_of(name)[:4]:
                seen |= {
                    met for one in play(HONEST, case, 1).observations for met in one.situations
                }
        if SITUATIONS.keys() - seen <= SLOW:
            break
    assert seen <= SITUATIONS.keys()
    assert SITUATIONS.keys() - seen <= SLOW


def test_a_check_of_old_has_one_situation() -> None:
    judge = Judge(["ACK-01"])
    judge.holds(True, "it is so")
    [seen] = observe("a check", judge, None, 0.0)
    assert seen.situations == (AS_WRITTEN,)


def test_what_was_not_put_to_the_test_met_nothing() -> None:
    [seen] = observe("a check", Judge(["ACK-01"]), ValueError("no"), 0.0)
    assert seen.situations == ()


def test_decorators_keep_the_arguments() -> None:
    @check("ACK-01", crossed="beside", meets="reload")
    async def nothing(share: object, judge: object, extra: int) -> None:
        raise AssertionError(share, judge, extra)

    assert list(inspect.signature(nothing).parameters) == ["share", "judge", "extra", "setup"]
    marks = [mark for mark in nothing.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert [getattr(value, "values", (value,))[0] for value in marks[0].args[1]] == [
        AS_WRITTEN,
        "beside",
    ]


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("test_accepted_record_never_comes_back", "accept-releases"),
        ("test_released_record_comes_again_counted_once_more", "release-does-nothing"),
    ],
)
def test_a_broken_broker_is_seen_in_each_setup(name: str, mutant: str) -> None:
    cases = CROSSED[f"suites/broker/test_ack_types.py::{name}"]
    noticed = {setup_of(case): play(f"{HONEST}:{mutant}", case, 1).broken for case in cases}
    assert len(noticed) == 3
    assert [setup for setup, broken in noticed.items() if broken is None] == []


def test_a_setup_out_of_reach_says_nothing_of_the_check() -> None:
    seen: list[str] = []

    @check("ACK-01", crossed="beside")
    async def fussy(share: Share, judge: Judge) -> None:
        seen.append(type(share).__name__)
        if len(seen) == 1:
            raise OutOfReach("needs topics of its own")
        judge.holds(True, "it is so")

    async def played() -> Judge:
        judge = Judge(["ACK-01"])
        async with (
            reference_world("reference", brokers=1, properties={}, seed=1) as here,
            world(here.info, random.Random(1), [], here.schemas) as share,
        ):
            await fussy(share=share, judge=judge, setup="beside")
        return judge

    [one] = observe("a check", virtual.run(played()), None, 0.0)
    assert seen == ["CrossedShare", "Share"]
    assert (one.verdict, one.situations) == ("pass", (AS_WRITTEN,))
