"""A headless Chromium that opens pages of ours, and the complaint it has about each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from fixtures.targets import optional


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Give a browser: the one that is named or installed, or that Playwright has fetched.

    Without any the tests are skipped, and the run says at its end that they were not run.
    """
    if lacks := optional.missing("Chromium"):
        pytest.skip(lacks)
    with (
        sync_playwright() as play,
        contextlib.closing(
            # A sandbox needs privileges that containers lack, and the pages are our own.
            play.chromium.launch(executable_path=optional.chromium(), args=["--no-sandbox"])
        ) as browser,
    ):
        yield browser


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
