"""What a run writes for machines and for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from reports import console, html, telling
from reports.badge import DIM, GOOD, of_results
from reports.building import RunRecord, timing_of
from reports.building import document as document_of
from reports.plain import to_plain
from reports.reading import SCHEMA_FILE, parse, read
from reports.results import Client, Results, Run, Target
from reports.writing import write
from spec.profile import Expected, Profile
from spec.requirement import Basis, Honesty, Level, Requirement
from spec.source import Kind, Source
from spec.verdict import Observation, Verdict
from tools.documents import schemas

HOSTILE = "<script>alert('1')</script>[red]{{ 7777*7777 }}"


def document(text: str = "A rule.") -> dict[str, Any]:
    """Return a broker's results in which everything says ``text``, as their file has them."""
    found: dict[str, Any] = to_plain(_results(text))
    return found


def certificate(text: str = "A rule.") -> dict[str, Any]:
    """Return a client's results in which everything says ``text``, as their file has them."""

    def faced(check: str) -> str:
        return text if check.startswith("suites/broker/test_x") else ""

    found: dict[str, Any] = to_plain(_results(text, client=client(text), faced=faced))
    return found


def keep(folder: Path, plain: dict[str, Any]) -> None:
    """Write results, given as their file has them."""
    write(folder, parse(plain))


def _results(
    text: str, client: Client | None = None, faced: Callable[[str], str] = lambda _: ""
) -> Results:
    rule = _rule(text)
    entry = Expected(
        requirement="ACK-01",
        verdict=Verdict.FAIL,
        versions="",
        match="nothing",
        reason=text,
        bug=text,
        expires=date(2027, 1, 1),
    )
    seen = Observation(
        requirement="ACK-01",
        check=f"suites/broker/test_x.py::test_{text}",
        verdict=Verdict.FAIL,
        reason=text,
        evidence={text: 1},
        witness=(text,),
        first=Observation(requirement="ACK-01", check=text, verdict=Verdict.UNKNOWN, reason=text),
    )
    untested = Requirement(
        id="ACK-02",
        level=Level.MAY,
        text=text,
        basis=Basis.CONTRACT,
        source=(Source(kind=Kind.ISSUE, name=text),),
        since="4.1",
        honesty=Honesty.UNTESTED,
        why=text,
    )
    found = document_of(
        RunRecord(
            rules={"ACK-01": rule, "ACK-02": untested},
            observations=[seen],
            ledger=Profile(name="p", expected=(entry,)),
            target=Target(
                name=text, version="4.4.0", profile=text, brokers=3, properties={text: text}
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
    return replace(found, run=run(text), target=target, newer_than_target=("ACK-09",))


def _rule(text: str) -> Requirement:
    return Requirement(
        id="ACK-01",
        level=Level.MUST,
        text=text,
        basis=Basis.CONTRACT,
        source=(Source(kind=Kind.ISSUE, name=text),),
        since="4.1",
        honesty=Honesty.STOCHASTIC,
    )


def client(text: str, **known: str) -> Client:
    """Return what a client says it is."""
    words = ("name", "version", "language", "runtime", "facing", "facing_version")
    return Client(**{**dict.fromkeys(words, text), **known}, capabilities=(text,), brokers={})


def run(text: str) -> Run:
    """Return a run's facts."""
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


def test_results_follow_the_shipped_schema() -> None:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)

    for found in (document(), certificate()):
        jsonschema.validate(found, schema, cls=jsonschema.Draft202012Validator)


def test_certificates_tell_which_broker_was_faced() -> None:
    found = certificate()
    judged, untested = found["requirements"]

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


def test_summary_prints_the_unexpected_only() -> None:
    text = console.render_text(parse(document("twice")))

    assert "fail ACK-01 MUST twice" in text
    assert "$ shareproof broker --only ACK-01" in text
    assert "ACK-02" not in text
    assert "1 fail, 1 untested" in text
    assert "partial run" in text


def test_summary_takes_hostile_text_literally() -> None:
    assert HOSTILE in console.render_text(parse(document(HOSTILE)))


@pytest.mark.parametrize(
    ("language", "runtime", "told"),
    [
        ("java", "17.0.15+6", "java 17.0.15+6"),
        ("Python", "Python 3.11.7, librdkafka 2.16.0", "Python 3.11.7, librdkafka 2.16.0"),
        ("go", "go1.26.8", "go1.26.8"),
        ("", "", ""),
    ],
)
def test_runtime_of_a_client_is_told_once(language: str, runtime: str, told: str) -> None:
    assert telling.runtime(client("x", language=language, runtime=runtime)) == told


def test_schema_is_generated_from_the_types() -> None:
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schemas.text()


def reaching(*reasons: str, passing: int = 0, strict: bool = False) -> Results:
    """Return results of a run that could not ask some rules, for these reasons."""
    rules: dict[str, Requirement] = {}
    seen: list[Observation] = []
    for number, reason in enumerate([*reasons, *[""] * passing], 1):
        rules[f"ACK-{number:02}"] = rule = replace(_rule("A rule."), id=f"ACK-{number:02}")
        verdict = Verdict.OUT_OF_REACH if reason else Verdict.PASS
        seen.append(Observation(requirement=rule.id, check="x", verdict=verdict, reason=reason))
    record = RunRecord(
        rules=rules,
        observations=seen,
        ledger=Profile(name="p"),
        target=Target(name="t", version="4.4.0", profile="p", brokers=1, properties={}),
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
    assert telling.headline(found).sentence == (
        "4 of 10 contract rules hold, 6 out of reach: not yours (3), one broker (1), "
        "and 2 other reasons."
    )
    assert telling.headline(reaching("one broker", passing=1)).sentence == (
        "1 of 2 contract rules hold, 1 out of reach: one broker."
    )
    page = html.render(found)
    assert "<li><b>3</b> not yours</li>" in page
    assert 'class="v out of reach"' in page
    text = console.render_text(found)
    assert "4 pass, 6 out of reach" in text
    assert "3 out of reach: not yours" in text
    assert "unexpected" not in text


def test_badge_says_what_is_out_of_reach() -> None:
    most = of_results(reaching("one broker", passing=2))
    assert (most.message, most.colour) == ("2 of 3 rules, 1 out of reach", GOOD)
    few = of_results(reaching("one broker", "no topics", passing=1))
    assert (few.message, few.colour) == ("1 of 3 rules, 2 out of reach", DIM)


def test_strict_reach_fails_the_run() -> None:
    found = reaching("one broker", passing=2, strict=True)

    assert found.run.exit_code == 1
    assert found.summary["unexpected"] == 1
    assert "out of reach ACK-01 MUST A rule." in console.render_text(found)


def test_notices_are_shown() -> None:
    found = document()
    found["run"]["notices"] = ["Kafka 4.9 is newer than this suite"]

    assert "notice Kafka 4.9 is newer than this suite" in console.render_text(parse(found))
    assert "Kafka 4.9 is newer than this suite" in html.render(parse(found))
