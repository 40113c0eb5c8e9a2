"""The judge against whole histories: valid ones pass, and a single lie in one is mostly caught."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec.model.history import Step, refusals
from spec.model.partition import SharePartition
from spec.model.release import RELEASES, Release
from spec.model.settings import Settings, Slack
from tests.corrupted import EDITS, corruptions
from tests.generated import Story

SLACK = Slack(early_ms=1, late_ms=150)
PATIENT = settings(
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
RELEASE = st.sampled_from(list(RELEASES.values()))
SETTINGS = st.builds(
    Settings,
    lock_ms=st.just(200),
    delivery_limit=st.sampled_from((2, 3, 5, 10)),
    max_locks=st.sampled_from((5, 20, 2_000)),
    dead_letters=st.booleans(),
)
SEED = st.integers(0, 2**32)


def tell(seed: int, group: Settings, release: Release, lossy: float, overlap: float) -> list[Step]:
    """Return a valid history of about fifty steps."""
    return Story(Random(seed), group, release, lossy=lossy, overlap=overlap).run(50)


def refused(steps: list[Step], group: Settings, release: Release) -> list[str]:
    """Return what a fresh judge refuses of a history."""
    return refusals(SharePartition(settings=group, release=release, slack=SLACK), steps)


@pytest.mark.parametrize("lossy", [0.0, 0.15])
@pytest.mark.parametrize("overlap", [0.0, 1.0])
@PATIENT
@given(seed=SEED, group=SETTINGS, release=RELEASE)
def test_valid_histories_are_accepted(
    lossy: float, overlap: float, seed: int, group: Settings, release: Release
) -> None:
    steps = tell(seed, group, release, lossy, overlap)

    assert not refused(steps, group, release)


@PATIENT
@given(seed=SEED, group=SETTINGS, release=RELEASE)
def test_seeing_less_never_refuses_more(seed: int, group: Settings, release: Release) -> None:
    steps = tell(seed, group, release, 0.1, 0.5)
    looks = {"StartSeen", "StateSeen"}
    kept = [one for one in steps if type(one).__name__ not in looks or Random(seed).random() < 0.5]

    assert not refused(kept, group, release)


# What a lie is worth depends on the moment: an acknowledgement below the start offset is answered
# without error whoever sends it, and an entry of the durable state that nobody answered for may be
# missing. So each edit has the rate that it must at least be caught at, over 150 histories.
CAUGHT = {
    "count_raised": 0.85,
    "count_lowered": 0.9,
    "given_twice": 1.0,
    "wrong_holder": 0.65,
    "refused_wrongly": 0.75,
    "accepted_wrongly": 0.95,
    "redelivered": 0.95,
    "start_ahead": 0.95,
    "state_lost": 0.4,
    "state_changed": 0.8,
}


def rates(lossy: float, overlap: float, histories: int) -> dict[str, float]:
    """Return the share of corruptions of each kind that the judge refuses."""
    tried: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    for seed in range(histories):
        random = Random(seed)
        release = random.choice(list(RELEASES.values()))
        group = Settings(
            lock_ms=200,
            delivery_limit=random.choice((2, 3, 5)),
            max_locks=random.choice((5, 20, 2_000)),
        )
        steps = tell(seed, group, release, lossy, overlap)
        for name, bad in corruptions(steps, random):
            tried[name] += 1
            caught[name] += bool(refused(bad, group, release))
    found = {name: caught[name] / tried[name] for name in tried}
    return found | {"all": caught.total() / tried.total()}


def test_single_lies_are_caught() -> None:
    found = rates(0.0, 0.0, 150)
    weak = {name: rate for name, rate in found.items() if rate < CAUGHT.get(name, 0.85)}

    assert not weak
    assert set(CAUGHT) == {edit.__name__ for edit in EDITS}


def test_lies_are_caught_in_turmoil_too() -> None:
    assert rates(0.05, 0.5, 60)["all"] > 0.55


if __name__ == "__main__":
    for circumstances in ((0.0, 0.0), (0.05, 0.5), (0.15, 1.0)):
        print(circumstances, rates(*circumstances, 150))
