"""The commands of the command line, one subject a file; they parse, call and print.

These files declare commands and their options, and import no more than that takes: a shell that
completes a word imports all of them. What a command works with is imported when it is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from reports.results import Results


def end(results: Results, out: str | Path, *, as_json: bool, what: str = "reports") -> NoReturn:
    """Print what a run found, for people or for machines, and end with its exit code."""
    from reports.console import line, screen, show
    from spec.plain import text_of

    if as_json:
        typer.echo(text_of(results), nl=False)
    else:
        show(results, screen())
        line(screen(stderr=True), f"{what} in {out}")
    raise typer.Exit(results.run.exit_code)


@contextmanager
def alone(out: str | Path) -> Iterator[None]:
    """Refuse to write where another command of ours does."""
    from fixtures.machine import storage

    with storage.alone(storage.place(out)):
        yield
