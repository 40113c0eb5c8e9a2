"""Both sides of every check as data, the page made of them, and hunts that can come back empty."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS
from reports.reading import parse
from tests.test_results import document
from tools.detection import campaign, page, real
from tools.detection.campaign import Outcome, Plan
from tools.detection.certified import accepted
from tools.detection.hunting import (
    cases_of,
    checks,
    control,
    hunt_for,
    hunt_mutant,
    playable,
    rejection,
    targets,
)
from tools.detection.playing import HONEST, play
from tools.detection.record import Record, Rejection, merged
from tools.falsified import RECORD as FALSIFIED

ROOT = Path(__file__).parents[1]
SUBSET = "test_ack_types.py", "test_lck_expiry.py", "test_ses_epochs.py", "test_acq_crowd.py"
"""Files whose checks have everything: locks that run out, waiting fetches, many members at once."""

ACCEPTED = "suites/broker/test_ack_types.py::test_accepted_record_never_comes_back"
EXPIRED = "suites/broker/test_lck_expiry.py::test_expired_lock_frees_the_records"


@pytest.fixture(scope="module")
def record() -> Record:
    """The record in the repository."""
    return Record.load()


def lies() -> dict[str, dict[str, list[str]]]:
    """Return the lies in front of real Kafka that made each check fail, by rule."""
    found: dict[str, dict[str, list[str]]] = json.loads(FALSIFIED.read_text("utf-8"))["checks"]
    return found


def test_every_mutant_is_dead(record: Record) -> None:
    """Each mutant was killed by a check that reported a rule broken which the mutant does break."""
    assert [name for name in MUTANTS if not any(record.killers(name))] == []


def test_every_check_has_an_accepting_example(record: Record) -> None:
    """Each check that can be played was seen accepting the honest broker, every rule exercised."""
    unseen = [check for check in playable() if check not in record.accepts]
    hollow = [
        check
        for check, side in record.accepts.items()
        if check in checks() and not all(side.evidence.get(r) for r in checks()[check].rules)
    ]

    assert unseen == [], UPDATE
    assert hollow == []


def test_every_check_has_a_rejecting_example(record: Record) -> None:
    """Each check was seen rejecting a broken broker by one of its own rules, and says how."""
    seen = lies()
    bare = [
        check
        for check in playable()
        if not record.rejects.get(check) and not (check.startswith(OUTSIDE) and seen.get(check))
    ]
    strange = [
        (check, one)
        for check, found in record.rejects.items()
        if check in checks()
        for one in found.values()
        if one.rule not in checks()[check].rules or not one.sentence
    ]

    assert bare == [], UPDATE
    assert strange == []


def test_checks_out_of_reach_reject_lies_on_real_kafka() -> None:
    """A check that no reference broker can be played against was seen failing on a real one."""
    seen = lies()
    trusted = [check for check, one in checks().items() if not one.draft]

    assert [check for check in trusted if not cases_of(check) and not seen.get(check)] == []


def test_the_record_names_only_what_exists(record: Record) -> None:
    """A mutant, a lie or a check that is gone is evidence of nothing."""
    named = {target for found in record.rejects.values() for target in found}

    assert named <= set(targets())
    assert (record.accepts.keys() | record.rejects.keys()) <= checks().keys(), UPDATE


def test_page_and_badge_are_up_to_date(record: Record, tmp_path: Path) -> None:
    """What is published says what is recorded."""
    page.write(record, tmp_path)

    for name in (page.PAGE, page.BADGE, page.IMAGE):
        published = (page.DOCS / name).read_text(encoding="utf-8")
        wanted = (tmp_path / name).read_text(encoding="utf-8")
        # What kills real Kafka's mutants is learned one by one, and published from time to time.
        assert published.partition(real.TITLE)[0] == wanted.partition(real.TITLE)[0], UPDATE


OUTSIDE = (
    "suites/broker/test_adm_tools.py",
    "suites/broker/test_adm_console.py",
    "suites/broker/test_adm_other_tools.py",
    "suites/broker/test_dlq_settings.py::test_broker_settings_change",
    "suites/broker/test_dlv_throttled.py",
    "suites/broker/test_per_topic.py::test_cold_snapshot",
    "suites/broker/test_per_topic.py::test_log_is_pruned",
    "suites/broker/test_per_topic.py::test_persister_that_keeps_nothing",
)
"""Checks out of a reference broker's reach: they run Kafka's own tools, set quotas, wait for what a
share coordinator does from time to time, have brokers stamp records, or take their persister
away."""

UPDATE = (
    "run `python -m tools.detection --record`; for checks that no reference broker satisfies, "
    "`python -m tools.detection.certified RESULTS`"
)


DIGEST = f"""
from tools.detection.campaign import Outcome, Plan
from tools.detection.certified import accepted
from tools.detection.hunting import checks, control
names = [name for name in checks() if name.partition("::")[0].endswith({SUBSET!r})]
outcome = Outcome(plan=Plan(mutants=(), checks=names))
outcome.controls = {{name: control(name, SEED) for name in names}}
assert not outcome.troubled, outcome.troubled
print(outcome.digest)
"""


def digest(seed: int, hash_seed: int) -> str:
    """Return the digest of a subset, played in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", DIGEST.replace("SEED", str(seed))],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_same_seed_same_transcripts() -> None:
    """Two processes with one seed exchange the same frames; with another seed they do not.

    In full: `python -m tools.detection --json`, twice, and compare `run.digest`.
    """
    first = digest(seed=7, hash_seed=1)

    assert len(first) == 64
    assert digest(seed=7, hash_seed=2) == first
    assert digest(seed=8, hash_seed=1) != first


