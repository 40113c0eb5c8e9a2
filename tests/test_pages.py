"""Pages as a reader meets them: in a headless Chromium, searched, followed, printed, on a phone."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from fixtures.targets import doctor
from reports import html
from reports.reader import parse
from reports.site.archive import find
from reports.site.build import build
from reports.site.detection import Detection
from shareproof.detected import detection
from tests.test_results import HOSTILE, document, keep
from tests.test_site import judged


@dataclass
class Look:
    page: Page
    complaints: list[str] = field(default_factory=list)

    def axe(self) -> list[str]:
        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]

    def overflow(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@contextlib.contextmanager
def look(
    browser: Browser, file: Path, anchor: str = "", *, dark: bool = False, width: int = 1280
) -> Iterator[Look]:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        locale="en-US",  # under LANG=C Chromium has none that uPlot can parse
        color_scheme="dark" if dark else "light",
        offline=True,
    )
    with contextlib.closing(context):
        page = context.new_page()
        seen = Look(page)
        page.on("console", lambda note: seen.complaints.append(f"{note.type}: {note.text}"))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("request", lambda request: _note_strangers(seen, request.url))
        page.goto(file.as_uri() + anchor)
        yield seen


def _note_strangers(seen: Look, url: str) -> None:
    if not url.startswith(("file:", "blob:", "data:")):
        seen.complaints.append(f"asked the network for {url}")


FRAMES = f"1.000 → 127.0.0.1:1 ShareFetch v2 #1\n      group_id: {HOSTILE}\n1.001 ← bye\n"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser; without any the tests are skipped, and the run says so at its end."""
    if lacks := doctor.missing("Chromium"):
        pytest.skip(lacks)
    # A sandbox needs privileges that containers lack, and the pages are our own.
    how = {"executable_path": doctor.chromium(), "args": ["--no-sandbox"]}
    with sync_playwright() as play, contextlib.closing(play.chromium.launch(**how)) as found:  # type: ignore[arg-type]
        yield found


def results(text: str = "A rule that holds.") -> Any:
    found = document(text)
    first, untested = found["rules"]
    words = ("pass", "error", "unknown", "vacuous", "unsupported")
    more = [
        first | {"id": f"SES-{number:02}", "area": "SES", "verdict": word, "level": "SHOULD"}
        for number, word in enumerate(words)
    ]
    for rule in more:
        rule |= {"expected": True, "problem": "", "checks": []}
    first["checks"][0]["transcript"] = "transcripts/x.txt"
    found["rules"] = [first, untested, *more]
    found["summary"] |= dict.fromkeys((*words, "fail", "untested"), 1)
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "transcripts").mkdir()
    (folder / "transcripts" / "x.txt").write_text(FRAMES, encoding="utf-8")
    return html.write_page(folder, parse(results(HOSTILE)))


def test_page_opens_without_a_complaint_and_links_lead_somewhere(
    browser: Browser, page: Path
) -> None:
    with look(browser, page) as seen:
        assert seen.page.title() == f"shareproof: {HOSTILE}"
        dead = seen.page.evaluate(
            """[...document.querySelectorAll('a[href^="#"]')].map(each => each.hash.slice(1))
                .filter(name => !document.getElementById(name))"""
        )
        assert dead == []
        assert seen.complaints == []


def test_search_and_filter(browser: Browser, page: Path) -> None:
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
    with look(browser, page, "#SES-02") as seen:
        assert seen.page.locator("#SES-02").get_attribute("open") is not None
        seen.page.get_by_label("Search the rules").fill("ses-03")
        assert seen.page.locator("#ACK-01").is_hidden()
        seen.page.evaluate("location.hash = '#ACK-01'")
        seen.page.locator("#ACK-01[open]").wait_for(state="visible")


def test_frames_are_unpacked_on_demand(browser: Browser, page: Path) -> None:
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


@pytest.mark.parametrize("anchor", ["", "#ACK-01", "#certificate"])
def test_accessible_and_fits_a_phone(browser: Browser, page: Path, anchor: str) -> None:
    for dark in (False, True):
        with look(browser, page, anchor, dark=dark) as seen:
            assert seen.axe() == []
    with look(browser, page, anchor, width=360) as seen:
        assert seen.overflow() <= 0


