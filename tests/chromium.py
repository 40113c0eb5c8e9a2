"""A headless Chromium that opens pages of ours, and the complaint it has about each."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "SHAREPROOF_CHROMIUM"
LACKING = (
    f"There is no Chromium to look at pages with. Install one (apt-get install chromium), or name "
    f"its binary in {VARIABLE}, or let Playwright fetch one (playwright install chromium). "
    f"{VARIABLE}=none leaves these tests out."
)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Give a browser: the one that is named or installed, else the one that Playwright fetches.

    Without any the test fails and says how to get one: a page that nobody opened is not tested.
    """
    named = os.environ.get(VARIABLE) or next(filter(None, map(shutil.which, NAMES)), None)
    if named == "none":
        pytest.skip(f"{VARIABLE} is none")
    with sync_playwright() as play:
        binary = named or _fetched(play)
        with contextlib.closing(
            # A sandbox needs privileges that containers lack, and the pages are our own.
            play.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        ) as browser:
            yield browser


def _fetched(play: Playwright) -> str:
    binary = play.chromium.executable_path
    if not Path(binary).is_file():
        fetch = [sys.executable, "-m", "playwright", "install", "chromium"]
        ended = subprocess.run(fetch, capture_output=True, check=False, timeout=600)
        if ended.returncode or not Path(binary).is_file():
            pytest.fail(LACKING)
    return binary


@dataclass
class Look:
    """A page that is open, and all that went wrong on it since."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def axe(self) -> list[str]:
        """Return what axe-core finds wrong for those who do not see, hear or point."""
        found = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {node['html'][:200]}" for one in found for node in one["nodes"]]

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@contextlib.contextmanager
def look(
    browser: Browser, file: Path, anchor: str = "", *, dark: bool = False, width: int = 1280
) -> Iterator[Look]:
    """Open a file in a window of its own, without a network."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        offline=True,
    )
    with contextlib.closing(context):
        page = context.new_page()
        seen = Look(page)
        page.on("console", lambda said: seen.complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.on("request", lambda asked: _note_strangers(seen, asked.url))
        page.goto(file.as_uri() + anchor)
        yield seen


def _note_strangers(seen: Look, url: str) -> None:
    if not url.startswith(("file:", "blob:", "data:")):
        seen.complaints.append(f"asked the network for {url}")
