"""The runner's verdicts, limits and second tries, on checks whose outcome is known."""

import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reports.console import render_text
from reports.html import render
from reports.reader import read
from shareproof.runner.scheduler import LONGEST, MOVING, last_at_work, put_last, scope, wait
from tests.fake import FakeHouse, Ran

EVERY = """
@rule("ACK-01")
async def test_pass(judge, rng, transcripts):
    judge.equal(1, 1, "one")
    judge.saw(redeliveries=3, nothing=0)

@rule("ACK-02")
async def test_violation(judge, transcripts):
    transcripts.append("frame <1>")
    judge.holds(False, "it came back", witness=("first", "second"))

@rule("ACK-03")
def test_assertion():
    assert 1 == 2, "plainly wrong"

@rule("ACK-04")
async def test_undecided():
    raise Undecided("nobody knows")

@rule("ACK-05")
async def test_vacuous(judge):
    judge.saw(redeliveries=0)

@rule("ACK-06")
async def test_harness():
    raise RuntimeError("we broke")

@pytest.fixture
def no_cluster():
    raise EnvironmentFault("no broker answers")

@rule("ACK-07")
async def test_setup(no_cluster, judge):
    judge.holds(True, "never reached")

@pytest.fixture
async def dirty():
    yield
    raise RuntimeError("cannot clean up")

@rule("ACK-08")
async def test_teardown(dirty, judge):
    judge.holds(True, "fine")

@rule("ACK-09")
@pytest.mark.feature("renew")
async def test_refused(judge):
    judge.holds(False, "must not run")

@rule("ACK-10")
@pytest.mark.feature("lag")
async def test_present(judge):
    judge.holds(True, "it is there after all")

@rule("ACK-11")
@pytest.mark.feature("undeclared")
async def test_undeclared(judge):
    judge.holds(False, "refused, and nobody declared it")

@pytest.mark.parametrize("good", [True, False])
@rule("ACK-13")
async def test_worst(judge, good):
    judge.holds(good, "half of it")

@rule("ACK-14")
@pytest.mark.timeout(0.1)
async def test_time_limit():
    await asyncio.Event().wait()

@rule("ACK-15")
async def test_stranger(judge):
    judge["ACK-16"].holds(True, "not named")

@rule("ACK-17")
def test_skipped():
    pytest.skip("not today")

@rule("ACK-18")
async def test_no_answer():
    raise CallTimeout("ShareFetch: no response within 10 s")

@rule("ACK-19", "ACK-20")
async def test_one_masks_the_other(judge):
    judge["ACK-19"].holds(True, "fine so far")
    async with asyncio.TaskGroup() as group:
        group.create_task(broken(judge))

async def broken(judge):
    judge["ACK-20"].holds(False, "broken inside")

@rule("ACK-21")
async def test_out_of_reach():
    raise OutOfReach("needs a cluster of its own")

@rule("ACK-22")
@pytest.mark.solo({"group.share.max.size": 5}, **{"x": 1})
async def test_solo(solo_info, cluster_info, judge):
    properties = {"group.share.max.size": "5", "x": "1"}
    judge.equal(properties, dict(solo_info.properties), "properties")
    judge.equal(3, len(cluster_info.bootstrap), "brokers")

@rule("ACK-23")
async def test_choice(judge):
    source = "KIP-932 §In-flight records: either"
    judge.one_of({1: source, 2: source}, 2, "choice")

@rule("ACK-41")
async def test_younger():
    raise AssertionError("must not run")

@rule("ACK-42")
def test_may(judge):
    judge.holds(False, "a MAY")
"""

ABSENT = "".join(
    f"""
[[absent]]
feature = "{feature}"
versions = "<9"
probe = "{probe}"
reason = "came later"
"""
    for feature, probe in (("renew", "refuses"), ("lag", "answers"))
)

VERDICTS = {
    **dict.fromkeys(("01", "10", "22", "23"), "pass"),
    **dict.fromkeys(("02", "03", "11", "13", "20", "42"), "fail"),
    **dict.fromkeys(("04", "14", "18", "19"), "unknown"),
    **dict.fromkeys(("06", "07", "08", "15"), "error"),
    **dict.fromkeys(("05", "17"), "vacuous"),
    "09": "unsupported",
    "21": "out of reach",
    "40": "untested",
}