def test_certificate_is_one_sheet(browser: Browser, tmp_path: Path) -> None:
    found = results()
    known = found["rules"][0] | {"expected": True, "problem": ""}
    found["rules"] = [known | {"id": f"ACK-{number}"} for number in range(10, 60)]
    with look(browser, html.write_page(tmp_path, parse(found)), "#certificate") as seen:
        assert not seen.page.locator("#rules").is_visible()
        assert seen.page.get_by_text("This is no certificate: the run was cut short").is_visible()
        sheet = seen.page.pdf(prefer_css_page_size=True)
    assert sheet.count(b"/Type /Page\n") + sheet.count(b"/Type /Page ") == 1


def test_site_tells_the_history_of_a_rule(browser: Browser, tmp_path: Path) -> None:
    for day in (1, 2):
        found = results()
        found["run"]["started"] = f"2026-03-0{day}T00:00:00+00:00"
        keep(tmp_path / "runs" / str(day), found)
    archive = find([tmp_path / "runs"])
    index = build(archive, tmp_path / "site", Detection())
    newest = index.parent / "runs" / archive.runs[1].slug / "report.html"
    with look(browser, newest, "#SES-00") as seen:
        seen.page.locator("#SES-00 .told a").click()
        seen.page.locator("#SES-00[open]").wait_for()
        assert archive.runs[0].slug in seen.page.url
        seen.page.get_by_role("link", name="All runs").click()
        assert seen.page.url == index.as_uri()
        assert seen.complaints == []


def recorded(text: str, *, bins: int = 600, partitions: int = 18) -> dict[str, Any]:
    column = list(range(bins))
    return {
        "began": 0,
        "step": 6.0,
        "bins": bins,
        "produced": column,
        "groups": [
            {
                "group": f"sp-{name}-{text}",
                **dict.fromkeys(("acquired", "again", "finished", "in_flight"), column),
            }
            for name in ("calm", "odd", "rough")
        ],
        "response_ms": {"median": [None, *column[1:]], "p99": [None, *column[1:]]},
        "partitions": [
            {
                "group": f"sp-{('calm', 'odd', 'rough')[number % 3]}-{text}",
                "partition": f"{text}-{number // 3}",
                "seen": [[6.0 * at, 10 * at, None if at % 7 else 3] for at in column],
            }
            for number in range(partitions)
        ],
        "faults": [{"kind": text, "subject": text, "since": 600.0, "until": 900.0}],
        "phases": [{"phase": text, "since": 0.0, "until": 3600.0}],
        "marks": [{"rule": "ACK-01", "at": 700.0, "text": text}],
    }


def test_what_came_before_it_was_due_is_drawn(tmp_path: Path) -> None:
    found = results("INV-01")
    row = {"during": "load", "measure": "redelivery", "count": 7}
    early = {"median": -3514, "p90": -1003, "p99": -1003, "max": -1002}
    found["distributions"] = {"/run/history": [row | early]}
    assert "-1002" in html.write_page(tmp_path, parse(found)).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chaos")
    found = results(HOSTILE)
    fault = {"fault": HOSTILE, "subject": HOSTILE, "at": 600.0, "lasts": 300.0, "trouble": HOSTILE}
    fault |= {"since": 600 * 10**9, "until": 900 * 10**9, "hit": "", "healed": HOSTILE}
    fault |= {"blocked_by": HOSTILE}
    row = {"during": HOSTILE, "measure": HOSTILE, "count": 7}
    found["distributions"] = {"/run/history": [row | {"median": 0, "p90": 1, "p99": 2, "max": 9}]}
    found["reached"] = {"/run/history": [{"state": HOSTILE, "count": 0}]}
    found["chaos"] = [
        {
            "run": "/run",
            "scenario": HOSTILE,
            "seed": 1,
            "produced": 1,
            "delivered": 1,
            "drained": False,
            "verdict": "vacuous",
            "seconds": 3600.0,
            "owed": [HOSTILE],
            "trouble": [HOSTILE],
            "faults": [fault],
        }
    ]
    story = {"record": HOSTILE, "group": HOSTILE, "rules": ["ACK-01"], "steps": [[1.0, HOSTILE]]}
    drawn = {"timeline": recorded(HOSTILE), "stories": [story]}
    text = json.dumps({"schema": 1, "runs": {"/run/history": drawn}})
    (folder / "timelines.json").write_text(text, encoding="utf-8")
    return html.write_page(folder, parse(found))


