"""The site's pages in a browser: nothing to complain of, on a phone, by day and by night."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from reports.site.archive import find
from reports.site.build import build
from shareproof.detected import detection
from tests.chromium import chromium, look
from tests.test_results import keep
from tests.test_site import judged

PAGES = ("index", "rules", "detection", "track-record", "rules/ACK-01")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for all tests of this file."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site over two releases and two clients, with the matrix of today's records."""
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


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_accessible(browser: Browser, site: Path, name: str, *, dark: bool) -> None:
    with look(browser, site / f"{name}.html", dark=dark) as seen:
        assert seen.axe() == []
        assert seen.complaints == []


def test_changes_are_accessible(browser: Browser, site: Path) -> None:
    for page in (site / "changes").iterdir():
        with look(browser, page, width=360) as seen:
            assert seen.axe() == []
            assert seen.overflow() <= 0


@pytest.mark.parametrize("name", PAGES)
def test_fits_a_phone(browser: Browser, site: Path, name: str) -> None:
    with look(browser, site / f"{name}.html", width=360) as seen:
        assert seen.overflow() <= 0


def test_a_row_of_the_matrix_opens(browser: Browser, site: Path) -> None:
    with look(browser, site / "detection.html", "#ACK-07") as seen:
        row = seen.page.locator("#ACK-07")
        assert not row.locator("li").first.is_visible()
        row.locator("summary").click()
        assert row.locator("li").first.is_visible()