@pytest.fixture(scope="module", params=["0", "2"], ids=["alone", "workers"])
def every(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    house = FakeHouse(tmp_path_factory.mktemp("house"))
    house.checks(EVERY)
    house.ledger(ABSENT)
    return house.run("-n", request.param)


@pytest.fixture
def house(tmp_path: Path) -> FakeHouse:
    return FakeHouse(tmp_path)


def test_every_outcome_has_its_verdict(every: Ran) -> None:
    assert every.verdicts == VERDICTS
    assert (every.code, every.document["run"]["exit_code"]) == (3, 3), "a broken harness outranks"
    assert every.document["newer_than_target"] == ["ACK-41"]
    assert any("lag" in problem for problem in every.document["problems"]), "it is not absent"
    assert (every.notes.count("start"), every.notes.count("stop")) == (2, 2)


def test_evidence_witness_and_reasons_arrive(every: Ran) -> None:
    rules = every.rules
    assert rules["01"]["evidence"] == {"assertions": 1, "redeliveries": 3}
    assert rules["02"]["witness"] == ["first", "second"]
    assert rules["02"]["reason"] == "it came back"
    assert "plainly wrong" in rules["03"]["reason"]
    assert rules["07"]["reason"] == "environment: no broker answers"
    assert rules["14"]["reason"] == "no verdict within 0.1 s"
    assert "ACK-20 broke" in rules["19"]["reason"]
    assert "UNSUPPORTED_VERSION" in rules["09"]["reason"]
    assert (rules["21"]["expected"], rules["04"]["expected"]) == (True, False)
    assert rules["21"]["reason"] == "needs a cluster of its own"
    command = "shareproof broker --target kafka:4.4.0 --only ACK-01 --seed 7"
    assert rules["01"]["reproduce"].startswith(command)
    assert rules["40"]["reproduce"] == ""


def test_run_directory_is_complete(every: Ran) -> None:
    out = every.house.out
    assert {"results.json", "run.json", "report.html", "junit.xml"} <= {
        f.name for f in out.iterdir()
    }
    assert (out / "allure-results" / "categories.json").is_file()
    transcript = every.rules["02"]["checks"][0]["transcript"]
    assert (out / transcript).read_text(encoding="utf-8") == "frame <1>\n"
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["seed"] == 7


def test_allure_is_told_verdicts(every: Ran) -> None:
    out = every.house.out
    config = json.loads((out / "allurerc.json").read_text(encoding="utf-8"))
    matched = {each["matchers"]["labels"]["verdict"].strip("^$") for each in config["categories"]}
    checks = map(json.loads, map(Path.read_text, (out / "allure-results").glob("*-result.json")))
    labels = [each for check in checks for each in check["labels"] if each["name"] == "verdict"]
    assert {each["value"] for each in labels} == matched | {"pass"}
    assert config["variables"]["seed"] == "7"
    environment = (out / "allure-results" / "environment.properties").read_text(encoding="utf-8")
    assert "seed=7" in environment.splitlines()


def test_out_of_reach_fails_a_strict_run_only(house: FakeHouse) -> None:
    house.checks(
        failing("ACK-01")
        + """
@rule("ACK-02")
def test_one_broker():
    raise OutOfReach("there is one broker")
"""
    )
    lenient = house.run()
    skipped = _junit(lenient)
    strict = house.run("--strict-reach")

    assert (lenient.code, strict.code) == (0, 1)
    assert (
        lenient.verdicts
        == strict.verdicts
        == {"01": "pass", "02": "out of reach", "40": "untested"}
    )
    assert "1 out of reach: there is one broker" in lenient.output
    assert "--strict-reach" in strict.rules["02"]["reproduce"]
    assert skipped == {"skipped": 2, "failures": 0}  # the canary is the other
    assert _junit(strict) == {"skipped": 1, "failures": 1}


def _junit(ran: Ran) -> dict[str, int]:
    (suite,) = ElementTree.parse(ran.house.out / "junit.xml").iter("testsuite")  # noqa: S314
    return {name: int(suite.attrib[name]) for name in ("skipped", "failures")}


def test_good_run_ends_with_zero_and_a_broken_rule_with_one(house: FakeHouse) -> None:
    may = failing("ACK-42", False, "a MAY is forgiven")
    one = failing("ACK-01", fixtures="judge, cluster_info")
    house.checks(one + failing("ACK-02", False, "released twice") + may)
    house.ledger(entry("ACK-02", "released twice"))

    ran = house.run(FAKE_VERSION="99.1.0")

    assert (ran.code, ran.verdicts["02"]) == (0, "fail")
    assert ran.rules["02"]["expected"]
    assert "released twice" not in ran.output.split("verdicts")[-1]
    [newer] = ran.document["run"]["notices"]
    assert "99.1 is newer than this suite" in newer
    assert f"notice {newer}" in ran.output
    assert house.run("--level", "MAY").code == 1


def test_known_failure_is_known_and_rotten_entries_fail_the_run(house: FakeHouse) -> None:
    broken, held = (failing("ACK-01", holds, "released twice") for holds in (False, True))
    house.checks(broken)
    house.ledger(entry("ACK-01", "released"))
    ran = house.run()
    assert (ran.code, ran.rules["01"]["problem"], _junit(ran)["failures"]) == (0, "", 0)

    house.checks(held + broken.replace("01", "02") + broken.replace("01", "03"))
    rotten = entry("ACK-02", "acquired") + entry("ACK-03", "released", "2001-01-01")
    house.ledger(entry("ACK-01", "released") + rotten)
    ran = house.run()
    assert ran.code == 1
    for rule, problem in {"01": "stale", "02": "wrong reason", "03": "expired"}.items():
        assert problem in ran.rules[rule]["problem"]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_interrupted_run_leaves_a_partial_report(house: FakeHouse, workers: str) -> None:
    house.checks(
        failing("ACK-01")
        + """
@rule("ACK-02")
@pytest.mark.parametrize("number", range(4))
async def test_long(judge, number):
    open(os.environ["SEEN"], "w").close()
    await asyncio.Event().wait()
"""
    )
    seen = house.folder / "seen"

    ran = house.interrupt(house.start("-n", workers, SEEN=str(seen)), seen)

    assert ran.code == 130, ran.output
    assert ran.document["run"]["partial"]
    assert ran.notes == ["start", "stop"]


def test_an_interrupt_before_the_first_check_is_no_wrong_usage(house: FakeHouse) -> None:
    house.checks('import time\nopen(os.environ["SEEN"], "w").close()\ntime.sleep(60)\n')
    seen = house.folder / "seen"
    ran = house.interrupt(house.start("-n", "2", "--only", "ACK-01", SEEN=str(seen)), seen)
    assert ran.code == 130, ran.output


@pytest.mark.parametrize("workers", ["0", "2"])
def test_target_that_does_not_start_ends_the_run_at_once(house: FakeHouse, workers: str) -> None:
    house.checks(EVERY)
    ran = house.run("-n", workers, FAKE_FAULT="Java 17 is missing")
    assert ran.code == 3, ran.output
    assert ran.document["run"]["errors"] == ["Java 17 is missing"]
    assert ran.document["summary"]["fail"] == 0


def test_only_runs_and_lists_what_was_asked_for(house: FakeHouse) -> None:
    house.checks(EVERY)
    assert house.run("--only", "ACK-01,ack-23").verdicts == {"01": "pass", "23": "pass"}
    assert house.run("--only", "ACK-39").code == 2
    assert house.run("--only", "NOPE").code == 4


def test_plain_tests_start_no_cluster(house: FakeHouse) -> None:
    house.checks(EVERY)
    folder = house.folder / "suites" / "self"
    folder.mkdir()
    (folder / "test_plain.py").write_text("def test_plain():\n    pass\n", encoding="utf-8")
    ran = house.run(where="self")
    assert (ran.code, ran.notes) == (0, [])
    assert not (house.out / "results.json").exists()


def failing(
    rule: str, holds: bool = True, reason: str = "fine", *, mark: str = "", fixtures: str = "judge"
) -> str:
    return f"""
@rule("{rule}")
{mark}
def test_{rule[4:]}({fixtures}):
    judge.holds({holds}, "{reason}")
"""


def entry(rule: str, match: str, expires: str = "2999-01-01", verdict: str = "fail") -> str:
    return f"""
[[known]]
failures = [{{ rule = "{rule}", verdict = "{verdict}", match = "{match}" }}]
versions = ">=4.1"
reason = "a known bug"
bug = "KAFKA-1"
expires = {expires}
"""


def test_drafts_run_only_when_asked_for(house: FakeHouse) -> None:
    draft = failing("ACK-02", False, "who knows", mark='@pytest.mark.draft("never seen failing")')
    house.checks(failing("ACK-01") + draft)
    trusted = house.run()
    assert (trusted.code, trusted.verdicts["01"]) == (0, "pass")
    assert trusted.verdicts.get("02", "untested") == "untested"
    assert house.run("--drafts").verdicts["02"] == "fail"


def test_canary_fails_and_troubles_nobody(every: Ran) -> None:
    canary = every.document["run"]["canary"]
    assert (canary["verdict"], canary["reason"]) == ("fail", "it must fail")
    assert "CANARY" not in every.rules
    assert every.document["run"]["errors"] == []
    junit = ElementTree.parse(every.house.out / "junit.xml").getroot()  # noqa: S314 - our own
    case = next(one for one in junit.iter("testcase") if one.get("name") == "test_canary")
    assert [child.tag for child in case] == ["skipped"]


@pytest.mark.parametrize(
    ("claim", "verdict"), [("True", "pass"), ("print('never judged') or 1 / 0", "error")]
)
def test_canary_that_lives_is_a_fault(house: FakeHouse, claim: str, verdict: str) -> None:
    house.checks(failing("ACK-01"))
    house.canary(claim)
    ran = house.run()
    assert (ran.code, ran.verdicts["01"]) == (3, "pass")
    assert f"the canary must fail, and came out as {verdict}" in ran.document["run"]["errors"][0]


def test_lost_canaries_and_checks_of_no_live_rule_are_faults(house: FakeHouse) -> None:
    house.checks(failing("ACK-99"))
    ran = house.run()
    assert ran.code == 3
    assert "ACK-99" in ran.document["run"]["errors"][0]

    house.checks(failing("ACK-01"))
    (house.folder / "suites" / "broker" / "test_canary.py").unlink()
    assert house.run(where="broker/test_fake.py").code == 0
    ran = house.run()
    assert ran.code == 3
    assert "never reported" in ran.document["run"]["errors"][0]


# --- Checks that hang -------------------------------------------------------------------------

HANGING = """
import time

pytestmark = pytest.mark.timeout(0.2)

async def swallow():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

def sleep():
    while True:
        time.sleep(0.05)

@pytest.mark.rule("ACK-01")
async def test_blocking_the_loop(judge):
    sleep()

@pytest.mark.rule("ACK-02")
async def test_swallowing_cancellation(judge):
    await swallow()

@pytest.mark.rule("ACK-03")
async def test_waiting_for_a_thread(judge):
    await asyncio.to_thread(time.sleep, 3)

@pytest.mark.rule("ACK-04")
def test_no_coroutine(judge):
    sleep()

@pytest.fixture
async def waits():
    await asyncio.Event().wait()

@pytest.mark.rule("ACK-05")
async def test_before(waits, judge):
    judge.holds(True, "never reached")

@pytest.fixture
async def never_done():
    yield
    await swallow()

@pytest.mark.rule("ACK-06")
async def test_after(never_done, judge):
    judge.holds(True, "fine")

@pytest.mark.rule("ACK-07")
async def test_after_a_failure(never_done, judge):
    judge.holds(False, "broken")

@pytest.mark.rule("ACK-08")
@pytest.mark.parametrize("number", range(6))
async def test_fine(judge, number):
    await asyncio.sleep(0.01)
    judge.holds(True, "fine")
"""

GARBAGE = """
import ast, gc

class Again:
    def __init__(self):
        self.me = self
    def __del__(self):
        if ON:
            ast.parse("1 + 1")
            Again()

ON = []

@pytest.fixture
def littered():
    ON.append(True)
    Again()
    before = gc.get_threshold()
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)
    ON.clear()

@pytest.mark.rule("ACK-01")
def test_broken(littered, judge):
    judge.holds(False, "broken")

@pytest.mark.rule("ACK-02")
def test_fine(judge):
    judge.holds(True, "fine")
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_what_hangs_is_broken_into(house: FakeHouse, workers: str) -> None:
    house.checks(HANGING)
    ran = house.run("-n", workers, FAKE_GRACE="0.5")
    hung = {f"0{number}": "error" for number in range(1, 8)}
    judged = {rule: found for rule, found in ran.verdicts.items() if rule != "40"}
    assert judged == {**hung, "08": "pass"}, ran.output
    assert "broken into after 0.7 s" in ran.rules["01"]["reason"]
    assert (ran.code, ran.document["run"]["partial"]) == (3, False)


def test_what_cannot_be_broken_into_ends_with_its_worker(house: FakeHouse) -> None:
    house.checks(
        """
@pytest.mark.rule("ACK-01")
@pytest.mark.timeout(0.1)
def test_deaf(judge):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write("x")
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    signal.sigwait({signal.SIGUSR1})

@pytest.mark.rule("ACK-02")
@pytest.mark.parametrize("number", range(6))
def test_fine(judge, number):
    judge.holds(True, "fine")
"""
    )
    seen = house.folder / "seen"

    ran = house.run("-n", "2", FAKE_GRACE="0.3", SEEN=str(seen))

    assert (ran.code, ran.verdicts["01"], ran.verdicts["02"]) == (3, "error", "pass"), ran.output
    assert "the worker process died" in ran.rules["01"]["reason"]
    assert "in test_deaf" in ran.output
    assert seen.read_text(encoding="utf-8") == "xx"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_garbage_does_not_spoil_a_failure(house: FakeHouse, workers: str) -> None:
    house.checks(GARBAGE)
    ran = house.run("-n", workers)
    assert (ran.code, ran.verdicts["01"], ran.verdicts["02"]) == (1, "fail", "pass"), ran.output


# --- A second try -----------------------------------------------------------------------------

CHECKS = """
def played(name):
    with open(os.environ["SEEN"], "a") as seen:
        seen.write(name + "\\n")
    with open(os.environ["SEEN"]) as seen:
        return seen.read().split().count(name)

def undecided_at_first(name):
    if played(name) == 1:
        raise Undecided(f"{name} was slow")

@rule("ACK-01", "ACK-02")
async def test_slow(judge, transcripts):
    transcripts.append("frame")
    undecided_at_first("slow")
    judge["ACK-01"].holds(True, "fine")
    judge["ACK-02"].holds(True, "fine")

@rule("ACK-03")
def test_never(judge, transcripts, rng):
    transcripts.append(f"frame {played('never')}")
    raise Undecided(f"nobody knows {rng.random()}")

@rule("ACK-04")
def test_worse(judge):
    undecided_at_first("worse")
    judge.holds(False, "it came back")

@rule("ACK-05", "ACK-06")
def test_broken(judge):
    played("broken")
    judge["ACK-05"].holds(False, "broken")

@rule("ACK-07")
def test_harness():
    played("harness")
    raise RuntimeError("we broke")

@rule("ACK-08")
def test_known():
    played("known")
    raise Undecided("as the ledger says")

@rule("ACK-09")
def test_far():
    played("far")
    raise OutOfReach("needs a cluster of its own")

@pytest.fixture
async def dirty():
    yield
    raise RuntimeError("cannot clean up")

@rule("ACK-10")
async def test_dirty(dirty):
    played("dirty")
    raise Undecided("nobody knows")

@rule("ACK-11")
@pytest.mark.parametrize("number", range(20))
def test_fine(judge, number):
    played("fine")
    judge.holds(True, "fine")
"""

KNOWN = entry("ACK-08", "as the ledger says", verdict="unknown")

DYING = """
@pytest.mark.rule("ACK-01")
def test_deadly(judge):
    if not os.path.exists(os.environ["SEEN"]):
        open(os.environ["SEEN"], "w").close()
        os._exit(9)
    judge.holds(True, "fine")

@pytest.mark.rule("ACK-02")
@pytest.mark.parametrize("number", range(6))
def test_fine(judge, number):
    judge.holds(True, "fine")
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_undecided_checks_are_played_again_and_both_tries_told(
    house: FakeHouse, workers: str
) -> None:
    house.checks(CHECKS)
    house.ledger(KNOWN)
    seen = house.folder / "seen"

    ran = house.run("-n", workers, SEEN=str(seen))

    tries = seen.read_text(encoding="utf-8").split()
    again = {"slow", "never", "worse"}
    assert {name for name in tries if tries.count(name) > 1} == again | {"fine"}, ran.output
    assert (set(tries[-3:]), len(tries)) == (again, 8 + 20 + 3)
    found = {"pass": ("01", "02", "11"), "fail": ("04", "05"), "unknown": ("03", "06", "08")}
    for verdict, numbers in found.items():
        assert {ran.verdicts[number] for number in numbers} == {verdict}
    assert ran.rules["08"]["problem"] == ""
    first = ran.rules["01"]["checks"][0]["first_try"]
    assert (first["verdict"], first["reason"]) == ("unknown", "slow was slow")
    assert ran.rules["01"]["reason"].startswith("passed on the second try; the first was unknown")
    assert "first_try" not in ran.rules["11"]["checks"][0]
    never = ran.rules["03"]["checks"][0]
    assert never["first_try"]["reason"] != never["reason"], "the second try draws its own names"
    frames = [never["first_try"]["transcript"], never["transcript"]]
    assert [(house.out / name).read_text("utf-8") for name in frames] == ["frame 1\n", "frame 2\n"]
    results = read(house.out)
    assert results.second_tries == 3
    assert "3 played twice" in render_text(results)
    assert "on the second try; the first:" in render(results)
    junit = ElementTree.parse(house.out / "junit.xml").getroot()  # noqa: S314 - our own
    slow = [case for case in junit.iter("testcase") if case.get("name") == "test_slow"]
    assert [case.find("failure") for case in slow] == [None, None]


def test_a_pass_on_the_second_try_is_a_pass_unless_played_once(house: FakeHouse) -> None:
    house.checks(CHECKS.partition('@rule("ACK-03")')[0])
    assert house.run(SEEN=str(house.folder / "seen")).code == 0
    ran = house.run("--once", SEEN=str(house.folder / "seen once"))
    assert (ran.code, ran.verdicts["01"]) == (1, "unknown")
    assert ran.rules["01"]["reason"] == "slow was slow"


def test_a_check_whose_worker_died_is_played_again(house: FakeHouse) -> None:
    house.checks(DYING)
    ran = house.run("-n", "2", SEEN=str(house.folder / "seen"))
    assert (ran.code, ran.verdicts["01"], ran.verdicts["02"]) == (0, "pass", "pass"), ran.output
    first = ran.rules["01"]["checks"][0]["first_try"]
    assert first["verdict"] == "error"
    assert "the worker process died" in first["reason"]


# --- Scheduling -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("suites/broker/test_x.py::test_y[a/b]", "suites/broker/test_x.py::test_y[a/b]"),
        ("suites/broker/failover/test_x.py::test_y[a]", "suites/broker/failover"),
        ("suites/broker/failover/test_z.py::test_w", "suites/broker/failover"),
        ("tests/test_x.py::test_y", "tests/test_x.py::test_y"),
    ],
)
def test_scope(nodeid: str, expected: str) -> None:
    assert scope(nodeid) == expected


def test_modules_that_wait_longest() -> None:
    folder = Path(__file__).parents[1] / "suites" / "broker"
    assert all((folder / f"test_{name}.py").is_file() for name in LONGEST)
    checks = [f"suites/broker/test_{name}.py::test_x" for name in ("ack_gaps", *LONGEST)]
    assert sorted(checks, key=wait) == [*checks[1:], checks[0]]


@dataclass(eq=False)
class Worker:
    shutting_down: bool = False

    def shutdown(self) -> None:
        self.shutting_down = True


def test_the_exclusive_stage_waits_for_all_others() -> None:
    first, second, third = Worker(), Worker(), Worker()
    assert last_at_work({first: 3, second: 2, third: 0}) is None
    assert (first.shutting_down, second.shutting_down, third.shutting_down) == (False, True, True)
    assert last_at_work({first: 1, second: 1}) is None
    assert last_at_work({first: 2}) is None
    assert last_at_work({first: 1, second: 0}) is first
    assert last_at_work({second: 0}) is None


def test_exclusive_stages_are_put_last() -> None:
    order = OrderedDict.fromkeys((MOVING[0], "a", MOVING[1], "b"))
    put_last(order, *MOVING, "not there")
    assert list(order) == ["a", "b", *MOVING]
