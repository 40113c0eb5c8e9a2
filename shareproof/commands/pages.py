"""``report``: pages of finished runs, and a site over many."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from fixtures.targets import UsageFault

if TYPE_CHECKING:
    from reports.site.archive import Run


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Finished runs: their directories, or ones above them.")
    ],
    *,
    site: Annotated[
        Path | None,
        typer.Option(help="Build a static site over all the runs in this directory."),
    ] = None,
) -> None:
    """Render the page of finished runs again, or a site: who keeps which rule, and what changed."""
    from reports import html
    from reports.site.archive import find
    from reports.site.build import build

    try:
        archive = find(runs)
    except ValueError as error:
        raise UsageFault(str(error)) from None
    for problem in archive.unreadable:
        typer.echo(f"left out: {problem}", err=True)
    if site is not None:
        from suites.detection.told import detection

        typer.echo(build(archive, site, detection()))
        return
    for run in archive.runs:
        told = archive.told(run, partial(_page_of, run.folder))
        typer.echo(html.write(run.folder, run.document, told=told))


def _page_of(seen_from: Path, run: Run) -> str:
    """Return where the page of a run is, seen from the page of another."""
    page = os.path.relpath(run.folder / "report.html", seen_from)
    return quote(Path(page).as_posix())
