"""The sweep: its codes are those of the definitions, and its judge tells right from wrong."""

from __future__ import annotations

import re
import sys
import zipfile
from typing import Any
from uuid import UUID

import pytest

from fixtures.clients.handle import Settled
from fixtures.interface.names import REFERENCE_VERSION
from fixtures.machine.maven import clients_jar
from shareproof.sweep.run import Swept, observations, spread
from spec.verdict import Verdict
from suites.client.sweep.application import CaseRun
from suites.client.sweep.cases import DEFINED, OTHERS, Case, all_cases, chosen
from suites.client.sweep.rules import BEHIND, LOST, MOST, RATE, RECOVERS, ROW, TOLD_OF, judge
from suites.client.sweep.working import Played

TOPIC = UUID(int=7)
_CODE = re.compile(r"^ *// - (\w+) \(version", re.MULTILINE)


@pytest.mark.parametrize("api", ["ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"])
def test_codes_are_those_of_the_definition(api: str) -> None:
    with zipfile.ZipFile(clients_jar(REFERENCE_VERSION)) as jar:
        text = jar.read(f"common/message/{api}Response.json").decode()
    assert set(_CODE.findall(text)) == set(DEFINED[api])
    assert not set(DEFINED[api]) & set(OTHERS[api])


def test_names_are_unique_and_choose() -> None:
    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases)
    assert all(chosen(cases, [case.name]) == [case] for case in cases[::40])
    assert {case.api for case in chosen(cases, ["Metadata"])} == {"Metadata"}
    assert all("/9999/" in case.name for case in chosen(cases, ["*/9999/*"]))
    assert {case.api for case in cases} == set(DEFINED)


class Seen:
    """An exchange as the judge needs it."""

    def __init__(self, at: float, *, accepts: int | None = None, error: int = 0, **more: Any):
        batches = [] if accepts is None else [(accepts, 1)]
        part = {"partition_index": 0}
        acks = [{"first_offset": o, "last_offset": o, "acknowledge_types": [k]} for o, k in batches]
        self.api, self.node, self.number = more.get("api", "ShareAcknowledge"), 1, 1
        self.sent, self.responded, self.scripted = at, at + 0.01, more.get("scripted", "error")
        self.request = {
            "share_session_epoch": 3,
            "topics": [
                {"topic_id": TOPIC, "partitions": [part | {"acknowledgement_batches": acks}]}
            ],
        }
        error = error or more.get("code", 0)
        answered = {"topic_id": TOPIC, "partitions": [part | {"error_code": error}]}
        self.response = {"error_code": 0, "responses": [answered]}


def story(*seen: Seen, **fields: Any) -> CaseRun:
    """Return a story of a client that did nothing wrong, but for ``fields``."""
    plain: dict[str, Any] = {
        "accepted": {(0, 0): 0.5},
        "delivered": {(0, 0)},
        "produced": {(0, 0)},
        "settled": [],
        "told": [(1.0, "UNKNOWN_SERVER_ERROR")],
        "ended": 100.0,
        "recovered": 1.0,
        "exchanges": list(seen) or [Seen(1.0, accepts=0)],
    }
    return CaseRun(**plain | fields)


CASE = Case(name="ShareAcknowledge/top/9999/lasting", steps=(), owed=True, lasting=True)


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        (story(), ""),
        (story(Seen(0.1, accepts=0)), BEHIND),
        (story(Seen(1.0, accepts=5)), BEHIND),
        (story(delivered=set()), LOST),
        (
            story(
                Seen(1.0, accepts=0, error=5),
                settled=[Settled(topic="t", partition=0, offsets=(0,), error=None)],
            ),
            LOST,
        ),
        (story(*(Seen(1 + n / 100, scripted="x") for n in range(MOST + 1))), RATE),
        (story(*(Seen(1 + n / 30, code=5) for n in range(ROW + 2))), RATE),
        (story(*(Seen(1 + n / 30, scripted="x") for n in range(ROW + 2))), ""),
        (story(told=[]), TOLD_OF),
        (story(recovered=None, left="nothing came"), RECOVERS),
        (story(stuck="no reply to poll"), RECOVERS),
    ],
)
def test_the_judge(told: CaseRun, rule: str) -> None:
    assert [one.rule for one in judge(CASE, told) if one.broken] == ([rule] if rule else [])


def test_a_script_that_came_to_nothing_judges_nothing() -> None:
    assert judge(CASE, story(Seen(1.0, scripted=""))) == []


def test_what_cannot_be_decided_is_no_pass() -> None:
    fault, late = Played(case="a/b", fault="gone"), Played(case="a/c", undecided="slow")
    seen = observations([Swept(played=fault), Swept(played=late, first=fault)])
    assert [one.verdict for one in seen] == [Verdict.ERROR, Verdict.UNKNOWN]
    assert seen[1].first is not None


def swept(kind: str, *words: str) -> tuple[dict[str, Swept], list[str]]:
    """Play cases with a peculiar client; return what they showed by case, and the stages."""
    stages = []
    found = spread(
        (sys.executable, "-m", "tests.peculiar", kind),
        chosen(all_cases(), words),
        seed=1,
        brokers=1,
        watch=lambda stage, _many, _played: stages.append(stage),
    )
    return {one.played.case: one for one in found}, list(dict.fromkeys(stages))


def broken(one: Swept) -> list[str]:
    """Return the rules that a case broke, and nothing else that was wrong with it."""
    assert one.played.fault + one.played.undecided == ""
    return [each.rule for each in one.played.findings if each.broken]


def test_a_call_that_waits_for_the_end_of_an_error() -> None:
    name = "FindCoordinator/top/COORDINATOR_LOAD_IN_PROGRESS/lasting"
    found, stages = swept("patient", name)
    assert broken(found[name]) == []
    assert stages == ["cases"]


def test_a_case_that_ends_the_client() -> None:
    ends, beside = "ShareFetch/batch/count/three", "ShareFetch/batch/crc/three"
    found, stages = swept("mortal", ends, beside)
    assert broken(found[ends]) == [RECOVERS]
    assert broken(found[beside]) == []
    assert stages == ["cases", "once more", "alone"]
