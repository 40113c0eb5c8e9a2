"""What each rule rests on: pinpoints, not headings, and messages and fields that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from spec.configs import load_configs
from spec.requirement import Basis, Level, SpecError, load_requirements
from spec.source import Kind, Source, load_kips, parse_sources
from tests.release import RELEASE, schemas

RULES = load_requirements()
REF = Basis.REFERENCE
CITED = [(rule.id, source) for rule in RULES.values() for source in rule.source]
NOT_FIELDS = {"Supported errors", "valid versions", "listeners"}
"""What a message definition says beside its fields."""


def of(kind: Kind) -> list[tuple[str, Source]]:
    """Return the sources of a kind with the rules that name them."""
    return [(rule, source) for rule, source in CITED if source.kind is kind]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (None, "ACK-01 names no source"),
        ([], "ACK-01 names no source"),
        (["KIP-932 §In-flight records"], "exactly one of kip, message"),
        ([{"kip": "932", "section": "In-flight records"}], "is no pinpoint; name the section"),
        ([{"kip": "932", "says": "A record is delivered."}], "is no pinpoint; name the section"),
        ([{"message": "ShareFetchResponse", "says": "An error."}], "name the field"),
        ([{"doc": "group-configs", "anchor": "x"}], "name the anchor"),
        ([{"kip": "932", "section": "x", "says": ""}], "a text that is not empty"),
        ([{"kip": "932", "doc": "x", "section": "x", "says": "y"}], "exactly one of"),
        ([{"kip": "932", "test": "T.t", "section": "x", "says": "y"}], "unknown keys ['test']"),
        ([{"test": "T.t"}], "exactly one of"),
        ([{"kip": "1", "section": "x", "says": "y"}], "KIP-1 is not in kips.toml"),
    ],
)
def test_a_source_is_a_pinpoint(raw: object, said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(said)):
        parse_sources({"source": raw}, "x.toml: ACK-01")


@pytest.mark.parametrize("raw", ["", ["T.t", ""], {"key": "T.t"}])
@pytest.mark.parametrize("kind", ["code", "test", "issue"])
def test_what_is_no_contract_is_a_name(kind: str, raw: object) -> None:
    with pytest.raises(SpecError, match=f"ACK-01: {kind} is a name or a list of names"):
        parse_sources({kind: raw}, "x.toml: ACK-01")


def test_a_contract_has_a_sentence() -> None:
    bare = [
        rule.id
        for rule in RULES.values()
        if rule.basis is Basis.CONTRACT and not any(each.contract for each in rule.source)
    ]

    assert bare == []


def test_must_needs_a_contract() -> None:
    bare = [rule.id for rule in RULES.values() if rule.level is Level.MUST and rule.basis is REF]

    assert bare == []


def test_equal_rules_have_equal_levels() -> None:
    assert RULES["ACQ-03"].level is RULES["COO-33"].level
    assert {RULES[rule].level for rule in ("COO-36", "COO-37", "COO-38")} == {Level.MUST}


def test_sections_of_a_changed_page_were_read() -> None:
    sections = load_kips()["932"].sections
    cited = [(rule, source.place) for rule, source in of(Kind.KIP) if source.name == "932"]
    unread = {place for place, text in sections.items() if text == "later"}
    alone = [
        rule.id
        for rule in RULES.values()
        if rule.level is Level.MUST
        and all(
            each.name == "932" and each.place in unread for each in rule.source if each.contract
        )
    ]

    assert {place for _, place in cited} == sections.keys()
    assert alone == []


def test_kips_say_which_text_was_read() -> None:
    assert [number for number, kip in load_kips().items() if not kip.revision] == []
    assert load_kips().keys() == {source.name for _, source in of(Kind.KIP)}


def _fields(fields: list[Mapping[str, Any]]) -> Iterator[str]:
    for field in fields:
        yield field["name"]
        yield from _fields(field.get("fields", []))


def test_messages_and_fields_exist() -> None:
    wrong = []
    for rule, source in of(Kind.MESSAGE):
        text = schemas().texts.get(source.name, "{}")
        plain = re.sub(r"(?m)^\s*//.*$", "", text)
        fields = {*_fields(json.loads(plain).get("fields", [])), *NOT_FIELDS}
        errors = re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b", source.says)
        if source.place not in fields or (
            source.place == "Supported errors" and not _lists(text, errors, source.says)
        ):
            wrong.append((rule, str(source)))

    assert wrong == []


def _lists(text: str, errors: list[str], says: str) -> bool:
    """Tell whether a definition lists every error, but those that the source says it does not."""
    return all((error in text) != (f"{error} is none" in says) for error in errors)


def test_configurations_exist() -> None:
    known = load_configs(RELEASE).keys()
    cited = {
        source.place.partition("_")[2]
        for _, source in of(Kind.DOC)
        if source.place.startswith(("groupconfigs_", "brokerconfigs_")) and "share" in source.place
    }

    assert {name for name in cited if "*" not in name} - known == set()
