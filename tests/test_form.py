"""What reports and judging again make of results that are not as we write them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from reports.plain import text_of, to_plain
from reports.reading import parse
from reports.site.archive import find
from reports.site.build import build
from shareproof.detected import detection
from tests.test_results import certificate, document, keep

Spoil = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda found: found.clear(), "'schema' is a required property"),
        (lambda found: found.pop("run"), "'run' is a required property"),
        (lambda found: found.update(run=[]), "run: [] is not of type 'object'"),
        (lambda found: found["target"].pop("name"), "target: 'name' is a required property"),
        (lambda found: found["run"].update(started="once"), "run.started: 'once' is no time"),
        (
            lambda found: found["requirements"][0].update(verdict="fine"),
            "requirements[0].verdict: 'fine' is not one of",
        ),
        (lambda found: found["target"].update(name="\ud83d"), "half of a character"),
        (lambda found: found["requirements"][0].update(id="../../x"), "requirements[0].id: '../"),
        *[
            (
                lambda found, name=name: found["requirements"][0]["checks"][0].update(
                    transcript=name
                ),
                f"ACK-01: its transcript {name!r} is not below the run",
            )
            for name in ("../../.ssh/id_rsa", "/etc/passwd")
        ],
    ],
)
def test_form_is_demanded(spoil: Spoil, said: str) -> None:
    found = document()
    spoil(found)
    with pytest.raises(ValueError, match=r"^.+") as refused:
        parse(found)
    assert said in str(refused.value)


@pytest.mark.parametrize("made", [document, certificate])
def test_what_we_write_has_the_form(made: Callable[[], dict[str, Any]]) -> None:
    assert to_plain(parse(made())) == made()


def test_later_releases_are_read() -> None:
    parse(document() | {"weather": "fine"})


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
    told = {line.split("results.json: ")[0].split("/")[-2]: line for line in archive.left_out}
    assert set(told) == {"half", "later", "list", "bare", "bytes"}
    assert "only a part of it" in told["half"]
    assert "of schema 2, and this release knows 1: use a later one" in told["later"]


def test_copies_of_a_run_count_once(tmp_path: Path) -> None:
    keep(tmp_path / "a-copy", document())
    shutil.copytree(tmp_path / "a-copy", tmp_path / "run")
    (tmp_path / "run" / "history").mkdir()

    archive = find([tmp_path, tmp_path / "run"])

    assert [run.folder.name for run in archive.runs] == ["run"]
    assert archive.unreadable == ()
    assert "the same run as" in archive.doubles[0]


def test_a_site_among_its_runs(tmp_path: Path) -> None:
    keep(tmp_path / "run", document())
    (tmp_path / "run" / "junit.xml").touch()
    for archive in (tmp_path, tmp_path, tmp_path / "site"):
        build(find([archive]), tmp_path / "site", detection())
    assert len(list((tmp_path / "site" / "runs").iterdir())) == 1


def test_half_a_timeline_spoils_no_page(tmp_path: Path) -> None:
    keep(tmp_path / "run", document())
    for text in ('{"schema": 1, "ru', '{"schema": 1}', json.dumps({"schema": 99, "runs": 3})):
        (tmp_path / "run" / "timelines.json").write_text(text, encoding="utf-8")
        build(find([tmp_path / "run"]), tmp_path / "site", detection())


def test_names_of_any_length_and_kind_have_a_page_and_a_feed(tmp_path: Path) -> None:
    for day, name in enumerate(("long " * 100, "bell \x07", "long " * 100), 1):
        found = document()
        found["target"]["name"] = name
        found["run"]["started"] = f"2026-03-0{day}T00:00:00+00:00"
        keep(tmp_path / str(day), found)
    first = build(find([tmp_path]), tmp_path / "site", detection())
    assert len(list((first.parent / "runs").iterdir())) == 3
    assert len(ElementTree.parse(first.parent / "feed.xml").findall(".//item")) == 3  # noqa: S314
