"""What a run writes for machines and for people, and what is read of it again."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from fixtures.targets import doctor
from reports import console, headlines, html
from reports.document import RunRecord, timing_of
from reports.document import document as document_of
from reports.headlines import DIM, GOOD, of_results
from reports.html import write
from reports.reader import parse, read, schema
from reports.results import Client, Results, Run, Target
from reports.site.archive import find
from reports.site.build import build as build_site
from shareproof.detected import detection
from shareproof.runner.allured import CONFIG, RESULTS
from shareproof.runner.allured import write as write_allure
from spec.ledger import Expected, Ledger
from spec.plain import text_of, to_plain
from spec.rule import Basis, Honesty, Kind, Level, Rule, Source
from spec.verdict import Observation, Verdict
from tests.fake import ROOT
from tools.allure_report import ALLURE, differences, expected, main, reported

HOSTILE = "<script>alert('1')</script>[red]{{ 7777*7777 }}"


def document(text: str = "A rule.") -> dict[str, Any]:
    found: dict[str, Any] = to_plain(_results(text))
    return found


def certificate(text: str = "A rule.") -> dict[str, Any]:
    def faced(check: str) -> str:
        return text if check.startswith("suites/broker/test_x") else ""

    found: dict[str, Any] = to_plain(_results(text, client=client(text), faced=faced))
    return found


def keep(folder: Path, plain: dict[str, Any]) -> None:
    write(folder, parse(plain))


def _results(
    text: str, client: Client | None = None, faced: Callable[[str], str] = lambda _: ""
) -> Results:
    rule = contract_rule(text)
    entry = Expected(
        rule="ACK-01",
        verdict=Verdict.FAIL,
        versions="",
        match="nothing",
        reason=text,
        bug=text,
        expires=date(2027, 1, 1),
    )
    seen = Observation(
        rule="ACK-01",
        check=f"suites/broker/test_x.py::test_{text}",
        verdict=Verdict.FAIL,
        reason=text,
        evidence={text: 1},
        witness=(text,),
        first=Observation(rule="ACK-01", check=text, verdict=Verdict.UNKNOWN, reason=text),
    )
    never = {"level": Level.MAY, "honesty": Honesty.UNTESTED, "why": text}
    untested = contract_rule(text, id="ACK-02", **never)
    found = document_of(
        RunRecord(
            rules={"ACK-01": rule, "ACK-02": untested},
            observations=[seen],
            ledger=Ledger(name="p", expected=(entry,)),
            target=Target(
                name=text, version="4.4.0", ledger=text, brokers=3, properties={text: text}
            ),
            client=client,
            problems=[text],
            seed=7,
            level=Level.SHOULD,
            started=datetime(2026, 1, 1, tzinfo=UTC),
            timing=timing_of(
                total=3.0, cluster_start=1.0, before_checks=1.5, checks=1.0, by_check={text: 2.0}
            ),
            reproduce=lambda id_: f"shareproof broker --only {id_} {text}",
            transcript=lambda _, first: f"transcripts/{text}{'-first' if first else ''}.txt",
            faced=faced,
        )
    )
    target = replace(found.target, version=text)
    return replace(found, run=run(text), target=target, newer_than_target=("ACK-10",))


def contract_rule(text: str, **changes: Any) -> Rule:
    known: dict[str, Any] = {
        "id": "ACK-01",
        "level": Level.MUST,
        "basis": Basis.CONTRACT,
        "since": "4.1",
    }
    known |= {"honesty": Honesty.STOCHASTIC, "source": (Source(kind=Kind.ISSUE, name=text),)}
    return Rule(text=text, **{**known, **changes})


def client(text: str, **known: str) -> Client:
    words = ("name", "version", "language", "runtime", "facing", "facing_version")
    return Client(**{**dict.fromkeys(words, text), **known}, capabilities=(text,), brokers={})


def run(text: str) -> Run:
    return Run(
        started="2026-01-01T00:00:00+00:00",
        seconds=3.0,
        seed=7,
        command=("shareproof", text),
        exit_code=1,
        partial=True,
        errors=(text,),
        notices=(text,),
        level=Level.SHOULD,
        only=("ACK",),
        fast=False,
        versions={"shareproof": text},
        canary=None,
    )


def test_results_follow_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    for found in (document(), certificate()):
        jsonschema.validate(found, schema(), cls=jsonschema.Draft202012Validator)
        assert to_plain(parse(found)) == found
    parse(document() | {"weather": "of a later release"})


def test_certificates_tell_which_broker_was_faced() -> None:
    found = certificate()
    judged, untested = found["rules"]
    assert judged["facing"] == [found["client"]["facing"]]
    assert "facing" not in untested
    assert found["client"]["brokers"] == {judged["facing"][0]: {judged["verdict"]: 1}}


def test_results_survive_the_disk(tmp_path: Path) -> None:
    keep(tmp_path, document())
    assert to_plain(read(tmp_path)) == document()
    facts = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert (facts["seed"], facts["command"]) == (7, ["shareproof", "A rule."])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 2}'])
def test_foreign_results_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"results\.json: (not|results of schema 2)"):
        read(tmp_path)


@pytest.mark.parametrize("results", [document, certificate])
def test_page_escapes_everything_hostile(results: Callable[[str], dict[str, Any]]) -> None:
    page = html.render(parse(results(HOSTILE)))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert str(7777 * 7777) not in page.split("</style>")[1].split("<script>")[0]


def test_page_needs_nothing_beside_it() -> None:
    page = html.render(parse(document()))
    assert "http" not in page.replace("http-equiv", "")
    assert "src=" not in page
    assert "A rule." in page


@pytest.mark.parametrize(
    ("language", "runtime", "text"),
    [
        ("java", "17.0.15+6", "java 17.0.15+6"),
        ("Python", "Python 3.11.7, librdkafka 2.16.0", "Python 3.11.7, librdkafka 2.16.0"),
        ("go", "go1.26.8", "go1.26.8"),
        ("", "", ""),
    ],
)
def test_runtime_of_a_client_is_told_once(language: str, runtime: str, text: str) -> None:
    assert headlines.runtime(client("x", language=language, runtime=runtime)) == text


def reaching(*reasons: str, passing: int = 0, strict: bool = False) -> Results:
    rules: dict[str, Rule] = {}
    seen: list[Observation] = []
    for number, reason in enumerate([*reasons, *[""] * passing], 1):
        rule = contract_rule("A rule.", id=f"ACK-{number:02}")
        rules[rule.id] = rule
        verdict = Verdict.OUT_OF_REACH if reason else Verdict.PASS
        seen.append(Observation(rule=rule.id, check="x", verdict=verdict, reason=reason))
    record = RunRecord(
        rules=rules,
        observations=seen,
        ledger=Ledger(name="p"),
        target=Target(name="t", version="4.4.0", ledger="p", brokers=1, properties={}),
        seed=7,
        level=Level.SHOULD,
        strict_reach=strict,
        started=datetime(2026, 1, 1, tzinfo=UTC),
        timing=timing_of(total=1.0, checks=1.0, by_check={}),
        reproduce=str,
    )
    return document_of(record)


def test_what_is_out_of_reach_is_told_with_the_reasons() -> None:
    found = reaching("one broker", *["not yours"] * 3, "no topics", "no admin", passing=4)

    assert found.run.exit_code == 0
    assert headlines.headline(found).sentence == (
        "4 of 10 contract rules hold, 6 out of reach: not yours (3), one broker (1), "
        "and 2 other reasons."
    )
    assert headlines.headline(reaching("one broker", passing=1)).sentence == (
        "1 of 2 contract rules hold, 1 out of reach: one broker."
    )
    page = html.render(found)
    assert "<li><b>3</b> not yours</li>" in page
    assert 'class="v out of reach"' in page
    text = console.render_text(found)
    assert "4 pass, 6 out of reach" in text
    assert "3 out of reach: not yours" in text
    assert "unexpected" not in text


def test_badges_and_strict_runs_say_what_is_out_of_reach() -> None:
    most = of_results(reaching("one broker", passing=2))
    assert (most.message, most.colour) == ("2 of 3 rules, 1 out of reach", GOOD)
    few = of_results(reaching("one broker", "no topics", passing=1))
    assert (few.message, few.colour) == ("1 of 3 rules, 2 out of reach", DIM)
    strict = reaching("one broker", passing=2, strict=True)
    assert (strict.run.exit_code, strict.summary["unexpected"]) == (1, 1)
    assert "out of reach ACK-01 MUST A rule." in console.render_text(strict)


def test_summary_prints_notices_and_the_unexpected_only() -> None:
    found = document("twice")
    found["run"]["notices"] = ["Kafka 4.9 is newer than this suite"]
    text = console.render_text(parse(found))
    assert "fail ACK-01 MUST twice" in text
    assert "$ shareproof broker --only ACK-01" in text
    assert "ACK-02" not in text
    assert "1 fail, 1 untested" in text
    assert "partial run" in text
    assert "notice Kafka 4.9 is newer than this suite" in text
    assert "Kafka 4.9 is newer than this suite" in html.render(parse(found))
    assert HOSTILE in console.render_text(parse(document(HOSTILE)))


# --- Results that are not as we write them ----------------------------------------------------

Spoil = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda found: found.clear(), "'schema' is a required property"),
        (lambda found: found.pop("run"), "'run' is a required property"),
        (lambda found: found.update(run=[]), "run: [] is not of type 'object'"),
        (lambda found: found["target"].pop("name"), "target: 'name' is a required property"),
        (lambda found: found["run"].update(started="once"), "run.started: 'once' is no time"),
        (
            lambda found: found["rules"][0].update(verdict="fine"),
            "rules[0].verdict: 'fine' is not one of",
        ),
        (lambda found: found["target"].update(name="\ud83d"), "half of a character"),
        (lambda found: found["rules"][0].update(id="../../x"), "rules[0].id: '../"),
        *[
            (
                lambda found, name=name: found["rules"][0]["checks"][0].update(transcript=name),
                f"ACK-01: its transcript {name!r} is not below the run",
            )
            for name in ("../../.ssh/id_rsa", "/etc/passwd")
        ],
    ],
)
def test_form_is_demanded(spoil: Spoil, sentence: str) -> None:
    found = document()
    spoil(found)
    with pytest.raises(ValueError, match=r"^.+") as refused:
        parse(found)
    assert sentence in str(refused.value)


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    keep(tmp_path / "good", document())
    for name, text in {
        "half": text_of(document())[:500],
        "later": text_of(document() | {"schema": 2}),
        "list": "[]",
        "bare": '{"schema": 1}',
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(text, encoding="utf-8")
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / "results.json").write_bytes(b"\xff\xfe\x00")

    archive = find([tmp_path])

    assert [run.folder.name for run in archive.runs] == ["good"]
    reasons = {line.split("results.json: ")[0].split("/")[-2]: line for line in archive.left_out}
    assert set(reasons) == {"half", "later", "list", "bare", "bytes"}
    assert "only a part of it" in reasons["half"]
    assert "of schema 2, and this release knows 1: use a later one" in reasons["later"]


def test_copies_of_a_run_count_once(tmp_path: Path) -> None:
    keep(tmp_path / "a-copy", document())
    shutil.copytree(tmp_path / "a-copy", tmp_path / "run")
    (tmp_path / "run" / "history").mkdir()
    archive = find([tmp_path, tmp_path / "run"])
    assert [run.folder.name for run in archive.runs] == ["run"]
    assert archive.unreadable == ()
    assert "the same run as" in archive.doubles[0]


def test_a_site_among_its_runs_and_half_a_timeline_spoil_no_page(tmp_path: Path) -> None:
    keep(tmp_path / "run", document())
    (tmp_path / "run" / "junit.xml").touch()
    for archive in (tmp_path, tmp_path, tmp_path / "site"):
        build_site(find([archive]), tmp_path / "site", detection())
    assert len(list((tmp_path / "site" / "runs").iterdir())) == 1
    texts = '{"schema": 1, "ru', '{"schema": 1}', json.dumps({"schema": 99, "runs": 3})
    for day, text in enumerate(texts, 1):
        found, run = document(), tmp_path / "halves" / str(day)
        found["run"]["started"] = f"2026-03-0{day}T00:00:00+00:00"
        keep(run, found)
        (run / "timelines.json").write_text(text, encoding="utf-8")
    build_site(find([tmp_path / "halves"]), tmp_path / "site", detection())
    assert len(list((tmp_path / "site" / "runs").iterdir())) == 4


def test_names_of_any_length_and_kind_have_a_page_and_a_feed(tmp_path: Path) -> None:
    for day, name in enumerate(("long " * 100, "bell \x07", "long " * 100), 1):
        found = document()
        found["target"]["name"] = name
        found["run"]["started"] = f"2026-03-0{day}T00:00:00+00:00"
        keep(tmp_path / str(day), found)
    first = build_site(find([tmp_path]), tmp_path / "site", detection())
    assert len(list((first.parent / "runs").iterdir())) == 3
    assert len(ElementTree.parse(first.parent / "feed.xml").findall(".//item")) == 3  # noqa: S314


# --- Allure -----------------------------------------------------------------------------------

CHECKS = [("a", "passed", "pass", 1), ("b", "failed", "fail", 1), ("b", "skipped", "fail", 2)]
"""Name, status, verdict, and when each ended: b ran twice, and was a known failure then."""
KNOWN_FAILURE = "fail: known failure"


def dump(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def run_of_two(tmp_path: Path) -> Path:
    write_allure(tmp_path, parse(document("A rule that holds.")))
    for number, (name, status, verdict, stop) in enumerate(CHECKS):
        dump(
            tmp_path / RESULTS / f"{number}-result.json",
            {
                "uuid": str(number),
                "historyId": name,
                "status": status,
                "stop": stop,
                "labels": [{"name": "verdict", "value": verdict}],
            },
        )
    return tmp_path


def report(run_of_two: Path, *, passed: int = 1, category: str = KNOWN_FAILURE) -> Path:
    folder = run_of_two / "report"
    dump(folder / "summary.json", {"stats": {"total": 2, "new": 2, "passed": passed, "skipped": 1}})
    node = {"id": "x", "name": category, "statistic": {"total": 1, "skipped": 1}}
    dump(folder / "widgets" / "categories.json", {"roots": ["x"], "nodes": {"x": node}})
    variables = json.loads((run_of_two / CONFIG).read_text())["variables"]
    dump(
        folder / "widgets" / "allure_environment.json",
        [{"name": name, "values": [value]} for name, value in variables.items()],
    )
    return folder


def test_a_report_is_compared_with_its_run(run_of_two: Path) -> None:
    assert differences(expected(run_of_two), reported(report(run_of_two))) == []
    wrong = reported(report(run_of_two, passed=0, category="?"))
    lost, misplaced = differences(expected(run_of_two), wrong)
    assert lost.startswith("its statuses are {'skipped': 1}, those of the run {'passed': 1,")
    assert misplaced == f"its categories are {{'?': 1}}, those of the run {{'{KNOWN_FAILURE}': 1}}"


def test_no_run_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path)])
    assert ended.value.code == 2
    assert f"run shareproof broker --out {tmp_path}" in capsys.readouterr().err


@pytest.fixture
def npx(run_of_two: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a script in the place of npx, which is the only program that is found."""
    monkeypatch.setenv("PATH", str(run_of_two))
    monkeypatch.setattr(doctor, "missing", lambda _name: "")

    def write_script(text: str) -> None:
        (run_of_two / "npx").write_text(f"#!/bin/sh\n{text}\n")
        (run_of_two / "npx").chmod(0o755)

    return write_script


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("", "there is no npx; pip install 'shareproof[allure]' brings Node.js"),
        ("echo npm error code ENOTFOUND >&2; exit 1", "from npm's registry: ENOTFOUND"),
        ("echo no results; exit 5", f"{ALLURE} ended with 5: no results"),
    ],
)
def test_what_keeps_allure_from_working_is_told(
    run_of_two: Path,
    script: str,
    sentence: str,
    npx: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    if script:
        npx(script)
    assert main([str(run_of_two)]) == 3
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("code", ["SELF_SIGNED_CERT_IN_CHAIN", "ECONNREFUSED", "E403", "E404"])
def test_a_registry_out_of_reach_is_not_run(
    run_of_two: Path,
    code: str,
    npx: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    npx(f"echo npm error code {code} >&2; exit 1")
    record, reached = run_of_two / "record", code == "E404"
    monkeypatch.setenv(doctor.RECORD_VARIABLE, str(record))

    assert main([str(run_of_two)]) == 3
    output = capsys.readouterr()
    assert f"{code}. npm reads npm_config_registry, NODE_EXTRA_CA_CERTS, HTTPS_PROXY" in output.err
    assert output.out.startswith("" if reached else "NOT RUN, and therefore not passed")
    assert record.exists() is not reached


@pytest.mark.skipif(not (ROOT / "docs").exists(), reason="an installation has no documents")
def test_the_recipe_names_the_same_allure() -> None:
    assert f"npx --yes {ALLURE} generate {RESULTS}" in (ROOT / "docs" / "ci.md").read_text()
