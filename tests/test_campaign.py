"""Campaigns: hunts that can come back empty, situations, and lists with one bad element."""

import json
import random
import sys
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures import virtual
from fixtures.interface.names import REFERENCE_VERSION
from fixtures.machine.maven import clients_jar
from fixtures.mutants import MUTANTS
from fixtures.proxies.alterations import ALTERATIONS
from fixtures.reference.mutants import MUTANTS as BROKERS
from fixtures.virtual import virtual_cluster
from fixtures.wire.frame import Frame, Transcript, decode_request, decode_response
from fixtures.wire.schema import SHARE_APIS, Schemas, StructSpec
from reports import evidence
from reports.evidence import Entry, read
from reports.reader import parse
from reports.results import Results
from shareproof.runner.inventory import read_checks
from shareproof.runner.outcome import observe
from spec.verdict import OutOfReach
from suites.broker.check import SETUPS, SITUATIONS, check
from suites.broker.env import Env, open_env
from suites.broker.many import LISTS, MANY, POSITIONS
from suites.judge import AS_WRITTEN, Judge
from tests.shell import python, without_extras
from tests.test_results import document
from tools.campaign import alterations, reference, repeats
from tools.campaign.__main__ import SUBJECTS, main
from tools.campaign.options import EvidenceStore, Options, chosen_mutants
from tools.campaign.player import HONEST, Case, play
from tools.campaign.reference import Plan, Seen
from tools.campaign.rejections import (
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
from tools.campaign.variants import accusations

ROOT = Path(__file__).parents[1]
SUBSET = "test_ack_types.py", "test_lck_expiry.py", "test_ses_epochs.py", "test_acq_crowd.py"
"""Files whose checks have everything: locks that run out, waiting fetches, many members at once."""

ACCEPTED = "suites/broker/test_ack_types.py::test_accepted_record_never_comes_back"
EXPIRED = "suites/broker/test_lck_expiry.py::test_expired_lock_frees_the_records"


DIGEST = f"""
from tools.campaign.rejections import checks, control
from tools.campaign.reference import Plan, Seen
from tests.test_results import document
names = [name for name in checks() if name.partition("::")[0].endswith({SUBSET!r})]
seen = Seen(plan=Plan(mutants=(), checks=names))
seen.controls = {{name: control(name, seed=7) for name in names}}
assert not seen.troubled, seen.troubled
print(seen.digest)
"""


def digest(hash_seed: int) -> str:
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


def test_every_entry_can_be_played_again_under_the_same_name() -> None:
    names = [case.name for check in playable() for case in cases_of(check)]
    assert [name for name in names if " at 0x" in name] == []
    owners = Counter(
        sum(subject.owns(one) and subject.replay is not None for subject in SUBJECTS.values())
        for one in read()
    )
    assert owners == {1: len(read())}
    store = EvidenceStore(record=False)
    both = [checks()[ACCEPTED], checks()[EXPIRED]]
    assert alterations.pending(Options(store=store), both) == []
    store.known = [one for one in store.known if one.check != EXPIRED]
    assert alterations.pending(Options(store=store), both) == [checks()[EXPIRED]]


def test_mutant_is_killed_by_its_rule_and_the_honest_broker_accepted() -> None:
    found = control(EXPIRED, seed=3)
    assert found.evidence.keys() == set(checks()[EXPIRED].rules)
    assert all(counted["assertions"] > 0 for counted in found.evidence.values())
    assert (found.trouble, found.reachable) == ("", True)
    [seen] = hunt_mutant("locks-never-end", 1, [(EXPIRED, 1)], full=False)
    assert (seen.check, seen.rule, kills(seen)) == (EXPIRED, "LCK-01", True)
    assert seen.reason
    assert again(seen) == [seen]
    assert rejection("reference:locks-never-end", ACCEPTED, 1) is None


def test_check_that_fails_anyway_kills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = play("reference:accept-releases", cases_of(ACCEPTED)[0], 1)
    monkeypatch.setattr("tools.campaign.rejections._honest", lambda *_: wrong)
    assert wrong.broken() is not None
    assert rejection("reference:accept-releases", ACCEPTED, 1) is None


def test_check_rejects_an_alteration() -> None:
    kept = (one.name for one in read() if (one.kind, one.check) == (evidence.ALTERATION, ACCEPTED))
    name = next(kept)
    [seen] = hunt_for(ACCEPTED, 1, [(f"altered:{name}@{HONEST}", 1)], [])
    assert (seen.check, seen.rule, seen.kind) == (ACCEPTED, "ACK-01", evidence.ALTERATION)
    assert (seen.name, name in ALTERATIONS) == (name, True)


def test_survivors_and_blind_checks_are_named() -> None:
    found = Seen(plan=Plan(mutants=["locks-never-end"], checks=[ACCEPTED, EXPIRED]))
    wrong = Entry(
        kind=evidence.REFERENCE_MUTANT,
        name="locks-never-end",
        rule="ACK-01",
        check=ACCEPTED,
        verdict="fail",
        release=evidence.REFERENCE,
        seed=1,
        reason="x",
    )
    found.rejections.append(wrong)
    assert (found.alive, found.blind) == (["locks-never-end"], [EXPIRED])


def test_words_choose_mutants_and_checks() -> None:
    plan = reference.everything()
    assert reference.matching(plan, "locks-never-end") == (["locks-never-end"], [])
    mutants, names = reference.matching(plan, "lck-01")
    assert "locks-never-end" in mutants
    assert EXPIRED in names
    assert reference.matching(plan, "test_accepted_record") == ([], [ACCEPTED])
    assert reference.matching(plan, "nonsense") == ([], [])
    inventory = read_checks()
    assert chosen_mutants(["lock-a-third"], MUTANTS, inventory) == ["lock-a-third"]
    for word in ("LCK-01", "test_expired_lock_frees"):
        assert "lock-never-expires" in chosen_mutants([word], MUTANTS, inventory)


def test_command_line() -> None:
    words = ("--only", "locks-never-end", "-n", "1", "--json")
    done = python("-m", "tools.campaign", *words)
    document: dict[str, Any] = json.loads(done.stdout)
    found = document["subjects"]["reference"]
    assert (done.returncode, document["run"]["exit_code"], found["alive"]) == (0, 0, [])
    assert found["summary"]["killed"] == 1
    assert "LCK-01" in found["mutants"]["locks-never-end"]["killed_by"].values()
    assert {one["name"] for one in document["entries"]} == {"locks-never-end"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--only", "there-is-no-such-thing"), "no mutant, alteration, area, rule or check"),
        (("nonsense",), "there are reference, variants,"),
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
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["campaign", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err


def test_verdicts_that_differ_are_named() -> None:
    whole = document()
    judged = whole["rules"][0]

    def run(**verdicts: str) -> Results:
        rules = [
            judged | {"id": name.replace("_", "-"), "verdict": v} for name, v in verdicts.items()
        ]
        return parse(whole | {"rules": rules})

    good, bad = run(ACK_01="pass", ACK_02="pass"), run(ACK_01="pass", ACK_02="fail")
    assert repeats.differing([good, bad, run(ACK_01="pass")]) == {
        "ACK-02": {"pass": 1, "fail": 1, "missing": 1}
    }


# --- Situations -------------------------------------------------------------------------------

SLOW = {"range across a gap"}  # met by checks that wait for compaction, which are not played here

ENOUGH = 370  # checks that there are at least to be played in other set-ups


def setup_of(case: Case) -> str:
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


def test_a_check_as_written_has_one_situation_and_a_broken_one_none() -> None:
    judge = Judge(["ACK-01"])
    judge.holds(True, "it is so")
    [seen] = observe("a check", judge, None, 0.0)
    [broken] = observe("a check", Judge(["ACK-01"]), ValueError("no"), 0.0)
    assert (seen.situations, broken.situations) == ((AS_WRITTEN,), ())


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("test_accepted_record_never_comes_back", "accept-releases"),
        ("test_released_record_comes_again_counted_once_more", "release-does-nothing"),
    ],
)
def test_a_broken_broker_is_seen_in_each_setup(name: str, mutant: str) -> None:
    cases = CROSSED[f"suites/broker/test_ack_types.py::{name}"]
    noticed = {setup_of(case): play(f"{HONEST}:{mutant}", case, 1).broken() for case in cases}
    assert len(noticed) == 3
    assert [setup for setup, broken in noticed.items() if broken is None] == []


def test_a_setup_out_of_reach_says_nothing_of_the_check() -> None:
    seen: list[str] = []

    @check("ACK-01", crossed="beside")
    async def fussy(env: Env, judge: Judge) -> None:
        seen.append(type(env).__name__)
        if len(seen) == 1:
            raise OutOfReach("needs topics of its own")
        judge.holds(True, "it is so")

    async def played() -> Judge:
        judge = Judge(["ACK-01"])
        async with (
            virtual_cluster("reference", brokers=1, properties={}, seed=1) as here,
            open_env(here.info, random.Random(1), [], here.schemas) as env,
        ):
            await fussy(env=env, judge=judge, setup="beside")
        return judge

    [one] = observe("a check", virtual.run(played()), None, 0.0)
    assert seen == ["CrossedEnv", "Env"]
    assert (one.verdict, one.situations) == ("pass", (AS_WRITTEN,))


# --- Lists of the share APIs ------------------------------------------------------------------

MET = sorted(set(LISTS.values()))

NO_BAD = {
    "WriteShareGroupStateRequest.topics.partitions.state_batches": (
        "no rule refuses one batch of a Write: a share coordinator keeps what its leader tells"
    )
}
"""Lists of requests without a bad element, and why."""

ELSEWHERE = {
    "acknowledgement_batches": "suites/broker/test_ack_many.py::test_one_bad_batch",
    "forgotten_topics_data.partitions": (
        "suites/broker/test_ses_many.py::test_forgetting_what_is_not_there"
    ),
    "GroupOffsetsRequest.groups.topics.partitions": (
        "suites/broker/test_adm_many.py::test_offsets_beside_no_partition"
    ),
    "StateRequest.topics": "suites/broker/test_per_many.py::test_one_unknown_topic",
    "StateSummaryRequest.topics": "suites/broker/test_per_many.py::test_one_unknown_topic",
    "ShareFetchRequest.topics": "suites/broker/test_ses_many.py::test_one_unknown_among_many",
}
"""The check that has a bad element in a list, by the end of its path, where :data:`LISTS` names
another one."""


def lists_of(struct: StructSpec, path: str) -> Iterator[str]:
    for field in struct.fields:
        here = f"{path}.{field.name}"
        if field.element:
            yield here
        if field.struct:
            yield from lists_of(field.struct, here)


def placed_by(path: str) -> str:
    named = [check for end, check in ELSEWHERE.items() if path.endswith(end)]
    return named[0] if named else LISTS[path]


def known_of(frames: list[Frame]) -> set[object]:
    found: set[object] = set()
    for frame in frames:
        if frame.api == "CreateTopics" and not frame.sent:
            body = decode_response(frame.schemas, frame.api, frame.version, frame.payload)
            found |= {each for topic in body.topics for each in (topic.name, topic.topic_id)}
        if frame.api in ("ShareGroupHeartbeat", "AlterShareGroupOffsets") and frame.sent:
            found.add(decode_request(frame.schemas, frame.payload)[3].group_id)
    return found


def bad(element: object, known: set[object]) -> bool:
    if isinstance(element, str):
        return element not in known
    if not isinstance(element, dict):
        return element in (77, 1000)
    if "acknowledge_types" in element:
        return 77 in element["acknowledge_types"]
    for name in ("partition", "partition_index"):
        if name in element:
            return bool(element[name] == 1000)
    names = ("topic_id", "topic_name", "group_id")
    return next((element[name] not in known for name in names if name in element), False)


def every_list(value: object, path: str) -> Iterator[tuple[str, list[object]]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from every_list(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield path, value
        for inner in value:
            yield from every_list(inner, path)


def places(frames: list[Frame], path: str) -> set[str]:
    known, found = known_of(frames), set()
    for frame in frames:
        if not frame.sent or not path.startswith(f"{frame.api}Request."):
            continue
        body = decode_request(frame.schemas, frame.payload)[3].to_dict()
        for where, value in every_list(body, f"{frame.api}Request"):
            at = [index for index, element in enumerate(value) if bad(element, known)]
            if where == path and len(at) == 1 and len(value) >= MANY:
                last = at[0] == len(value) - 1
                found.add("first" if not at[0] else "last" if last else "middle")
    return found


def longest(frames: list[Frame]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for frame in frames:
        if frame.api in SHARE_APIS:
            if frame.sent:
                name, body = "Request", decode_request(frame.schemas, frame.payload)[3]
            else:
                name = "Response"
                body = decode_response(frame.schemas, frame.api, frame.version, frame.payload)
            for path, value in every_list(body.to_dict(), frame.api + name):
                found[path] = max(found[path], len(value))
    return found


def test_every_list_of_the_definitions_is_in_the_table() -> None:
    schemas = Schemas.from_jar(clients_jar(REFERENCE_VERSION))
    messages = [find(api) for api in SHARE_APIS for find in (schemas.request, schemas.response)]
    every = [path for spec in messages for path in lists_of(spec.body, spec.name)]
    assert sorted(LISTS) == sorted(every)


def test_checks_of_the_table_exist() -> None:
    requests = {path for path in LISTS if "Request." in path}
    assert set(MET) | {placed_by(path) for path in requests} <= checks().keys()
    assert NO_BAD.keys() <= requests


@pytest.fixture
def frames(monkeypatch: pytest.MonkeyPatch) -> list[Frame]:
    found: list[Frame] = []

    class Kept(deque[Frame]):
        def append(self, frame: Frame) -> None:
            found.append(frame)
            super().append(frame)

    def create(transcript: Transcript, keep: int = 400) -> None:
        created(transcript)
        transcript.frames = Kept(maxlen=keep)

    created = Transcript.__init__
    monkeypatch.setattr(Transcript, "__init__", create)
    return found


@pytest.mark.parametrize("path", sorted(p for p in LISTS if "Request." in p and p not in NO_BAD))
def test_bad_element_stands_everywhere(path: str, frames: list[Frame]) -> None:
    seen: set[str] = set()
    for case in cases_of(placed_by(path)):
        frames.clear()
        assert play(HONEST, case, 1).held
        seen |= places(frames, path)
    assert seen == set(POSITIONS)


@pytest.mark.parametrize("check", MET)
def test_check_meets_its_lists(check: str, frames: list[Frame]) -> None:
    claimed = [path for path, by in LISTS.items() if by == check]
    seen: dict[str, dict[str, int]] = {}
    for case in cases_of(check):
        frames.clear()
        assert play(HONEST, case, 1).held
        met = longest(frames)
        where = case.parameters.get("position")
        for position in [where] if where else POSITIONS:
            best = seen.setdefault(position, {})
            best |= {path: max(met.get(path, 0), best.get(path, 0)) for path in claimed}
    short = [(at, path) for at, met in seen.items() for path in claimed if met[path] < MANY]
    assert set(seen) == set(POSITIONS)
    assert short == []


# --- Repairs -----------------------------------------------------------------------------------

STATE = "PER-05,PER-14,PER-16,PER-17,PER-18,PER-33"
EXPECTED = {
    "the-later-of-equal-counts": STATE,
    "the-last-write-counts": STATE,
    "starts-are-stored-when-decided": "OFF-01,OFF-02,OFF-06,OFF-19,OFF-46,LAG-05,LAG-07,ADM-10",
}
"""The rules that a repair is near to."""


@pytest.mark.parametrize("name", EXPECTED)
def test_no_rule_forbids_a_repair(name: str) -> None:
    near = set(EXPECTED[name].split(","))
    cases = [
        case for check in playable() if near & {*checks()[check].rules} for case in cases_of(check)
    ]
    played = {case.name: play(f"{HONEST}:{name}", case, seed=1) for case in cases}
    assert {case: seen.observations for case, seen in played.items() if not seen.held} == {}
    assert near <= {seen.rule for one in played.values() for seen in one.observations}


def test_a_rule_that_fails_the_mutant_of_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = BROKERS["counts-begin-at-0"]
    (check,) = [one for one in playable() if one.endswith("::test_first_delivery_counts_one")]
    assert accusations(mutant.name, check, 1) == []
    monkeypatch.setitem(BROKERS, mutant.name, replace(mutant, rules=("ACK-01",)))
    assert {line.split(": ")[2] for line in accusations(mutant.name, check, 1)} == {"DLV-01 fail"}


def test_campaigns_begin_without_the_extras() -> None:
    # `tox -e mutants` installs none, and ended in an ImportError once.
    done = without_extras("tools.campaign.__main__", "reference", "--list")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("reference  ")
