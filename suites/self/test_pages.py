"""Pages as a reader meets them: opened in a headless Chromium, searched, followed and printed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from reports import html
from reports.results import write
from reports.site.archive import find
from reports.site.build import build
from suites.self.chromium import chromium, look
from suites.self.test_results import HOSTILE, document

FRAMES = f"1.000 → 127.0.0.1:1 ShareFetch v2 #1\n      group_id: {HOSTILE}\n1.001 ← bye\n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for all tests of this file."""
    with chromium() as found:
        yield found


def results(text: str = "A rule that holds.") -> Any:
    """Return results with every verdict, all of whose words are ``text``."""
    found = document(text)
    first, untested = found["requirements"]
    words = ("pass", "error", "unknown", "vacuous", "unsupported")
    more = [
        first | {"id": f"SES-{number:02}", "area": "SES", "verdict": word, "level": "SHOULD"}
        for number, word in enumerate(words)
    ]
    for rule in more:
        rule |= {"expected": True, "problem": "", "checks": []}
    first["checks"][0]["transcript"] = "transcripts/x.txt"
    found["requirements"] = [first, untested, *more]
    found["summary"] |= dict.fromkeys((*words, "fail", "untested"), 1)
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run in which everything that came from outside is hostile."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "transcripts").mkdir()
    (folder / "transcripts" / "x.txt").write_text(FRAMES, encoding="utf-8")
    return html.write(folder, results(HOSTILE))


def test_page_opens_without_a_complaint(browser: Browser, page: Path) -> None:
    """A page opens offline, asks for nothing, and has nothing to say on the console."""
    with look(browser, page) as seen:
        assert seen.page.title() == f"shareproof: {HOSTILE}"
        assert seen.complaints == []


def test_search_and_filter(browser: Browser, page: Path) -> None:
    """Verdicts, levels and words narrow the rules down, and one press shows all of them again."""
    with look(browser, page) as seen:
        tab, rules = seen.page, seen.page.locator(".rule:visible")
        assert rules.count() == 7
        tab.get_by_role("button", name="vacuous").click()
        assert rules.evaluate_all("all => all.map(each => each.id)") == ["SES-03"]
        tab.get_by_role("button", name="vacuous").click()
        tab.get_by_role("button", name="unexpected").click()
        assert rules.evaluate_all("all => all.map(each => each.id)") == ["ACK-01"]
        tab.get_by_role("button", name="unexpected").click()
        tab.get_by_label("Level", exact=True).select_option("SHOULD")
        tab.get_by_label("Search the rules").fill("ses-02")
        assert rules.count() == 1
        assert tab.locator("#shown").inner_text() == "1 of 7 rules"
        tab.get_by_label("Search the rules").fill("no such words")
        assert rules.count() == 0
        tab.get_by_role("button", name="Show all rules").click()
        assert rules.count() == 7
        assert seen.complaints == []


def test_anchor_opens_its_rule(browser: Browser, page: Path) -> None:
    """An address that ends in a rule's id shows that rule open, also when a filter hides it."""
    with look(browser, page, "#SES-02") as seen:
        assert seen.page.locator("#SES-02").get_attribute("open") is not None
        seen.page.get_by_label("Search the rules").fill("ses-03")
        assert seen.page.locator("#ACK-01").is_hidden()
        seen.page.evaluate("location.hash = '#ACK-01'")
        seen.page.locator("#ACK-01[open]").wait_for(state="visible")


def test_links_lead_somewhere(browser: Browser, page: Path) -> None:
    """Every link inside a page names something that is there."""
    with look(browser, page) as seen:
        dead = seen.page.evaluate(
            """[...document.querySelectorAll('a[href^="#"]')].map(each => each.hash.slice(1))
                .filter(name => !document.getElementById(name))"""
        )
        assert dead == []


def test_frames_are_unpacked_on_demand(browser: Browser, page: Path) -> None:
    """A transcript travels inside the page; its frames are listed, and stay text."""
    with look(browser, page, "#ACK-01") as seen:
        seen.page.locator("#ACK-01 .frames > summary").click()
        first = seen.page.locator(".frame-list > details").first
        first.wait_for()
        first.locator("summary").click()
        assert HOSTILE in first.locator("pre").inner_text()
        assert seen.complaints == []


def test_hostile_text_stays_text(browser: Browser, page: Path) -> None:
    """What a target, a check or a ledger says is shown as it is, and never runs or becomes markup.

    Even a script that were to get into the page does not run: its digest is not in the policy.
    """
    with look(browser, page) as seen:
        seen.page.on("dialog", lambda _: seen.complaints.append("a script ran"))
        assert seen.page.locator("main script, header script").count() == 0
        assert HOSTILE in seen.page.locator("#top h1").inner_text()
        seen.page.evaluate(
            """document.body.append(Object.assign(document.createElement('script'),
                {textContent: 'document.title = "broken into"'}))"""
        )
        assert seen.page.title() != "broken into"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("anchor", ["", "#ACK-01", "#certificate"])
def test_accessible(browser: Browser, page: Path, anchor: str, *, dark: bool) -> None:
    """Axe finds nothing: names, contrast, order, with a rule open and on the certificate."""
    with look(browser, page, anchor, dark=dark) as seen:
        assert seen.axe() == []


@pytest.mark.parametrize("anchor", ["", "#ACK-01", "#certificate"])
def test_fits_a_phone(browser: Browser, page: Path, anchor: str) -> None:
    """On a phone nothing is wider than the screen."""
    with look(browser, page, anchor, width=360) as seen:
        assert seen.overflow() <= 0


def test_certificate_is_one_sheet(browser: Browser, tmp_path: Path) -> None:
    """The certificate of a run with dozens of known bugs prints on a single page, and alone."""
    found = results()
    known = found["requirements"][0] | {"expected": True, "problem": ""}
    found["requirements"] = [known | {"id": f"ACK-{number}"} for number in range(10, 60)]
    with look(browser, html.write(tmp_path, found), "#certificate") as seen:
        assert not seen.page.locator("#rules").is_visible()
        assert seen.page.get_by_text("This is no certificate: the run was cut short").is_visible()
        sheet = seen.page.pdf(prefer_css_page_size=True)
    assert sheet.count(b"/Type /Page\n") + sheet.count(b"/Type /Page ") == 1


def test_site_tells_the_history_of_a_rule(browser: Browser, tmp_path: Path) -> None:
    """In an archive a rule's entry leads to what other runs of the same subject said of it."""
    for day in (1, 2):
        found = results()
        found["run"]["started"] = f"2026-03-0{day}T00:00:00+00:00"
        write(tmp_path / "runs" / str(day), found)
    archive = find([tmp_path / "runs"])
    index = build(archive, tmp_path / "site")
    newest = index.parent / "runs" / archive.runs[1].slug / "report.html"
    with look(browser, newest, "#SES-00") as seen:
        seen.page.locator("#SES-00 .told a").click()
        seen.page.locator("#SES-00[open]").wait_for()
        assert archive.runs[0].slug in seen.page.url
        assert seen.complaints == []
