"""Records that stop coming are told from a machine that is too slow, by a bystander."""

from __future__ import annotations

from random import Random

import pytest

from fixtures import virtual
from fixtures.clients.member import release
from fixtures.virtual.world import reference_world
from fixtures.wire.frame import Transcript
from shareproof.runner.outcome import observe
from spec.model.leader import Leader
from spec.verdict import Stalled, Undecided, Verdict, Violation
from suites.broker.share import world
from suites.judge import Judge


async def _release_and_acquire(target: str) -> None:
    """Acquire a record, release it, and acquire it again."""
    async with (
        reference_world(target, brokers=1, properties={}, seed=1) as here,
        world(here.info, Random(1), [Transcript()], here.schemas) as share,
    ):
        consumer = await (await share.queue(1)).consumer()
        await consumer.acquire(1)
        await consumer.acked(release(0))
        await consumer.acquire(1)


def test_what_comes_is_no_matter() -> None:
    virtual.run(_release_and_acquire("reference"))


def test_a_partition_that_stops_is_no_slow_machine() -> None:
    with pytest.raises(Stalled, match="a new topic and group on the same broker went on"):
        virtual.run(_release_and_acquire("reference:a-release-stops-the-partition"))


def test_nothing_is_proved_where_nobody_gets_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Leader, "plan", lambda *_: [])
    with pytest.raises(Undecided) as caught:
        virtual.run(_release_and_acquire("reference"))
    assert not isinstance(caught.value, Stalled)


def test_the_rule_that_was_next_is_broken() -> None:
    judge = Judge(["ACK-01", "ACK-02", "ACK-03"])
    judge["ACK-01"].holds(True, "fine")

    seen = {one.requirement: one for one in observe("check", judge, Stalled("nothing came"), 0.0)}

    assert seen["ACK-02"].verdict is Verdict.FAIL
    assert seen["ACK-02"].reason == "nothing came"
    assert {seen["ACK-01"].verdict, seen["ACK-03"].verdict} == {Verdict.UNKNOWN}
    for rule in judge.rules:
        judge[rule].holds(True, "fine")
    last = observe("check", judge, Stalled("nothing came"), 0.0)[-1]
    assert (last.requirement, last.verdict) == ("ACK-03", Verdict.FAIL)


def test_a_quota_leaves_open_what_it_may_have_caused() -> None:
    judge, slowed = Judge(["ACK-01"]), "the target throttles ShareFetch, by a quota"

    def seen(error: Exception) -> tuple[Verdict, str]:
        [one] = observe("check", judge, error, 0.0, throttled=slowed)
        return one.verdict, one.reason

    assert seen(Undecided("nothing came")) == (Verdict.OUT_OF_REACH, slowed)
    assert seen(Stalled("nothing came")) == (Verdict.OUT_OF_REACH, slowed)
    expected = f"{slowed}: ACK-01: expected 1, got 2"
    assert seen(Violation("ACK-01", "expected 1, got 2")) == (Verdict.UNKNOWN, expected)
