"""The pictures of the README, made from a real run: ``python -m tools.documents.pictures RUN``.

RUN is the directory of a finished run of ``shareproof broker``; more directories make the matrix
of the site larger. The page and the site are rendered again from their results, opened in a
headless Chromium, and written to ``docs/pictures`` as PNG files.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, sync_playwright

from shareproof import ROOT
from shareproof.cli import app

PICTURES = ROOT / "docs" / "pictures"
LARGEST = 150_000
"""Bytes that a picture may have."""
VIEW = ViewportSize(width=1100, height=760)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextlib.contextmanager
def browser_page() -> Iterator[Page]:
    named = os.environ.get("SHAREPROOF_CHROMIUM") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=named, args=["--no-sandbox"])
        with contextlib.closing(browser):
            yield browser.new_page(viewport=VIEW, color_scheme="light")


def rendered(runs: Sequence[Path], into: Path) -> tuple[Path, Path]:
    """Render copies of runs again; return the page of the first run and the site of all."""
    copies = [into / "runs" / run.name for run in runs]
    for run, copy in zip(runs, copies, strict=True):
        shutil.copytree(run, copy)
    app(["report", str(copies[0])], standalone_mode=False)
    site = into / "site"
    app(["report", str(into / "runs"), "--site", str(site)], standalone_mode=False)
    return copies[0] / "report.html", site


def photograph(page: Page, address: str, name: str, height: int) -> Path:
    """Write a picture of the top of a page, ``height`` pixels high."""
    page.set_viewport_size(ViewportSize(width=VIEW["width"], height=height))
    page.goto(address)
    file = PICTURES / f"{name}.png"
    page.screenshot(path=file)
    if (size := file.stat().st_size) > LARGEST:
        raise ValueError(f"{file.name} has {size} bytes, more than {LARGEST}")
    return file


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.documents.pictures", description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    asked = parser.parse_args(arguments)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser_page() as page:
        report, site = rendered([run.resolve() for run in asked.runs], Path(folder))
        print(photograph(page, report.as_uri(), "report", 660))
        print(photograph(page, f"{report.as_uri()}#DLV-34", "rule", 620))
        print(photograph(page, (site / "index.html").as_uri(), "site", 660))
    return 0


if __name__ == "__main__":
    sys.exit(main())