def test_an_hour_of_chaos_is_drawn(browser: Browser, chaos: Path) -> None:
    assert chaos.stat().st_size < 5_000_000
    with look(browser, chaos, "#chaos") as seen:
        seen.page.locator(".uplot canvas").nth(4).wait_for()
        captions = seen.page.locator("figcaption").all_inner_texts()
        assert captions == [
            "Records per second",
            "Response to an acknowledgement, ms",
            "In flight",
            "Start offset (SPSO)",
            "Lag",
        ]
        assert seen.complaints == []


def test_plots_zoom_together_and_draw_another_group(browser: Browser, chaos: Path) -> None:
    with look(browser, chaos, "#chaos") as seen:
        box = seen.page.locator(".plots")
        seen.page.locator(".uplot canvas").nth(4).wait_for()
        whole = box.get_attribute("data-shown")
        seen.page.get_by_role("button", name="600.0 s").click()
        assert box.get_attribute("data-shown") == "599.0 to 901.0"
        seen.page.get_by_role("button", name="Whole run").click()
        assert box.get_attribute("data-shown") == whole == "0.0 to 3600.0"
        over = seen.page.locator(".u-over").nth(2)
        over.scroll_into_view_if_needed()
        plot = over.bounding_box()
        assert plot is not None
        middle = plot["y"] + plot["height"] / 2
        seen.page.mouse.move(plot["x"] + plot["width"] / 4, middle)
        seen.page.mouse.down()
        seen.page.mouse.move(plot["x"] + plot["width"] / 2, middle, steps=5)
        seen.page.mouse.up()
        expect(box).not_to_have_attribute("data-shown", "0.0 to 3600.0")
        shown = [float(end) for end in str(box.get_attribute("data-shown")).split(" to ")]
        assert shown == pytest.approx([900, 1800], rel=0.05)
        seen.page.get_by_label("Group").select_option(label="odd")
        seen.page.locator(".uplot canvas").nth(4).wait_for()
        assert seen.page.locator("figure").count() == 5
        assert seen.complaints == []


def test_timeline_is_accessible_and_fits_a_phone(browser: Browser, chaos: Path) -> None:
    for dark in (False, True):
        with look(browser, chaos, "#chaos", dark=dark) as seen:
            seen.page.locator(".uplot canvas").nth(4).wait_for()
            unfold = "document.querySelectorAll('details').forEach(each => each.open = true)"
            seen.page.evaluate(unfold)
            assert seen.axe() == []
    with look(browser, chaos, "#chaos", width=360) as seen:
        seen.page.locator(".uplot canvas").nth(4).wait_for()
        assert seen.overflow() <= 0


# --- The site ---------------------------------------------------------------------------------

PAGES = ("index", "rules", "detection", "track-record", "rules/ACK-01", "changes/*")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("archive")
    for day, (release, verdict) in enumerate((("4.3.1", "fail"), ("4.4.0", "pass")), start=1):
        keep(room / release, judged(verdict, day=day, target=f"kafka:{release}"))
        client = judged(verdict, day=day + 2)
        client["client"] = {
            "name": "java",
            "version": release,
            "language": "Java",
            "runtime": "OpenJDK 21",
            "capabilities": [],
            "facing": "kafka:4.4.0",
            "facing_version": "4.4.0",
            "brokers": {},
        }
        keep(room / f"java-{release}", client)
    return build(find([room]), room / "site", detection()).parent


@pytest.mark.parametrize("name", PAGES)
def test_pages_of_a_site_are_accessible_and_fit_a_phone(
    browser: Browser, site: Path, name: str
) -> None:
    pages = list(site.glob(f"{name}.html"))
    assert pages
    for page in pages:
        for dark in (False, True):
            with look(browser, page, dark=dark) as seen:
                assert seen.axe() == []
                assert seen.complaints == []
        with look(browser, page, width=360) as seen:
            assert seen.overflow() <= 0


def test_a_row_of_the_matrix_opens(browser: Browser, site: Path) -> None:
    with look(browser, site / "detection.html", "#ACK-07") as seen:
        row = seen.page.locator("#ACK-07")
        assert not row.locator("li").first.is_visible()
        row.locator("summary").click()
        assert row.locator("li").first.is_visible()
