"""The sweep of a broker: its cases, its judges, and broken brokers that it has to see."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from fixtures.interface.names import REFERENCE_VERSION
from fixtures.reference.handlers.share import Sharing
from fixtures.targets import open_target, started
from fixtures.targets.broker import surprises
from shareproof.sweep.broker import Sweep, cases_of
from suites.broker.sweep.answers import answered, elements
from suites.broker.sweep.cases import RULES, Case
from suites.broker.sweep.scenes import Scene
from suites.sweep import Played, chosen

CASES = cases_of(REFERENCE_VERSION)

# The inputs by which people broke Kafka 4.4.0 in an afternoon, who knew none of our checks.
TRIED = (
    "IncrementalAlterConfigs.share.delivery.count.limit=blank-after",
    "AlterShareGroupOffsets.new.Topics.Partitions.PartitionIndex=-1",
    "IncrementalAlterConfigs.share.auto.offset.reset=by_zero",
    "ShareFetch.waiting.session-closed=plain",
    "ShareFetch.waiting.session-replaced=plain",
    "ShareAcknowledge.going-on.Topics.Partitions=halves",
    "ShareAcknowledge.going-on.Topics.Partitions=emptied-after",
    "AlterShareGroupOffsets.empty.Topics.Partitions.StartOffset=4611686018427387904",
    "ShareFetch.opening.BatchSize=-1",
    "ShareFetch.opening.MaxBytes=-1",
)


def test_cases_are_many_and_have_names() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 2000
    assert set(TRIED) <= set(names)
    assert all(fnmatchcase(name, name) and "," not in name for name in names)
    assert {case.api for case in chosen(CASES, ["DeleteGroups"], mark=".")} == {"DeleteGroups"}


def test_elements_of_requests_and_answers() -> None:
    scene = Scene()
    request = scene.request("AlterShareGroupOffsets", "empty")
    places = [keys for keys, _, _ in elements(request)]
    assert places == [("t0", 0), ("t0", 1), ("t1", 0)]
    part = {"partition_index": 0, "error_code": 3}
    topic = {"topic_name": "t0", "topic_id": 0, "partitions": [part, part | {"error_code": 0}]}
    assert list(answered({"responses": [topic]}, request)) == [(("t0", 0), 3), (("t0", 0), 0)]
    groups = [{"group_id": "g", "error_code": 69, "topics": []}]
    assert list(answered({"groups": groups}, scene.request("DescribeShareGroupOffsets", "empty")))


def test_exceptions_of_a_log() -> None:
    refused, fault = "2026-11-27T10:00:00,000 ERROR no", "2026-11-27T10:00:01,000 WARN oh (a.b.C)"
    trace = "\norg.apache.kafka.common.errors.InvalidRequestException: x\n\tat a.B.c(B.java:1)\n"
    caused = f"{trace}Caused by: java.lang.NullPointerException\n\tat a.B.d(B.java:2)\n"
    assert [one[:24] for one in surprises(f"{refused}{trace}{fault}{caused}")] == [fault[:24]]


def played(target: str, *words: str) -> Iterator[Played]:
    cases: list[Case] = chosen(CASES, words, mark=".")
    assert cases
    with started(open_target(target)) as broker:
        for one in Sweep(broker, seed=1).play(cases, lambda *_: None):
            yield one.played


def broken(target: str, *words: str) -> set[str]:
    return {
        finding.rule for one in played(target, *words) for finding in one.findings if finding.broken
    }


def test_the_reference_broker_passes_a_slice() -> None:
    slices = ("*.*@last=-1", "*.*=halves", "*.share.delivery.count.limit=*", "*.waiting.*=plain")
    found = list(played("reference", *slices))
    assert [one for one in found if not one.is_clear] == []
    judged = {finding.rule for one in found for finding in one.findings}
    assert judged == {*RULES} - {"ADM-113"}, "it has no log"


@pytest.mark.parametrize(
    ("mutant", "word", "rule"),
    [
        ("huge-offsets-are-server-errors", "ShareAcknowledge.*.LastOffset=9*", "ADM-110"),
        ("accept-releases", "ShareAcknowledge.going-on.Topics=reversed", "ADM-110"),
        ("alterations-do-nothing", "AlterShareGroupOffsets.empty.Topics=reversed", "ADM-110"),
        ("closing-keeps-locks", "ShareFetch.closing.Topics=reversed", "ADM-112"),
        ("lock-duration-is-the-brokers", "*.share.delivery.count.limit=as-it-is", "ADM-114"),
    ],
)
def test_a_broken_broker_is_seen(mutant: str, word: str, rule: str) -> None:
    assert rule in broken(f"reference:{mutant}", word)


def test_results_that_are_left_out_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Sharing._acknowledge_all

    def without_the_last(self: Sharing, *given: Any) -> Any:
        return dict(list(honest(self, *given).items())[:-1])

    monkeypatch.setattr(Sharing, "_acknowledge_all", without_the_last)
    assert broken("reference", "ShareAcknowledge.closing.Topics=reversed") == {"ADM-111"}


def test_fetches_that_outlive_their_session_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sharing, "_over", lambda _self, call, _session: call.link.lost.is_set())
    assert broken("reference", "ShareFetch.waiting.session-replaced=plain") == {"ADM-115"}