def test_cases_have_the_same_names_in_every_process() -> None:
    """No case is named after where an object lies in memory: its name decides its choices."""
    names = [case.name for check in playable() for case in cases_of(check)]
    assert [name for name in names if " at 0x" in name] == []


def test_honest_broker_is_accepted() -> None:
    """The honest broker satisfies a check, and what that rests on is counted."""
    found = control(EXPIRED, seed=3)

    assert found.acceptance is not None
    assert found.acceptance.evidence["LCK-01"]["assertions"] > 0
    assert (found.trouble, found.reachable) == ("", True)


def test_mutant_is_killed_by_its_rule() -> None:
    """A kill names check, rule, seed and the check's own sentence."""
    [(check, seen)] = hunt_mutant("locks-never-end", 1, [(EXPIRED, 1)], full=False)

    assert (check, seen.rule, seen.kills) == (EXPIRED, "LCK-01", True)
    assert seen.sentence


def test_check_that_sees_nothing_kills_nothing() -> None:
    """A broken broker that a check has no eyes for is not rejected by it."""
    assert rejection("reference:locks-never-end", ACCEPTED, 1) is None


def test_check_that_fails_anyway_kills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that rejects the honest broker, too, has rejected nothing."""
    wrong = play("reference:accept-releases", cases_of(ACCEPTED)[0], 1)
    monkeypatch.setattr("tools.detection.hunting._honest", lambda *_: wrong)

    assert wrong.broken is not None
    assert rejection("reference:accept-releases", ACCEPTED, 1) is None


def test_check_rejects_a_lie() -> None:
    """A check that no mutant provokes is shown a lie in front of the honest broker."""
    lie = lies()[ACCEPTED]["ACK-01"][0]
    [(check, seen)] = hunt_for(ACCEPTED, 1, [(f"altered:{lie}@{HONEST}", 1)], [])

    assert (check, seen.rule, seen.mutant) == (ACCEPTED, "ACK-01", "")
    assert lie in ALTERATIONS


def outcome(mutants: Sequence[str] = (), names: Sequence[str] = ()) -> Outcome:
    """Return what came of a plan of which nothing was found."""
    return Outcome(plan=Plan(mutants=mutants, checks=names))


def test_survivors_and_blind_checks_are_named() -> None:
    """What nothing was found about is alive, or blind; what was found the wrong way, too."""
    found = outcome(["locks-never-end"], [ACCEPTED, EXPIRED])
    wrong = Rejection(target="reference:locks-never-end", seed=1, rule="ACK-01", sentence="x")
    found.record.reject(ACCEPTED, wrong)

    assert found.alive == ["locks-never-end"]
    assert found.blind == [EXPIRED]


def test_words_choose_mutants_and_checks() -> None:
    """A word is a mutant's name, an area, a rule, or a part of a check's name."""
    plan = campaign.everything()

    assert campaign.matching(plan, "locks-never-end") == (["locks-never-end"], [])
    mutants, names = campaign.matching(plan, "lck-01")
    assert "locks-never-end" in mutants
    assert EXPIRED in names
    assert campaign.matching(plan, "test_accepted_record") == ([], [ACCEPTED])
    assert campaign.matching(plan, "nonsense") == ([], [])


def test_record_survives_a_round_trip(record: Record, tmp_path: Path) -> None:
    """What is written is read again, and what is newer wins."""
    file = tmp_path / "detection.json"
    newer = Rejection(target="reference:locks-never-end", seed=9, rule="LCK-01", sentence="new")
    changed = Record()
    changed.reject(EXPIRED, newer)

    merged([record, changed]).save(file)
    again = Record.load(file)

    assert again.rejects[EXPIRED][newer.target] == newer
    assert again.accepts == record.accepts


def detect(*words: str) -> tuple[int, str, str]:
    """Run the command line; return exit code and what it printed on each stream."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.detection", *words],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_command_line(tmp_path: Path) -> None:
    """One mutant is hunted, JSON comes alone, page and badge are beside it, the exit code is 0."""
    code, said, _ = detect("--only", "locks-never-end", "-n", "1", "--json", "--out", str(tmp_path))
    told: dict[str, Any] = json.loads(said)

    assert (code, told["run"]["exit_code"], told["alive"]) == (0, 0, [])
    assert told["summary"]["killed"] == 1
    assert "LCK-01" in told["mutants"]["locks-never-end"]["killed_by"].values()
    assert {"detection.json", page.PAGE, page.BADGE, page.IMAGE} == {
        file.name for file in tmp_path.iterdir()
    }


def test_unknown_words_are_wrong_usage() -> None:
    """A word that means nothing ends with one sentence and exit code 2."""
    code, _, said = detect("--only", "there-is-no-such-thing")

    assert code == 2
    assert "no mutant, area, rule or check" in said


def test_certifications_are_accepting_examples() -> None:
    """A check all of whose rules held in a certification has accepted that broker, and no other."""
    whole = document()
    (judged, _), (one, *_) = whole["requirements"], whole["requirements"][0]["checks"]

    def rule(name: str, **verdicts: str) -> dict[str, Any]:
        seen = [
            one | {"check": f"test_x.py::{check}[1]", "verdict": v} for check, v in verdicts.items()
        ]
        found: dict[str, Any] = judged | {"id": name, "evidence": {"assertions": 2}, "checks": seen}
        return found

    rules = [rule("ACK-01", test_a="pass", test_b="pass"), rule("ACK-02", test_b="unknown")]
    results = whole | {"requirements": rules}

    found = accepted(parse(results), ["test_x.py::test_a", "test_x.py::test_b"]).accepts

    assert list(found) == ["test_x.py::test_a"]
    assert found["test_x.py::test_a"].evidence == {"ACK-01": {"assertions": 2}}
    assert accepted(parse(results), []).accepts == {}
