"""Campaigns: hunts that can come back empty, and a command line that says so."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fixtures.mutants import MUTANTS
from fixtures.proxies.alterations import ALTERATIONS
from reports import evidence
from reports.evidence import Entry, read
from reports.reading import parse
from reports.results import Results
from shareproof.runner.inventory import read_checks
from tests.shell import python
from tests.test_results import document
from tools.campaign import alterations, reference, repeats
from tools.campaign.__main__ import SUBJECTS, main
from tools.campaign.hunting import (
    again,
    cases_of,
    checks,
    control,
    hunt_for,
    hunt_mutant,
    kills,
    playable,
    rejection,
)
from tools.campaign.options import Options, chosen_mutants
from tools.campaign.player import HONEST, play
from tools.campaign.record import Keeper
from tools.campaign.reference import Plan, Seen

ROOT = Path(__file__).parents[1]
SUBSET = "test_ack_types.py", "test_lck_expiry.py", "test_ses_epochs.py", "test_acq_crowd.py"
"""Files whose checks have everything: locks that run out, waiting fetches, many members at once."""

ACCEPTED = "suites/broker/test_ack_types.py::test_accepted_record_never_comes_back"
EXPIRED = "suites/broker/test_lck_expiry.py::test_expired_lock_frees_the_records"


DIGEST = f"""
from tools.campaign.hunting import checks, control
from tools.campaign.reference import Plan, Seen
from tests.test_results import document
names = [name for name in checks() if name.partition("::")[0].endswith({SUBSET!r})]
seen = Seen(plan=Plan(mutants=(), checks=names))
seen.controls = {{name: control(name, seed=7) for name in names}}
assert not seen.troubled, seen.troubled
print(seen.digest)
"""


def digest(hash_seed: int) -> str:
    """Return the digest of a subset, played in a process of its own."""
    done = python("-c", DIGEST, environment={"PYTHONHASHSEED": str(hash_seed)})
    done.check_returncode()
    return done.stdout.strip()


def test_same_seed_same_transcripts() -> None:
    """Two processes with one seed exchange the same frames; with another seed they do not.

    In full: `python -m tools.campaign --json`, twice, and compare `subjects.reference.digest`.
    """
    first = digest(hash_seed=1)

    assert len(first) == 64
    assert digest(hash_seed=2) == first
    assert control(EXPIRED, seed=7).digest != control(EXPIRED, seed=8).digest


def test_cases_have_the_same_names_in_every_process() -> None:
    names = [case.name for check in playable() for case in cases_of(check)]
    assert [name for name in names if " at 0x" in name] == []


def test_honest_broker_is_accepted() -> None:
    found = control(EXPIRED, seed=3)

    assert found.evidence.keys() == set(checks()[EXPIRED].rules)
    assert all(counted["assertions"] > 0 for counted in found.evidence.values())
    assert (found.trouble, found.reachable) == ("", True)


def test_mutant_is_killed_by_its_rule() -> None:
    [seen] = hunt_mutant("locks-never-end", 1, [(EXPIRED, 1)], full=False)

    assert (seen.check, seen.rule, kills(seen)) == (EXPIRED, "LCK-01", True)
    assert seen.reason
    assert again(seen) == [seen]


def test_check_that_sees_nothing_kills_nothing() -> None:
    assert rejection("reference:locks-never-end", ACCEPTED, 1) is None


def test_check_that_fails_anyway_kills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = play("reference:accept-releases", cases_of(ACCEPTED)[0], 1)
    monkeypatch.setattr("tools.campaign.hunting._honest", lambda *_: wrong)

    assert wrong.broken is not None
    assert rejection("reference:accept-releases", ACCEPTED, 1) is None


def test_check_rejects_an_alteration() -> None:
    name = next(
        one.name for one in read() if (one.kind, one.check) == (evidence.ALTERATION, ACCEPTED)
    )
    [seen] = hunt_for(ACCEPTED, 1, [(f"altered:{name}@{HONEST}", 1)], [])

    assert (seen.check, seen.rule, seen.kind) == (ACCEPTED, "ACK-01", evidence.ALTERATION)
    assert seen.name == name
    assert name in ALTERATIONS


def seen_of(mutants: Sequence[str] = (), names: Sequence[str] = ()) -> Seen:
    """Return what came of a plan of which nothing was found."""
    return Seen(plan=Plan(mutants=mutants, checks=names))


def test_survivors_and_blind_checks_are_named() -> None:
    found = seen_of(["locks-never-end"], [ACCEPTED, EXPIRED])
    wrong = Entry(
        kind=evidence.REFERENCE_MUTANT,
        name="locks-never-end",
        rule="ACK-01",
        check=ACCEPTED,
        verdict="fail",
        release=evidence.REFERENCE,
        date="",
        seed=1,
        reason="x",
    )
    found.rejections.append(wrong)

    assert found.alive == ["locks-never-end"]
    assert found.blind == [EXPIRED]


def test_words_choose_mutants_and_checks() -> None:
    plan = reference.everything()

    assert reference.matching(plan, "locks-never-end") == (["locks-never-end"], [])
    mutants, names = reference.matching(plan, "lck-01")
    assert "locks-never-end" in mutants
    assert EXPIRED in names
    assert reference.matching(plan, "test_accepted_record") == ([], [ACCEPTED])
    assert reference.matching(plan, "nonsense") == ([], [])


def test_command_line() -> None:
    words = ("--only", "locks-never-end", "-n", "1", "--json")
    done = python("-m", "tools.campaign", *words)
    told: dict[str, Any] = json.loads(done.stdout)
    found = told["subjects"]["reference"]

    assert (done.returncode, told["run"]["exit_code"], found["alive"]) == (0, 0, [])
    assert found["summary"]["killed"] == 1
    assert "LCK-01" in found["mutants"]["locks-never-end"]["killed_by"].values()
    assert {one["name"] for one in told["entries"]} == {"locks-never-end"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--only", "there-is-no-such-thing"), "no mutant, alteration, area, rule or check"),
        (("nonsense",), "there are reference, alterations,"),
        (("check",), "check needs --only"),
        (("kafka", "--only", "there-is-no-such-thing"), "no mutant"),
        (("clients", "--only", "there-is-no-such-thing"), "no mutant"),
        (("releases", "--only", "there-is-no-such-thing"), "no mutant"),
        (("alterations", "--only", "there-is-no-such-thing"), "no mutant"),
        (("repeat", "--only", "test_cut_connection"), "--client model"),
    ],
)
def test_wrong_usage(
    words: Sequence[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["campaign", *words])
    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_every_entry_can_be_played_again() -> None:
    owners = Counter(
        sum(subject.owns(one) and subject.replay is not None for subject in SUBJECTS.values())
        for one in read()
    )
    assert owners == {1: len(read())}


def test_checks_without_evidence_are_pending() -> None:
    keeper = Keeper(record=False)
    both = [checks()[ACCEPTED], checks()[EXPIRED]]
    assert alterations.pending(Options(keeper=keeper), both) == []
    keeper.known = [one for one in keeper.known if one.check != EXPIRED]
    assert alterations.pending(Options(keeper=keeper), both) == [checks()[EXPIRED]]


def test_mutants_of_kafka_are_chosen_by_their_rules() -> None:
    def chosen(words: Sequence[str]) -> list[str]:
        return chosen_mutants(words, MUTANTS, read_checks())

    assert chosen(["lock-a-third"]) == ["lock-a-third"]
    assert "lock-never-expires" in chosen(["LCK-01"])
    assert "lock-never-expires" in chosen(["test_expired_lock_frees"])


def test_verdicts_that_differ_are_named() -> None:
    whole = document()
    judged = whole["requirements"][0]

    def run(**verdicts: str) -> Results:
        rules = [
            judged | {"id": name.replace("_", "-"), "verdict": v} for name, v in verdicts.items()
        ]
        return parse(whole | {"requirements": rules})

    good, bad = run(ACK_01="pass", ACK_02="pass"), run(ACK_01="pass", ACK_02="fail")
    assert repeats.differing([good, bad, run(ACK_01="pass")]) == {
        "ACK-02": {"pass": 1, "fail": 1, "missing": 1}
    }
